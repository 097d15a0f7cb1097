// SPDX-License-Identifier: Apache-2.0
// Operators without a gradient between a parameter and the loss. Internal to
// libcore/nn.
#ifndef PD_LIBCORE_NN_GRADIENT_GAPS_H_
#define PD_LIBCORE_NN_GRADIENT_GAPS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/nn/build.h"

namespace pd {

/// An operator of the program that a job names itself.
struct NamedOp {
  int32_t block;
  size_t op;  ///< its place in the block
  std::string layer;
  std::string place;  ///< "job.pbtxt:5:3"
};

/// InvalidArgument, with its place, for the first of `ops` that has no gradient
/// although a trainable parameter reaches the loss through it: append_backward
/// would stop there without a word. Results that are not floating-point numbers
/// pass no gradient in any case and are left alone.
absl::Status CheckGradientGaps(const OpRegistry& registry,
                               const BuiltModel& built,
                               const std::vector<NamedOp>& ops);

}  // namespace pd

#endif  // PD_LIBCORE_NN_GRADIENT_GAPS_H_
