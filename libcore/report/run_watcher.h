// SPDX-License-Identifier: Apache-2.0
// An observer of a training run that makes it something to look at: files for
// VisualDL and TensorBoard, and report.html.
//
// Tags: train/loss, train/lr, train/epoch_loss, train/records_per_second,
// eval/loss, eval/METRIC, memory/rss_mb; weights/PARAMETER and
// gradients/PARAMETER (histograms); samples/RECORD (pictures),
// samples/RECORD/audio; pr/CLASS, roc/CLASS and auc/CLASS; embedding/LAYER;
// hyper-parameters; the graph, which VisualDL has in a file of its own,
// vdlgraph.pdmodel.
#ifndef PD_LIBCORE_REPORT_RUN_WATCHER_H_
#define PD_LIBCORE_REPORT_RUN_WATCHER_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/report/evaluation_view.h"
#include "libcore/report/log_files.h"
#include "libcore/report/report.h"
#include "libcore/report/run_history.h"
#include "libcore/report/run_times.h"
#include "libcore/train/trainer.h"

namespace pd {

struct WatchOptions {
  std::vector<LogKind> logs;
  bool report = false;
  /// For the logs: what can be heard of the records that they show.
  SoundInput sound;
  /// For the report: machine, versions.
  std::vector<std::pair<std::string, std::string>> facts;
};

class RunWatcher : public TrainObserver {
 public:
  explicit RunWatcher(WatchOptions options) : options_(std::move(options)) {}
  ~RunWatcher() override;
  /// False when there is nothing to write: then it need not watch.
  bool wanted() const { return options_.report || !options_.logs.empty(); }

  absl::Status OnStart(const TrainStart& start) override;
  void OnEpoch(int64_t epoch, int64_t epochs, int64_t batches,
               int64_t done) override;
  void OnStep(const StepReport& report) override;
  bool WantsGradients(int64_t step) override;
  void OnGradients(int64_t step,
                   const std::vector<ParameterGradient>& gradients) override;
  void OnLog(const std::string& line) override;
  EvaluationObserver* BatchObserver() override { return &view_; }
  void OnEvaluation(int64_t step, const EvaluationResult& result) override;
  void OnCheckpoint(const std::string& folder) override;
  void OnPlan(int64_t records, const Plan& plan) override;
  absl::Status Failure() override { return status_; }

  /// Writes what belongs to the end; `outcome` is null for a run that failed.
  /// Gives the first error of all.
  absl::Status Finish(const TrainOutcome* outcome);

 private:
  void Keep(const absl::Status& status);
  void Add(const std::string& tag, int64_t step, const LogContent& content);
  void Flush();
  void MarkTime();
  absl::Status OpenTimes();
  void AddHyperParameters();
  void AddCurves(int64_t step);
  void AddSamples(int64_t step);
  void AddPicture(const std::string& tag, int64_t step, const Image& picture);
  void AddSound(const std::string& tag, int64_t step, const WavSound& sound);
  void AddEmbeddings(int64_t step);
  absl::Status WriteProjector(const std::string& name,
                              const LogEmbedding& table);
  void Report(const std::string& state);

  WatchOptions options_;
  TrainStart start_;
  EvaluationView view_;
  RunHistory history_;
  std::vector<std::unique_ptr<LogFile>> logs_;
  std::vector<std::pair<std::string, std::string>> projected_;  // name, folder
  absl::Status status_;
  int64_t step_ = 0, epoch_ = 0, epochs_ = 0;
  bool hyper_parameters_ = false;  // written
  // Time spent in training steps since the last point.
  double last_ = 0, busy_ = 0, seconds_ = 0;
  int64_t records_ = 0;
  std::vector<TimePoint> times_;
  std::FILE* times_file_ = nullptr;
  PlannedMemory memory_;
};

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_RUN_WATCHER_H_
