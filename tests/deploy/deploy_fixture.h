// SPDX-License-Identifier: Apache-2.0
// A saved model of testdata/deploy, frozen for export, and folders to write to.
#ifndef PD_TESTS_DEPLOY_DEPLOY_FIXTURE_H_
#define PD_TESTS_DEPLOY_DEPLOY_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/pdmodel.h"
#include "formats/tensor_stream.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

inline std::string DeployData(const std::string& name) {
  return std::string(PD_TESTDATA) + "/deploy/" + name;
}

/// Reads PREFIX.pdmodel and PREFIX.pdiparams.
inline absl::StatusOr<InferenceModel> ReadInferenceModel(
    const std::string& prefix) {
  PD_ASSIGN_OR_RETURN(ProgramDesc program, ReadProgram(prefix + ".pdmodel"));
  PD_ASSIGN_OR_RETURN(const FeedFetch names, StripFeedFetch(&program));
  std::vector<std::string> params;
  for (const VarDesc& var : program.global().vars)
    if (var.persistable) params.push_back(var.name);
  std::sort(params.begin(), params.end());
  NamedArrays values;
  if (!params.empty()) {
    PD_ASSIGN_OR_RETURN(values, ReadTensors(prefix + ".pdiparams", params));
  }
  return Freeze(program, names, values);
}

inline std::string Contents(const std::string& path) {
  const auto bytes = ReadFile(path);
  return bytes.ok() ? std::string(bytes->view()) : "";
}

/// An empty folder of the test's own.
inline std::string EmptyFolder() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + "pd_" +
                             test->test_suite_name() + "_" + test->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace pd

#endif  // PD_TESTS_DEPLOY_DEPLOY_FIXTURE_H_
