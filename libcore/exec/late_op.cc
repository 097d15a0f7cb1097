// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/late_op.h"

#include <cstring>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/selected_rows.h"

namespace pd {
namespace {

// Binds an op whose tensors are all there.
class LateBinder : public BindContext {
 public:
  LateBinder(const OpDesc& op, const std::map<std::string, Tensor*>& inputs,
             const std::map<std::string, Tensor*>& outputs, BlockRunner* blocks)
      : BindContext(op), inputs_(inputs), outputs_(outputs), blocks_(blocks) {}

  void Alias(Tensor* in, Tensor* out) override {
    aliases_.emplace_back(in, out);
  }
  void MayShare(Tensor*, Tensor*) override {}
  void NoBuffer(Tensor*) override {}
  Tensor* Scratch(size_t bytes) override {
    return NewTensor(DType::kUInt8, {static_cast<int64_t>(bytes)});
  }
  // What a forward op leaves for its gradient is lost: the gradient's other
  // implementations do without.
  Tensor* Keep(const std::string&, DType dtype, Shape shape) override {
    return NewTensor(dtype, std::move(shape));
  }
  Tensor* Kept(const std::string&) override { return nullptr; }
  BlockRunner* blocks() override { return blocks_; }
  absl::StatusOr<Tensor*> In(Tensor* tensor, const LayoutPtr& layout) override {
    return RowMajorOnly(tensor, layout);
  }
  absl::StatusOr<Tensor*> Out(Tensor* tensor,
                              const LayoutPtr& layout) override {
    return RowMajorOnly(tensor, layout);
  }
  LayoutPtr LayoutOf(const std::string&) const override { return nullptr; }
  bool IsConstant(const Tensor*) const override { return false; }
  bool IsFrozen(const Tensor*) const override { return false; }
  bool IsTraining() const override { return true; }

  // Does what takes the place of a step.
  void CopyAliases() const {
    for (const auto& [in, out] : aliases_)
      if (out->bytes() > 0 && out->raw() != in->raw())
        std::memmove(out->raw(), in->raw(), out->bytes());
  }

 protected:
  Tensor* FindInput(const std::string& name) const override {
    const auto it = inputs_.find(name);
    return it == inputs_.end() ? nullptr : it->second;
  }
  Tensor* FindOutput(const std::string& name) const override {
    const auto it = outputs_.find(name);
    return it == outputs_.end() ? nullptr : it->second;
  }

 private:
  Tensor* NewTensor(DType dtype, Shape shape) {
    made_.emplace_back(dtype, std::move(shape));
    made_.back().Allocate();
    return &made_.back();
  }
  static absl::StatusOr<Tensor*> RowMajorOnly(Tensor* tensor,
                                              const LayoutPtr& layout) {
    if (layout == nullptr) return tensor;
    return Unimplemented("shapes are known only when it runs");
  }

  const std::map<std::string, Tensor*>& inputs_;
  const std::map<std::string, Tensor*>& outputs_;
  BlockRunner* blocks_;
  std::vector<std::pair<Tensor*, Tensor*>> aliases_;
  std::deque<Tensor> made_;
};

// Gives an output the shape that was inferred.
absl::Status Prepare(const std::string& name, const TensorMeta& meta,
                     const Frame::Variable& variable, bool shape_from_data) {
  Tensor* tensor = variable.tensor;
  if (meta.kind == VarKind::kLodTensorArray) {
    tensor->set_kind(meta.kind);
    return absl::OkStatus();
  }
  if (variable.fixed) {
    if (tensor->dtype() != meta.dtype || tensor->shape() != meta.shape)
      return InvalidArgument("variable '%s' holds %s%s; the op makes %s%s",
                             name, Name(tensor->dtype()),
                             ToString(tensor->shape()), Name(meta.dtype),
                             ToString(meta.shape));
  } else if (shape_from_data) {
    tensor->Reset(meta.dtype, {0});
  } else {
    if (IsDynamic(meta.shape))
      return Internal("the shape of '%s' is inferred as %s when it runs", name,
                      ToString(meta.shape));
    tensor->Resize(meta.dtype, meta.shape);
  }
  tensor->set_lod(meta.lod);
  tensor->set_kind(meta.kind);
  tensor->set_height(meta.height);
  if (meta.kind == VarKind::kSelectedRows && !meta.shape.empty() &&
      meta.shape[0] >= 0)
    tensor->rows().resize(static_cast<size_t>(meta.shape[0]));
  return absl::OkStatus();
}

}  // namespace

TensorMeta MetaOf(const Tensor& tensor) {
  TensorMeta meta;
  meta.dtype = tensor.dtype();
  meta.shape = tensor.shape();
  meta.SetLoD(tensor.lod());
  meta.kind = tensor.kind();
  meta.height = tensor.height();
  return meta;
}

bool TakesKinds(const Implementation& implementation,
                const std::map<std::string, Tensor*>& inputs,
                const std::map<std::string, Tensor*>& outputs) {
  if (implementation.label == "reference") return true;
  for (const auto* tensors : {&inputs, &outputs})
    for (const auto& [name, tensor] : *tensors)
      if (tensor->kind() != VarKind::kLodTensor &&
          !(implementation.selected_rows && IsSelectedRows(tensor)))
        return false;
  return true;
}

std::string DescribeOp(const OpDesc& op) {
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names)
      if (name != kEmptyVar)
        return absl::StrCat("op '", op.type, "' that makes '", name, "'");
  return absl::StrCat("op '", op.type, "'");
}

absl::StatusOr<LateOp> LateOp::Make(const OpRegistry& registry, OpDesc op,
                                    int64_t version) {
  PD_ASSIGN_OR_RETURN(const OpDef* def, registry.Get(op.type));
  PD_RETURN_IF_ERROR(def->Normalize(&op));
  return LateOp(def, std::move(op), version);
}

absl::StatusOr<std::map<std::string, TensorMeta>> LateOp::InferOutputs(
    const Variables& inputs) const {
  std::map<std::string, TensorMeta> metas, outputs;
  for (const auto& [name, variable] : inputs) {
    metas[name] = MetaOf(*variable.tensor);
    metas[name].value = variable.tensor;
  }
  InferContext context(
      op_, version_,
      [&](const std::string& name) -> const TensorMeta* {
        const auto it = metas.find(name);
        return it == metas.end() ? nullptr : &it->second;
      },
      [&](const std::string& name, TensorMeta meta) {
        outputs[name] = std::move(meta);
      });
  PD_RETURN_IF_ERROR(def_->infer()(&context));
  return outputs;
}

absl::Status LateOp::CheckValues(const Variables& inputs) const {
  // These two look themselves: a branch that was not taken has no value.
  if (def_->runs_blocks() || op_.type == "select_input")
    return absl::OkStatus();
  for (const auto& [name, variable] : inputs) {
    const Tensor& t = *variable.tensor;
    if (t.kind() == VarKind::kLodTensor && t.size() > 0 && t.raw() == nullptr)
      return FailedPrecondition(
          "variable '%s' is read, but nothing has written it", name);
  }
  return absl::OkStatus();
}

absl::Status LateOp::Run(const RunContext& context, const Variables& inputs,
                         const Variables& outputs, BlockRunner* blocks) const {
  std::map<std::string, Tensor*> in, out;
  std::set<const Tensor*> read;
  for (const auto& [name, variable] : inputs) {
    in[name] = variable.tensor;
    read.insert(variable.tensor);
  }
  std::deque<std::pair<Tensor*, Tensor>> fresh;  // outputs that are inputs
  if (def_->runs_blocks()) {
    for (const auto& [name, variable] : outputs) out[name] = variable.tensor;
  } else {
    PD_ASSIGN_OR_RETURN(const auto metas, InferOutputs(inputs));
    for (const auto& [name, variable] : outputs) {
      const auto meta = metas.find(name);
      if (meta == metas.end())
        return Internal("output '%s' was not inferred", name);
      Frame::Variable target = variable;
      if (!target.fixed && read.count(target.tensor) > 0 &&
          meta->second.kind != VarKind::kLodTensorArray) {
        fresh.emplace_back(target.tensor, Tensor());
        target.tensor = &fresh.back().second;
      }
      PD_RETURN_IF_ERROR(
          Prepare(name, meta->second, target, def_->shape_from_data()));
      out[name] = target.tensor;
    }
  }
  PD_RETURN_IF_ERROR(CheckValues(inputs));
  std::vector<std::string> refusals;
  for (const Implementation& implementation : def_->implementations()) {
    if (!TakesKinds(implementation, in, out)) continue;
    LateBinder binder(op_, in, out, blocks);
    absl::StatusOr<Step> step = implementation.bind(&binder);
    if (step.ok()) {
      if (*step != nullptr) PD_RETURN_IF_ERROR((*step)(context));
      binder.CopyAliases();
      for (auto& [tensor, value] : fresh) *tensor = std::move(value);
      return absl::OkStatus();
    }
    if (step.status().code() != absl::StatusCode::kUnimplemented)
      return step.status();
    refusals.push_back(
        absl::StrCat(implementation.label, ": ", step.status().message()));
  }
  return Unimplemented("no implementation takes it (%s)",
                       absl::StrJoin(refusals, "; "));
}

}  // namespace pd
