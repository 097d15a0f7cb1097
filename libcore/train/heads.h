// SPDX-License-Identifier: Apache-2.0
// The heads of a network: layers with an output for each class, in front of a
// loss of class numbers. A label that a head has no output for is an error
// with the layer, the record and what to do, found before the first step where
// data can be looked at (data_fit.h) and otherwise by the step that meets it.
#ifndef PD_LIBCORE_TRAIN_HEADS_H_
#define PD_LIBCORE_TRAIN_HEADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/data/loader.h"
#include "libcore/train/train_program.h"

namespace pd {

struct Head {
  std::string layer;
  std::string place;  ///< of the layer in the job, FILE:LINE:COLUMN
  int64_t outputs = 0;
  std::string field;       ///< of the data set, with the class numbers
  int64_t ignored = -100;  ///< the number that is no class
};

/// The heads of all losses of class numbers in `program.test`: cross_entropy,
/// with smoothed labels too, and nll_loss, where the number of outputs is known
/// and the labels come from a field as they are.
std::vector<Head> HeadsOf(const TrainProgram& program);

/// InvalidArgument for `label`, which the head has no output for: layer, record
/// and what to do. `where` is the record, `is_mask` whether it is a pixel's.
absl::Status BadLabel(const Head& head, int64_t label, bool is_mask,
                      absl::string_view where);

/// The first label of a batch of `dataset` that a head has no output for, as
/// BadLabel says it, where `failed` came of running the batch; else `failed`.
absl::Status ExplainLabels(const std::vector<Head>& heads, const Batch& batch,
                           const Dataset& dataset, const absl::Status& failed);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_HEADS_H_
