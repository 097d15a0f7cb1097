// SPDX-License-Identifier: Apache-2.0
// One call of a layer of Keras on its way to nodes of ONNX: what an importer
// reads from and writes with. The first error sticks (LayoutGraph), so
// importers read as formulas.
#ifndef PD_LIBCORE_DEPLOY_KERAS_IMPORT_CALL_H_
#define PD_LIBCORE_DEPLOY_KERAS_IMPORT_CALL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/keras_file.h"
#include "libcore/deploy/layout_graph.h"

namespace pd {

struct KerasTensor : LayoutTensor {
  /// bool [batch, steps], false at steps that do not count (mask_zero), which
  /// layers behind skip; "": all count.
  std::string mask;
};

using KerasTensors = std::vector<KerasTensor>;

class KerasCall {
 public:
  using Ints = LayoutGraph::Ints;
  using Names = LayoutGraph::Names;
  using Attrs = LayoutGraph::Attrs;

  struct Arguments {
    std::vector<KerasTensor*> args;  ///< lists taken apart
    std::map<std::string, std::vector<KerasTensor*>> named;
    /// Flags and numbers beside them.
    const std::map<std::string, KerasValue>* options = nullptr;
  };

  /// `path`: the layer's name behind those of the networks that it is in.
  KerasCall(const KerasLayer& layer, Arguments arguments, std::string path,
            int keras, LayoutGraph* graph)
      : layer_(layer),
        arguments_(std::move(arguments)),
        path_(std::move(path)),
        keras_(keras),
        graph_(graph) {}

  LayoutGraph& graph() { return *graph_; }
  const KerasLayer& layer() const { return layer_; }
  const std::string& path() const { return path_; }
  int keras() const { return keras_; }  ///< 2 or 3
  bool ok() const { return graph_->ok(); }
  void Fail(const absl::Status& status) { graph_->Fail(status); }

  // The configuration.

  const KerasValue& Config(const char* name) const {
    return layer_.config[name];
  }
  bool Has(const char* name) const;  ///< it is there and not None
  /// In [0, 2^20].
  int64_t Int(const char* name, int64_t otherwise);
  double Number(const char* name, double otherwise);
  bool Flag(const char* name, bool otherwise);
  std::string Text(const char* name, const char* otherwise);
  /// One number stands for `count` of them.
  Ints IntsOf(const char* name, size_t count, int64_t otherwise);
  /// A list or one number, which may be below 0, in [-2^20, 2^20].
  Ints IntList(const char* name);
  /// Whether axis 1 has the channels.
  bool front() { return Text("data_format", "") == "channels_first"; }
  /// A flag of the call: use_causal_mask.
  bool Option(const char* name) const;

  // Inputs.

  size_t inputs() const { return arguments_.args.size(); }
  /// An error where there are fewer.
  KerasTensor& In(size_t i = 0);
  /// A tensor that is given by the name of a parameter; null: it is not.
  KerasTensor* Named(const char* name);
  const Arguments& arguments() const { return arguments_; }
  int64_t Rank(size_t i = 0) { return In(i).rank(); }
  std::string X(size_t i = 0) { return graph_->Plain(&In(i)); }
  /// Input 0 with channels in axis 1, whatever data_format says.
  std::string Spatial();
  /// The extents that windows slide over.
  Shape SpatialShape();
  int64_t Channels();
  /// An error unless input 0 has so many axes.
  void WantRank(int64_t rank);
  /// `axis` in [-rank, rank) made non-negative.
  int64_t Axis(int64_t axis, int64_t rank);
  /// An error where an input is masked, which the layer is to see.
  void WantUnmasked();

  // Weights.

  /// An error unless the file has as many.
  void WantWeights(size_t count);
  /// Weight `i`, an error unless it has `rank` axes (-1: any).
  const Array& Weight(size_t i, int64_t rank);
  /// A weight of the graph, "PATH/NAME".
  std::string Param(const char* name, const Array& array);
  std::string Param(const char* name, const absl::StatusOr<Array>& array);

  // Outputs.

  void Give(KerasTensor x) { outputs_.push_back(std::move(x)); }
  /// In Keras' own form.
  void Give(const std::string& name, const Shape& shape);
  /// The output of a window over Spatial(): [batch, spatial..., channels].
  KerasTensor FromSpatial(const std::string& name, const Shape& spatial,
                          int64_t channels);
  /// Through the function that config's "activation" names.
  KerasTensor Activated(KerasTensor x);
  KerasTensor Activate(KerasTensor x, const KerasValue& function);
  KerasTensors& outputs() { return outputs_; }

 private:
  const KerasLayer& layer_;
  Arguments arguments_;
  std::string path_;
  int keras_;
  LayoutGraph* graph_;
  KerasTensors outputs_;
};

struct KerasImportEntry {
  const char* class_name;
  /// Errors go to KerasCall::Fail.
  void (*import)(KerasCall* call);
};

using KerasImportEntries = std::vector<KerasImportEntry>;

// The parts, by family.
KerasImportEntries KerasActivationImports();
KerasImportEntries KerasAttentionImports();
KerasImportEntries KerasNetworkImports();
KerasImportEntries KerasOperationImports();
KerasImportEntries KerasRecurrentImports();
KerasImportEntries KerasShapeImports();

/// The importer of a class of layers; null where there is none.
void (*KerasImporter(const std::string& class_name))(KerasCall* call);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_KERAS_IMPORT_CALL_H_
