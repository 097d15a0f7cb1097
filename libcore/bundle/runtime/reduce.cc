// SPDX-License-Identifier: Apache-2.0
// reduce: sums, means, extrema and products over axes. arg: where the first
// extremum along an axis is. cumsum: sums so far.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/axis_view.h"
#include "libcore/bundle/runtime/kernels.h"
#include "libcore/bundle/runtime/loop.h"

namespace pd_run {
namespace {

// Calls body with a null pointer of the type of numbers; uint8 and bool fail.
template <typename Body>
bool WithNumbers(Call* call, DType dtype, const Body& body) {
  if (dtype == DType::kFloat32)
    body(static_cast<float*>(nullptr));
  else if (dtype == DType::kInt64)
    body(static_cast<int64_t*>(nullptr));
  else if (dtype == DType::kInt32)
    body(static_cast<int32_t*>(nullptr));
  else
    return call->Fail("it is computed for numbers, not for %s", Name(dtype));
  return true;
}

bool ReadAxes(Call* call, bool* reduced) {
  const int rank = call->In(0).shape.rank;
  const bool all = call->ints() == ReduceInts::kAxes;
  for (int i = 0; i < rank; ++i) reduced[i] = all;
  for (size_t i = ReduceInts::kAxes; i < call->ints(); ++i) {
    int axis = 0;
    if (!call->Axis(i, rank, &axis)) return false;
    reduced[axis] = true;
  }
  return true;
}

bool PrepareReduce(Call* call) {
  bool reduced[kMaxRank];
  if (!call->Within(ReduceInts::kOperation, 0, kReductions - 1) ||
      !ReadAxes(call, reduced))
    return false;
  const Tensor& x = call->In(0);
  if (x.dtype == DType::kBool || x.dtype == DType::kUint8)
    return call->Fail("it is computed for numbers, not for %s", Name(x.dtype));
  Shape out;
  for (int i = 0; i < x.shape.rank; ++i)
    if (!reduced[i])
      out.Append(x.shape[i]);
    else if (call->Int(ReduceInts::kKeep) != 0)
      out.Append(1);
  return call->Give(0, x.dtype, out);
}

template <typename T>
T Start(Reduction operation) {
  using Limits = std::numeric_limits<T>;
  if (operation == Reduction::kProd) return T(1);
  if (operation == Reduction::kMax)
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (operation == Reduction::kMin)
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return T(0);
}

// Sums of float32 are kept in float64 along a row; integers wrap around.
template <typename T>
T Joined(Reduction operation, T a, T b) {
  using U = std::conditional_t<
      std::is_same_v<T, float>, double,
      std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;
  switch (operation) {
    case Reduction::kMax:
      return b > a || b != b ? b : a;
    case Reduction::kMin:
      return b < a || b != b ? b : a;
    case Reduction::kProd:
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    default:
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
}

template <typename T>
T RowOf(Reduction operation, const T* x, int64_t count, T start) {
  if (std::is_same_v<T, float> &&
      (operation == Reduction::kSum || operation == Reduction::kMean)) {
    double sum = static_cast<double>(start);
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
    return static_cast<T>(sum);
  }
  T result = start;
  for (int64_t i = 0; i < count; ++i) result = Joined(operation, result, x[i]);
  return result;
}

template <typename T>
void Reduce(Call* call, const bool* reduced) {
  const auto operation =
      static_cast<Reduction>(call->Int(ReduceInts::kOperation));
  const Shape& x = call->In(0).shape;
  // The loop runs over the input; the result stands still along what is
  // reduced.
  Shape kept = x;
  int64_t joined = 1;
  for (int i = 0; i < x.rank; ++i)
    if (reduced[i]) {
      joined *= x[i];
      kept[i] = 1;
    }
  const auto strides = Strides(kept);
  Loop<1> loop;
  for (int i = 0; i < x.rank; ++i)
    loop.Add(x[i], {reduced[i] ? 0 : strides[static_cast<size_t>(i)]});
  const T* in = call->In(0).as<T>();
  T* out = call->Out(0).as<T>();
  const int64_t size = call->Out(0).size();
  std::fill_n(out, size, Start<T>(operation));
  loop.Rows([&](int64_t from, const std::array<int64_t, 1>& to, int64_t count,
                const std::array<int64_t, 1>& step) {
    T* result = out + to[0];
    const T* row = in + from;
    if (step[0] == 0)
      *result = RowOf(operation, row, count, *result);
    else
      for (int64_t i = 0; i < count; ++i)
        result[i * step[0]] = Joined(operation, result[i * step[0]], row[i]);
  });
  if (operation != Reduction::kMean) return;
  for (int64_t i = 0; i < size; ++i)
    out[i] = std::is_same_v<T, float>
                 ? static_cast<T>(static_cast<float>(out[i]) /
                                  static_cast<float>(joined))
                 : static_cast<T>(
                       joined == 0 ? T(0) : out[i] / static_cast<T>(joined));
}

bool RunReduce(Call* call) {
  bool reduced[kMaxRank];
  if (!ReadAxes(call, reduced)) return false;
  return WithNumbers(call, call->In(0).dtype, [&](auto* type) {
    Reduce<std::remove_pointer_t<decltype(type)>>(call, reduced);
  });
}

// The axis, or all elements as one.
bool ReadArg(Call* call, Shape* x, int* axis) {
  *x = call->In(0).shape;
  if (call->Int(ArgInts::kFlatten) != 0 || x->rank == 0) {
    *x = {1, {call->In(0).size()}};
    *axis = 0;
  } else if (!call->Axis(ArgInts::kAxis, x->rank, axis)) {
    return false;
  }
  if ((*x)[*axis] > 0) return true;
  return call->Fail("there is nothing to choose from in shape %s",
                    ToString(*x).c_str());
}

bool PrepareArg(Call* call) {
  Shape x;
  int axis = 0;
  if (!ReadArg(call, &x, &axis)) return false;
  const DType dtype = call->In(0).dtype;
  if (dtype == DType::kBool || dtype == DType::kUint8)
    return call->Fail("it is computed for numbers, not for %s", Name(dtype));
  const int64_t type = call->Int(ArgInts::kType);
  if (type != static_cast<int64_t>(DType::kInt64) &&
      type != static_cast<int64_t>(DType::kInt32))
    return call->Fail("the result is to have type %lld; expected integers",
                      static_cast<long long>(type));
  const bool keep = call->Int(ArgInts::kKeep) != 0;
  const bool flat = call->Int(ArgInts::kFlatten) != 0;
  Shape out;
  const Shape& shape = call->In(0).shape;
  for (int i = 0; i < shape.rank; ++i)
    if (!flat && i != axis)
      out.Append(shape[i]);
    else if (keep)
      out.Append(1);
  return call->Give(0, static_cast<DType>(type), out);
}

bool RunArg(Call* call) {
  Shape x;
  int axis = 0;
  if (!ReadArg(call, &x, &axis)) return false;
  const AxisView view(x, axis);
  const bool least = call->Int(ArgInts::kMin) != 0;
  return WithNumbers(call, call->In(0).dtype, [&](auto* type) {
    const auto* in = static_cast<decltype(type)>(call->In(0).data);
    for (int64_t i = 0; i < view.outer * view.inner; ++i) {
      const auto* line =
          in + i / view.inner * view.extent * view.inner + i % view.inner;
      int64_t best = 0;
      for (int64_t j = 1; j < view.extent; ++j) {
        const auto now = line[j * view.inner], then = line[best * view.inner];
        if (least ? now < then : now > then) best = j;
      }
      if (call->Out(0).dtype == DType::kInt64)
        call->Out(0).as<int64_t>()[i] = best;
      else
        call->Out(0).as<int32_t>()[i] = static_cast<int32_t>(best);
    }
  });
}

bool ReadCumsum(Call* call, Shape* x, int* axis) {
  *x = call->In(0).shape;
  if (call->Int(CumsumInts::kFlatten) == 0 && x->rank > 0)
    return call->Axis(CumsumInts::kAxis, x->rank, axis);
  *x = {1, {call->In(0).size()}};
  *axis = 0;
  return true;
}

bool PrepareCumsum(Call* call) {
  Shape x;
  int axis = 0;
  if (!ReadCumsum(call, &x, &axis)) return false;
  const DType dtype = call->In(0).dtype;
  if (dtype == DType::kBool || dtype == DType::kUint8)
    return call->Fail("it is computed for numbers, not for %s", Name(dtype));
  const bool flat = call->Int(CumsumInts::kFlatten) != 0;
  return call->Give(0, dtype, flat ? x : call->In(0).shape);
}

bool RunCumsum(Call* call) {
  Shape x;
  int axis = 0;
  if (!ReadCumsum(call, &x, &axis)) return false;
  const AxisView view(x, axis);
  const bool exclusive = call->Int(CumsumInts::kExclusive) != 0;
  const bool reverse = call->Int(CumsumInts::kReverse) != 0;
  return WithNumbers(call, call->In(0).dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    for (int64_t i = 0; i < view.outer * view.inner; ++i) {
      const int64_t first =
          i / view.inner * view.extent * view.inner + i % view.inner;
      T sum = 0;
      for (int64_t j = 0; j < view.extent; ++j) {
        const int64_t at =
            first + (reverse ? view.extent - 1 - j : j) * view.inner;
        const T next = Joined(Reduction::kSum, sum, call->In(0).as<T>()[at]);
        call->Out(0).as<T>()[at] = exclusive ? sum : next;
        sum = next;
      }
    }
  });
}

}  // namespace

const Kernel kArg = {"arg",  {1, 1},     {1, 1}, {ArgInts::kAll, ArgInts::kAll},
                     {0, 0}, PrepareArg, RunArg};

const Kernel kCumsum = {
    "cumsum", {1, 1},        {1, 1},   {CumsumInts::kAll, CumsumInts::kAll},
    {0, 0},   PrepareCumsum, RunCumsum};

const Kernel kReduce = {
    "reduce", {1, 1},
    {1, 1},   {ReduceInts::kAxes, ReduceInts::kAxes + kMaxRank},
    {0, 0},   PrepareReduce,
    RunReduce};

}  // namespace pd_run
