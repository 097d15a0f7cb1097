// SPDX-License-Identifier: Apache-2.0
// From a job's model, losses and metrics to Programs: one for training (forward
// and loss; the caller appends gradients and the optimizer), the same for
// evaluation, and one that gives the parameters their first values.
#ifndef PD_LIBCORE_NN_BUILD_H_
#define PD_LIBCORE_NN_BUILD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/program_desc.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"

namespace pd {

/// What the job says of one trainable or frozen parameter.
struct ParameterSettings {
  enum Decay { kInherit, kL1, kL2 };
  std::string name;
  std::string layer;         ///< the layer that made it
  double learning_rate = 1;  ///< factor on the optimizer's
  bool trainable = true;
  bool need_clip = true;
  Decay decay = kInherit;  ///< kInherit: the optimizer's weight_decay
  double coeff = 0;        ///< of decay
};

/// One result of a metric; the variables hold the batch's values.
struct AccuracyVars {
  std::string name;      ///< "acc", "acc_top5"
  int k = 1;             ///< among how many the class may be
  std::string accuracy;  ///< float32 [1]
  std::string correct;   ///< int32 [1]
  std::string total;     ///< int32 [1]
  std::string input;     ///< the predictions that are judged
  std::string label;
};

/// A layer as it was built, blocks unfolded; for tables and messages.
struct LayerInfo {
  std::string name;  ///< "conv1", "stage1.0/conv1"
  std::string kind;  ///< "conv2d"
  std::string output;
  std::vector<std::string> parameters;
};

struct BuiltModel {
  ProgramDesc main;             ///< training: forward, losses, metrics
  ProgramDesc test;             ///< the same with is_test set
  ProgramDesc startup;          ///< fills every persistable variable of the two
  std::vector<VarDesc> inputs;  ///< what the network is fed, as declared
  std::vector<VarDesc> labels;  ///< what losses and metrics are fed besides
  std::string loss;             ///< the sum of the losses, [1]; "" without any
  std::vector<std::string> outputs;  ///< the model's predictions
  std::vector<AccuracyVars> accuracies;
  std::vector<ParameterSettings> parameters;  ///< in the order of their making
  std::vector<LayerInfo> layers;
};

/// Builds the job's model. InvalidArgument "FILE:LINE:COLUMN: ..." names both
/// layers and both shapes where they do not fit.
absl::StatusOr<BuiltModel> BuildModel(const LoadedJob& job,
                                      const OpRegistry& registry);

/// A program for evaluation: `program` with is_test set where ops have it.
ProgramDesc CloneForTest(const ProgramDesc& program,
                         const OpRegistry& registry);

}  // namespace pd

#endif  // PD_LIBCORE_NN_BUILD_H_
