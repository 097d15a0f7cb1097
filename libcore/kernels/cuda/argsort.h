// SPDX-License-Identifier: Apache-2.0
// Sorting in device memory, for bindings that need an order.
#ifndef PD_LIBCORE_KERNELS_CUDA_ARGSORT_H_
#define PD_LIBCORE_KERNELS_CUDA_ARGSORT_H_

#include "libcore/kernels/cuda/argsort_arguments.h"
#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {

/// Sorts lines of integers, the smallest first. The caller fills lines up
/// to a power of two with the largest number.
class KeySort {
 public:
  static absl::StatusOr<KeySort> Make(DeviceBinding* binding, int64_t lines,
                                      int64_t n);

  /// Keys of a line: `n` or more.
  int64_t line() const { return args_.line; }
  size_t bytes() const {
    return static_cast<size_t>(args_.total) * sizeof(uint64_t);
  }
  absl::Status Run(uint64_t* keys) const;

 private:
  KeySort(const Starter<SortArgs>& parts, const Starter<SortArgs>& step)
      : parts_(parts), step_(step) {}

  Starter<SortArgs> parts_, step_;
  SortArgs args_{};
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ARGSORT_H_
