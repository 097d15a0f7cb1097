// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/late_binder.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

Tensor* Find(const TensorMap& tensors, const std::string& name) {
  const auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : it->second;
}

bool IsLowPrecision(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat16 ||
         tensor.dtype() == DType::kBFloat16;
}

absl::Status CheckDense(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (IsLowPrecision(*tensor) && tensor->kind() != VarKind::kLodTensor)
      return Unimplemented("'%s' is no dense tensor", name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Step> LateBinder::Finish(Step step) const {
  step = WithCopies(std::move(step));
  if (!upcaster_.has_value()) return step;
  return upcaster_->Wrap(std::move(step));
}

bool LateBinder::Reads(const Tensor* input) const {
  return std::find(no_buffer_.begin(), no_buffer_.end(), input) ==
         no_buffer_.end();
}

absl::Status LateBinder::AllocateScratch(const AllocateFn& allocate) {
  for (Tensor& tensor : scratch_)
    if (tensor.raw() == nullptr) PD_RETURN_IF_ERROR(allocate(&tensor));
  return absl::OkStatus();
}

void LateBinder::ReleaseScratch(size_t most) {
  size_t bytes = 0;
  for (const Tensor& tensor : scratch_) bytes += tensor.bytes();
  if (bytes <= most) return;
  for (Tensor& tensor : scratch_) tensor.Attach(nullptr);
}

Tensor* LateBinder::FindInput(const std::string& name) const {
  Tensor* const tensor = Find(inputs_, name);
  return upcaster_.has_value() ? upcaster_->In(tensor) : tensor;
}

Tensor* LateBinder::FindOutput(const std::string& name) const {
  Tensor* const tensor = Find(outputs_, name);
  return upcaster_.has_value() ? upcaster_->Out(tensor) : tensor;
}

absl::StatusOr<HostBinding> BindOnHost(const OpDef& def, const OpDesc& op,
                                       const TensorMap& inputs,
                                       const TensorMap& outputs,
                                       BlockRunner* blocks, bool may_upcast) {
  OfferTerms terms = TermsOf(Place::kHost, inputs, outputs);
  terms.low_precision &= may_upcast;
  HostBinding bound;
  auto choice = std::make_shared<LateOp::Choice>();
  const auto ask = [&](const Implementation& implementation,
                       bool upcast) -> absl::Status {
    if (upcast) {
      PD_RETURN_IF_ERROR(CheckDense(inputs));
      PD_RETURN_IF_ERROR(CheckDense(outputs));
    }
    bound.binder =
        std::make_unique<LateBinder>(op, inputs, outputs, blocks, upcast);
    PD_ASSIGN_OR_RETURN(Step step, Guarded([&] {
                          return implementation.bind(bound.binder.get());
                        }));
    PD_ASSIGN_OR_RETURN(bound.step, bound.binder->Finish(std::move(step)));
    choice->implementation = implementation.label;
    if (upcast) choice->implementation += " in float32";
    return absl::OkStatus();
  };
  PD_ASSIGN_OR_RETURN(const bool accepted,
                      Offer(def, terms, ask, &choice->refusals));
  if (!accepted) return NoneAccepted(choice->refusals);
  bound.choice = std::move(choice);
  return bound;
}

}  // namespace pd
