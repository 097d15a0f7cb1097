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
#include "libcore/exec/guarded.h"
#include "libcore/exec/late_binder.h"
#include "libcore/exec/late_device.h"
#include "libcore/ops/gradient_inputs.h"
#include "libcore/ops/selected_rows.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

// Does what takes the place of a step.
void CopyAliases(const LateBinder& binder) {
  for (const auto& [in, out] : binder.aliases())
    if (out->bytes() > 0 && out->raw() != in->raw())
      std::memmove(out->raw(), in->raw(), out->bytes());
}

// Gives an output the shape that was inferred.
absl::Status Prepare(const std::string& name, const TensorMeta& meta,
                     const Frame::Variable& variable, bool shape_from_data) {
  Tensor* tensor = variable.tensor;
  if (meta.kind == VarKind::kLodTensorArray) {
    tensor->set_kind(meta.kind);
    return absl::OkStatus();
  }
  if (variable.fixed) {
    PD_RETURN_IF_ERROR(CheckFixed(name, meta, *tensor));
  } else if (shape_from_data) {
    tensor->Reset(meta.dtype, {0});
  } else {
    if (IsDynamic(meta.shape))
      return InvalidArgument("the shape of '%s' would be %s", name,
                             ToString(meta.shape));
    PD_RETURN_IF_ERROR(Annotate(tensor->Resize(meta.dtype, meta.shape),
                                absl::StrCat("variable '", name, "'")));
  }
  SetMeta(meta, tensor);
  return absl::OkStatus();
}

// Gives outputs what an op has made for them.
absl::Status Deliver(BlockRunner* blocks,
                     std::deque<std::pair<Frame::Variable, Tensor>>* fresh) {
  Values* values = blocks == nullptr ? HostValues() : blocks->values();
  for (auto& [variable, value] : *fresh) {
    if (variable.fixed)
      PD_RETURN_IF_ERROR(values->Copy(value, variable.tensor));
    else
      *variable.tensor = std::move(value);
  }
  return absl::OkStatus();
}

}  // namespace

void SetMeta(const TensorMeta& meta, Tensor* tensor) {
  tensor->set_lod(meta.lod);
  tensor->set_kind(meta.kind);
  tensor->set_height(meta.height);
  if (meta.kind == VarKind::kSelectedRows && !meta.shape.empty() &&
      meta.shape[0] >= 0)
    tensor->rows().resize(static_cast<size_t>(meta.shape[0]));
}

absl::Status CheckFixed(const std::string& name, const TensorMeta& meta,
                        const Tensor& tensor) {
  if (tensor.dtype() == meta.dtype && tensor.shape() == meta.shape)
    return absl::OkStatus();
  return InvalidArgument("variable '%s' holds %s%s; the op makes %s%s", name,
                         Name(tensor.dtype()), ToString(tensor.shape()),
                         Name(meta.dtype), ToString(meta.shape));
}

absl::StatusOr<Metas> InferOp(const OpDef& def, const OpDef* forward,
                              const OpDesc& op, int64_t version,
                              const Metas& inputs) {
  const auto find = [&](const std::string& name) -> const TensorMeta* {
    const auto it = inputs.find(name);
    return it == inputs.end() ? nullptr : &it->second;
  };
  if (forward != nullptr)
    PD_RETURN_IF_ERROR(CheckGradientInputs(*forward, def, op, version, find));
  Metas outputs;
  InferContext context(op, version, find,
                       [&](const std::string& name, TensorMeta meta) {
                         outputs[name] = std::move(meta);
                       });
  PD_RETURN_IF_ERROR(def.InferOutputs(&context));
  return outputs;
}

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
  const OpDef* forward = ForwardOf(registry, op.type);
  return LateOp(def, forward, std::move(op), version);
}

bool LateOp::HandsOn(const Variables& inputs) const {
  static const std::set<std::string>* const kTypes = new std::set<std::string>{
      "lod_array_length",       "read_from_array",
      "select_input",           "select_output",
      "tensor_array_to_tensor", "tensor_array_to_tensor_grad",
      "write_to_array"};
  if (def_->runs_blocks() || kTypes->count(op_.type) > 0) return true;
  if (op_.type != "sum") return false;
  for (const auto& [name, variable] : inputs)
    if (variable.tensor->is_array()) return true;
  return false;
}

// What lies on a device is brought only where a shape follows from it.
absl::StatusOr<Metas> LateOp::InferOutputs(const Variables& inputs,
                                           LateDevice* device) const {
  Metas metas;
  bool all_here = true;
  for (const auto& [name, variable] : inputs) {
    metas[name] = MetaOf(*variable.tensor);
    const bool there = device != nullptr && device->Holds(*variable.tensor);
    if (!there) metas[name].value = variable.tensor;
    all_here = all_here && !there;
  }
  PD_ASSIGN_OR_RETURN(Metas outputs,
                      InferOp(*def_, forward_, op_, version_, metas));
  bool known = all_here || def_->shape_from_data();
  if (!known) {
    known = true;
    for (const auto& [name, meta] : outputs)
      known = known && !IsDynamic(meta.shape);
  }
  if (known) return outputs;
  std::deque<Tensor> brought;
  for (const auto& [name, variable] : inputs) {
    if (metas[name].value != nullptr) continue;
    PD_ASSIGN_OR_RETURN(Tensor here, device->OnHost(*variable.tensor));
    brought.push_back(std::move(here));
    metas[name].value = &brought.back();
  }
  return InferOp(*def_, forward_, op_, version_, metas);
}

absl::Status LateOp::CheckValues(const Variables& inputs) const {
  // These two look themselves: a branch that was not taken has no value.
  if (def_->runs_blocks() || op_.type == "select_input")
    return absl::OkStatus();
  const bool arrays = HandsOn(inputs) || op_.type == "array_to_lod_tensor" ||
                      op_.type == "beam_search_decode";
  for (const auto& [name, variable] : inputs) {
    const Tensor& t = *variable.tensor;
    const bool numbers = t.kind() == VarKind::kLodTensor || IsSelectedRows(&t);
    if (!numbers && t.kind() != VarKind::kLodRankTable &&
        !(arrays && t.is_array()))
      return InvalidArgument("variable '%s' is no tensor, which '%s' reads",
                             name, op_.type);
    if (numbers && t.size() > 0 && t.raw() == nullptr)
      return FailedPrecondition(
          "variable '%s' is read, but nothing has written it", name);
  }
  return absl::OkStatus();
}

absl::Status LateOp::Run(const RunContext& context, const Variables& inputs,
                         const Variables& outputs, BlockRunner* blocks,
                         LateDevice* device) const {
  Metas metas;
  if (!def_->runs_blocks()) {
    PD_ASSIGN_OR_RETURN(metas, InferOutputs(inputs, device));
  }
  if (device == nullptr || HandsOn(inputs))
    return RunOnHost(context, inputs, outputs, metas, blocks);
  PD_RETURN_IF_ERROR(CheckValues(inputs));
  return device->Run(*this, context, inputs, outputs, metas);
}

absl::Status LateOp::RunOnHost(const RunContext& context,
                               const Variables& inputs,
                               const Variables& outputs, const Metas& metas,
                               BlockRunner* blocks) const {
  std::map<std::string, Tensor*> in, out;
  std::set<const Tensor*> read;
  for (const auto& [name, variable] : inputs) {
    in[name] = variable.tensor;
    read.insert(variable.tensor);
  }
  const bool hands_on = HandsOn(inputs);
  // Outputs that are inputs, and such that an op would give other bytes.
  std::deque<std::pair<Frame::Variable, Tensor>> fresh;
  for (const auto& [name, variable] : outputs) {
    out[name] = variable.tensor;
    if (def_->runs_blocks()) continue;
    const auto meta = metas.find(name);
    if (meta == metas.end())
      return InvalidArgument(
          "output '%s' follows from an input that is missing", name);
    const bool array = meta->second.kind == VarKind::kLodTensorArray;
    if (!array &&
        (variable.fixed ? hands_on : read.count(variable.tensor) > 0)) {
      fresh.emplace_back(variable, Tensor());
      out[name] = &fresh.back().second;
    }
    if (hands_on && variable.fixed && !IsDynamic(meta->second.shape))
      PD_RETURN_IF_ERROR(CheckFixed(name, meta->second, *variable.tensor));
    if (!hands_on || array)
      PD_RETURN_IF_ERROR(Prepare(name, meta->second,
                                 {out[name], variable.fixed},
                                 def_->shape_from_data()));
  }
  PD_RETURN_IF_ERROR(CheckValues(inputs));
  std::vector<std::string> refusals;
  for (const Implementation& implementation : def_->implementations()) {
    if (!TakesKinds(implementation, in, out)) continue;
    LateBinder binder(op_, in, out, blocks,
                      [](Tensor* tensor) { return tensor->Allocate(); });
    absl::StatusOr<Step> step =
        Guarded([&] { return implementation.bind(&binder); });
    PD_RETURN_IF_ERROR(binder.status());
    if (step.ok()) {
      if (*step != nullptr) {
        PD_RETURN_IF_ERROR(Guarded([&] { return (*step)(context); }));
      }
      CopyAliases(binder);
      return Deliver(blocks, &fresh);
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
