// SPDX-License-Identifier: Apache-2.0
// The results of evaluation by name: metrics name them, the best checkpoint,
// early stopping and the schedule follow them.
#include <set>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_check.h"
#include "libcore/nn/metric_results.h"

namespace pd {
namespace {

using google::protobuf::Message;

// The results of the metrics have names of their own, which --require can say.
absl::Status CheckMetrics(const LoadedJob& job) {
  std::set<std::string> names = {"loss", "train_loss", "records", "seconds",
                                 kEpisodeReturn};
  for (const job::Metric& metric : job.proto().metric()) {
    if (metric.has_name() &&
        (metric.name().empty() ||
         metric.name().find_first_of("<>=! \t\n") != std::string::npos))
      return job.At(InvalidArgument("a metric's name is not empty and has no "
                                    "'<', '>', '=', '!' or blank; got '%s'",
                                    metric.name()),
                    metric, "name");
    if (metric.mean_iou().per_class() && !metric.mean_iou().has_num_classes())
      return job.At(InvalidArgument("'per_class' needs 'num_classes'"),
                    metric.mean_iou(), "per_class");
    for (const ResultInfo& result : ResultsOf(metric))
      if (!names.insert(result.name).second)
        return job.At(InvalidArgument("there is a result '%s' already; give "
                                      "this metric another 'name'",
                                      result.name),
                      metric);
  }
  return absl::OkStatus();
}

// `name` is a result of evaluation.
absl::Status CheckResult(const LoadedJob& job, const std::string& name,
                         const Message& part, absl::string_view field) {
  const std::vector<ResultInfo> results = ResultsOf(job.proto());
  if (FindResult(results, name) != nullptr) return absl::OkStatus();
  return job.At(InvalidArgument("no metric has the name '%s'; there are %s",
                                name, NamesOf(results)),
                part, field);
}

// The result that early stopping or a schedule follows, train_loss included.
template <typename Part>
absl::Status CheckMonitor(const LoadedJob& job, const Part& part) {
  const job::Data& data = job.proto().data();
  if (part.has_monitor() ? part.monitor() == "train_loss" : !data.has_eval())
    return absl::OkStatus();
  const std::string name = part.has_monitor() ? part.monitor() : "loss";
  PD_RETURN_IF_ERROR(CheckResult(job, name, part, "monitor"));
  if (!data.has_train()) return absl::OkStatus();  // nothing is trained
  if (!data.has_eval())
    return job.At(InvalidArgument("'%s' is a result of evaluation and there is "
                                  "no data.eval; there is train_loss",
                                  name),
                  part, "monitor");
  const job::Evaluation& when = job.proto().train().evaluation();
  if (when.every_epochs() == 0 && when.every_steps() == 0)
    return job.At(InvalidArgument("'%s' is a result of evaluation, which "
                                  "train.evaluation has at the end only",
                                  name),
                  part, "monitor");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckResults(const LoadedJob& job) {
  PD_RETURN_IF_ERROR(CheckMetrics(job));
  const job::Checkpoint& checkpoint = job.proto().train().checkpoint();
  if (job.proto().train().has_early_stopping())
    PD_RETURN_IF_ERROR(CheckMonitor(job, job.proto().train().early_stopping()));
  if (job.proto().optimizer().lr().has_reduce_on_plateau())
    PD_RETURN_IF_ERROR(
        CheckMonitor(job, job.proto().optimizer().lr().reduce_on_plateau()));
  if (!checkpoint.has_best()) return absl::OkStatus();
  return CheckResult(job, checkpoint.best().metric(), checkpoint.best(),
                     "metric");
}

}  // namespace pd
