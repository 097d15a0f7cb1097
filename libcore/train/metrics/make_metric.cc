// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/nn/metric_results.h"
#include "libcore/train/metrics/kinds.h"

namespace pd {

MetricPtr MakeMetric(const job::Metric& metric) {
  ResultNames names;
  for (ResultInfo& result : ResultsOf(metric))
    names.push_back(std::move(result.name));
  switch (metric.kind_case()) {
    case job::Metric::kAccuracy:
      return MakeAccuracy(metric, names);
    case job::Metric::kPrecision:
    case job::Metric::kRecall:
    case job::Metric::kF1:
      return MakePrecisionRecall(metric, names);
    case job::Metric::kAuc:
      return MakeAuc(metric, names);
    case job::Metric::kMae:
    case job::Metric::kMse:
    case job::Metric::kRmse:
    case job::Metric::kR2:
      return MakeRegression(metric, names);
    case job::Metric::kPerplexity:
    case job::Metric::kBitsPerCharacter:
      return MakeTokenLoss(metric, names);
    case job::Metric::kBleu:
      return MakeBleu(metric, names);
    case job::Metric::kEditDistance:
    case job::Metric::kCer:
      return MakeEditDistance(metric, names);
    case job::Metric::kChunkF1:
      return MakeChunkF1(metric, names);
    case job::Metric::kMeanIou:
      return MakeMeanIoU(metric, names);
    case job::Metric::kMeanAveragePrecision:
      return MakeMeanAveragePrecision(metric, names);
    case job::Metric::kConfusionMatrix:
      return MakeConfusionMatrix(metric);
    case job::Metric::KIND_NOT_SET:
      break;
  }
  PD_INVARIANT(!"a metric without a kind passed the job's check");
  return nullptr;
}

}  // namespace pd
