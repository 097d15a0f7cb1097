// SPDX-License-Identifier: Apache-2.0
// c_gen_nccl_id, c_gen_xccl_id: in PaddlePaddle they carry the identity of a
//   ring of devices to its processes. Here rings are made before a program runs
//   (dist/rings.h), so Out is one 0.
// c_comm_init, c_comm_init_multitrainer: an error unless this process has the
//   place in the ring that the attributes say.
// c_comm_init_all: a ring of the devices of one process, which is one device
//   here: an error where it has more.
#include <cstdint>
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

// A process drives one device; none is told where it is the only one.
absl::Status ExpectOneDevice(const BindContext& context) {
  const size_t n = context.Attr<std::vector<int32_t>>("devices").size();
  if (n <= 1) return absl::OkStatus();
  return Unimplemented(
      "attr 'devices' has %d devices; a process drives one here", n);
}

absl::StatusOr<Step> BindCommInitAll(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectOneDevice(*context));
  return Step([](const RunContext&) { return absl::OkStatus(); });
}

absl::StatusOr<Step> BindCommInitTrainers(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectOneDevice(*context));
  return Step(
      [id = context->Attr<int32_t>("ring_id"),
       trainers = context->Attr<int32_t>("ntrainers"),
       rank = context->Attr<int32_t>("trainer_id")](const RunContext& run) {
        return RingOf(run, id, trainers, rank).status();
      });
}

}  // namespace

absl::Status RegisterCCommInit(OpRegistry* registry) {
  for (const char* type : {"c_gen_nccl_id", "c_gen_xccl_id"}) {
    OpDef identity(type);
    identity.Output("Out").Attr("rank", int32_t{0}).Attr("ring_id", int32_t{0});
    identity.RequiredAttr("endpoint", AttrType::kString);
    identity.Attr("other_endpoints", std::vector<std::string>{});
    identity.Infer(InferIdentity).NoGrad().Reference(BindRingIdentity);
    PD_RETURN_IF_ERROR(registry->Add(std::move(identity)));
  }
  OpDef init("c_comm_init");
  init.OptionalInput("X").Attr("ring_id", int32_t{0});
  init.RequiredAttr("nranks", AttrType::kInt);
  init.RequiredAttr("rank", AttrType::kInt);
  init.Attr("device_id", int32_t{-1}).Attr("endpoints", std::string());
  init.Infer(InferNothing).NoGrad().With(Trait::kCommunicates);
  PD_RETURN_IF_ERROR(registry->Add(std::move(init.Reference(BindCommInit))));

  OpDef all("c_comm_init_all"), trainers("c_comm_init_multitrainer");
  for (OpDef* op : {&all, &trainers}) {
    op->Attr("devices", std::vector<int32_t>()).Attr("ring_id", int32_t{0});
    op->Infer(InferNothing).NoGrad().With(Trait::kCommunicates);
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(all.Reference(BindCommInitAll))));
  trainers.Input("X").RequiredAttr("ntrainers", AttrType::kInt);
  trainers.RequiredAttr("trainer_id", AttrType::kInt);
  return registry->Add(std::move(trainers.Reference(BindCommInitTrainers)));
}

}  // namespace pd
