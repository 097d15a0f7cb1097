// SPDX-License-Identifier: Apache-2.0
// The names of what evaluation gives, as the job alone says them: for
// `train.checkpoint.best`, monitors and --require, before anything runs.
#ifndef PD_LIBCORE_NN_METRIC_RESULTS_H_
#define PD_LIBCORE_NN_METRIC_RESULTS_H_

#include <string>
#include <vector>

#include "libcore/nn/job.h"

namespace pd {
namespace job {
class Metric;  // libcore/nn/job_metric.pb.h
}

/// The result of an evaluation in environments.
inline constexpr char kEpisodeReturn[] = "episode_return";

struct ResultInfo {
  std::string name;
  bool larger_is_better = true;
};

/// The metric's name, or its kind's.
std::string NameOf(const job::Metric& metric);

/// The results of one metric, in their order; a confusion matrix has none.
std::vector<ResultInfo> ResultsOf(const job::Metric& metric);

/// "loss", where the job has a loss, the results of its metrics, and that of an
/// evaluation in environments.
std::vector<ResultInfo> ResultsOf(const job::Job& job);

/// "loss, acc": names for messages.
std::string NamesOf(const std::vector<ResultInfo>& results);

/// The result with this name, or null.
const ResultInfo* FindResult(const std::vector<ResultInfo>& results,
                             const std::string& name);

}  // namespace pd

#endif  // PD_LIBCORE_NN_METRIC_RESULTS_H_
