// SPDX-License-Identifier: Apache-2.0
// The kinds of metrics, made of what the job says. A kind is a line here and in
// make_metric.cc, and a file.
#ifndef PD_LIBCORE_TRAIN_METRICS_KINDS_H_
#define PD_LIBCORE_TRAIN_METRICS_KINDS_H_

#include <memory>
#include <string>
#include <vector>

#include "libcore/train/metrics.h"

namespace pd {
namespace job {
class Metric;  // libcore/nn/job_metric.pb.h
}

using MetricPtr = std::unique_ptr<Metric>;
using ResultNames = std::vector<std::string>;

/// The metric that the job's message describes.
MetricPtr MakeMetric(const job::Metric& metric);

MetricPtr MakeAccuracy(const job::Metric& metric, ResultNames names);
MetricPtr MakePrecisionRecall(const job::Metric& metric, ResultNames names);
MetricPtr MakeAuc(const job::Metric& metric, ResultNames names);
MetricPtr MakeRegression(const job::Metric& metric, ResultNames names);
MetricPtr MakeTokenLoss(const job::Metric& metric, ResultNames names);
MetricPtr MakeBleu(const job::Metric& metric, ResultNames names);
MetricPtr MakeEditDistance(const job::Metric& metric, ResultNames names);
MetricPtr MakeChunkF1(const job::Metric& metric, ResultNames names);
MetricPtr MakeMeanIoU(const job::Metric& metric, ResultNames names);
MetricPtr MakeMeanAveragePrecision(const job::Metric& metric,
                                   ResultNames names);
MetricPtr MakeConfusionMatrix(const job::Metric& metric);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_KINDS_H_
