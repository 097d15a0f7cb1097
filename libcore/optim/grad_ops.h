// SPDX-License-Identifier: Apache-2.0
// Processing of gradients before the update. Internal to libcore/optim.
#ifndef PD_LIBCORE_OPTIM_GRAD_OPS_H_
#define PD_LIBCORE_OPTIM_GRAD_OPS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/optim/optimizer.h"

namespace pd {

/// True where the variable is SelectedRows: rows of an embedding's gradient.
bool IsRows(const std::string& name, const BlockBuilder& main);

/// Marks an op as part of the update of a parameter.
void MarkOptimize(const ParamGrad& pair, OpDesc* op);

/// Appends an op of the update of a parameter, with one output: a new variable,
/// or `out` when it is given. Gives its name.
absl::StatusOr<std::string> AppendOptimizeOp(
    const char* type, SlotList inputs, std::map<std::string, Attribute> attrs,
    const ParamGrad& pair, BlockBuilder* main, std::string out = "");

/// Declares a persistable in both programs; the startup program fills it.
absl::Status AddFilled(const std::string& name, DType dtype, const Shape& shape,
                       double fill, bool stop_gradient, BlockBuilder* main,
                       BlockBuilder* startup);

/// "learning_rate" -> "learning_rate_0", or the next number that is free.
std::string UniqueName(const std::string& stem, const BlockBuilder& main);

/// Declares the learning rate of all parameters; gives its name.
absl::StatusOr<std::string> AddLearningRate(double rate, BlockBuilder* main,
                                            BlockBuilder* startup);

/// The variable with a parameter's own learning rate.
absl::StatusOr<std::string> RateOf(const ParamGrad& pair,
                                   const std::string& learning_rate,
                                   BlockBuilder* main);

/// Clips the gradients; a pair's `grad` then names the clipped one.
absl::Status AppendGradClip(const GradClip& clip, std::vector<ParamGrad>* pairs,
                            BlockBuilder* main);

/// Adds a parameter's decay to its gradient; `pair->grad` then names the sum.
absl::Status AppendWeightDecay(const WeightDecay& decay, ParamGrad* pair,
                               BlockBuilder* main);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_GRAD_OPS_H_
