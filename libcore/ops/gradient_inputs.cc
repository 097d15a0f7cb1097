// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/gradient_inputs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Find = std::function<const TensorMeta*(const std::string&)>;

// The forward op as far as its gradient op tells; its outputs are called by
// slot and number. Nothing where an input is missing that the inference may
// read, or attributes mean something else in the gradient op.
std::optional<OpDesc> ForwardOp(const OpDef& forward, const OpDef& def,
                                const OpDesc& grad) {
  // The list of functions stands in another order there.
  if (grad.FindAttr("functor_list") != nullptr) return std::nullopt;
  OpDesc op;
  op.type = forward.type();
  op.attrs = grad.attrs;
  for (const SlotDef& slot : forward.inputs()) {
    // PaddlePaddle drops inputs that a gradient does not read, among them those
    // that a shape came from.
    const auto& names = grad.Input(slot.name);
    if (def.FindInput(slot.name) == nullptr || names.empty())
      return std::nullopt;
    op.SetInput(slot.name, names);
  }
  for (const SlotDef& slot : forward.outputs()) {
    const size_t count = std::max(grad.Input(slot.name).size(),
                                  grad.Input(GradName(slot.name)).size());
    std::vector<std::string> names;
    for (size_t i = 0; i < std::max<size_t>(count, slot.optional ? 0 : 1); ++i)
      names.push_back(absl::StrCat(slot.name, " ", i));
    if (!names.empty()) op.SetOutput(slot.name, std::move(names));
  }
  if (!forward.Normalize(&op).ok()) return std::nullopt;
  return op;
}

absl::Status CheckShape(const std::string& slot, const std::string& name,
                        const TensorMeta& given, const TensorMeta& expected) {
  if (given.kind != VarKind::kLodTensor ||
      expected.kind != VarKind::kLodTensor || IsDynamic(given.shape) ||
      IsDynamic(expected.shape) || given.shape == expected.shape)
    return absl::OkStatus();
  return InvalidArgument("input '%s' ('%s') has shape %s; expected %s", slot,
                         name, ToString(given.shape), ToString(expected.shape));
}

}  // namespace

const OpDef* ForwardOf(const OpRegistry& registry, const std::string& type) {
  return absl::EndsWith(type, "_grad")
             ? registry.Find(absl::StripSuffix(type, "_grad"))
             : nullptr;
}

absl::Status CheckGradientInputs(const OpDef& forward, const OpDef& def,
                                 const OpDesc& grad, int64_t version,
                                 const Find& find) {
  if (!forward.infers() || forward.runs_blocks()) return absl::OkStatus();
  const auto op = ForwardOp(forward, def, grad);
  if (!op.has_value()) return absl::OkStatus();
  std::map<std::string, TensorMeta> outputs;
  InferContext context(*op, version, find,
                       [&](const std::string& name, TensorMeta meta) {
                         outputs[name] = std::move(meta);
                       });
  PD_RETURN_IF_ERROR(Annotate(forward.InferOutputs(&context),
                              absl::StrCat("forward op '", op->type, "'")));
  for (const SlotDef& slot : forward.outputs()) {
    for (const std::string& from : {slot.name, GradName(slot.name)}) {
      const auto& names = grad.Input(from);
      for (size_t i = 0; i < names.size(); ++i) {
        const TensorMeta* given = find(names[i]);
        const auto expected = outputs.find(absl::StrCat(slot.name, " ", i));
        if (given == nullptr || expected == outputs.end()) continue;
        PD_RETURN_IF_ERROR(
            CheckShape(from, names[i], *given, expected->second));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pd
