// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/keras_graph.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

constexpr int64_t kKerasOpset = 21;
// Networks that call each other many times over end here.
constexpr int64_t kMostCalls = 100000;

using KerasTable = std::map<std::string, void (*)(KerasCall*)>;

const KerasTable& KerasImports() {
  static const auto* table = [] {
    auto* all = new KerasTable;
    for (const KerasImportEntries& part :
         {KerasActivationImports(), KerasAttentionImports(),
          KerasNetworkImports(), KerasOperationImports(),
          KerasRecurrentImports(), KerasShapeImports()})
      for (const KerasImportEntry& entry : part)
        PD_INVARIANT(all->emplace(entry.class_name, entry.import).second);
    return all;
  }();
  return *table;
}

bool IsInput(const KerasLayer& layer) {
  return layer.class_name == "InputLayer";
}

void TakeMissing(const KerasLayer& network,
                 std::map<std::string, std::vector<std::string>>* missing) {
  for (const KerasLayer& layer : network.layers) {
    if (!layer.layers.empty())
      TakeMissing(layer, missing);
    else if (!IsInput(layer) && KerasImports().count(layer.class_name) == 0)
      (*missing)[layer.class_name].push_back(layer.name);
  }
}

absl::Status CheckLayers(const KerasLayer& model) {
  std::map<std::string, std::vector<std::string>> missing;
  TakeMissing(model, &missing);
  if (missing.empty()) return absl::OkStatus();
  std::string why;
  if (missing.count("Lambda") > 0)
    why = "; a Lambda is Python code, which is not run";
  return Unimplemented(
      "layers that are not supported: %s%s",
      absl::StrJoin(missing, ", ",
                    [](std::string* out, const auto& layers) {
                      absl::StrAppend(out, "'", layers.first, "' (",
                                      absl::StrJoin(layers.second, ", "), ")");
                    }),
      why);
}

// The shape that a layer says of its input; nothing where it says none.
absl::StatusOr<Shape> InputShape(const KerasLayer& layer) {
  const char* key = layer.config.dict.count("batch_shape") > 0
                        ? "batch_shape"
                        : "batch_input_shape";
  const KerasValue& value = layer.config[key];
  if (value.kind != KerasValue::Kind::kList)
    return FailedPrecondition(
        "layer '%s' does not say the shape of its input: the network was not "
        "built before it was saved",
        layer.name);
  Shape shape;
  for (const KerasValue& extent : value.list) {
    const bool open = extent.kind == KerasValue::Kind::kNone;
    constexpr int64_t kMost = int64_t{1} << 31;
    if (!open && (extent.kind != KerasValue::Kind::kInt || extent.i < 0 ||
                  extent.i > kMost))
      return DataLoss("layer '%s': a shape that is none", layer.name);
    shape.push_back(open ? -1 : extent.i);
  }
  if (shape.empty())
    return DataLoss("layer '%s': a shape without axes", layer.name);
  return shape;
}

absl::StatusOr<DType> InputType(const KerasLayer& layer) {
  const KerasValue& value = layer.config["dtype"];
  const std::string name = value.kind == KerasValue::Kind::kDict
                               ? value["config"]["name"].text
                               : value.text;
  if (name == "int32") return DType::kInt32;
  if (name == "int64") return DType::kInt64;
  if (name == "uint8") return DType::kUInt8;
  if (name == "bool") return DType::kBool;
  if (name == "float32" || name.empty()) return DType::kFloat32;
  return Unimplemented("input '%s' of dtype '%s'", layer.name, name);
}

// One call of a layer of a network, which waits for its inputs.
struct Job {
  const KerasLayer* layer = nullptr;
  int64_t node = 0;
  size_t waits = 0;
};

using Key = std::pair<std::string, int64_t>;  // layer and call

void TakeTensorRefs(const KerasValue& value, std::vector<KerasRef>* out) {
  if (value.kind == KerasValue::Kind::kTensor) out->push_back(value.ref);
  for (const KerasValue& item : value.list) TakeTensorRefs(item, out);
  for (const auto& [name, item] : value.dict) TakeTensorRefs(item, out);
}

std::vector<KerasRef> RefsOf(const KerasNode& node) {
  std::vector<KerasRef> refs;
  for (const KerasValue& value : node.args) TakeTensorRefs(value, &refs);
  for (const auto& [name, value] : node.kwargs) TakeTensorRefs(value, &refs);
  return refs;
}

// Operators of Keras 3 that have the names of layers.
bool TakesNumbers(const std::string& class_name) {
  return class_name == "Add" || class_name == "Divide" ||
         class_name == "Equal" || class_name == "Maximum" ||
         class_name == "Minimum" || class_name == "Multiply" ||
         class_name == "NotEqual" || class_name == "Subtract";
}

// Layers that compute steps alike, and do not look at which of them count.
bool KeepsMask(const std::string& class_name) {
  static const auto* classes =
      new std::set<std::string>{"Activation",
                                "ActivityRegularization",
                                "BatchNormalization",
                                "Dropout",
                                "ELU",
                                "GaussianDropout",
                                "GaussianNoise",
                                "LayerNormalization",
                                "LeakyReLU",
                                "PReLU",
                                "ReLU",
                                "SpatialDropout1D",
                                "UnitNormalization"};
  return classes->count(class_name) > 0;
}

class KerasRunner {
 public:
  explicit KerasRunner(int keras) : keras_(keras) {}

  LayoutGraph& graph() { return graph_; }

  /// The outputs of a network that is given its inputs.
  absl::StatusOr<KerasTensors> RunNetwork(const KerasLayer& network,
                                          KerasTensors inputs,
                                          const std::string& prefix);

 private:
  using Values = std::map<Key, KerasTensors>;

  absl::StatusOr<KerasTensors> RunSequential(const KerasLayer& network,
                                             KerasTensors inputs,
                                             const std::string& prefix);
  absl::Status RunJobs(const KerasLayer& network, const std::string& prefix,
                       Values* values);
  absl::StatusOr<KerasTensors> CallLayer(const KerasLayer& layer,
                                         const KerasNode& node,
                                         const std::string& prefix,
                                         int64_t number, Values* values);
  absl::StatusOr<KerasTensors> Apply(const KerasLayer& layer,
                                     KerasCall::Arguments arguments,
                                     const std::string& prefix, int64_t number);

  int keras_;
  LayoutGraph graph_;
  int64_t calls_ = 0;
};

absl::StatusOr<KerasTensor*> TensorOf(const KerasRef& ref,
                                      std::map<Key, KerasTensors>* values) {
  const auto outputs = values->find({ref.layer, ref.node});
  if (outputs == values->end() || ref.tensor < 0 ||
      static_cast<size_t>(ref.tensor) >= outputs->second.size())
    return DataLoss("output %d of call %d of layer '%s' is made by no layer",
                    ref.tensor, ref.node, ref.layer);
  return &outputs->second[static_cast<size_t>(ref.tensor)];
}

absl::StatusOr<KerasTensors> KerasRunner::Apply(const KerasLayer& layer,
                                                KerasCall::Arguments arguments,
                                                const std::string& prefix,
                                                int64_t number) {
  if (++calls_ > kMostCalls)
    return Unimplemented("more than %d calls of layers", kMostCalls);
  const std::string path = absl::StrCat(prefix, layer.name);
  if (!layer.layers.empty()) {
    KerasTensors inputs;
    for (const KerasTensor* x : arguments.args) inputs.push_back(*x);
    return RunNetwork(layer, std::move(inputs), absl::StrCat(path, "/"));
  }
  const std::string name = number == 0 ? path : absl::StrCat(path, "_", number);
  graph_.Begin(name);
  KerasTensor masked;
  if (const auto given = arguments.named.find("mask");
      given != arguments.named.end() && !arguments.args.empty()) {
    // Keras 3 also gives the mask that it has computed.
    KerasTensor* mask = given->second[0];
    if (given->second.size() > 1 || mask->dtype != DType::kBool ||
        mask->rank() != 2)
      return Unimplemented("a mask of shape %s", ToString(mask->shape));
    masked = *arguments.args[0];
    masked.mask = graph_.Plain(mask);
    arguments.args[0] = &masked;
    arguments.named.erase(given);
  }
  KerasCall call(layer, std::move(arguments), path, keras_, &graph_);
  if (call.Option("training"))
    graph_.Fail(Unimplemented("a call with training=True"));
  KerasImports().at(layer.class_name)(&call);
  PD_RETURN_IF_ERROR(graph_.status());
  KerasTensors outputs = std::move(call.outputs());
  if (KeepsMask(layer.class_name) && outputs.size() == 1 && call.inputs() == 1)
    outputs[0].mask = call.In().mask;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string before = outputs[i].plain;
    graph_.Rename(&outputs[i], i == 0 ? name : absl::StrCat(name, ":", i));
    // An LSTM's output may be one of its states.
    for (KerasTensor& other : outputs)
      if (other.plain == before) other.plain = outputs[i].plain;
  }
  return outputs;
}

absl::StatusOr<KerasTensors> KerasRunner::CallLayer(const KerasLayer& layer,
                                                    const KerasNode& node,
                                                    const std::string& prefix,
                                                    int64_t number,
                                                    Values* values) {
  KerasCall::Arguments arguments;
  std::vector<KerasRef> refs;
  KerasTensor constant;  // x + 3.0 is a call of Add in Keras 3
  for (const KerasValue& value : node.args) {
    refs.clear();
    TakeTensorRefs(value, &refs);
    for (const KerasRef& ref : refs) {
      PD_ASSIGN_OR_RETURN(KerasTensor * x, TensorOf(ref, values));
      arguments.args.push_back(x);
    }
    if (!refs.empty() || value.kind == KerasValue::Kind::kNone) continue;
    const bool is_number = value.kind == KerasValue::Kind::kInt ||
                           value.kind == KerasValue::Kind::kFloat;
    if (!is_number || !constant.plain.empty() ||
        !TakesNumbers(layer.class_name))
      return Unimplemented("an argument that is no tensor");
    constant.plain = graph_.Scalar(value.f);
    arguments.args.push_back(&constant);
  }
  for (const auto& [name, value] : node.kwargs) {
    refs.clear();
    TakeTensorRefs(value, &refs);
    for (const KerasRef& ref : refs) {
      PD_ASSIGN_OR_RETURN(KerasTensor * x, TensorOf(ref, values));
      // Keras 3 may give the input itself by its name.
      if (name == "inputs")
        arguments.args.push_back(x);
      else
        arguments.named[name].push_back(x);
    }
  }
  arguments.options = &node.kwargs;
  return Apply(layer, std::move(arguments), prefix, number);
}

// Calls in the order of the file, but for those that wait for others.
absl::Status KerasRunner::RunJobs(const KerasLayer& network,
                                  const std::string& prefix, Values* values) {
  std::vector<Job> jobs;
  for (const KerasLayer& layer : network.layers)
    for (size_t i = 0; !IsInput(layer) && i < layer.nodes.size(); ++i)
      jobs.push_back({&layer, static_cast<int64_t>(i), 0});
  std::map<Key, std::vector<size_t>> waiting;
  std::set<size_t> ready;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const KerasNode& node =
        jobs[i].layer->nodes[static_cast<size_t>(jobs[i].node)];
    for (const KerasRef& ref : RefsOf(node)) {
      if (values->count({ref.layer, ref.node}) > 0) continue;
      waiting[{ref.layer, ref.node}].push_back(i);
      ++jobs[i].waits;
    }
    if (jobs[i].waits == 0) ready.insert(i);
  }
  size_t done = 0;
  while (!ready.empty()) {
    const Job& job = jobs[*ready.begin()];
    ready.erase(ready.begin());
    auto outputs =
        CallLayer(*job.layer, job.layer->nodes[static_cast<size_t>(job.node)],
                  prefix, job.node, values);
    if (!outputs.ok())
      return Annotate(outputs.status(),
                      absl::StrCat("layer '", job.layer->name, "' (",
                                   job.layer->class_name, ")"));
    const Key key = {job.layer->name, job.node};
    if (!values->emplace(key, *std::move(outputs)).second)
      return DataLoss("two layers have the name '%s'", job.layer->name);
    ++done;
    for (const size_t next : waiting[key])
      if (--jobs[next].waits == 0) ready.insert(next);
  }
  if (done == jobs.size()) return absl::OkStatus();
  for (const Job& job : jobs)
    if (job.waits > 0)
      return DataLoss("layer '%s' waits for a tensor that no layer makes",
                      job.layer->name);
  return absl::OkStatus();
}

absl::StatusOr<KerasTensors> KerasRunner::RunSequential(
    const KerasLayer& network, KerasTensors inputs, const std::string& prefix) {
  for (const KerasLayer& layer : network.layers) {
    if (IsInput(layer)) continue;
    if (inputs.size() != 1)
      return Unimplemented("layer '%s': %d inputs in a Sequential", layer.name,
                           inputs.size());
    KerasCall::Arguments arguments;
    arguments.args = {&inputs[0]};
    auto outputs = Apply(layer, std::move(arguments), prefix, 0);
    if (!outputs.ok())
      return Annotate(
          outputs.status(),
          absl::StrCat("layer '", layer.name, "' (", layer.class_name, ")"));
    inputs = *std::move(outputs);
  }
  return inputs;
}

absl::StatusOr<KerasTensors> KerasRunner::RunNetwork(
    const KerasLayer& network, KerasTensors inputs, const std::string& prefix) {
  if (network.outputs.empty())
    return RunSequential(network, std::move(inputs), prefix);
  if (network.inputs.size() != inputs.size())
    return InvalidArgument("%d inputs for a network of %d", inputs.size(),
                           network.inputs.size());
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const KerasRef& ref = network.inputs[i];
    values[{ref.layer, ref.node}] = {inputs[i]};
  }
  PD_RETURN_IF_ERROR(RunJobs(network, prefix, &values));
  KerasTensors outputs;
  for (const KerasRef& ref : network.outputs) {
    PD_ASSIGN_OR_RETURN(KerasTensor * x, TensorOf(ref, &values));
    outputs.push_back(*x);
  }
  return outputs;
}

// The inputs of a network, in its order: those of its input layers, or what
// the first layer of a Sequential says.
absl::StatusOr<std::vector<const KerasLayer*>> InputLayers(
    const KerasLayer& model) {
  std::vector<const KerasLayer*> layers;
  if (model.outputs.empty()) {
    const KerasLayer* first = &model.layers[0];
    // A network in front has the layer that says it.
    while (!first->layers.empty()) first = &first->layers[0];
    return std::vector<const KerasLayer*>{first};
  }
  for (const KerasRef& ref : model.inputs) {
    const auto layer = std::find_if(
        model.layers.begin(), model.layers.end(),
        [&](const KerasLayer& l) { return l.name == ref.layer && IsInput(l); });
    if (layer == model.layers.end())
      return DataLoss("input '%s' is no layer", ref.layer);
    layers.push_back(&*layer);
  }
  return layers;
}

absl::Status TakeKerasInputs(const KerasLayer& model, LayoutGraph* graph,
                             KerasTensors* inputs) {
  PD_ASSIGN_OR_RETURN(const auto layers, InputLayers(model));
  for (const KerasLayer* layer : layers) {
    OnnxFileValue end;
    PD_ASSIGN_OR_RETURN(end.shape, InputShape(*layer));
    // A first layer's dtype is not that of its input.
    DType dtype =
        layer->class_name == "Embedding" ? DType::kInt32 : DType::kFloat32;
    if (IsInput(*layer)) {
      PD_ASSIGN_OR_RETURN(dtype, InputType(*layer));
    }
    end.name =
        IsInput(*layer) ? layer->name : absl::StrCat(layer->name, "_input");
    end.is_tensor = true;
    PD_ASSIGN_OR_RETURN(end.element_type, OnnxElementType(dtype));
    KerasTensor x;
    static_cast<LayoutTensor&>(x) =
        graph->Made(end.name, *end.shape, false, dtype);
    inputs->push_back(std::move(x));
    graph->TakeName(end.name);
    graph->graph.inputs.push_back(std::move(end));
  }
  return absl::OkStatus();
}

// Outputs are called as the layers that give them.
absl::Status TakeKerasOutputs(const KerasLayer& model, LayoutGraph* graph,
                              KerasTensors outputs) {
  std::map<std::string, int> used;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string layer = i < model.outputs.size()
                                  ? model.outputs[i].layer
                                  : model.layers.back().name;
    graph->Begin(absl::StrCat(layer, "/output"));
    const std::string value = graph->Plain(&outputs[i]);
    std::string name = layer;
    while (used.count(name) > 0 || (name != value && !graph->TakeName(name)))
      name = absl::StrCat(layer, "_", ++used[layer]);
    used.emplace(name, 0);
    OnnxFileValue end;
    end.name = name;
    end.is_tensor = true;
    end.shape = outputs[i].shape;
    PD_ASSIGN_OR_RETURN(end.element_type, OnnxElementType(outputs[i].dtype));
    graph->graph.outputs.push_back(std::move(end));
    if (value == name) continue;
    OnnxFileNode same;
    same.op_type = "Identity";
    same.name = name;
    same.inputs = {value};
    same.outputs = {name};
    graph->graph.nodes.push_back(std::move(same));
  }
  return graph->status();
}

}  // namespace

void (*KerasImporter(const std::string& class_name))(KerasCall* call) {
  const auto entry = KerasImports().find(class_name);
  return entry == KerasImports().end() ? nullptr : entry->second;
}

absl::StatusOr<OnnxFile> KerasAsOnnx(const KerasFile& keras) {
  if (!keras.model.has_value())
    return FailedPrecondition(
        "the file has weights alone; expected one of model.save()");
  const KerasLayer& model = *keras.model;
  PD_RETURN_IF_ERROR(CheckLayers(model));
  KerasRunner runner(absl::StartsWith(keras.version, "3") ? 3 : 2);
  LayoutGraph& graph = runner.graph();
  KerasTensors inputs;
  PD_RETURN_IF_ERROR(TakeKerasInputs(model, &graph, &inputs));
  PD_ASSIGN_OR_RETURN(KerasTensors outputs,
                      runner.RunNetwork(model, std::move(inputs), ""));
  PD_RETURN_IF_ERROR(TakeKerasOutputs(model, &graph, std::move(outputs)));
  OnnxFile file;
  file.producer = "Keras";
  file.producer_version = keras.version;
  file.opsets[""] = kKerasOpset;
  file.graph = std::move(graph.graph);
  return file;
}

}  // namespace pd
