// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the recurrences over sequences of rows (lstm.cc, gru.cc).
#ifndef PD_LIBCORE_KERNELS_CUDA_LOD_RNN_H_
#define PD_LIBCORE_KERNELS_CUDA_LOD_RNN_H_

#include <optional>
#include <set>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/bound_product.h"
#include "libcore/kernels/cuda/device_tables.h"
#include "libcore/kernels/cuda/row_maps.h"
#include "libcore/ops/recurrent/sequence_batch.h"

namespace pd::cuda {

/// How many sequences run, over all steps.
inline std::set<int64_t> CountsOf(const SequenceBatches& batches) {
  std::set<int64_t> counts;
  for (int64_t t = 0; t < batches.steps(); ++t) counts.insert(batches.count(t));
  return counts;
}

/// Scratch for so many float32.
inline Tensor* ScratchFloats(BindContext* context, int64_t floats) {
  return context->Scratch(static_cast<size_t>(floats) * sizeof(float));
}

/// An output, or scratch where nobody wants it.
inline Tensor* OutputOrScratch(BindContext* context, const char* slot,
                               int64_t floats) {
  Tensor* const out = context->Output(slot);
  return out != nullptr ? out : ScratchFloats(context, floats);
}

/// A state to start from in the order of the batches, and its gradient back.
class StartState {
 public:
  /// `given`: [sequences, n], or null for zeros.
  static absl::StatusOr<StartState> Make(DeviceBinding* binding,
                                         const SequenceBatches& batches,
                                         Tensor* given, int64_t n) {
    StartState state;
    state.device_ = CudaOf(binding);
    state.given_ = given;
    if (given == nullptr) return state;
    PD_ASSIGN_OR_RETURN(
        state.to_, RowGather::Make(binding, batches.order, n, DType::kFloat32));
    PD_ASSIGN_OR_RETURN(
        state.back_,
        RowGather::Make(binding, InverseOf(batches.order), n, DType::kFloat32));
    return state;
  }
  absl::Status Begin(Tensor* state, size_t bytes) const {
    return given_ == nullptr ? device_->Clear(state->raw(), bytes)
                             : to_->Run(given_->raw(), state->raw());
  }
  /// The gradient, where somebody wants it.
  absl::Status End(const Tensor& gradient, Tensor* to) const {
    if (to == nullptr || given_ == nullptr) return absl::OkStatus();
    return back_->Run(gradient.raw(), to->raw());
  }

 private:
  CudaDevice* device_ = nullptr;
  Tensor* given_ = nullptr;
  std::optional<RowGather> to_, back_;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LOD_RNN_H_
