// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/norm/norm_groups.h"

#include <utility>

namespace pd {
namespace {

const NormGradGradSlots& SlotsOfType(const std::string& type) {
  return type == "instance_norm_double_grad" ? kNormDoubleGrad : kNormGradGrad;
}

}  // namespace

const NormGradGradSlots& NormSlotsOf(const OpDesc& op) {
  return SlotsOfType(op.type);
}

absl::StatusOr<std::vector<OpDesc>> MakeNormGradGrad(
    const GradRequest& request, const std::string& type,
    const std::vector<const char*>& kept) {
  const OpDesc& op = request.op;
  const NormGradGradSlots& slots = SlotsOfType(type);
  OpDesc second;
  second.type = type;
  second.attrs = op.attrs;
  const auto copy = [&](const char* from, const char* to) {
    if (!op.Input(from).empty()) second.SetInput(to, op.Input(from));
  };
  copy("X", slots.x);
  copy("Scale", slots.scale);
  copy("SavedMean", slots.saved_mean);
  copy("SavedVariance", slots.saved_variance);
  copy("Y@GRAD", slots.dy);
  for (const char* slot : kept) copy(slot, slot);
  const std::pair<const char*, const char*> seconds[] = {
      {"X@GRAD", slots.ddx},
      {"Scale@GRAD", slots.ddscale},
      {"Bias@GRAD", slots.ddbias}};
  for (const auto& [first, slot] : seconds)
    if (!op.Output(first).empty() && op.Output(first)[0] != kEmptyVar)
      second.SetInput(slot, {GradName(op.Output(first)[0])});
  const std::pair<const char*, const char*> wanted[] = {
      {"X", slots.dx}, {"Scale", slots.dscale}, {"Y@GRAD", slots.ddy}};
  bool needed = false;
  for (const auto& [from, slot] : wanted) {
    if (op.Input(from).empty() || !request.needs_grad(op.Input(from)[0]))
      continue;
    needed = true;
    second.SetOutput(slot, {GradName(op.Input(from)[0])});
  }
  std::vector<OpDesc> ops;
  if (needed) ops.push_back(std::move(second));
  return ops;
}

void AddNormGradGradSlots(OpDef* def) {
  const NormGradGradSlots& slots = SlotsOfType(def->type());
  def->Input(slots.x).Input(slots.dy);
  for (const char* slot : {slots.scale, slots.saved_mean, slots.saved_variance,
                           slots.ddx, slots.ddscale, slots.ddbias})
    def->OptionalInput(slot);
  for (const char* slot : {slots.dx, slots.dscale, slots.ddy})
    def->OptionalOutput(slot);
}

absl::Status InferNormGradGrad(InferContext* context) {
  const NormGradGradSlots& slots = NormSlotsOf(context->op());
  context->Share(slots.x, slots.dx);
  context->Share(slots.dy, slots.ddy);
  if (context->HasInput(slots.scale)) context->Share(slots.scale, slots.dscale);
  return absl::OkStatus();
}

}  // namespace pd
