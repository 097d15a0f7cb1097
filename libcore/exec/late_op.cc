// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/late_op.h"

#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/half.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_binder.h"
#include "libcore/exec/late_device.h"
#include "libcore/exec/offer.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/gradient_inputs.h"
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

// The tensors of an op, or float32 tensors in place of those in fp16 and bf16.
class Float32Tensors {
 public:
  Float32Tensors(TensorMap inputs, TensorMap outputs)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  const TensorMap& inputs() const { return inputs_; }
  const TensorMap& outputs() const { return outputs_; }

  // Unimplemented where one is no dense tensor.
  absl::Status Upcast() {
    for (TensorMap* tensors : {&inputs_, &outputs_})
      for (auto& [name, tensor] : *tensors) {
        if (tensor->dtype() != DType::kFloat16 &&
            tensor->dtype() != DType::kBFloat16)
          continue;
        if (tensor->kind() != VarKind::kLodTensor)
          return Unimplemented("'%s' is no dense tensor", name);
        made_.emplace_back(tensor, Tensor(DType::kFloat32, tensor->shape()));
        Tensor& wide = made_.back().second;
        wide.set_lod(tensor->lod());
        PD_RETURN_IF_ERROR(wide.Allocate());
        if (tensors == &inputs_)
          Convert(*tensor, &wide);
        else
          results_.push_back(&made_.back());
        tensor = &wide;
      }
    return absl::OkStatus();
  }

  // Rounds what was computed in float32 to nearest.
  absl::Status Downcast() {
    for (const auto* result : results_) {
      const auto& [narrow, wide] = *result;
      if (narrow->shape() != wide.shape())  // it followed from data
        PD_RETURN_IF_ERROR(narrow->Resize(narrow->dtype(), wide.shape()));
      narrow->set_lod(wide.lod());
      Convert(wide, narrow);
    }
    return absl::OkStatus();
  }

 private:
  static void Convert(const Tensor& from, Tensor* to) {
    const auto convert = [&](const auto* in, auto* out) {
      using Out = std::remove_reference_t<decltype(*out)>;
      for (int64_t i = 0; i < from.size(); ++i)
        out[i] = static_cast<Out>(static_cast<float>(in[i]));
    };
    if (from.dtype() == DType::kFloat16)
      convert(from.data<Float16>(), to->data<float>());
    else if (from.dtype() == DType::kBFloat16)
      convert(from.data<BFloat16>(), to->data<float>());
    else if (to->dtype() == DType::kFloat16)
      convert(from.data<float>(), to->data<Float16>());
    else
      convert(from.data<float>(), to->data<BFloat16>());
  }

  TensorMap inputs_, outputs_;
  std::deque<std::pair<Tensor*, Tensor>> made_;
  std::vector<const std::pair<Tensor*, Tensor>*> results_;
};

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

bool LateOp::MovesValues(const Variables& inputs) const {
  if (def_->runs_blocks() || def_->Has(Trait::kMovesValues)) return true;
  if (!def_->Has(Trait::kMovesArrays)) return false;
  for (const auto& [name, variable] : inputs)
    if (variable.tensor->is_array()) return true;
  return false;
}

// Values on a device are copied to the host only where a shape needs them.
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
  if (def_->runs_blocks() || def_->Has(Trait::kReadsUnwritten))
    return absl::OkStatus();
  const bool arrays = MovesValues(inputs) || def_->Has(Trait::kReadsArrays);
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
  if (device == nullptr || MovesValues(inputs))
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
  const bool hands_on = MovesValues(inputs);
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
  OfferTerms terms = TermsOf(Place::kHost, in, out);
  terms.low_precision &= !hands_on;  // values that move are not computed with
  struct Bound {
    std::unique_ptr<Float32Tensors> wide;
    std::unique_ptr<LateBinder> binder;
    Step step;
  } bound;
  std::vector<std::string> refusals;
  PD_ASSIGN_OR_RETURN(
      const bool accepted,
      Offer(
          *def_, terms,
          [&](const Implementation& implementation,
              bool upcast) -> absl::Status {
            bound.wide = std::make_unique<Float32Tensors>(in, out);
            if (upcast) PD_RETURN_IF_ERROR(bound.wide->Upcast());
            bound.binder = std::make_unique<LateBinder>(
                op_, bound.wide->inputs(), bound.wide->outputs(), blocks,
                [](Tensor* tensor) { return tensor->Allocate(); });
            const auto step = Guarded(
                [&] { return implementation.bind(bound.binder.get()); });
            PD_RETURN_IF_ERROR(bound.binder->status());
            PD_RETURN_IF_ERROR(step.status());
            bound.step = *step;
            return absl::OkStatus();
          },
          &refusals));
  if (!accepted) return NoneAccepted(refusals);
  if (bound.step != nullptr)
    PD_RETURN_IF_ERROR(Guarded([&] { return bound.step(context); }));
  CopyAliases(*bound.binder);
  PD_RETURN_IF_ERROR(bound.wide->Downcast());
  return Deliver(blocks, &fresh);
}

}  // namespace pd
