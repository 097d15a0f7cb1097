// SPDX-License-Identifier: Apache-2.0
// cast: elements of another type. scale: integers times a number, plus another.
#include <limits>
#include <type_traits>

#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {
namespace {

bool PrepareCast(Call* call) {
  return call->Within(0, 0, kDTypes - 1) &&
         call->Give(0, static_cast<DType>(call->Int(0)), call->In(0).shape);
}

// A number that the integer cannot hold becomes its least.
template <typename To, typename From>
To Converted(From value) {
  if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    constexpr float kEnd =
        -2.0f * static_cast<float>(std::numeric_limits<To>::min() / 2);
    constexpr float kTop =
        std::is_signed_v<To>
            ? kEnd
            : static_cast<float>(std::numeric_limits<To>::max()) + 1.0f;
    constexpr float kLow = static_cast<float>(std::numeric_limits<To>::min());
    return value >= kLow && value < kTop ? static_cast<To>(value)
                                         : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(value);
  }
}

template <typename From>
void CastTo(const Tensor& x, const Tensor& out) {
  const From* from = x.as<From>();
  const int64_t size = x.size();
  const auto all = [&](auto* to) {
    using To = std::remove_pointer_t<decltype(to)>;
    for (int64_t i = 0; i < size; ++i) to[i] = Converted<To>(from[i]);
  };
  switch (out.dtype) {
    case DType::kFloat32:
      return all(out.as<float>());
    case DType::kInt64:
      return all(out.as<int64_t>());
    case DType::kInt32:
      return all(out.as<int32_t>());
    case DType::kUint8:
      return all(out.as<uint8_t>());
    case DType::kBool:
      for (int64_t i = 0; i < size; ++i)
        out.as<uint8_t>()[i] = from[i] != From(0);
  }
}

bool RunCast(Call* call) {
  const Tensor &x = call->In(0), &out = call->Out(0);
  switch (x.dtype) {
    case DType::kFloat32:
      CastTo<float>(x, out);
      break;
    case DType::kInt64:
      CastTo<int64_t>(x, out);
      break;
    case DType::kInt32:
      CastTo<int32_t>(x, out);
      break;
    case DType::kUint8:
    case DType::kBool:
      CastTo<uint8_t>(x, out);
  }
  return true;
}

bool PrepareScale(Call* call) {
  const DType dtype = call->In(0).dtype;
  if (dtype != DType::kInt64 && dtype != DType::kInt32)
    return call->Fail("its input is %s; expected integers", Name(dtype));
  call->MayReplace(0);
  return call->Give(0, dtype, call->In(0).shape);
}

// Integers wrap around.
template <typename T>
void ScaleAll(const Call& call) {
  using U = std::make_unsigned_t<T>;
  const U by = static_cast<U>(call.Int(0)), plus = static_cast<U>(call.Int(1));
  const T* x = call.In(0).as<T>();
  T* out = call.Out(0).as<T>();
  for (int64_t i = 0; i < call.In(0).size(); ++i)
    out[i] = static_cast<T>(static_cast<U>(x[i]) * by + plus);
}

bool RunScale(Call* call) {
  if (call->In(0).dtype == DType::kInt64)
    ScaleAll<int64_t>(*call);
  else
    ScaleAll<int32_t>(*call);
  return true;
}

}  // namespace

const Kernel kCast = {"cast", {1, 1},      {1, 1}, {1, 1},
                      {0, 0}, PrepareCast, RunCast};

const Kernel kScale = {"scale", {1, 1},       {1, 1},  {2, 2},
                       {0, 0},  PrepareScale, RunScale};

}  // namespace pd_run
