// SPDX-License-Identifier: Apache-2.0
// Elements that are taken or not: where, and the triangles of matrices. Of any
// kind of numbers: they are copied.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/where_arguments.h"

namespace pd::cuda {
namespace {

template <typename T>
struct Select {
  PD_DEVICE static void Run(const Block& block, const SelectArgs& p) {
    const T* x = static_cast<const T*>(p.x);
    const T* y = static_cast<const T*>(p.y);
    block.Spread(p.n, [&](int64_t i) {
      const T* from = p.condition[i] != 0 ? x : y;
      static_cast<T*>(p.out)[i] = from != nullptr ? from[i] : T(0);
    });
  }
};

template <typename T>
struct Triangle {
  PD_DEVICE static void Run(const Block& block, const TriangleArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const int64_t row = i / p.columns % p.rows;
      const int64_t above = i % p.columns - row - p.diagonal;
      const bool in = p.lower != 0 ? above <= 0 : above >= 0;
      static_cast<T*>(p.to)[i] = in ? static_cast<const T*>(p.from)[i] : T(0);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_CHOICES(bytes, T)                       \
  PD_KERNEL(select_##bytes, Select<T>, SelectArgs) \
  PD_KERNEL(triangle_##bytes, Triangle<T>, TriangleArgs)
PD_CHOICES(1, uint8_t)
PD_CHOICES(2, uint16_t)
PD_CHOICES(4, uint32_t)
PD_CHOICES(8, uint64_t)
#undef PD_CHOICES
