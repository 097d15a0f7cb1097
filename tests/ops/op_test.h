// SPDX-License-Identifier: Apache-2.0
// Gradients of single ops against central differences in float64.
#ifndef PD_TESTS_OPS_OP_TEST_H_
#define PD_TESTS_OPS_OP_TEST_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

/// One op with random inputs.
struct GradientCase {
  std::string type;
  /// Slot -> shapes of its float64 inputs, which are differentiated by.
  std::vector<std::pair<std::string, std::vector<Shape>>> inputs;
  std::map<std::string, Attribute> attrs = {};
  double low = -1.0, high = 1.0;  ///< of the inputs
  /// Slot -> other inputs, given.
  std::map<std::string, Array> constants = {};
  std::string output = "Out";  ///< the slot that is differentiated
  size_t outputs = 1;          ///< variables in it
  /// Variable ("<slot>_<number>", or a constant's slot) -> its sequences.
  std::map<std::string, LoD> lods = {};
  /// Of the outputs, where they follow from sequences.
  Shape output_shape = {};
};

/// The op's gradients by our append_backward, against (f(x + h) - f(x - h)) /
/// 2h of f = sum(outputs * random cotangents), for every element of every
/// input. DataLoss with the worst element, both values, when the relative
/// error exceeds `tolerance` (of numbers above 1e-6); NaN does.
absl::Status CheckGradients(const OpRegistry& registry,
                            const GradientCase& check, double tolerance = 1e-6);

}  // namespace pd

#endif  // PD_TESTS_OPS_OP_TEST_H_
