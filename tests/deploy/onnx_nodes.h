// SPDX-License-Identifier: Apache-2.0
// ONNX's own node tests: a model of one operator or few, inputs, and outputs.
#ifndef PD_TESTS_DEPLOY_ONNX_NODES_H_
#define PD_TESTS_DEPLOY_ONNX_NODES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/registry.h"

namespace pd {

struct OnnxNodeCase {
  std::string name;
  std::string model;  ///< the bytes of model.onnx
  /// "test_data_set_0/input_0.pb" -> bytes.
  std::map<std::string, std::string> data;
};

/// The cases in a zip of folders, or in a folder of those and such zips; sorted
/// by name.
absl::StatusOr<std::vector<OnnxNodeCase>> ReadOnnxNodeCases(
    const std::string& path);

struct OnnxNodeOutcome {
  enum class Kind { kPass, kFail, kOtherTypes };
  Kind kind = Kind::kPass;
  int64_t opset = 0;
  std::string reason;  ///< of kFail: one line; of kOtherTypes: which
};

/// Imports the model, runs it on each data set, and compares as ONNX's runner
/// does: |got - want| <= 1e-7 + 1e-3 |want| (2^-6 for bfloat16), dtypes and
/// shapes equal.
/// kOtherTypes: an input or output is a sequence, an optional, or of strings,
/// of 8-bit floats or numbers of 4 or 2 bits; or an operator is a preview.
OnnxNodeOutcome RunOnnxNodeCase(const OpRegistry& registry,
                                const OnnxNodeCase& one);

}  // namespace pd

#endif  // PD_TESTS_DEPLOY_ONNX_NODES_H_
