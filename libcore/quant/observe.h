// SPDX-License-Identifier: Apache-2.0
// Runs a model over a data set and shows chosen variables while they exist, in
// row-major order or as they lie: each is looked at right after it was
// computed, so the plan reuses memory as usual and never holds all activations.
#ifndef PD_LIBCORE_QUANT_OBSERVE_H_
#define PD_LIBCORE_QUANT_OBSERVE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/data/loader.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/exec/session.h"
#include "libcore/quant/observed_chain.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Observed values: variables that are shown together when the last of them
/// exists.
using Sight = std::vector<std::string>;

/// Sees sight `i` of the batch at hand. An error ends the run.
using ObserveFn = std::function<absl::Status(
    size_t i, const std::vector<const Tensor*>& values)>;

/// Told batches and records done; false ends the run with Cancelled.
using BatchProgress = std::function<bool(int64_t batches, int64_t records)>;

struct ObservedRun {
  InferenceModel model;
  std::vector<Sight> sights;
  /// The observer takes values in any order: records lie one after the other
  /// without padding, and the rest as it was computed.
  bool as_they_lie = false;
  /// Sees some of the sights, of one variable each, as they are made; null: all
  /// are shown whole. It outlives the run.
  StretchObserver* by_stretches = nullptr;
  int64_t most_batches = 0;  ///< 0: all
};

/// The inputs of a model as a loader has to give them. -1 stands for the batch
/// and whatever else is not known.
std::vector<FeedSpec> FeedsOf(const InferenceModel& model);

class ObservedModel {
 public:
  /// Adds the op that looks to `registry`, which outlives this. NotFound for a
  /// sight of a variable that the model does not compute.
  static absl::StatusOr<std::unique_ptr<ObservedModel>> Create(
      OpRegistry* registry, const ObservedRun& run);
  ~ObservedModel();

  /// One pass over the loader's first batches. Batches of other shapes than
  /// the inputs are InvalidArgument, none at all FailedPrecondition. Gives the
  /// number of records.
  absl::StatusOr<int64_t> Pass(Loader* loader, const ObserveFn& observe,
                               const BatchProgress& progress);

 private:
  ObservedModel() = default;

  ProgramDesc program_;
  std::vector<FeedSpec> feeds_;
  int64_t most_batches_ = 0;
  int64_t number_ = 0;  // under which steps find who looks
  ObserveFn observe_;
  std::unique_ptr<Session> session_;
};

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_OBSERVE_H_
