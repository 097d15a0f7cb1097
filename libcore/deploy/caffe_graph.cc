// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/caffe_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/caffe_recurrent.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

constexpr char kDomain[] = "caffe";
constexpr int32_t kOnnxFloat = 1;
constexpr int64_t kOnnxOpset = 21;

// The weights of a type of layer, in the file's order: a name behind the
// layer's and the number of axes, 0 for as many as there are. Old files have
// four axes everywhere; what is too much is multiplied into the first.
struct WeightForm {
  const char* type;
  const char* name;
  size_t rank;
};
constexpr WeightForm kWeights[] = {
    {"BatchNorm", "mean", 1},       {"BatchNorm", "variance", 1},
    {"BatchNorm", "count", 1},      {"Bias", "bias", 0},
    {"Convolution", "weight", 0},   {"Convolution", "bias", 1},
    {"Deconvolution", "weight", 0}, {"Deconvolution", "bias", 1},
    {"Embed", "weight", 2},         {"Embed", "bias", 1},
    {"InnerProduct", "weight", 2},  {"InnerProduct", "bias", 1},
    {"LSTM", "weight", 2},          {"LSTM", "bias", 1},
    {"LSTM", "weight_fixed", 2},    {"LSTM", "weight_state", 2},
    {"Normalize", "weight", 1},     {"PReLU", "weight", 1},
    {"RNN", "weight", 2},           {"RNN", "bias", 1},
    {"RNN", "weight_fixed", 2},     {"RNN", "weight_state", 2},
    {"RNN", "weight_output", 2},    {"RNN", "bias_output", 1},
    {"Scale", "weight", 0},         {"Scale", "bias", 0},
};

// The forms of `count` weights: a recurrence has one fewer where it has no
// input that stays.
std::vector<const WeightForm*> FormsOf(const std::string& type, size_t count) {
  std::vector<const WeightForm*> forms;
  for (const WeightForm& form : kWeights)
    if (type == form.type) forms.push_back(&form);
  if (IsCaffeRecurrent(type) && count < forms.size())
    forms.erase(forms.begin() + 2);
  return forms;
}

void Flatten(size_t rank, Shape* shape) {
  if (rank == 0) return;
  while (shape->size() > rank) {
    (*shape)[1] *= (*shape)[0];
    shape->erase(shape->begin());
  }
  if (shape->empty()) shape->push_back(1);
}

bool TrainsOrReads(const std::string& type) {
  return absl::EndsWith(type, "Data") || absl::EndsWith(type, "Loss") ||
         type == "Accuracy" || type == "HDF5Output";
}

OnnxFileAttr TensorOf(const std::vector<double>& numbers) {
  OnnxFileAttr attr;
  attr.kind = OnnxFileAttr::Kind::kTensor;
  attr.tensor = MakeArray({static_cast<int64_t>(numbers.size())}, numbers);
  return attr;
}

class Builder {
 public:
  Builder(const CaffeNet& net, const CaffeNet* weights) : net_(net) {
    if (weights == nullptr) return;
    for (const CaffeLayer& layer : weights->layers)
      if (!layer.blobs.empty()) weights_.emplace(layer.name, &layer);
  }

  absl::StatusOr<OnnxFile> Build() {
    PD_RETURN_IF_ERROR(CheckTypes());
    file_.producer = "Caffe";
    file_.opsets[kDomain] = 1;
    file_.opsets[""] = kOnnxOpset;
    file_.graph.name = net_.name;
    for (const auto& [name, shape] : net_.inputs) AddInput(name, shape);
    for (const CaffeLayer& layer : net_.layers)
      for (const std::string& top : layer.tops) last_writer_[top] = &layer;
    for (size_t i = 0; i < net_.layers.size(); ++i)
      PD_RETURN_IF_ERROR(Annotate(AddLayer(i), Describe(net_.layers[i])));
    AddOutputs();
    return std::move(file_);
  }

 private:
  static std::string Describe(const CaffeLayer& layer) {
    return absl::StrCat("layer '", layer.name, "' (", layer.type, ")");
  }

  // Each type that is not supported, with the first of its layers.
  absl::Status CheckTypes() const {
    std::map<std::string, std::string> missing;
    for (const CaffeLayer& layer : net_.layers) {
      if (TrainsOrReads(layer.type))
        return FailedPrecondition(
            "%s trains or reads data; expected the network for deployment, "
            "whose inputs have shapes and whose weights are in a .caffemodel "
            "beside it (deploy.prototxt)",
            Describe(layer));
      if (FindOnnxImport(kDomain, layer.type) == nullptr &&
          !IsCaffeRecurrent(layer.type))
        missing.try_emplace(layer.type, layer.name);
    }
    if (missing.empty()) return absl::OkStatus();
    return Unimplemented(
        "types of layers that are not supported (and the first of their "
        "layers): %s",
        absl::StrJoin(missing, ", ", [](std::string* out, const auto& type) {
          absl::StrAppend(out, "'", type.first, "' ('", type.second, "')");
        }));
  }

  void AddInput(const std::string& name, const Shape& shape) {
    OnnxFileValue value;
    value.name = name;
    value.is_tensor = true;
    value.element_type = kOnnxFloat;
    if (!shape.empty()) {
      value.shape = shape;
      (*value.shape)[0] = -1;
    }
    file_.graph.inputs.push_back(std::move(value));
    values_[name] = name;
    names_.insert(name);
  }

  // A layer may write over a blob. The value that stays has the blob's name.
  std::string NewValue(const std::string& blob, const CaffeLayer& layer) {
    std::string name = blob;
    if (last_writer_.at(blob) != &layer || !names_.insert(name).second) {
      name = absl::StrCat(blob, "@", layer.name);
      for (int i = 1; !names_.insert(name).second; ++i)
        name = absl::StrCat(blob, "@", layer.name, "@", i);
    }
    written_.push_back(name);
    return values_[blob] = name;
  }

  absl::StatusOr<std::string> AddWeight(const std::string& name, Array array) {
    if (!names_.insert(name).second ||
        !file_.graph.initializers.emplace(name, std::move(array)).second)
      return DataLoss("two layers have weights of the name '%s'", name);
    return name;
  }

  absl::StatusOr<std::vector<Array>> WeightsOf(const CaffeLayer& layer) const {
    const auto other = weights_.find(layer.name);
    std::vector<Array> blobs = layer.blobs.empty() && other != weights_.end()
                                   ? other->second->blobs
                                   : layer.blobs;
    const auto forms = FormsOf(layer.type, blobs.size());
    if (blobs.size() > forms.size())
      return DataLoss("it has %d weights; expected at most %d", blobs.size(),
                      forms.size());
    for (size_t i = 0; i < blobs.size(); ++i) {
      if (blobs[i].size() == 0)
        return DataLoss("weight %d has shape %s, and so no numbers", i,
                        ToString(blobs[i].shape));
      Flatten(forms[i]->rank, &blobs[i].shape);
    }
    return blobs;
  }

  // The statistics are sums, and the third blob how many (with decay).
  absl::Status AddBatchNorm(const CaffeLayer& layer,
                            const std::vector<Array>& blobs,
                            OnnxFileNode* node) {
    if (blobs.size() != 3 || blobs[2].size() != 1 ||
        blobs[0].shape != blobs[1].shape)
      return DataLoss(
          "it has %d weights; expected a mean and a variance for each channel "
          "and one number",
          blobs.size());
    const float count = blobs[2].data<float>()[0];
    const float factor = count == 0 ? 0 : 1 / count;
    const auto add = [&](const char* name,
                         const std::vector<float>& v) -> absl::Status {
      PD_ASSIGN_OR_RETURN(std::string weight,
                          AddWeight(absl::StrCat(layer.name, ".", name),
                                    MakeArray(blobs[0].shape, v)));
      node->inputs.push_back(std::move(weight));
      return absl::OkStatus();
    };
    const auto n = static_cast<size_t>(blobs[0].size());
    PD_RETURN_IF_ERROR(add("weight", std::vector<float>(n, 1)));
    PD_RETURN_IF_ERROR(add("bias", std::vector<float>(n, 0)));
    for (const size_t i : {0, 1}) {
      std::vector<float> values(blobs[i].data<float>(),
                                blobs[i].data<float>() + n);
      for (float& value : values) value *= factor;
      PD_RETURN_IF_ERROR(add(i == 0 ? "mean" : "variance", values));
    }
    return absl::OkStatus();
  }

  // Whether layer `index` reads a BatchNorm's value, which nothing else does,
  // and gives each channel a factor: both are one batch_norm.
  OnnxFileNode* BatchNormBefore(size_t index, const std::vector<Array>& blobs) {
    const CaffeLayer& layer = net_.layers[index];
    if (layer.type != "Scale" || layer.bottoms.size() != 1 ||
        layer.tops.size() != 1 || blobs.empty() || file_.graph.nodes.empty())
      return nullptr;
    const auto axis = layer.params.find("axis");
    if (axis != layer.params.end() && axis->second != std::vector<double>{1})
      return nullptr;
    OnnxFileNode& before = file_.graph.nodes.back();
    const std::string& blob = layer.bottoms[0];
    if (before.op_type != "BatchNorm" || values_.count(blob) == 0 ||
        before.outputs.size() != 1 || before.outputs[0] != values_.at(blob) ||
        before.inputs.size() != 5 || before.outputs[0] == scaled_)
      return nullptr;
    const Array& mean = file_.graph.initializers.at(before.inputs[3]);
    for (const Array& array : blobs)
      if (array.shape != mean.shape) return nullptr;
    if (layer.tops[0] != blob)
      for (size_t i = index + 1; i < net_.layers.size(); ++i)
        for (const std::string& later : net_.layers[i].bottoms)
          if (later == blob) return nullptr;
    return &before;
  }

  absl::Status AddLayer(size_t index) {
    const CaffeLayer& layer = net_.layers[index];
    if (!layer.unknown.empty())
      return Unimplemented("its fields %s are not known",
                           absl::StrJoin(layer.unknown, ", "));
    PD_ASSIGN_OR_RETURN(const std::vector<Array> blobs, WeightsOf(layer));
    if (OnnxFileNode* norm = BatchNormBefore(index, blobs)) {
      for (size_t i = 0; i < blobs.size(); ++i)
        file_.graph.initializers.at(norm->inputs[i + 1]) = blobs[i];
      written_.pop_back();  // the norm's own
      norm->outputs = {NewValue(layer.tops[0], layer)};
      scaled_ = norm->outputs[0];
      return absl::OkStatus();
    }
    OnnxFileNode node;
    node.name = layer.name;
    node.op_type = layer.type;
    node.domain = kDomain;
    for (const std::string& bottom : layer.bottoms) {
      const auto value = values_.find(bottom);
      if (value == values_.end())
        return DataLoss("it reads '%s', which no layer before it makes",
                        bottom);
      node.inputs.push_back(value->second);
      read_.insert(value->second);
    }
    if (layer.type == "BatchNorm") {
      PD_RETURN_IF_ERROR(AddBatchNorm(layer, blobs, &node));
    } else {
      const auto forms = FormsOf(layer.type, blobs.size());
      for (size_t i = 0; i < blobs.size(); ++i) {
        PD_ASSIGN_OR_RETURN(
            std::string weight,
            AddWeight(absl::StrCat(layer.name, ".", forms[i]->name), blobs[i]));
        node.inputs.push_back(std::move(weight));
      }
    }
    if (IsCaffeRecurrent(layer.type)) return AddRecurrent(layer, node, blobs);
    for (const auto& [name, numbers] : layer.params)
      node.attrs[name] = TensorOf(numbers);
    node.attrs["bottoms"] =
        TensorOf({static_cast<double>(layer.bottoms.size())});
    for (const std::string& top : layer.tops)
      node.outputs.push_back(NewValue(top, layer));
    file_.graph.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  // `node` has the bottoms and the weights as inputs.
  absl::Status AddRecurrent(const CaffeLayer& layer, const OnnxFileNode& node,
                            const std::vector<Array>& blobs) {
    CaffeRecurrent recurrent;
    recurrent.layer = &layer;
    const auto weights =
        node.inputs.end() - static_cast<std::ptrdiff_t>(blobs.size());
    recurrent.bottoms.assign(node.inputs.begin(), weights);
    recurrent.weights.assign(weights, node.inputs.end());
    for (const Array& blob : blobs)
      recurrent.weight_shapes.push_back(blob.shape);
    for (const std::string& top : layer.tops)
      recurrent.tops.push_back(NewValue(top, layer));
    return AddCaffeRecurrent(recurrent, &names_, &file_.graph);
  }

  void AddOutputs() {
    for (const std::string& output : written_)
      if (read_.count(output) == 0) {
        OnnxFileValue value;
        value.name = output;
        value.is_tensor = true;
        value.element_type = kOnnxFloat;
        file_.graph.outputs.push_back(std::move(value));
      }
  }

  const CaffeNet& net_;
  std::map<std::string, const CaffeLayer*> weights_;  // by the layer's name
  OnnxFile file_;
  std::map<std::string, std::string> values_;  // by blob: its value now
  std::map<std::string, const CaffeLayer*> last_writer_;  // by blob
  std::set<std::string> names_;                           // taken
  std::vector<std::string> written_;  // values of layers' tops
  std::set<std::string> read_;        // values that a layer reads
  std::string scaled_;  // the value of a BatchNorm that has its Scale already
};

}  // namespace

NamedArrays CaffeWeights(const CaffeNet& net) {
  NamedArrays arrays;
  for (const CaffeLayer& layer : net.layers) {
    const auto forms = FormsOf(layer.type, layer.blobs.size());
    for (size_t i = 0; i < layer.blobs.size(); ++i)
      arrays[i < forms.size() ? absl::StrCat(layer.name, ".", forms[i]->name)
                              : absl::StrCat(layer.name, ".", i)] =
          layer.blobs[i];
  }
  return arrays;
}

absl::StatusOr<OnnxFile> CaffeAsOnnx(const CaffeNet& net,
                                     const CaffeNet* weights) {
  return Builder(net, weights).Build();
}

}  // namespace pd
