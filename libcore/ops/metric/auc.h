// SPDX-License-Identifier: Apache-2.0
// How auc's counts lie. Shared by its implementations.
#ifndef PD_LIBCORE_OPS_METRIC_AUC_H_
#define PD_LIBCORE_OPS_METRIC_AUC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"

namespace pd {

struct AucLayout {
  int64_t buckets = 0, slide = 0;

  int64_t Elements() const {
    return (1 + slide) * buckets + (slide > 0 ? 1 : 0);
  }
  /// Where the counts begin that the area is of.
  int64_t Sum() const { return slide * buckets; }
};

/// InvalidArgument on attributes below 0.
absl::StatusOr<AucLayout> AucLayoutOf(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_METRIC_AUC_H_
