// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/eager.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"
#include "libcore/ops/common/row_major_binder.h"

namespace pd {
namespace {

class EagerBinder : public RowMajorBinder {
 public:
  using Values = std::map<std::string, Tensor*>;
  EagerBinder(const OpDesc& op, const Values& inputs, const Values& outputs)
      : RowMajorBinder(op), inputs_(inputs), outputs_(outputs) {}

  Tensor* Scratch(size_t bytes) override {
    return New(DType::kUInt8, {static_cast<int64_t>(bytes)});
  }
  Tensor* Keep(const std::string&, DType dtype, Shape shape) override {
    return New(dtype, std::move(shape));
  }
  bool IsTraining() const override { return true; }

  absl::Status AllocateScratch() {
    for (Tensor& tensor : scratch_) PD_RETURN_IF_ERROR(tensor.Allocate());
    return absl::OkStatus();
  }

 protected:
  Tensor* FindInput(const std::string& name) const override {
    return Look(inputs_, name);
  }
  Tensor* FindOutput(const std::string& name) const override {
    return Look(outputs_, name);
  }

 private:
  static Tensor* Look(const Values& values, const std::string& name) {
    const auto it = values.find(name);
    return it == values.end() ? nullptr : it->second;
  }
  Tensor* New(DType dtype, Shape shape) {
    scratch_.emplace_back(dtype, std::move(shape));
    return &scratch_.back();
  }

  const Values& inputs_;
  const Values& outputs_;
  std::deque<Tensor> scratch_;
};

// The op with a variable for each slot, called as the slot is.
OpDesc Described(absl::string_view type, const Eager::Inputs& inputs,
                 Eager::Attrs attrs, const std::vector<std::string>& slots) {
  OpDesc op;
  op.type = std::string(type);
  op.attrs = std::move(attrs);
  for (const auto& [slot, tensor] : inputs)
    if (tensor != nullptr) op.SetInput(slot, {absl::StrCat("in/", slot)});
  for (const std::string& slot : slots)
    op.SetOutput(slot, {absl::StrCat("out/", slot)});
  return op;
}

}  // namespace

// Computes the outputs of an op, which are new tensors in `made`.
absl::Status Eager::RunOp(OpDesc op, Values* values,
                          std::deque<Tensor>* made) const {
  PD_ASSIGN_OR_RETURN(const OpDef* def, ReferenceOps().Get(op.type));
  PD_RETURN_IF_ERROR(def->Normalize(&op));
  std::map<std::string, TensorMeta> metas, inferred;
  for (const auto& [name, tensor] : *values) {
    metas[name] = MetaOf(*tensor);
    metas[name].value = tensor;
  }
  InferContext context(
      op, kPartsVersion,
      [&](const std::string& name) -> const TensorMeta* {
        const auto it = metas.find(name);
        return it == metas.end() ? nullptr : &it->second;
      },
      [&](const std::string& name, TensorMeta meta) {
        inferred[name] = std::move(meta);
      });
  PD_RETURN_IF_ERROR(def->InferOutputs(&context));
  EagerBinder::Values outputs;
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names) {
      if (name == kEmptyVar) continue;
      made->emplace_back();
      Tensor* tensor = outputs[name] = &made->back();
      const auto meta = inferred.find(name);
      if (meta != inferred.end() && !IsDynamic(meta->second.shape))
        PD_RETURN_IF_ERROR(
            tensor->Resize(meta->second.dtype, meta->second.shape));
    }
  EagerBinder binder(op, *values, outputs);
  PD_ASSIGN_OR_RETURN(Step step, def->implementations().back().bind(&binder));
  step = binder.WithCopies(std::move(step));
  PD_RETURN_IF_ERROR(binder.AllocateScratch());
  if (step != nullptr) PD_RETURN_IF_ERROR(step(run_));
  for (const auto& [name, tensor] : outputs) (*values)[name] = tensor;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Eager::RunAll(
    absl::string_view type, const Inputs& inputs, Attrs attrs,
    const std::vector<std::string>& slots) const {
  const OpDesc op = Described(type, inputs, std::move(attrs), slots);
  Values values;
  for (const auto& [slot, tensor] : inputs)
    if (tensor != nullptr) values[op.In(slot)] = tensor;
  std::deque<Tensor> made;
  PD_RETURN_IF_ERROR(RunOp(op, &values, &made));
  std::vector<Tensor> results;
  for (const std::string& slot : slots)
    results.push_back(std::move(*values[op.Out(slot)]));
  return results;
}

absl::StatusOr<std::vector<Tensor>> Eager::Gradients(
    absl::string_view type, const Inputs& inputs, Attrs attrs,
    const Inputs& outputs, absl::string_view slot, Tensor* out_grad,
    const std::vector<std::string>& wanted) const {
  PD_ASSIGN_OR_RETURN(const OpDef* def, ReferenceOps().Get(type));
  PD_INVARIANT(def->has_grad());
  std::vector<std::string> slots = {std::string(slot)};
  for (const auto& [name, tensor] : outputs)
    if (name != slot) slots.push_back(name);
  OpDesc op = Described(type, inputs, std::move(attrs), slots);
  PD_RETURN_IF_ERROR(def->Normalize(&op));
  Values values;
  for (const auto& [name, tensor] : inputs)
    if (tensor != nullptr) values[op.In(name)] = tensor;
  for (const auto& [name, tensor] : outputs)
    if (tensor != nullptr) values[op.Out(name)] = tensor;
  values[GradName(op.Out(slot))] = out_grad;
  PD_ASSIGN_OR_RETURN(const std::vector<OpDesc> grads,
                      def->grad()({op, [&](const std::string& variable) {
                                     for (const std::string& name : wanted)
                                       if (op.In(name) == variable) return true;
                                     return false;
                                   }}));
  std::deque<Tensor> made;
  for (const OpDesc& grad : grads)
    PD_RETURN_IF_ERROR(RunOp(grad, &values, &made));
  std::vector<Tensor> results;
  for (const std::string& name : wanted)
    results.push_back(std::move(*values[GradName(op.In(name))]));
  return results;
}

absl::StatusOr<Tensor> Eager::Run(absl::string_view type, const Inputs& inputs,
                                  Attrs attrs, absl::string_view slot) const {
  PD_ASSIGN_OR_RETURN(
      std::vector<Tensor> results,
      RunAll(type, inputs, std::move(attrs), {std::string(slot)}));
  return std::move(results[0]);
}

}  // namespace pd
