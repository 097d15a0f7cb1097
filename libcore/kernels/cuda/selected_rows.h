// SPDX-License-Identifier: Apache-2.0
// Selected rows on a device: a tensor of their values, which is planned like
// any other, and their numbers, which DeviceBinding::RowsOf keeps. How many
// there are is known when a plan is made.
#ifndef PD_LIBCORE_KERNELS_CUDA_SELECTED_ROWS_H_
#define PD_LIBCORE_KERNELS_CUDA_SELECTED_ROWS_H_

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/selected_rows_arguments.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd::cuda {

/// Selected rows that a step reads in the order of their numbers.
class OrderedRows {
 public:
  /// Refuses what is not float32, has no row, or is of a tensor of another
  /// shape than `like`.
  static absl::StatusOr<OrderedRows> Make(BindContext* context,
                                          DeviceBinding* binding,
                                          Tensor* selected, const Tensor& like);

  /// Puts them in order.
  absl::Status Order() const { return order_.Elements(args_.n, Now()); }
  /// dense += the rows, after Order.
  absl::Status AddTo(float* dense) const;
  SelectedArgs Now() const;

 private:
  OrderedRows(const Starter<SelectedArgs>& order,
              const Starter<SelectedArgs>& add)
      : order_(order), add_(add) {}

  Tensor *selected_ = nullptr, *places_ = nullptr;
  Starter<SelectedArgs> order_, add_;
  SelectedArgs args_{};
};

/// W@GRAD of a lookup as selected rows.
absl::StatusOr<Step> BindLookupRows(BindContext* context,
                                    DeviceBinding* binding);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_SELECTED_ROWS_H_
