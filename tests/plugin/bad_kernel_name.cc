// SPDX-License-Identifier: Apache-2.0
// A kernel of no operator.
#include "paddle/phi/extension.h"

template <typename T, typename Context>
void Dot(const Context& dev_ctx, const phi::DenseTensor&,
         const phi::DenseTensor&, phi::DenseTensor* out) {
  dev_ctx.template Alloc<T>(out);
}
PD_REGISTER_KERNEL(dott, CPU, ALL_LAYOUT, Dot, float) {}
