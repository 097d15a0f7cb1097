// SPDX-License-Identifier: Apache-2.0
// A bundle in memory and its answers.
#ifndef PD_TESTS_BUNDLE_BUNDLE_FIXTURE_H_
#define PD_TESTS_BUNDLE_BUNDLE_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/bundle/bundle_writer.h"
#include "libcore/bundle/runtime/pd_run.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/ir/array.h"

namespace pd {

/// Bytes at a multiple of 64 with nothing behind them, for a sanitizer to see.
std::shared_ptr<const void> AlignedBytes(absl::string_view bytes);

/// An open model and the bytes that it lies in.
struct OpenBundle {
  OpenBundle() = default;
  OpenBundle(OpenBundle&& other) noexcept
      : bytes(std::move(other.bytes)),
        model(std::exchange(other.model, nullptr)) {}
  ~OpenBundle() { pd_run_close(model); }

  std::shared_ptr<const void> bytes;
  pd_run_model* model = nullptr;
};

/// pd_run_error as a Status.
absl::StatusOr<OpenBundle> OpenBytes(absl::string_view bytes, int threads = 1,
                                     size_t memory_limit = 0);

/// Sets shapes, writes inputs, runs, and reads the outputs by their names.
absl::StatusOr<NamedArrays> RunModel(pd_run_model* model,
                                     const NamedArrays& feeds);

/// LowerModel, BundleBytes, OpenBytes and RunModel.
absl::StatusOr<NamedArrays> BundleAnswers(const InferenceModel& model,
                                          const NamedArrays& feeds,
                                          int threads = 1);

/// Runs a model as a user would who trusts it: with the shapes that it asks
/// for, 2 where it leaves them open. Whatever comes of it, all of the results
/// is read.
void RunAsItSays(pd_run_model* model);

}  // namespace pd

#endif  // PD_TESTS_BUNDLE_BUNDLE_FIXTURE_H_
