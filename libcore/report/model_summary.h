// SPDX-License-Identifier: Apache-2.0
// A job's network layer by layer: what paddle.summary says of a network, and
// its arithmetic, for a batch of one record.
#ifndef PD_LIBCORE_REPORT_MODEL_SUMMARY_H_
#define PD_LIBCORE_REPORT_MODEL_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"

namespace pd {

struct LayerRow {
  std::string type;  ///< PaddlePaddle's class and a number: "Conv2D-1"
  std::string name;  ///< in the job: "stage1.0/conv1"
  std::vector<Shape> inputs, outputs;
  /// Elements, statistics of norms included. What layers share is the first
  /// one's.
  int64_t parameters = 0;
  int64_t trainable = 0;
  /// Two operations for each multiply-add of convolutions and matrix products,
  /// as count_flops.h counts, those of recurrent layers included.
  int64_t flops = 0;
};

struct ModelSummary {
  std::vector<LayerRow> rows;
  int64_t parameters = 0, trainable = 0, flops = 0;
  /// As paddle.summary estimates them, four bytes an element; a pass is every
  /// layer's output and its gradient.
  double input_mb = 0, pass_mb = 0, parameters_mb = 0, total_mb = 0;
  /// Inputs with an open extent other than the batch, as they were taken.
  std::map<std::string, Shape> assumed;
};

/// Builds the job's network and counts. The job needs a model only.
absl::StatusOr<ModelSummary> SummarizeModel(const OpRegistry& registry,
                                            const LoadedJob& job);

/// "max_pool2d" -> "MaxPool2D".
std::string PaddleClassName(const std::string& kind);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_MODEL_SUMMARY_H_
