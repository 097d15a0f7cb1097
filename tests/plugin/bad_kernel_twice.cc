// SPDX-License-Identifier: Apache-2.0
// One kernel for one type twice.
#include "paddle/phi/extension.h"

template <typename T, typename Context>
void Dot(const Context& dev_ctx, const phi::DenseTensor&,
         const phi::DenseTensor&, phi::DenseTensor* out) {
  dev_ctx.template Alloc<T>(out);
}
PD_REGISTER_KERNEL(dot, CPU, ALL_LAYOUT, Dot, float, double, float) {}
