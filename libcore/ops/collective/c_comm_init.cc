// SPDX-License-Identifier: Apache-2.0
// c_gen_nccl_id: in PaddlePaddle it carries the identity of a ring of devices
// to
//   its processes. Here rings are made before a program runs (dist/rings.h), so
//   Out is one 0.
// c_comm_init: an error unless this process has the place in the ring that the
//   attributes say.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferIdentity(InferContext* context) {
  context->SetOutput("Out", {1}, DType::kInt32);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRingIdentity(BindContext* context) {
  Tensor* out = context->Output("Out");
  return Step([out](const RunContext&) {
    std::memset(out->raw(), 0, out->bytes());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindCommInit(BindContext* context) {
  return Step([id = context->Attr<int32_t>("ring_id"),
               nranks = context->Attr<int32_t>("nranks"),
               rank = context->Attr<int32_t>("rank")](const RunContext& run) {
    return RingOf(run, id, nranks, rank).status();
  });
}

}  // namespace

absl::Status RegisterCCommInit(OpRegistry* registry) {
  OpDef identity("c_gen_nccl_id");
  identity.Output("Out").Attr("rank", int32_t{0}).Attr("ring_id", int32_t{0});
  identity.RequiredAttr("endpoint", AttrType::kString);
  identity.Attr("other_endpoints", std::vector<std::string>{});
  identity.Infer(InferIdentity).NoGrad().Reference(BindRingIdentity);
  PD_RETURN_IF_ERROR(registry->Add(std::move(identity)));
  OpDef init("c_comm_init");
  init.OptionalInput("X").Attr("ring_id", int32_t{0});
  init.RequiredAttr("nranks", AttrType::kInt);
  init.RequiredAttr("rank", AttrType::kInt);
  init.Attr("device_id", int32_t{-1}).Attr("endpoints", std::string());
  init.Infer(InferNothing).NoGrad().With(Trait::kCommunicates);
  return registry->Add(std::move(init.Reference(BindCommInit)));
}

}  // namespace pd
