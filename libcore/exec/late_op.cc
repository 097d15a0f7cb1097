// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/late_op.h"

#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_binder.h"
#include "libcore/exec/late_bindings.h"
#include "libcore/exec/late_device.h"
#include "libcore/exec/one_number.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/gradient_inputs.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

// Gives an output the shape that was inferred.
absl::Status Prepare(const OpDef& def, const std::string& name,
                     const TensorMeta& meta, const Frame::Variable& variable) {
  Tensor* tensor = variable.tensor;
  if (meta.kind == VarKind::kLodTensorArray) {
    tensor->set_kind(meta.kind);
    return absl::OkStatus();
  }
  if (tensor->is_sparse()) tensor->elements().clear();
  if (IsSparse(meta.kind)) {  // the step makes its parts
    tensor->Reset(meta.dtype, {0});
  } else if (variable.fixed) {
    PD_RETURN_IF_ERROR(CheckFixed(name, meta, *tensor));
  } else if (def.shape_from_data() ||
             (IsDynamic(meta.shape) && def.Has(Trait::kMayResizeOutputs))) {
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

// Names of slots, each once.
std::vector<std::string> NamesIn(const SlotList& slots) {
  std::vector<std::string> all;
  std::set<std::string> seen = {std::string(kEmptyVar)};
  for (const auto& [slot, names] : slots)
    for (const std::string& name : names)
      if (seen.insert(name).second) all.push_back(name);
  return all;
}

// Whether bindings of the op may be kept: a run of it depends on its dense
// inputs alone, and the shapes of its outputs are known before it.
bool MayKeepBindings(const OpDef& def) {
  return !def.runs_blocks() && !def.shape_from_data() &&
         !def.Has(Trait::kMayResizeOutputs) && !def.Has(Trait::kMovesValues) &&
         !def.Has(Trait::kReadsArrays) && !def.Has(Trait::kReadsUnwritten);
}

bool AreDense(const OpVariables& variables) {
  for (const auto& [name, variable] : variables)
    if (variable.tensor->kind() != VarKind::kLodTensor ||
        variable.tensor->layout() != nullptr)
      return false;
  return true;
}

bool AreDense(const OpVariables& variables, const Metas& metas) {
  for (const auto& [name, variable] : variables) {
    const auto meta = metas.find(name);
    if (meta == metas.end() || meta->second.kind != VarKind::kLodTensor ||
        IsDynamic(meta->second.shape))
      return false;
  }
  return true;
}

// Moves the results of an op into its output variables.
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

const Frame::Variable* OpVariables::Find(absl::string_view name) const {
  for (const Item& item : items_)
    if (item.name == name) return &item.variable;
  return nullptr;
}

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
  if (tensor.dtype() == meta.dtype &&
      (tensor.shape() == meta.shape || IsOneNumber(tensor, meta.shape)))
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
  auto self = std::make_shared<Self>(
      Self{def, ForwardOf(registry, op.type), std::move(op), version, {}, {}});
  self->inputs = NamesIn(self->op.inputs);
  self->outputs = NamesIn(self->op.outputs);
  if (MayKeepBindings(*def)) self->bindings = std::make_shared<LateBindings>();
  return LateOp(std::move(self));
}

bool LateOp::MovesValues(const Variables& inputs) const {
  if (def().runs_blocks() || def().Has(Trait::kMovesValues)) return true;
  if (!def().Has(Trait::kMovesArrays)) return false;
  for (const auto& [name, variable] : inputs)
    if (variable.tensor->is_array()) return true;
  return false;
}

SiteId LateOp::Site() const {
  Recorder& recorder = Recorder::Get();
  if (self_->choice == nullptr)
    return recorder.SiteOf(EventType::kOperatorInner, op().type);
  const Choice& choice = *self_->choice;
  const auto [site, fresh] = self_->sites.try_emplace(absl::StrCat(
      choice.implementation, "\n", absl::StrJoin(choice.refusals, "\n")));
  if (fresh) {
    TraceSite told;
    told.type = EventType::kOperatorInner;
    told.name = op().type;
    if (!outputs().empty()) told.output = outputs().front();
    told.implementation = choice.implementation;
    told.refusals = choice.refusals;
    site->second = recorder.AddSites({told});
  }
  return site->second;
}

absl::StatusOr<Metas> LateOp::Infer(const Metas& inputs) const {
  return InferOp(def(), self_->forward, op(), self_->version, inputs);
}

absl::StatusOr<Metas> LateOp::InferOutputs(const Variables& inputs,
                                           LateDevice* device) const {
  Metas metas;
  bool all_here = true;
  for (const auto& [name, variable] : inputs) {
    TensorMeta& meta = metas[name] = MetaOf(*variable.tensor);
    const bool there = device != nullptr && device->Holds(*variable.tensor);
    if (!there) meta.value = variable.tensor;
    all_here = all_here && !there;
  }
  PD_ASSIGN_OR_RETURN(Metas outputs, Infer(metas));
  bool known = all_here || def().shape_from_data();
  if (!known) {
    known = true;
    for (const auto& [name, meta] : outputs)
      known = known && !IsDynamic(meta.shape);
  }
  if (known) return outputs;
  std::deque<Tensor> brought;
  for (const auto& [name, variable] : inputs) {
    TensorMeta& meta = metas[name];
    if (meta.value != nullptr) continue;
    PD_ASSIGN_OR_RETURN(Tensor here, device->OnHost(*variable.tensor));
    brought.push_back(std::move(here));
    meta.value = &brought.back();
  }
  return Infer(metas);
}

absl::Status LateOp::CheckValues(const Variables& inputs) const {
  if (def().runs_blocks() || def().Has(Trait::kReadsUnwritten))
    return absl::OkStatus();
  const bool arrays = MovesValues(inputs) || def().Has(Trait::kReadsArrays);
  for (const auto& [name, variable] : inputs) {
    const Tensor& t = *variable.tensor;
    const bool numbers = t.kind() == VarKind::kLodTensor || IsSelectedRows(&t);
    const bool sparse = t.is_sparse() && def().Has(Trait::kReadsSparse);
    if (!numbers && !sparse && t.kind() != VarKind::kLodRankTable &&
        !(arrays && t.is_array()))
      return InvalidArgument("variable '%s' is no tensor, which '%s' reads",
                             name, op().type);
    if (numbers && t.size() > 0 && t.raw() == nullptr)
      return FailedPrecondition(
          "variable '%s' is read, but nothing has written it", name);
  }
  return absl::OkStatus();
}

absl::Status LateOp::Run(const RunContext& context, const Variables& inputs,
                         const Variables& outputs, BlockRunner* blocks,
                         LateDevice* device) const {
  if (device == nullptr && self_->bindings != nullptr && AreDense(inputs))
    return RunKept(context, inputs, outputs);
  Metas metas;
  if (!def().runs_blocks()) {
    PD_ASSIGN_OR_RETURN(metas, InferOutputs(inputs, device));
  }
  if (device == nullptr || MovesValues(inputs))
    return RunOnce(context, inputs, outputs, metas, blocks);
  PD_RETURN_IF_ERROR(CheckValues(inputs));
  return device->Run(*this, context, inputs, outputs, metas);
}

absl::Status LateOp::RunKept(const RunContext& context, const Variables& inputs,
                             const Variables& outputs) const {
  PD_RETURN_IF_ERROR(CheckValues(inputs));
  LateBinding* binding = self_->bindings->Find(inputs, outputs);
  if (binding == nullptr) {
    Metas metas;
    for (const auto& [name, variable] : inputs) {
      metas[name] = MetaOf(*variable.tensor);
      // Where only a shape is read, there may be no elements.
      if (!def().Has(Trait::kReadsShapesOnly))
        metas[name].value = variable.tensor;
    }
    PD_ASSIGN_OR_RETURN(const Metas made, Infer(metas));
    if (!AreDense(outputs, made) ||
        !self_->bindings->MayKeep(
            metas, made, [this](const Metas& other) { return Infer(other); }))
      return RunOnce(context, inputs, outputs, made, nullptr);
    PD_ASSIGN_OR_RETURN(auto bound,
                        LateBinding::Make(*this, inputs, outputs, made));
    binding = self_->bindings->Keep(inputs, outputs, std::move(bound));
  }
  if (self_->choice != binding->bound().choice)
    self_->choice = binding->bound().choice;
  return binding->Run(context, inputs, outputs);
}

absl::Status LateOp::RunOnce(const RunContext& context, const Variables& inputs,
                             const Variables& outputs, const Metas& metas,
                             BlockRunner* blocks) const {
  TensorMap in, out;
  std::set<const Tensor*> read;
  for (const auto& [name, variable] : inputs) {
    in[name] = variable.tensor;
    read.insert(variable.tensor);
  }
  const bool hands_on = MovesValues(inputs);
  const bool resizes = def().Has(Trait::kMayResizeOutputs);
  // Outputs that are inputs, and such that an op would give other bytes.
  std::deque<std::pair<Frame::Variable, Tensor>> fresh;
  for (const auto& [name, variable] : outputs) {
    out[name] = variable.tensor;
    if (def().runs_blocks()) continue;
    const auto meta = metas.find(name);
    if (meta == metas.end())
      return InvalidArgument(
          "output '%s' follows from an input that is missing", name);
    const VarKind kind = meta->second.kind;
    const bool array = kind == VarKind::kLodTensorArray;
    const bool sparse = IsSparse(kind);
    if (!array && (variable.fixed ? hands_on || resizes || sparse
                                  : read.count(variable.tensor) > 0)) {
      fresh.emplace_back(variable, Tensor());
      out[name] = &fresh.back().second;
    }
    if (hands_on && variable.fixed && !IsDynamic(meta->second.shape))
      PD_RETURN_IF_ERROR(CheckFixed(name, meta->second, *variable.tensor));
    if (!hands_on || array || sparse)
      PD_RETURN_IF_ERROR(
          Prepare(def(), name, meta->second,
                  {out[name], variable.fixed && !resizes && !sparse}));
  }
  PD_RETURN_IF_ERROR(CheckValues(inputs));
  // Values that are handed on are not computed with.
  PD_ASSIGN_OR_RETURN(HostBinding bound,
                      BindOnHost(def(), op(), in, out, blocks, !hands_on));
  self_->choice = std::move(bound.choice);
  if (bound.step != nullptr) {
    PD_RETURN_IF_ERROR(bound.binder->AllocateScratch(
        [](Tensor* tensor) { return tensor->Allocate(); }));
    PD_RETURN_IF_ERROR(Guarded([&] { return bound.step(context); }));
  }
  return Deliver(blocks, &fresh);
}

}  // namespace pd
