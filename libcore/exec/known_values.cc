// SPDX-License-Identifier: Apache-2.0
// The part of PlanBuilder that computes, while the plan is made, the shape
// arithmetic of a program: the few numbers that follow from the shapes of its
// feeds and from constants. With them the shapes that they give are known, and
// ops stay out of late_steps.cc.
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_op.h"
#include "libcore/exec/plan_builder.h"

namespace pd {
namespace {

constexpr int64_t kMostElements = 64;

bool IsSmall(const Tensor& tensor) {
  return tensor.kind() == VarKind::kLodTensor && tensor.layout() == nullptr &&
         tensor.size() <= kMostElements;
}

}  // namespace

const Tensor* PlanBuilder::KnownValue(Tensor* tensor) {
  const auto known = known_.find(tensor);
  if (known != known_.end()) return known->second.get();
  // An integer that no op writes: a shape that a model keeps as a constant.
  const Info& info = tensors_.InfoOf(tensor);
  if (info.entry == nullptr || !IsSmall(*tensor) ||
      (tensor->dtype() != DType::kInt32 && tensor->dtype() != DType::kInt64) ||
      WrittenLater(tensor, 0))
    return nullptr;
  auto& value = known_[tensor];
  value = std::make_unique<Tensor>(CloneOf(*tensor));
  return value.get();
}

absl::Status PlanBuilder::LearnValues(const OpDef& def, const OpDesc& op,
                                      const TensorMap& inputs,
                                      const TensorMap& outputs) {
  if (!def.Has(Trait::kShapeArithmetic)) return absl::OkStatus();
  for (const auto& [name, tensor] : outputs)
    if (!IsSmall(*tensor) || tensors_.InfoOf(tensor).entry != nullptr)
      return absl::OkStatus();
  const bool of_shape = def.Has(Trait::kReadsShapesOnly);
  Tensor shape_only;  // without elements
  PD_ASSIGN_OR_RETURN(const LateOp late,
                      LateOp::Make(registry_, op, program_.version));
  LateOp::Variables in, out;
  for (const std::string& name : late.inputs()) {
    Tensor* const tensor = inputs.at(name);
    const Tensor* known = KnownValue(tensor);
    if (known == nullptr && !of_shape) return absl::OkStatus();
    if (known == nullptr) {
      shape_only = Tensor(tensor->dtype(), tensor->shape());
      shape_only.Attach(&shape_only);
      known = &shape_only;
    }
    in.Add(name, {const_cast<Tensor*>(known)});
  }
  std::map<std::string, std::unique_ptr<Tensor>> results;
  for (const std::string& name : late.outputs()) {
    auto& result = results[name] = std::make_unique<Tensor>();
    out.Add(name, {result.get()});
  }
  PD_RETURN_IF_ERROR(late.Run({}, in, out, nullptr));
  for (const auto& [name, tensor] : outputs)
    known_[tensor] = std::move(results[name]);
  return absl::OkStatus();
}

}  // namespace pd
