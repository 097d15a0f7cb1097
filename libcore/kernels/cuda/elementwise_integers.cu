// SPDX-License-Identifier: Apache-2.0
// Integers and booleans, element by element: arithmetic, comparisons, logical
// functions. One kernel chooses the function at run time: such tensors,
// counters and conditions, have few elements.
#include <cstdint>

#include "libcore/kernels/cuda/elementwise_integers_arguments.h"
#include "libcore/kernels/cuda/strided_index.h"

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

// Sums and products outside of int64 wrap around.
PD_DEVICE int64_t Wrapped(uint64_t value) {
  return static_cast<int64_t>(value);
}
PD_DEVICE int64_t Sum(int64_t x, int64_t y) {
  return Wrapped(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}

// The quotient rounded towards minus infinity; y is not 0.
PD_DEVICE int64_t FloorDiv(int64_t x, int64_t y) {
  if (y == -1) return Wrapped(0 - static_cast<uint64_t>(x));
  const int64_t quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}
PD_DEVICE int64_t Mod(int64_t x, int64_t y) {
  const int64_t rest = y == -1 ? 0 : x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

PD_DEVICE int64_t Compute(IntegerFunction f, int64_t x, int64_t y) {
  const uint64_t a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
  switch (f) {
    case IntegerFunction::kAdd:
      return Sum(x, y);
    case IntegerFunction::kSub:
      return Wrapped(a - b);
    case IntegerFunction::kMul:
      return Wrapped(a * b);
    case IntegerFunction::kMax:
      return x > y ? x : y;
    case IntegerFunction::kMin:
      return x < y ? x : y;
    case IntegerFunction::kMod:
      return Mod(x, y);
    case IntegerFunction::kFloorDiv:
      return FloorDiv(x, y);
    case IntegerFunction::kEqual:
      return x == y;
    case IntegerFunction::kNotEqual:
      return x != y;
    case IntegerFunction::kLess:
      return x < y;
    case IntegerFunction::kLessEqual:
      return x <= y;
    case IntegerFunction::kGreater:
      return x > y;
    case IntegerFunction::kGreaterEqual:
      return x >= y;
    case IntegerFunction::kAnd:
      return x != 0 && y != 0;
    case IntegerFunction::kOr:
      return x != 0 || y != 0;
    case IntegerFunction::kXor:
      return (x != 0) != (y != 0);
  }
  return 0;
}

struct ElementwiseIntegers {
  PD_DEVICE static void Run(const Block& block, const IntegerArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at[2];
      Place(p.walk, i, at);
      const int64_t x = Sum(Load(p.type, p.x, at[0]), p.before);
      const int64_t y = p.y != nullptr ? Load(p.type, p.y, at[1]) : p.number;
      if (p.bad != nullptr && y == 0) {
        *p.bad = 1;
        return;
      }
      Store(p.out_type, p.out, i, Sum(Compute(p.function, x, y), p.behind));
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(elementwise_integers, ElementwiseIntegers, IntegerArgs)
