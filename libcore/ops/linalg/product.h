// SPDX-License-Identifier: Apache-2.0
// Matrix shapes of matmul, matmul_v2, bmm, mul and their gradients. Shared by
// their implementations.
#ifndef PD_LIBCORE_OPS_LINALG_PRODUCT_H_
#define PD_LIBCORE_OPS_LINALG_PRODUCT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// A product as matrices: batch axes before, then [m, k] x [k, n].
struct Product {
  int64_t m = 1, n = 1, k = 1, y_k = 1;
  bool trans_x = false, trans_y = false;
  Shape x_batch, y_batch, batch;  ///< x_batch, y_batch: 1 where broadcast
  Shape out;
  float alpha = 1.0f;
};

/// InvalidArgument when the shapes do not fit together.
absl::StatusOr<Product> ProductOf(const OpDesc& op, const Shape& x,
                                  const Shape& y);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LINALG_PRODUCT_H_
