// SPDX-License-Identifier: Apache-2.0
// LinearRowsGrad of libcore/ops/loss/linear_rows.h on a device.
#ifndef PD_LIBCORE_KERNELS_CUDA_LINEAR_ROWS_H_
#define PD_LIBCORE_KERNELS_CUDA_LINEAR_ROWS_H_

#include <optional>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/linear_rows_arguments.h"
#include "libcore/kernels/cuda/selected_rows_arguments.h"
#include "libcore/ops/loss/linear_rows.h"

namespace pd::cuda {

/// Somebody writes dz() and rows() of every pair, then Run makes the gradients
/// that are asked for.
class LinearRows {
 public:
  /// x: [samples, width], w: [rows, width], with `columns` pairs a sample.
  static absl::StatusOr<LinearRows> Make(BindContext* context,
                                         DeviceBinding* binding, Tensor* x,
                                         Tensor* w, int64_t columns,
                                         const LinearRowsGrad& to);

  float* dz() const { return At(dz_); }
  int64_t* rows() const {
    return known_rows_ != nullptr ? known_rows_ : rows_->data<int64_t>();
  }
  absl::Status Run() const;

 private:
  // dense += values [pairs, width] by row.
  absl::Status AddUp(const float* values, int64_t width, Tensor* dense) const;

  LinearRowsGrad to_;
  CudaDevice* device_ = nullptr;
  Tensor *x_ = nullptr, *w_ = nullptr, *dz_ = nullptr;
  Tensor *rows_ = nullptr, *values_ = nullptr, *places_ = nullptr;
  int64_t* known_rows_ = nullptr;  // of selected rows
  LinearRowsArgs args_{};
  Starter<LinearRowsArgs> grad_x_, make_values_;
  Starter<SelectedArgs> order_, add_;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LINEAR_ROWS_H_
