// SPDX-License-Identifier: Apache-2.0
// Products of small float32 matrices that lie in the cache, on the calling
// thread: of less than 64 x 64 x 64, where half of a library's time is what it
// does before it multiplies.
#ifndef PD_LIBCORE_KERNELS_CPU_CACHE_PRODUCT_H_
#define PD_LIBCORE_KERNELS_CPU_CACHE_PRODUCT_H_

#include <cstdint>

#include "libcore/ops/common/gemm.h"

namespace pd {
namespace cpu {

/// Floats of the scratch memory of CacheProduct.
int64_t CacheProductFloats(const GemmShape& shape);

/// c = alpha op(a) op(b) + c, or without c where not `add`; all row-major.
/// `scratch` is read and written where b is transposed.
void CacheProduct(const GemmShape& shape, float alpha, const float* a,
                  const float* b, bool add, float* c, float* scratch);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_CACHE_PRODUCT_H_
