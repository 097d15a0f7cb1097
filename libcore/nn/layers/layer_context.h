// SPDX-License-Identifier: Apache-2.0
// The context of a layer being built: its message, its inputs, and the
// means to add parameters and ops. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_LAYER_CONTEXT_H_
#define PD_LIBCORE_NN_LAYERS_LAYER_CONTEXT_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/build.h"
#include "libcore/nn/initializer.h"
#include "libcore/nn/job_param.pb.h"
#include "libcore/nn/parameter_groups.h"
#include "libcore/program/block_builder.h"

namespace pd {

namespace job {
class Layer;       // libcore/nn/job_layer.pb.h
class SavedModel;  // libcore/nn/job_saved_model.pb.h
}  // namespace job
class FilledCaches;  // libcore/nn/layers/filled_caches.h

/// An input of a layer: a variable, and its maker ("layer 'conv1'").
struct LayerInput {
  std::string variable;  ///< "" of a group, and of an input that is left out
  std::string maker;
  /// The variables of a group that is read by one name (the keys and values of
  /// all layers of a decoder).
  std::vector<std::string> group = {};

  bool left_out() const { return variable.empty() && group.empty(); }
};

/// All that a layer reads.
struct LayerReads {
  std::vector<LayerInput> inputs;  ///< the layer's `input`
  /// By the names of those of its message's fields that name layers: the rule
  /// `reads` in the schema.
  std::map<std::string, std::vector<LayerInput>> fields;
};

/// A further result of a layer: other layers read it as "LAYER:NAME".
struct LayerOutput {
  std::string name;
  std::string variable;                 ///< "" of a group
  std::vector<std::string> group = {};  ///< see LayerInput
};

/// The results of a layer.
struct LayerResults {
  LayerInput first;
  std::vector<LayerOutput> others;
  /// Of a block's use: its layers, by the names that layers behind it read.
  std::map<std::string, LayerInput> inner = {};
};

/// Builds the layer that a field of another's message holds ("cell" of rnn).
using PartFn =
    std::function<absl::StatusOr<LayerResults>(const char*, LayerReads)>;

/// Puts the place of element `index` of the list `field` of the layer's message
/// before an error.
using PlaceFn = std::function<absl::Status(const absl::Status& error,
                                           const char* field, int index)>;

/// How a layer is called.
struct LayerName {
  std::string full;  ///< "stage2.0/conv1", for messages and tables
  /// "stage2.0.conv1": what PaddlePaddle's state_dict puts before ".weight" of
  /// a layer with this attribute's name; "" where the job gives no name.
  std::string structured;
  std::string owner;  ///< `full`, or the layer whose parameters this one has
};

/// The programs and tables that all layers of one model are built into.
struct ModelParts {
  BlockBuilder* main;
  BlockBuilder* startup;
  BuiltModel* built;
  ParameterGroups* groups;
  GeneratedNames* generated;
  /// The form that is built, and whether it differs from the other one.
  job::Phase::Kind form = job::Phase::train;
  bool* has_forms = nullptr;
  const SavedNetworks* networks = nullptr;  ///< that layers go on from
  /// Layers take the parameters that there are under their names already.
  bool share = false;
  FilledCaches* filled = nullptr;
};

/// How the parameters that are made next are called.
struct ParameterScope {
  std::string structured;  ///< "enc.layers.0", "" for numbered names
  std::string kind;        ///< "linear"
  std::string prefix;      ///< "linear_3" once there is a numbered name
  int weights = 0, biases = 0;
  /// The same of PaddlePaddle's own names, which all layers have.
  std::string paddle_prefix;
  int paddle_weights = 0, paddle_biases = 0;
};

/// A parameter that is to be made.
struct ParameterRequest {
  job::ParamAttr attr;  ///< as written
  std::string name;     ///< where attr has none
  Shape shape;
  job::Initializer otherwise;  ///< where nothing else says first values
  bool bias = false;
  bool computed = false;  ///< first values come from others, not from attr
  /// PaddlePaddle counts it among the weights, a bias or not.
  bool as_weight = false;
  DType dtype = DType::kFloat32;
  /// First values that a saved network has, where no group gives others. Then
  /// PaddlePaddle's name is the parameter's own.
  const Array* value = nullptr;
};

class LayerContext {
 public:
  LayerContext(const job::Layer& layer, LayerName name, LayerReads reads,
               const ModelParts& parts, PartFn part, PlaceFn place);
  /// For the parameters of a loss; it has no layer().
  LayerContext(const std::string& loss_kind, LayerName name,
               const ModelParts& parts);

  const job::Layer& layer() const { return layer_; }
  /// "conv2d"; of `op` the operator's type.
  const std::string& kind() const { return kind_; }
  size_t input_count() const { return reads_.inputs.size(); }
  const std::string& input(size_t i = 0) const {
    return reads_.inputs[i].variable;
  }
  const LayerInput& read(size_t i = 0) const { return reads_.inputs[i]; }
  const Shape& shape(size_t i = 0) const { return ShapeOf(input(i)); }
  DType dtype(size_t i = 0) const;
  const Shape& ShapeOf(const std::string& variable) const;
  DType TypeOf(const std::string& variable) const;
  /// The input that a field names ("sequence_length"); null where the job
  /// does not give it.
  const LayerInput* Named(const char* field) const;
  /// The same of a list ("initial_states"); empty where it is not given.
  const std::vector<LayerInput>& AllNamed(const char* field) const;
  BlockBuilder* main() { return parts_.main; }
  const BlockBuilder* main() const { return parts_.main; }
  /// The keys and values that `generate` goes on with.
  FilledCaches* filled() const { return parts_.filled; }
  /// Whether the form for evaluation is built. A layer that asks differs in the
  /// two forms.
  bool Evaluates() {
    *parts_.has_forms = true;
    return parts_.form == job::Phase::eval;
  }

  /// The extent of an axis, which must be known: the layer's own `given` when
  /// the job has it (checked against the input), else the input's. `what` is
  /// "input features", `field` is "in_features".
  absl::StatusOr<int64_t> Extent(int axis, const int64_t* given,
                                 const char* what, const char* field) const;
  /// The input's rank is in [least, most]; `expected` says so in words.
  absl::Status ExpectRank(size_t least, size_t most,
                          const char* expected) const;
  /// "layer 'fc1' (linear) expects 400 input features; layer 'flatten' gives
  /// [-1, 256]".
  absl::Status Misfit(const std::string& expected, size_t input = 0) const;
  absl::Status Misfit(const std::string& expected,
                      const LayerInput& input) const;
  /// "layer 'fc1' (linear) reads ...": what every error of an op is put behind.
  std::string Described() const;
  /// "layer 'fc1'"
  std::string Called() const;

  /// The layer that `field` of the message holds, built here. Built again, it
  /// has the same parameters. Its errors have their places.
  absl::StatusOr<LayerResults> Part(const char* field, LayerReads reads) {
    return part_(field, std::move(reads));
  }

  /// An error about element `index` of the list `field` of the layer's message,
  /// with its place; OK stays OK.
  absl::Status At(const absl::Status& status, const char* field,
                  int index) const {
    return status.ok() ? status : place_(status, field, index);
  }

  /// A trainable parameter. `member` is its name in PaddlePaddle's layer class
  /// ("weight", "q_proj.weight"): the parameter of a layer that the job names
  /// 'fc' is "fc.weight", as in PaddlePaddle's state_dict (with "" it is "fc");
  /// that of a layer without a name "linear_0.w_0", as in its programs. `attr`
  /// may give another name; the parameter that has it already is shared then.
  absl::StatusOr<std::string> Weight(const job::ParamAttr& attr, Shape shape,
                                     const job::Initializer& otherwise,
                                     const char* member = "weight");
  /// Weight with initial values 0 and the generated name ".b_0".
  absl::StatusOr<std::string> Bias(const job::ParamAttr& attr, Shape shape,
                                   const char* member = "bias");
  /// Bias with other initial values.
  absl::StatusOr<std::string> Bias(const job::ParamAttr& attr, Shape shape,
                                   const job::Initializer& otherwise,
                                   const char* member);
  /// A persistable variable that no optimizer touches (running statistics).
  absl::StatusOr<std::string> Statistic(Shape shape, double value,
                                        const char* member);
  /// The saved network of a layer `model`; null where it was not opened.
  const SavedNetwork* Network(const job::SavedModel& model) const;
  /// "trunk.conv2d_0.w_0", "model_0.conv2d_0.w_0": the name in this layer of a
  /// saved network's variable.
  std::string Inner(const std::string& variable);
  /// A saved network's variable that lives on, with its value: a parameter
  /// where it is one there, else a variable that no optimizer touches.
  absl::StatusOr<std::string> Saved(const VarDesc& var, const Array& value);
  /// Gives the layer a further result beside the one that its function returns.
  void AddOutput(std::string name, std::string variable);
  /// The same of several variables that are read by one name.
  void AddGroup(std::string name, std::vector<std::string> variables) {
    outputs_.push_back({std::move(name), "", std::move(variables)});
  }

  /// Appends `op` with new variables in the output slots; gives them.
  absl::StatusOr<std::vector<std::string>> AppendAll(
      OpDesc op, const std::vector<std::string>& outputs);
  /// AppendAll that gives the first's.
  absl::StatusOr<std::string> Append(OpDesc op,
                                     const std::vector<std::string>& outputs);
  /// Append for input "X" and output "Out".
  absl::StatusOr<std::string> Unary(
      const char* type, const std::string& x,
      std::map<std::string, Attribute> attrs = {});
  /// x + y, y's axes starting at `axis` of x.
  absl::StatusOr<std::string> Binary(const char* type, const std::string& x,
                                     const std::string& y, int axis = -1);

  /// While it lives, parameters are those of a sublayer: with `path` "q_proj",
  /// in a layer that the job names 'mha', "mha.q_proj.weight"; in a layer
  /// without a name they are counted by `kind`, "linear_3.w_0".
  class Sublayer {
   public:
    Sublayer(LayerContext* context, const char* kind,
             const std::string& path = "");
    ~Sublayer() { context_->scope_ = std::move(outer_); }
    Sublayer(const Sublayer&) = delete;
    Sublayer& operator=(const Sublayer&) = delete;

   private:
    friend class LayerContext;
    LayerContext* context_;
    ParameterScope outer_;
  };

  /// Counts a sublayer that PaddlePaddle makes at this point, before this
  /// layer does or where it does not at all, and gives its name there.
  std::string CountInPaddle(const char* kind);
  /// Names the current sublayer as it was counted.
  void NameInPaddle(std::string counted) {
    scope_.paddle_prefix = std::move(counted);
  }

 private:
  std::string NewName(const char* member, const char* suffix, int* number);
  /// PaddlePaddle's name of the weight or bias that is made next.
  std::string PaddleName(bool bias);
  /// The variable that layers compute with: the parameter itself, or the one
  /// that weight_norm or spectral_norm makes of others (reparameterize.cc).
  absl::StatusOr<std::string> Parameter(ParameterRequest request);
  absl::StatusOr<std::string> Plain(const ParameterRequest& request);
  absl::StatusOr<std::string> WeightNorm(const ParameterRequest& request);
  absl::StatusOr<std::string> SpectralNorm(const ParameterRequest& request);
  absl::StatusOr<std::string> UnitVector(const std::string& name,
                                         int64_t extent, double eps);
  /// A parameter that memory can hold, or an error with layer and parameter.
  absl::Status CheckSize(const std::string& name, const Shape& shape) const;
  /// Declares a variable that lives on, without first values.
  void Keep(VarDesc var);
  absl::Status Declare(VarDesc var, const job::Initializer& initializer);
  VarDesc* FindParameter(const std::string& name);

  const job::Layer& layer_;
  std::string name_, owner_, kind_;
  LayerReads reads_;
  ModelParts parts_;
  PartFn part_;
  PlaceFn place_;
  ParameterScope scope_;
  std::vector<std::string> parameters_;
  std::vector<LayerOutput> outputs_;

 public:
  const std::vector<std::string>& parameters() const { return parameters_; }
  const std::vector<LayerOutput>& outputs() const { return outputs_; }
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_LAYER_CONTEXT_H_
