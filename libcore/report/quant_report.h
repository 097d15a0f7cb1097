// SPDX-License-Identifier: Apache-2.0
// The results of a quantization, as one HTML file that needs no network:
// thresholds in the histograms of activations, and the error of every layer.
// Drawn as SVG, without scripts.
#ifndef PD_LIBCORE_REPORT_QUANT_REPORT_H_
#define PD_LIBCORE_REPORT_QUANT_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/quant/layer_errors.h"
#include "libcore/quant/quantize.h"

namespace pd {

struct QuantReport {
  std::string model;
  /// Name and value: what was written, sizes, the metric before and after.
  std::vector<std::pair<std::string, std::string>> facts;
  const QuantizeResult* result = nullptr;
  const std::vector<ValueError>* errors = nullptr;
  const std::vector<Sensitivity>* sensitivities = nullptr;
};

/// The page.
std::string QuantReportPage(const QuantReport& report);
absl::Status WriteQuantReport(const std::string& path,
                              const QuantReport& report);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_QUANT_REPORT_H_
