// SPDX-License-Identifier: Apache-2.0
// A kernel with other arguments than its operator's.
#include "paddle/phi/extension.h"

template <typename T, typename Context>
void Dot(const Context& dev_ctx, const phi::DenseTensor&, int axis,
         phi::DenseTensor* out) {
  dev_ctx.template Alloc<T>(out);
  (void)axis;
}
PD_REGISTER_KERNEL(dot, CPU, ALL_LAYOUT, Dot, float) {}
