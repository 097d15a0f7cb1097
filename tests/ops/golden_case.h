// SPDX-License-Identifier: Apache-2.0
// The cases in testdata/ops: programs, feeds and answers of real PaddlePaddle.
#ifndef PD_TESTS_OPS_GOLDEN_CASE_H_
#define PD_TESTS_OPS_GOLDEN_CASE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// One folder of a zip.
struct GoldenCase {
  std::string name;  ///< "axis_1"
  double rtol = 0, atol = 0;
  ProgramDesc program;  ///< with PaddlePaddle's gradient ops, where asked for
  ProgramDesc forward;  ///< without them
  ProgramDesc startup;  ///< sets the persistables; without blocks: none
  NamedArrays feed, expect;
  std::map<std::string, std::string> targets;  ///< output -> cotangent
  std::vector<std::string> inputs;             ///< to differentiate by
  std::map<std::string, std::string> grads;    ///< input -> its gradient
};

/// A zip's files: folder -> file -> bytes.
using ZipFolder = std::map<std::string, std::string>;
absl::StatusOr<std::map<std::string, ZipFolder>> ReadZipFolders(
    const std::string& path);
/// The arrays of one of the files; none when there is no such file.
absl::StatusOr<NamedArrays> ArraysOf(const ZipFolder& files, const char* name);

/// Every case of a zip, in name order.
absl::StatusOr<std::vector<GoldenCase>> ReadGoldenCases(
    const std::string& path);

}  // namespace pd

#endif  // PD_TESTS_OPS_GOLDEN_CASE_H_
