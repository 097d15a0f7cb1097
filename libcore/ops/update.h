// SPDX-License-Identifier: Apache-2.0
// What the parameter updates (sgd, momentum, adam, ...) share.
#ifndef PD_LIBCORE_OPS_UPDATE_H_
#define PD_LIBCORE_OPS_UPDATE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"

namespace pd {

/// Elements of a parameter that one thread updates at least.
inline constexpr int64_t kUpdateGrain = 8192;

/// The only element of a float32 or float64 tensor: learning rates, powers of
/// beta. PaddlePaddle stores them as [1] or [].
inline double ScalarOf(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat64 ? tensor.data<double>()[0]
                                           : double{tensor.data<float>()[0]};
}

/// What a gradient op keeps (BindContext::Keep) when only some rows of its
/// dense gradient were touched: uint8 [rows], 1 for those. Lazy updates read
/// it.
std::string TouchedRowsName(absl::string_view gradient);

/// Sets every output `slots[i] + "Out"` to the meta of input `slots[i]`, for
/// each of its variables.
absl::Status InferUpdate(InferContext* context,
                         std::initializer_list<absl::string_view> slots);

/// InvalidArgument unless `tensor` is a float32 or float64 of one element.
absl::Status CheckScalar(absl::string_view slot, const Tensor* tensor);

/// InvalidArgument unless the i-th variables of both slots have one shape and
/// dtype.
absl::Status CheckAlike(const BindContext& context, absl::string_view a,
                        absl::string_view b, size_t i = 0);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_UPDATE_H_
