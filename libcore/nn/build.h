// SPDX-License-Identifier: Apache-2.0
// From a job's model, losses and metrics to Programs: one for training (forward
// and loss; the caller appends gradients and the optimizer), the same for
// evaluation, and one that gives the parameters their first values.
#ifndef PD_LIBCORE_NN_BUILD_H_
#define PD_LIBCORE_NN_BUILD_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/optim/optimizer.h"

namespace pd {

/// The job's settings of one parameter.
struct ParameterSettings {
  std::string name;
  /// PaddlePaddle's name of it in a process that makes the job's layers in
  /// their order: "linear_0.w_0". Optimizer states are called after it.
  std::string paddle_name;
  std::string layer;  ///< the layer that made it
  bool trainable = true;
  double learning_rate = 1;                ///< factor on the optimizer's
  std::optional<WeightDecay> regularizer;  ///< instead of the optimizer's
  bool need_clip = true;
};

/// The inputs of one metric of the job besides fields of the data set.
struct MetricInputs {
  std::string input;         ///< a variable of the test program
  std::string label;         ///< another one; "" when that is a field
  std::string input_length;  ///< another one; "" when that is a field or none
};

/// A layer as it was built, blocks unfolded; for tables and messages.
struct LayerInfo {
  std::string name;  ///< "conv1", "stage1.0/conv1"
  std::string kind;  ///< "conv2d"
  std::string output;
  std::vector<std::string> parameters;
  std::vector<std::string> variables;  ///< outputs of its ops, in their order
  /// Where the job has it, "job.pbtxt:5:3"; of a layer of the zoo, where the
  /// job uses the network.
  std::string place = {};
};

struct BuiltModel {
  ProgramDesc main;     ///< training: forward and losses
  ProgramDesc test;     ///< the same with is_test set
  ProgramDesc startup;  ///< fills every persistable variable of the two but
                        ///< those in `values`
  NamedArrays values;   ///< first values that saved networks give
  std::vector<VarDesc> inputs;  ///< the network's inputs, as declared
  std::vector<VarDesc> labels;  ///< further inputs of losses
  std::string loss;             ///< the sum of the losses, [1]; "" without any
  /// Of `main`: the number of each loss in the job, and its variable.
  std::vector<std::pair<int, std::string>> losses;
  std::vector<std::string> outputs;           ///< the model's predictions
  std::vector<MetricInputs> metrics;          ///< in the job's order
  std::vector<ParameterSettings> parameters;  ///< in the order of their making
  /// Parameters and statistics, and what PaddlePaddle calls them.
  std::vector<std::pair<std::string, std::string>> paddle_names;
  std::vector<LayerInfo> layers;       ///< of `main`
  std::vector<LayerInfo> test_layers;  ///< of `test`
};

/// Builds the job's model. InvalidArgument "FILE:LINE:COLUMN: ..." names both
/// layers and both shapes where they do not fit.
absl::StatusOr<BuiltModel> BuildModel(const LoadedJob& job,
                                      const OpRegistry& registry);

}  // namespace pd

#endif  // PD_LIBCORE_NN_BUILD_H_
