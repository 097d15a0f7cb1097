// SPDX-License-Identifier: Apache-2.0
// Functions of two tensors, of which one may repeat along dimensions: sums,
// comparisons, and, or. `where` chooses between two by a third.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "libcore/bundle/runtime/functions.h"
#include "libcore/bundle/runtime/kernels.h"
#include "libcore/bundle/runtime/loop.h"

namespace pd_run {
namespace {

// Both operands in the dimensions of the result.
struct Operands {
  Shape a, b, out;
};

// `small` in `rank` dimensions from `axis` on.
bool Align(Call* call, Shape small, int rank, int64_t axis, Shape* aligned) {
  if (axis < 0) {
    axis = rank - small.rank;
  } else {
    while (small.rank > 1 && small[small.rank - 1] == 1) --small.rank;
  }
  if (axis + small.rank > rank)
    return call->Fail("an operand of shape %s does not fit from axis %lld on",
                      ToString(small).c_str(), static_cast<long long>(axis));
  *aligned = Shape();
  for (int i = 0; i < rank; ++i) aligned->Append(1);
  for (int i = 0; i < small.rank; ++i)
    (*aligned)[static_cast<int>(axis) + i] = small[i];
  return true;
}

bool ReadOperands(Call* call, Operands* o) {
  if (!call->Within(BinaryInts::kAxis, -1, kMaxRank)) return false;
  const Shape &a = call->In(0).shape, &b = call->In(1).shape;
  const int rank = std::max(a.rank, b.rank);
  const int64_t axis = call->Int(BinaryInts::kAxis);
  if (!Align(call, a, rank, a.rank == rank ? -1 : axis, &o->a) ||
      !Align(call, b, rank, b.rank == rank ? -1 : axis, &o->b))
    return false;
  for (int i = 0; i < rank; ++i) {
    if (o->a[i] != o->b[i] && o->a[i] != 1 && o->b[i] != 1)
      return call->Fail("shapes %s and %s do not fit", ToString(a).c_str(),
                        ToString(b).c_str());
    o->out.Append(o->a[i] == 1 ? o->b[i] : o->a[i]);
  }
  return true;
}

Loop<2> LoopOf(const Operands& o) {
  const auto a = Strides(o.a), b = Strides(o.b);
  Loop<2> loop;
  for (int i = 0; i < o.out.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    loop.Add(o.out[i], {o.a[i] == 1 ? 0 : a[at], o.b[i] == 1 ? 0 : b[at]});
  }
  return loop;
}

template <typename T, typename R, typename F>
void Compute(const Loop<2>& loop, const Call& call, const F& f) {
  const T *a = call.In(0).as<T>(), *b = call.In(1).as<T>();
  R* out = call.Out(0).as<R>();
  loop.Rows([&](int64_t to, const std::array<int64_t, 2>& at, int64_t count,
                const std::array<int64_t, 2>& step) {
    const T *left = a + at[0], *right = b + at[1];
    R* result = out + to;
    if (step[0] == 1 && step[1] == 1) {
      for (int64_t i = 0; i < count; ++i) result[i] = f(left[i], right[i]);
    } else if (step[0] == 1 && step[1] == 0) {
      const T other = *right;
      for (int64_t i = 0; i < count; ++i) result[i] = f(left[i], other);
    } else {
      for (int64_t i = 0; i < count; ++i)
        result[i] = f(left[i * step[0]], right[i * step[1]]);
    }
  });
}

// Sums of integers wrap around, as in most hardware.
template <typename T, typename F>
T Wrapped(T a, T b, const F& f) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

// Division by zero, and the one quotient that overflows, give 0 for integers.
template <typename T>
bool Divides(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b != 0 && !(b == -1 && a == std::numeric_limits<T>::min());
  return true;
}

template <typename T>
T Quotient(T a, T b) {
  return Divides(a, b) ? static_cast<T>(a / b) : T(0);
}

template <typename T>
T FloorQuotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (!Divides(a, b)) return 0;
    return static_cast<T>(a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
  } else {
    return std::floor(a / b);
  }
}

// The sign is the divisor's.
template <typename T>
T Modulus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (!Divides(a, b)) return 0;
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    const T rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

template <typename T>
T Power(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const double power =
        std::pow(static_cast<double>(a), static_cast<double>(b));
    const double most = static_cast<double>(std::numeric_limits<T>::max());
    return power > -most && power < most ? static_cast<T>(std::llrint(power))
                                         : std::numeric_limits<T>::min();
  } else {
    return std::pow(a, b);
  }
}

// Results of the operands' type.
template <typename T>
void ComputeNumbers(Binary operation, const Loop<2>& loop, const Call& call) {
  const auto run = [&](const auto& f) { Compute<T, T>(loop, call, f); };
  switch (operation) {
    case Binary::kAdd:
      return run([](T a, T b) {
        return Wrapped(a, b, [](auto x, auto y) { return x + y; });
      });
    case Binary::kSub:
      return run([](T a, T b) {
        return Wrapped(a, b, [](auto x, auto y) { return x - y; });
      });
    case Binary::kMul:
      return run([](T a, T b) {
        return Wrapped(a, b, [](auto x, auto y) { return x * y; });
      });
    case Binary::kDiv:
      return run(Quotient<T>);
    case Binary::kMax:
      return run([](T a, T b) { return a > b || a != a ? a : b; });
    case Binary::kMin:
      return run([](T a, T b) { return a < b || a != a ? a : b; });
    case Binary::kPow:
      return run(Power<T>);
    case Binary::kFloorDiv:
      return run(FloorQuotient<T>);
    case Binary::kMod:
      return run(Modulus<T>);
    case Binary::kPrelu:
      return run([](T a, T b) {
        return a < T(0) ? Wrapped(a, b, [](auto x, auto y) { return x * y; })
                        : a;
      });
    default:
      return;
  }
}

// Comparisons.
template <typename T>
void ComputeTruth(Binary operation, const Loop<2>& loop, const Call& call) {
  const auto run = [&](const auto& f) { Compute<T, uint8_t>(loop, call, f); };
  switch (operation) {
    case Binary::kEqual:
      return run([](T a, T b) { return a == b; });
    case Binary::kNotEqual:
      return run([](T a, T b) { return a != b; });
    case Binary::kLess:
      return run([](T a, T b) { return a < b; });
    case Binary::kLessEqual:
      return run([](T a, T b) { return a <= b; });
    case Binary::kGreater:
      return run([](T a, T b) { return a > b; });
    case Binary::kGreaterEqual:
      return run([](T a, T b) { return a >= b; });
    case Binary::kAnd:
      return run([](T a, T b) { return a != 0 && b != 0; });
    case Binary::kOr:
      return run([](T a, T b) { return a != 0 || b != 0; });
    case Binary::kXor:
      return run([](T a, T b) { return (a != 0) != (b != 0); });
    default:
      return ComputeNumbers<T>(operation, loop, call);
  }
}

bool PrepareBinary(Call* call) {
  Operands operands;
  if (!call->Within(BinaryInts::kOperation, 0, kBinaries - 1) ||
      !ExpectFunction(call, BinaryInts::kFunction) ||
      !call->Expect(1, call->In(0).dtype) || !ReadOperands(call, &operands))
    return false;
  const DType dtype = call->In(0).dtype;
  const auto operation = static_cast<Binary>(call->Int(BinaryInts::kOperation));
  const bool truth = operation >= Binary::kEqual;
  const bool bytes = dtype == DType::kBool || dtype == DType::kUint8;
  if (!truth && bytes)
    return call->Fail("it is computed for numbers, not for %s", Name(dtype));
  if (call->Int(BinaryInts::kFunction) != 0 &&
      (truth || dtype != DType::kFloat32))
    return call->Fail("a function belongs to float32");
  if (!truth && call->In(0).shape == operands.out) call->MayReplace(0);
  return call->Give(0, truth ? DType::kBool : dtype, operands.out);
}

bool RunBinary(Call* call) {
  Operands operands;
  if (!ReadOperands(call, &operands)) return false;
  const auto operation = static_cast<Binary>(call->Int(BinaryInts::kOperation));
  const Loop<2> loop = LoopOf(operands);
  switch (call->In(0).dtype) {
    case DType::kFloat32:
      ComputeTruth<float>(operation, loop, *call);
      break;
    case DType::kInt64:
      ComputeTruth<int64_t>(operation, loop, *call);
      break;
    case DType::kInt32:
      ComputeTruth<int32_t>(operation, loop, *call);
      break;
    case DType::kUint8:
    case DType::kBool:
      ComputeTruth<uint8_t>(operation, loop, *call);
  }
  if (call->Int(BinaryInts::kFunction) != 0)
    FunctionOf(*call, BinaryInts::kFunction)
        .Apply(call->Out(0).size(), call->Out(0).as<float>(),
               call->Out(0).as<float>());
  return true;
}

bool PrepareWhere(Call* call) {
  const Tensor& x = call->In(1);
  if (!call->Expect(0, DType::kBool) || !call->Expect(2, x.dtype)) return false;
  if (call->In(0).shape != x.shape || call->In(2).shape != x.shape)
    return call->Fail(
        "shapes %s, %s and %s differ", ToString(call->In(0).shape).c_str(),
        ToString(x.shape).c_str(), ToString(call->In(2).shape).c_str());
  return call->Give(0, x.dtype, x.shape);
}

bool RunWhere(Call* call) {
  const uint8_t* chosen = call->In(0).as<uint8_t>();
  WithBytes(SizeOf(call->In(1).dtype), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const T *x = call->In(1).as<T>(), *y = call->In(2).as<T>();
    T* out = call->Out(0).as<T>();
    for (int64_t i = 0; i < call->In(1).size(); ++i)
      out[i] = chosen[i] != 0 ? x[i] : y[i];
  });
  return true;
}

}  // namespace

const Kernel kBinary = {"binary",
                        {2, 2},
                        {1, 1},
                        {BinaryInts::kAll, BinaryInts::kAll},
                        {kFunctionFloats, kFunctionFloats},
                        PrepareBinary,
                        RunBinary};

const Kernel kWhere = {"where", {3, 3},       {1, 1},  {0, 0},
                       {0, 0},  PrepareWhere, RunWhere};

}  // namespace pd_run
