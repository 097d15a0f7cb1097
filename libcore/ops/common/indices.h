// SPDX-License-Identifier: Apache-2.0
// Checks of index tensors: once per run, before the loop that trusts them.
#ifndef PD_LIBCORE_OPS_COMMON_INDICES_H_
#define PD_LIBCORE_OPS_COMMON_INDICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/ops/common/labels.h"

namespace pd {

/// InvalidArgument for indices that are neither int32 nor int64.
inline absl::Status CheckIndexType(absl::string_view slot, DType dtype) {
  if (dtype == DType::kInt64 || dtype == DType::kInt32) return absl::OkStatus();
  return InvalidArgument("'%s' is %s; expected int32 or int64", slot,
                         Name(dtype));
}

/// OutOfRange naming the first of `index`'s elements outside [low, high).
inline absl::Status CheckIndices(absl::string_view slot, const Tensor& index,
                                 int64_t low, int64_t high) {
  if (AllLabelsWithin(index, low, high)) return absl::OkStatus();
  const int64_t n = index.size();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = LabelAt(index, i);
    if (at < low || at >= high)
      return OutOfRange("'%s' holds %d at %d; expected numbers in [%d, %d)",
                        slot, at, i, low, high);
  }
  return absl::OkStatus();
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_INDICES_H_
