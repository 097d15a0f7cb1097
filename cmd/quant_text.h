// SPDX-License-Identifier: Apache-2.0
// The output of pd-quant.
#ifndef PD_CMD_QUANT_TEXT_H_
#define PD_CMD_QUANT_TEXT_H_

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libcore/quant/layer_errors.h"
#include "libcore/quant/quantize.h"

namespace pd {

/// The metric with the `left` most sensitive operators in float.
struct SearchStep {
  size_t left = 0;
  double metric = 0, drop = 0;
};

struct QuantSummary {
  std::string model, out, to;
  QuantizeResult result;
  /// As they were found, before batch norms became part of their scales.
  std::map<std::string, QuantizedWeight> weights;
  size_t operators = 0;                      ///< of the model
  size_t bytes_before = 0, bytes_after = 0;  ///< of parameters
  std::vector<ValueError> errors;            ///< by layer
  std::vector<Sensitivity> sensitivities;    ///< where it was asked for
  std::vector<SearchStep> search;            ///< in the order of trying
  std::string metric;                        ///< "" without a comparison
  double before = 0, after = 0, drop = 0;
  double calibration_s = 0;
  /// Of a run, the median in ms; 0 where nobody asked.
  double latency_before = 0, latency_after = 0;
  int64_t latency_batch = 0;
};

/// Tables for people.
void PrintQuantSummary(const QuantSummary& summary, std::ostream& out);
/// The results of a failed search, as text or as one JSON object.
void PrintQuantSearch(const QuantSummary& summary, bool json,
                      std::ostream& out);
/// One JSON object; `activations` and `weights` hold thresholds by variable,
/// `scales` both as they were written: the activations' differ for mse and emd
/// (thresholds.h), the weights' where a batch norm became part of them.
void PrintQuantJson(const QuantSummary& summary, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_QUANT_TEXT_H_
