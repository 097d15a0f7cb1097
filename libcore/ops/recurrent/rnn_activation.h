// SPDX-License-Identifier: Apache-2.0
// The activations of the recurrent ops over LoD, chosen by an attribute.
#ifndef PD_LIBCORE_OPS_RECURRENT_RNN_ACTIVATION_H_
#define PD_LIBCORE_OPS_RECURRENT_RNN_ACTIVATION_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// Numbered as the attributes of gru_unit are.
enum class RnnActivation : int32_t { kIdentity, kSigmoid, kTanh, kRelu };

/// The attribute `name` of an op, by name or by number.
inline absl::StatusOr<RnnActivation> ActivationAttr(const OpDesc& op,
                                                    const char* name) {
  static constexpr const char* kNames[] = {"identity", "sigmoid", "tanh",
                                           "relu"};
  const std::string given = op.AttrOr<std::string>(name, "");
  const int32_t number = op.AttrOr<int32_t>(name, -1);
  for (int32_t i = 0; i < 4; ++i)
    if (given == kNames[i] || number == i) return static_cast<RnnActivation>(i);
  return InvalidArgument(
      "attr '%s' is '%s' (%d); expected identity, sigmoid, tanh or relu (0 to "
      "3)",
      name, given, number);
}

template <typename T>
T Activate(RnnActivation activation, T x) {
  switch (activation) {
    case RnnActivation::kSigmoid:
      return T(1) / (T(1) + std::exp(-x));
    case RnnActivation::kTanh:
      return std::tanh(x);
    case RnnActivation::kRelu:
      return x > T(0) ? x : T(0);
    default:
      return x;
  }
}

/// The derivative, from the activation's value.
template <typename T>
T ActivationSlope(RnnActivation activation, T y) {
  switch (activation) {
    case RnnActivation::kSigmoid:
      return y * (T(1) - y);
    case RnnActivation::kTanh:
      return T(1) - y * y;
    case RnnActivation::kRelu:
      return y > T(0) ? T(1) : T(0);
    default:
      return T(1);
  }
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_RNN_ACTIVATION_H_
