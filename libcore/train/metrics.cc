// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/metrics.h"

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

const char* NameOf(MetricSlot slot) {
  constexpr const char* kNames[kMetricSlots] = {
      "predictions", "labels",
      "lengths",     "lengths of predictions",
      "true boxes",  "flags of difficult boxes"};
  return kNames[static_cast<size_t>(slot)];
}

absl::Status Metric::Update(const MetricBatch& batch) {
  MetricSpecs specs;
  for (size_t i = 0; i < kMetricSlots; ++i) {
    const auto slot = static_cast<MetricSlot>(i);
    if (batch[slot] != nullptr)
      specs[slot] = TensorSpec{batch[slot]->dtype(), batch[slot]->shape()};
  }
  PD_RETURN_IF_ERROR(Check(specs));
  return Count(batch);
}

MetricResults Metric::Results() const {
  const std::vector<double> values = Values();
  PD_INVARIANT(values.size() == names_.size());
  MetricResults results;
  for (size_t i = 0; i < names_.size(); ++i)
    results.emplace_back(names_[i], values[i]);
  return results;
}

}  // namespace pd
