// SPDX-License-Identifier: Apache-2.0
// The fastest product of float32 matrices that this machine has, for code that
// is no operator, such as calibration.
#ifndef PD_LIBCORE_KERNELS_SGEMM_H_
#define PD_LIBCORE_KERNELS_SGEMM_H_

#include "libcore/ops/common/gemm.h"

namespace pd {

/// c = op(a) op(b), all row-major, on all threads.
void Sgemm(const GemmShape& shape, const float* a, const float* b, float* c);

}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_SGEMM_H_
