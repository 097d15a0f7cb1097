// SPDX-License-Identifier: Apache-2.0
// Class numbers and row numbers out of integer tensors, with checks that name
// the first bad one.
#ifndef PD_LIBCORE_OPS_COMMON_LABELS_H_
#define PD_LIBCORE_OPS_COMMON_LABELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Element `i` of an integer tensor. The branch is on the dtype, which is the
/// same for all i.
inline int64_t LabelAt(const Tensor& labels, int64_t i) {
  switch (labels.dtype()) {
    case DType::kInt64:
      return labels.data<int64_t>()[i];
    case DType::kInt32:
      return labels.data<int32_t>()[i];
    case DType::kInt16:
      return labels.data<int16_t>()[i];
    case DType::kInt8:
      return labels.data<int8_t>()[i];
    default:
      return labels.data<uint8_t>()[i];
  }
}

/// Whether all elements of an integer tensor are in [low, high).
bool AllLabelsWithin(const Tensor& labels, int64_t low, int64_t high);

/// InvalidArgument for a dtype that LabelAt does not read.
absl::Status CheckLabelType(absl::string_view slot, DType dtype);

/// InvalidArgument naming the slot, value and position of the first element
/// outside [0, classes) that is not `ignored`.
absl::Status CheckLabels(absl::string_view slot, const Tensor& labels,
                         int64_t classes, int64_t ignored);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_LABELS_H_
