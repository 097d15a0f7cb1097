// SPDX-License-Identifier: Apache-2.0
// c_allgather: Out = the X of the processes of the ring, one after the other
//   along axis 0.
// c_concat: the same along the last axis. Its gradient is this process's part.
// dist_concat: c_concat from x to out, without a gradient.
// c_split: Out = part `rank` of X, cut in nranks along the last axis. Its
//   gradient joins the parts of all processes along that axis; PaddlePaddle
//   joins them along axis 0, which is wrong.
// partial_allgather: X is cut in nranks parts, of which `rank` is this
//   process's; Out = every part as its process has it.
// Gradients of c_allgather sum Out@GRAD over the ring, as c_reducescatter does.
#include <cstring>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// An extent of all processes; -1 stays.
absl::StatusOr<int64_t> Joined(int64_t extent, int32_t nranks) {
  int64_t all = -1;
  if (extent >= 0 && __builtin_mul_overflow(extent, int64_t{nranks}, &all))
    return OutOfRange("%d processes have %d each, which is too much", nranks,
                      extent);
  return all;
}

absl::Status InferAllGather(InferContext* context) {
  TensorMeta x = context->Input("X");
  const auto nranks = context->Attr<int32_t>("nranks");
  if (nranks < 1 || x.shape.empty())
    return InvalidArgument("nranks is %d and X has shape %s", nranks,
                           ToString(x.shape));
  PD_ASSIGN_OR_RETURN(x.shape[0], Joined(x.shape[0], nranks));
  context->SetOutput("Out", x.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAllGather(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               nranks = context->Attr<int32_t>("nranks")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id, nranks));
    return ring->AllGather(x->raw(), x->bytes(), out->raw());
  });
}

// The slots of an op along the last axis.
struct LastAxisSlots {
  const char *x, *out;
};
LastAxisSlots SlotsAlongLast(const OpDesc& op) {
  if (op.type == "dist_concat") return {"x", "out"};
  return {"X", "Out"};
}

// Along the last axis: `cut` says that Out is the cut side.
absl::Status InferAlongLast(InferContext* context, bool cut) {
  const LastAxisSlots slots = SlotsAlongLast(context->op());
  const TensorMeta& x = context->Input(slots.x);
  const auto nranks = context->Attr<int32_t>("nranks");
  const auto rank = context->op().AttrOr<int32_t>("rank", 0);
  if (nranks < 1 || rank < 0 || rank >= nranks || x.shape.empty())
    return InvalidArgument("rank is %d of nranks %d, and X has shape %s", rank,
                           nranks, ToString(x.shape));
  Shape shape = x.shape;
  if (cut) {
    PD_RETURN_IF_ERROR(
        ExpectMultiple("the last axis of X", shape.back(), nranks));
    if (shape.back() >= 0) shape.back() /= nranks;
  } else {
    PD_ASSIGN_OR_RETURN(shape.back(), Joined(shape.back(), nranks));
  }
  context->SetOutput(slots.out, std::move(shape), x.dtype);
  return absl::OkStatus();
}
absl::Status InferConcat(InferContext* context) {
  return InferAlongLast(context, false);
}
absl::Status InferSplit(InferContext* context) {
  return InferAlongLast(context, true);
}

absl::StatusOr<Step> BindConcat(BindContext* context) {
  const LastAxisSlots slots = SlotsAlongLast(context->op());
  Tensor* x = context->Input(slots.x);
  Tensor* out = context->Output(slots.out);
  const auto nranks = context->Attr<int32_t>("nranks");
  Tensor* gathered = context->Scratch(out->bytes());
  const size_t width =
      static_cast<size_t>(x->shape().back()) * SizeOf(x->dtype());
  return Step([=, id = context->Attr<int32_t>("ring_id"),
               rank = context->op().AttrOr<int32_t>("rank", -1)](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring,
                        RingOf(run, id, nranks, rank));
    PD_RETURN_IF_ERROR(ring->AllGather(x->raw(), x->bytes(), gathered->raw()));
    if (x->bytes() == 0) return absl::OkStatus();
    const size_t rows = x->bytes() / width, parts = static_cast<size_t>(nranks);
    const auto* from = static_cast<const std::byte*>(gathered->raw());
    auto* to = static_cast<std::byte*>(out->raw());
    for (size_t row = 0; row < rows; ++row)
      for (size_t r = 0; r < parts; ++r)
        std::memcpy(to + (row * parts + r) * width,
                    from + (r * rows + row) * width, width);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindSplit(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const auto nranks = static_cast<size_t>(context->Attr<int32_t>("nranks"));
  const auto rank = static_cast<size_t>(context->Attr<int32_t>("rank"));
  const size_t width =
      static_cast<size_t>(out->shape().back()) * SizeOf(x->dtype());
  return Step([=](const RunContext&) {
    const auto* from = static_cast<const std::byte*>(x->raw());
    auto* to = static_cast<std::byte*>(out->raw());
    const size_t rows = width == 0 ? 0 : out->bytes() / width;
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(to + row * width, from + (row * nranks + rank) * width,
                  width);
    return absl::OkStatus();
  });
}

absl::Status InferPartial(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const auto nranks = context->Attr<int32_t>("nranks");
  const auto rank = context->Attr<int32_t>("rank");
  if (nranks < 1 || rank < 0 || rank >= nranks)
    return InvalidArgument("rank is %d of nranks %d", rank, nranks);
  context->SetOutput("Out", x.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPartialAllGather(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const auto nranks = context->Attr<int32_t>("nranks");
  const auto rank = context->Attr<int32_t>("rank");
  PD_RETURN_IF_ERROR(ExpectMultiple("X", x->size(), nranks));
  const size_t part = x->bytes() / static_cast<size_t>(nranks);
  Tensor* own = context->Scratch(part);
  return Step([=, id = context->Attr<int32_t>("ring_id")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring,
                        RingOf(run, id, nranks, rank));
    if (part == 0) return absl::OkStatus();
    // X and Out may be one variable.
    std::memcpy(own->raw(),
                static_cast<const std::byte*>(x->raw()) +
                    static_cast<size_t>(rank) * part,
                part);
    return ring->AllGather(own->raw(), part, out->raw());
  });
}

absl::StatusOr<std::vector<OpDesc>> AllGatherGrad(const GradRequest& request) {
  return GradOnRing(request, "c_reducescatter");
}
absl::StatusOr<std::vector<OpDesc>> ConcatGrad(const GradRequest& request) {
  return GradOnRing(request, "c_split");
}
absl::StatusOr<std::vector<OpDesc>> SplitGrad(const GradRequest& request) {
  return GradOnRing(request, "c_concat");
}

}  // namespace

absl::Status RegisterCAllgather(OpRegistry* registry) {
  OpDef gather("c_allgather");
  gather.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  gather.Attr("use_calc_stream", false);
  gather.RequiredAttr("nranks", AttrType::kInt);
  gather.Infer(InferAllGather).Grad(GradMaker(AllGatherGrad));
  gather.With(Trait::kCommunicates).Reference(BindAllGather);
  PD_RETURN_IF_ERROR(registry->Add(std::move(gather)));

  OpDef concat("c_concat");
  concat.Input("X").Output("Out").Attr("rank", int32_t{0});
  concat.Attr("nranks", int32_t{1}).Attr("ring_id", int32_t{0});
  concat.Attr("use_calc_stream", true).Attr("use_model_parallel", true);
  concat.Infer(InferConcat).Grad(GradMaker(ConcatGrad));
  concat.With(Trait::kCommunicates).Reference(BindConcat);
  PD_RETURN_IF_ERROR(registry->Add(std::move(concat)));

  OpDef dist("dist_concat");
  dist.Input("x").Output("out").Attr("nranks", int32_t{1});
  dist.Attr("ring_id", int32_t{0}).Infer(InferConcat).NoGrad();
  dist.With(Trait::kCommunicates).Reference(BindConcat);
  PD_RETURN_IF_ERROR(registry->Add(std::move(dist)));

  OpDef split("c_split");
  split.Input("X").Output("Out").Attr("rank", int32_t{0});
  split.Attr("nranks", int32_t{1}).Attr("ring_id", int32_t{0});
  split.Attr("use_calc_stream", false).Attr("use_model_parallel", true);
  split.Infer(InferSplit).Grad(GradMaker(SplitGrad)).Reference(BindSplit);
  PD_RETURN_IF_ERROR(registry->Add(std::move(split)));

  OpDef partial("partial_allgather");
  partial.Input("X").Output("Out").Attr("ring_id", int32_t{0});
  partial.Attr("use_calc_stream", false);
  partial.RequiredAttr("nranks", AttrType::kInt);
  partial.RequiredAttr("rank", AttrType::kInt);
  partial.Infer(InferPartial).NoGrad().With(Trait::kCommunicates);
  return registry->Add(std::move(partial.Reference(BindPartialAllGather)));
}

}  // namespace pd
