// SPDX-License-Identifier: Apache-2.0
// Runs an evaluation set through a program: mean loss, metrics, predictions.
#ifndef PD_LIBCORE_TRAIN_EVALUATOR_H_
#define PD_LIBCORE_TRAIN_EVALUATOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/train/heads.h"
#include "libcore/train/metrics.h"
#include "libcore/train/metrics/confusion.h"
#include "libcore/train/plan_cache.h"
#include "libcore/train/train_program.h"

namespace pd {

class NanGuard;

/// Sees what an evaluation computes, batch by batch.
class EvaluationObserver {
 public:
  virtual ~EvaluationObserver() = default;
  virtual void OnBegin() {}
  /// `outputs` are those of the spec, row-major, valid during the call.
  virtual void OnBatch(const Batch& batch,
                       const std::vector<const Tensor*>& outputs) = 0;
};

/// The program of an evaluation and the variables that it inspects.
struct EvaluationSpec {
  ProgramDesc program;
  std::vector<FeedSpec> feeds;  ///< first extents -1
  std::string loss;             ///< "" when there is none
  std::vector<MetricUse> metrics;
  std::vector<Head> heads;  ///< for errors that name layers
  /// Predictions, for `keep_outputs` and the observer.
  std::vector<std::string> outputs;
  EvaluationObserver* observer = nullptr;  ///< outlives the evaluator
  std::string label;                       ///< as in Session::Compile
  NanGuard* guard =
      nullptr;  ///< is told of NaN and Inf; outlives the evaluator
};

/// How often records of one class were taken for another.
struct ClassTable {
  std::string name;
  ConfusionMatrix counts;
  std::vector<std::string> classes;  ///< names by number; empty without any
};

struct EvaluationResult {
  int64_t records = 0;
  double seconds = 0;
  std::optional<double> loss;  ///< mean over records
  MetricResults metrics;
  /// Tables of true and predicted classes, by name: those that the job asks
  /// for, else that of the first accuracy.
  std::vector<ClassTable> tables;
  NamedArrays outputs;  ///< predictions of all records, when kept
  BadRecords left_out;  ///< records that could not be read

  /// "loss" or a metric's name; nothing when there is no such result.
  std::optional<double> Find(const std::string& name) const;
};

class Evaluator {
 public:
  /// `session` and `loader` outlive it. InvalidArgument when the data set does
  /// not fit the program's feeds.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(Session* session,
                                                           Loader* loader,
                                                           EvaluationSpec spec);

  /// One pass over the loader's data. `progress` (may be null) is told batches
  /// and records done; when it returns false the pass ends with Cancelled.
  /// Where the loader has a stride, as many processes evaluate together
  /// (shared_evaluation.h), and each gets the results of all.
  absl::StatusOr<EvaluationResult> Run(
      bool keep_outputs,
      const std::function<bool(int64_t batches, int64_t records)>& progress);

 private:
  Evaluator() = default;
  absl::Status CheckMetrics() const;
  absl::Status ExplainNan(const Batch& batch, const Plan& plan);
  // An error that a label of the batch is to blame for says so.
  absl::Status Explained(const Batch& batch, const absl::Status& status) const;
  std::vector<const Tensor*> FetchesOf(const Plan& plan) const;
  // `values` are those of fetches_.
  absl::Status Collect(const Batch& batch,
                       const std::vector<const Tensor*>& values,
                       EvaluationResult* result, bool keep_outputs);
  using Seen = std::function<bool(int64_t batches, int64_t records)>;
  absl::Status RunAlone(bool keep_outputs, const Seen& progress,
                        EvaluationResult* result);
  absl::Status RunShared(bool keep_outputs, const Seen& progress,
                         EvaluationResult* result);
  absl::Status Compute(const Batch& batch, Plan* plan);
  /// Whether a metric reads this field of the data set.
  bool IsJudged(const std::string& field) const;
  void KeepPending(const Batch& batch);
  absl::Status CollectPending(EvaluationResult* result, bool keep_outputs);

  Session* session_ = nullptr;
  Loader* loader_ = nullptr;
  EvaluationSpec spec_;
  std::vector<std::string> fetches_;
  std::optional<PlanCache> plans_;
  // A batch that a GPU computes still, while the next one is fed.
  struct Pending {
    Plan* plan = nullptr;  // null: there is none
    Batch batch;
    std::vector<std::vector<std::byte>> bytes;  // of its fields
  } pending_;
  double loss_sum_ = 0;
  // Rows of an output, in its own dtype.
  struct Kept {
    DType dtype = DType::kFloat32;
    Shape shape;  // of the last batch
    std::vector<std::byte> bytes;
  };
  absl::Status Keep(const std::string& name, const Tensor& output,
                    int64_t records);
  std::map<std::string, Kept> kept_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_EVALUATOR_H_
