// SPDX-License-Identifier: Apache-2.0
// The weight of spectral_norm as a matrix. Shared by its implementations.
#ifndef PD_LIBCORE_OPS_NORM_SPECTRAL_NORM_H_
#define PD_LIBCORE_OPS_NORM_SPECTRAL_NORM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/axis_view.h"

namespace pd {

struct SpectralMatrix {
  AxisView view;  ///< of the weight: [outer, h, inner]
  int64_t h, w;
  int32_t iterations;
  double eps;

  /// Where row r, column c lies in the weight.
  int64_t At(int64_t r, int64_t c) const {
    return (c / view.inner * h + r) * view.inner + c % view.inner;
  }
};

/// InvalidArgument on shapes and attributes that do not fit together.
absl::StatusOr<SpectralMatrix> ReadSpectralMatrix(const BindContext& context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_NORM_SPECTRAL_NORM_H_
