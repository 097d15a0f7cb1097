// SPDX-License-Identifier: Apache-2.0
// Integers and truth values: counters, and what is decided by them. One
// kernel for all functions, as there are few of them at a time.
#include <cstdint>

#include "libcore/kernels/cuda/strided_index.h"
#include "libcore/kernels/cuda/integers_arguments.h"

namespace pd::cuda {
namespace {

PD_DEVICE int64_t Load(NumberType type, const void* from, int64_t i) {
  if (type == NumberType::kInt64) return static_cast<const int64_t*>(from)[i];
  if (type == NumberType::kInt32) return static_cast<const int32_t*>(from)[i];
  return static_cast<const uint8_t*>(from)[i];
}
PD_DEVICE void Store(NumberType type, void* to, int64_t i, int64_t value) {
  if (type == NumberType::kInt64)
    static_cast<int64_t*>(to)[i] = value;
  else if (type == NumberType::kInt32)
    static_cast<int32_t*>(to)[i] = static_cast<int32_t>(value);
  else
    static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(value);
}

// Beyond the largest number they go on with the smallest.
PD_DEVICE int64_t Wrapped(uint64_t value) {
  return static_cast<int64_t>(value);
}

// Towards minus infinity; y is not 0.
PD_DEVICE int64_t FloorDiv(int64_t x, int64_t y) {
  if (y == -1) return Wrapped(0 - static_cast<uint64_t>(x));
  const int64_t quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}
PD_DEVICE int64_t Mod(int64_t x, int64_t y) {
  const int64_t rest = y == -1 ? 0 : x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

PD_DEVICE int64_t Compute(WholeFunction f, int64_t x, int64_t y) {
  const uint64_t a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
  switch (f) {
    case WholeFunction::kAdd:
      return Wrapped(a + b);
    case WholeFunction::kSub:
      return Wrapped(a - b);
    case WholeFunction::kMul:
      return Wrapped(a * b);
    case WholeFunction::kMax:
      return x > y ? x : y;
    case WholeFunction::kMin:
      return x < y ? x : y;
    case WholeFunction::kMod:
      return Mod(x, y);
    case WholeFunction::kFloorDiv:
      return FloorDiv(x, y);
    case WholeFunction::kEqual:
      return x == y;
    case WholeFunction::kNotEqual:
      return x != y;
    case WholeFunction::kLess:
      return x < y;
    case WholeFunction::kLessEqual:
      return x <= y;
    case WholeFunction::kGreater:
      return x > y;
    case WholeFunction::kGreaterEqual:
      return x >= y;
    case WholeFunction::kAnd:
      return x != 0 && y != 0;
    case WholeFunction::kOr:
      return x != 0 || y != 0;
    case WholeFunction::kXor:
      return (x != 0) != (y != 0);
  }
  return 0;
}

struct WholeNumbers {
  PD_DEVICE static void Run(const Block& block, const WholeArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at[2];
      Place(p.walk, i, at);
      const int64_t x = Load(p.type, p.x, at[0]);
      const int64_t y = p.y != nullptr ? Load(p.type, p.y, at[1]) : p.number;
      if (p.bad != nullptr && y == 0) {
        *p.bad = 1;
        return;
      }
      Store(p.out_type, p.out, i, Compute(p.function, x, y));
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(whole_numbers, WholeNumbers, WholeArgs)
