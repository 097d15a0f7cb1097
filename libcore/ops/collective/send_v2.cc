// SPDX-License-Identifier: Apache-2.0
// send_v2: X goes to process `peer` of the ring.
// recv_v2: Out = what process `peer` sends; its dtype and out_shape are
//   attributes, and known: an extent of -1 is refused.
// p_send, p_recv: the same of x and out, whose shape is always the message's.
// partial_send, partial_recv: the same with part `id` of `num` equal parts of
//   the elements in row-major order; the rest of Out is 0.
// A message begins with its dtype and shape (message.h).
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/message.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Whether an op is of the newer names, whose slots are in small letters.
bool IsPeerOp(const OpDesc& op) {
  return op.type[0] == 'p' && op.type[1] == '_';
}

absl::StatusOr<Step> BindSend(BindContext* context) {
  Tensor* x = context->Input(IsPeerOp(context->op()) ? "x" : "X");
  PD_ASSIGN_OR_RETURN(const MessageHeader header,
                      MessageHeaderOf(x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(const MessagePart part,
                      MessagePartOf(context->op(), "X", *x));
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               peer = context->Attr<int32_t>("peer")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    PD_RETURN_IF_ERROR(ring->Send(peer, &header, sizeof(header)));
    return ring->Send(peer,
                      static_cast<const std::byte*>(x->raw()) + part.begin(*x),
                      part.bytes(*x));
  });
}

absl::StatusOr<DType> ReceivedType(const OpDesc& op) {
  const auto code = op.Attr<int32_t>("dtype");
  const std::optional<DType> dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("dtype is %d, which is none", code);
  return *dtype;
}

absl::Status InferReceive(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const DType dtype, ReceivedType(context->op()));
  const auto& shape = context->Attr<std::vector<int32_t>>("out_shape");
  for (const int32_t extent : shape)
    if (extent < 0)
      return Unimplemented("out_shape has an extent of %d", extent);
  context->SetOutput("Out", Shape(shape.begin(), shape.end()), dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReceive(BindContext* context) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const MessagePart part,
                      MessagePartOf(context->op(), "Out", *out));
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               peer = context->Attr<int32_t>("peer")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    PD_ASSIGN_OR_RETURN(const MessageHeader header, ReceiveHeader(*ring, peer));
    PD_RETURN_IF_ERROR(ExpectMessage(header, *out));
    if (part.num > 1 && out->bytes() > 0)
      std::memset(out->raw(), 0, out->bytes());
    return ring->Receive(peer,
                         static_cast<std::byte*>(out->raw()) + part.begin(*out),
                         part.bytes(*out));
  });
}

absl::Status InferPeerReceive(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const DType dtype, ReceivedType(context->op()));
  context->SetOutput("out", {-1}, dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPeerReceive(BindContext* context) {
  Tensor* out = context->Output("out");
  PD_ASSIGN_OR_RETURN(const DType dtype, ReceivedType(context->op()));
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               peer = context->Attr<int32_t>("peer")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    PD_ASSIGN_OR_RETURN(const MessageHeader header, ReceiveHeader(*ring, peer));
    if (header.axes >= 0 &&
        header.axes <= static_cast<int64_t>(kMostMessageAxes))
      PD_RETURN_IF_ERROR(out->Resize(
          dtype, Shape(header.extents, header.extents + header.axes)));
    PD_RETURN_IF_ERROR(ExpectMessage(header, *out));
    return ring->Receive(peer, out->raw(), out->bytes());
  });
}

OpDef SendLike(const char* type) {
  OpDef op(type);
  op.Input("X").Attr("ring_id", int32_t{0}).Attr("peer", int32_t{0});
  op.Attr("use_calc_stream", false).Infer(InferNothing).NoGrad();
  op.With(Trait::kCommunicates).Reference(BindSend);
  return op;
}

OpDef ReceiveLike(const char* type) {
  OpDef op(type);
  op.Output("Out").Attr("ring_id", int32_t{0}).Attr("peer", int32_t{0});
  op.Attr("dtype", int32_t{5}).Attr("out_shape", std::vector<int32_t>{});
  op.Attr("use_calc_stream", false).Infer(InferReceive).NoGrad();
  op.With(Trait::kCommunicates).Reference(BindReceive);
  return op;
}

}  // namespace

absl::Status RegisterSendV2(OpRegistry* registry) {
  OpDef send = SendLike("send_v2");
  send.Attr("dynamic_shape", false);
  PD_RETURN_IF_ERROR(registry->Add(std::move(send)));
  OpDef receive = ReceiveLike("recv_v2");
  receive.Attr("dynamic_shape", false);
  PD_RETURN_IF_ERROR(registry->Add(std::move(receive)));
  OpDef part = SendLike("partial_send");
  part.Attr("num", int32_t{1}).Attr("id", int32_t{0});
  PD_RETURN_IF_ERROR(registry->Add(std::move(part)));
  OpDef receive_part = ReceiveLike("partial_recv");
  receive_part.Attr("num", int32_t{1}).Attr("id", int32_t{0});
  PD_RETURN_IF_ERROR(registry->Add(std::move(receive_part)));

  OpDef to_peer("p_send"), from_peer("p_recv");
  for (OpDef* op : {&to_peer, &from_peer}) {
    op->Attr("ring_id", int32_t{0}).Attr("peer", int32_t{0});
    op->Attr("dynamic_shape", false).NoGrad().With(Trait::kCommunicates);
  }
  to_peer.Input("x").Infer(InferNothing).Reference(BindSend);
  PD_RETURN_IF_ERROR(registry->Add(std::move(to_peer)));
  from_peer.Output("out").Attr("dtype", int32_t{5}).ShapeFromData();
  from_peer.Infer(InferPeerReceive).Reference(BindPeerReceive);
  return registry->Add(std::move(from_peer));
}

}  // namespace pd
