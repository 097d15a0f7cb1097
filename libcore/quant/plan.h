// SPDX-License-Identifier: Apache-2.0
// A plan of quantization: which ops become integers, with which weights and
// activations, and which stay in floating point and why.
#ifndef PD_LIBCORE_QUANT_PLAN_H_
#define PD_LIBCORE_QUANT_PLAN_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

/// A convolution or matrix product that is computed with integers.
struct QuantOp {
  size_t op = 0;       ///< its number in block 0
  std::string output;  ///< its result, which names it
  std::string weight;  ///< "" for a product of two activations
  std::vector<std::string> activations;
  /// The weight's axis with a scale for each index; -1: it may have one scale
  /// for all of it only.
  int axis = -1;
};

/// An op that stays as it is.
struct FloatOp {
  std::string type, output, why;
};

struct QuantPlan {
  std::vector<QuantOp> ops;
  std::vector<FloatOp> left;
  /// Activations whose range matters, in program order: inputs and outputs of
  /// `ops`, and outputs of the other ops of the table.
  std::vector<std::string> observed;
};

/// Ops that the user excludes: an op type, a variable that an op reads or
/// writes, or a pattern of either with `*` and `?`.
using SkipList = std::vector<std::string>;

/// Which entry of the list matches the op; "" for none.
std::string SkippedBy(const SkipList& skips, const OpDesc& op);

/// Plans for block 0; ops of sub-blocks stay in float and are listed.
/// FailedPrecondition for a model that is quantized already; NotFound for an
/// entry of `skips` that matches no op, with the nearest name.
absl::StatusOr<QuantPlan> PlanQuantization(const InferenceModel& model,
                                           const SkipList& skips);

/// Whether `name` is what the model answers, or becomes it element by element:
/// nobody else reads it. To clip it would make classes equal.
bool IsAnswer(const InferenceModel& model, const std::string& name);

/// Takes the op that makes `output` out of the plan, for this reason.
void LeaveInFloat(const InferenceModel& model, const std::string& output,
                  const std::string& why, QuantPlan* plan);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_PLAN_H_
