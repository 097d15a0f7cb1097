// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/fold.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/optimize.h"
#include "libcore/quant/op_table.h"

namespace pd {
namespace {

absl::Status Scale(const std::string& name, const std::vector<double>& factors,
                   QuantizedWeight* weight) {
  const auto channels = static_cast<int64_t>(factors.size());
  const int64_t each = static_cast<int64_t>(weight->values.size()) / channels;
  const int32_t most = weight->levels();
  for (int64_t c = 0; c < channels; ++c) {
    const double s = factors[static_cast<size_t>(c)];
    float& scale = weight->scales[static_cast<size_t>(c)];
    const auto scaled = static_cast<float>(scale * std::fabs(s));
    if (!std::isfinite(scaled))
      return InvalidArgument(
          "the batch norm behind the filter '%s' multiplies channel %d by %g",
          name, c, s);
    // Next to nothing is nothing: a scale is never 0.
    const bool none = scaled < std::numeric_limits<float>::min();
    if (!none) scale = scaled;
    for (int64_t i = c * each; i < (c + 1) * each; ++i) {
      int32_t& value = weight->values[static_cast<size_t>(i)];
      value = none ? 0 : s < 0 ? std::min(-value, most) : value;
    }
  }
  return absl::OkStatus();
}

// Op numbers and thresholds of the model as it is now.
void Follow(const InferenceModel& model, const FoldFactors& factors,
            Quantization* q) {
  std::map<std::string, size_t> made;
  const std::vector<OpDesc>& ops = model.program.global().ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const std::string& name : QuantOutputs(ops[i])) made[name] = i;
    if (factors.count(ops[i].In("Filter")) > 0)
      q->thresholds.erase(ops[i].Out("Output"));
  }
  for (QuantOp& op : q->plan.ops) op.op = made.at(op.output);
  for (auto it = q->thresholds.begin(); it != q->thresholds.end();)
    it = model.program.global().FindVar(it->first) == nullptr
             ? q->thresholds.erase(it)
             : std::next(it);
}

}  // namespace

absl::StatusOr<int> FoldQuantized(InferenceModel* model, Quantization* q) {
  for (const auto& [name, weight] : q->weights)
    if (weight.axis < 0) return 0;
  FoldFactors factors;
  PD_ASSIGN_OR_RETURN(const int folded, FoldBatchNorms(model, &factors));
  for (const auto& [name, by] : factors) {
    const auto it = q->weights.find(name);
    if (it != q->weights.end())
      PD_RETURN_IF_ERROR(Scale(name, by, &it->second));
  }
  Follow(*model, factors, q);
  return folded;
}

}  // namespace pd
