// SPDX-License-Identifier: Apache-2.0
// The units of the boxes that a metric judges, for whoever draws them.
#ifndef PD_LIBCORE_TRAIN_METRICS_BOX_UNITS_H_
#define PD_LIBCORE_TRAIN_METRICS_BOX_UNITS_H_

#include <optional>

#include "libcore/train/metrics.h"

namespace pd {

struct BoxUnits {
  bool normalized = true;  ///< parts of the picture, not pixels
  bool centred = false;    ///< true boxes are centre, width, height
};

/// Nothing of a metric that judges no boxes.
std::optional<BoxUnits> BoxUnitsOf(const Metric& metric);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_BOX_UNITS_H_
