// SPDX-License-Identifier: Apache-2.0
// Numbers that a program gives as a tensor of one element, of any real dtype.
#ifndef PD_LIBCORE_OPS_COMMON_NUMBER_OF_H_
#define PD_LIBCORE_OPS_COMMON_NUMBER_OF_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/base/dispatch.h"
#include "libcore/ops/common/computed.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// InvalidArgument unless the tensor, which has the name `slot`, is one real
/// number or truth value.
inline absl::Status CheckNumber(const Tensor& tensor, absl::string_view slot) {
  if (tensor.size() == 1 && !IsComplex(tensor.dtype())) return absl::OkStatus();
  return InvalidArgument("'%s' is %s %s; expected one real number", slot,
                         Name(tensor.dtype()), ToString(tensor.shape()));
}

/// The element of a tensor that CheckNumber accepts, as a T.
template <typename T>
T NumberOf(const Tensor& tensor) {
  T value{};
  (void)DispatchTypes<float, double, int32_t, int64_t, bool, int16_t, int8_t,
                      uint8_t, Float16, BFloat16>(
      tensor.dtype(), [&](auto tag) {
        using From = typename decltype(tag)::type;
        value = Stored<T>(Computed<From>(tensor.data<From>()[0]));
        return absl::OkStatus();
      });
  return value;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_NUMBER_OF_H_
