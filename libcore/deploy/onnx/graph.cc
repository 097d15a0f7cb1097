// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/graph.h"

#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <exception>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/class_names.h"
#include "libcore/deploy/onnx_export.h"

namespace pd {
namespace {

using onnx::TensorProto;

int32_t ElementType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return TensorProto::BOOL;
    case DType::kInt16:
      return TensorProto::INT16;
    case DType::kInt32:
      return TensorProto::INT32;
    case DType::kInt64:
      return TensorProto::INT64;
    case DType::kFloat16:
      return TensorProto::FLOAT16;
    case DType::kFloat32:
      return TensorProto::FLOAT;
    case DType::kFloat64:
      return TensorProto::DOUBLE;
    case DType::kUInt8:
      return TensorProto::UINT8;
    case DType::kInt8:
      return TensorProto::INT8;
    case DType::kBFloat16:
      return TensorProto::BFLOAT16;
    case DType::kComplex64:
      return TensorProto::COMPLEX64;
    case DType::kComplex128:
      return TensorProto::COMPLEX128;
  }
  return TensorProto::UNDEFINED;
}

// The IR version of the ONNX release that brought the opset.
int64_t IrVersion(int opset) {
  static constexpr int64_t kVersions[] = {4, 5, 6, 7, 7, 7, 8, 8, 8};
  return kVersions[opset - kMinOnnxOpset];
}

void FillTensor(const Array& array, const std::string& name,
                TensorProto* tensor) {
  tensor->set_name(name);
  tensor->set_data_type(ElementType(array.dtype));
  for (const int64_t extent : array.shape) tensor->add_dims(extent);
  tensor->set_raw_data(array.bytes.get(), array.size_bytes());
}

}  // namespace

struct OnnxSubgraph {
  onnx::GraphProto graph;
};

namespace {

struct AttrWriter {
  onnx::AttributeProto* out;

  void operator()(int64_t v) const {
    out->set_type(onnx::AttributeProto::INT);
    out->set_i(v);
  }
  void operator()(float v) const {
    out->set_type(onnx::AttributeProto::FLOAT);
    out->set_f(v);
  }
  void operator()(const std::string& v) const {
    out->set_type(onnx::AttributeProto::STRING);
    out->set_s(v);
  }
  void operator()(const std::vector<int64_t>& v) const {
    out->set_type(onnx::AttributeProto::INTS);
    for (const int64_t i : v) out->add_ints(i);
  }
  void operator()(const std::vector<float>& v) const {
    out->set_type(onnx::AttributeProto::FLOATS);
    for (const float f : v) out->add_floats(f);
  }
  void operator()(const std::vector<std::string>& v) const {
    out->set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& s : v) out->add_strings(s);
  }
  void operator()(const std::shared_ptr<const OnnxSubgraph>& v) const {
    out->set_type(onnx::AttributeProto::GRAPH);
    *out->mutable_g() = v->graph;
  }
};

bool HasOperator(absl::string_view op_type, int opset) {
  const auto* schema =
      onnx::OpSchemaRegistry::Schema(std::string(op_type), opset, "");
  return schema != nullptr && !schema->deprecated();
}

// The error of ONNX's checker, under the name of the op whose node it rejects:
// nodes are named "op_type/value".
absl::Status CheckerRefusal(std::string what) {
  for (char& c : what)
    if (c == '\n') c = ' ';
  const std::string before = "node name: ";
  const size_t begin = what.find(before);
  const size_t end = begin == std::string::npos ? begin : what.find('/', begin);
  const absl::Status refusal =
      Unimplemented("ONNX's checker refuses it: %s", what);
  if (end == std::string::npos) return refusal;
  const std::string type =
      what.substr(begin + before.size(), end - begin - before.size());
  return Annotate(refusal, absl::StrCat("op '", type, "'"));
}

}  // namespace

int64_t OnnxNumberOf(DType dtype) { return ElementType(dtype); }

struct OnnxGraph::Proto {
  onnx::ModelProto model;
  onnx::GraphProto* graph = nullptr;  // of the model
  // The graphs that nodes are added to, the innermost last.
  std::vector<std::shared_ptr<OnnxSubgraph>> inner;

  onnx::GraphProto* current() {
    return inner.empty() ? graph : &inner.back()->graph;
  }
};

struct OnnxGraph::Outer {
  std::map<std::string, std::string> values, absent;
};

OnnxGraph::OnnxGraph(const InferenceModel& model, int opset)
    : model_(model), opset_(opset), proto_(std::make_unique<Proto>()) {
  onnx::ModelProto& proto = proto_->model;
  proto.set_ir_version(IrVersion(opset));
  proto.set_producer_name("pdkit");
  proto.set_producer_version(PD_VERSION);
  auto* import = proto.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  proto_->graph = proto.mutable_graph();
  proto_->graph->set_name("pdkit");
  for (const OpDesc& op : model.program.global().ops)
    for (const auto& slot : op.outputs)
      for (const std::string& name : slot.second) ++writes_left_[name];
  for (const std::string& name : model.names.feeds)
    DeclareInput(*model.program.global().FindVar(name));
  // Parameters keep their names, so no other value may have them.
  for (const auto& [name, array] : model.params) names_[name] = 1;
}

OnnxGraph::~OnnxGraph() = default;

void OnnxGraph::DeclareInput(const VarDesc& var) {
  names_[var.name] = 1;
  values_[var.name] = var.name;
  auto* input = proto_->graph->add_input();
  input->set_name(var.name);
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(ElementType(var.dtype));
  auto* shape = type->mutable_shape();
  for (size_t i = 0; i < var.shape.size(); ++i) {
    auto* dim = shape->add_dim();
    if (var.shape[i] >= 0)
      dim->set_dim_value(var.shape[i]);
    else
      dim->set_dim_param(i == 0 ? "batch" : absl::StrCat(var.name, "_dim", i));
  }
}

void OnnxGraph::BeginGraph() {
  outer_.push_back({values_, absent_});
  proto_->inner.push_back(std::make_shared<OnnxSubgraph>());
  proto_->current()->set_name(NewValue("graph"));
}

std::string OnnxGraph::NewGraphInput(const std::string& hint) {
  const std::string name = NewValue(hint);
  proto_->current()->add_input()->set_name(name);
  return name;
}

std::string OnnxGraph::NewScalarInput(const std::string& hint, DType dtype) {
  const std::string name = NewGraphInput(hint);
  auto* type = proto_->current()
                   ->mutable_input()
                   ->rbegin()
                   ->mutable_type()
                   ->mutable_tensor_type();
  type->set_elem_type(ElementType(dtype));
  type->mutable_shape();  // without extents
  return name;
}

std::shared_ptr<const OnnxSubgraph> OnnxGraph::EndGraph(
    const OnnxValues& outputs) {
  auto done = proto_->inner.back();
  for (const std::string& value : outputs) {
    // An output is made in its own graph, and once.
    const std::string name = NewValue(value);
    auto* node = done->graph.add_node();
    node->set_op_type("Identity");
    node->set_name(absl::StrCat("output/", name));
    node->add_input(value);
    node->add_output(name);
    done->graph.add_output()->set_name(name);
  }
  proto_->inner.pop_back();
  values_ = std::move(outer_.back().values);
  absent_ = std::move(outer_.back().absent);
  outer_.pop_back();
  return done;
}

void OnnxGraph::AddFailure(OnnxFailure failure) {
  failures_.push_back(std::move(failure));
}

bool OnnxGraph::HasValue(const std::string& variable) const {
  return values_.count(variable) > 0 || model_.params.count(variable) > 0;
}

absl::StatusOr<std::string> OnnxGraph::ValueOf(const std::string& variable) {
  const auto value = values_.find(variable);
  if (value != values_.end()) return value->second;
  const auto param = model_.params.find(variable);
  if (param != model_.params.end()) {
    FillTensor(param->second, variable, proto_->graph->add_initializer());
    values_[variable] = variable;
    for (Outer& outer : outer_) outer.values.emplace(variable, variable);
    return variable;
  }
  const auto absent = absent_.find(variable);
  if (absent != absent_.end())
    return Unimplemented(
        "it reads '%s', an output of op '%s' that ONNX does not have", variable,
        absent->second);
  return NotFound("it reads '%s', which is neither an input nor made",
                  variable);
}

void OnnxGraph::SetAlias(const std::string& variable,
                         const std::string& value) {
  if (outer_.empty()) --writes_left_[variable];
  values_[variable] = value;
}

void OnnxGraph::SetAbsent(const std::string& variable,
                          const std::string& op_type) {
  if (outer_.empty()) --writes_left_[variable];
  values_.erase(variable);
  absent_[variable] = op_type;
}

std::string OnnxGraph::NewValueOf(const std::string& variable) {
  // A name can be made once only: the last of several writers has it. What a
  // block inside makes may be made anew outside of it.
  const bool last = outer_.empty() && --writes_left_[variable] <= 0;
  const bool own = last && names_.emplace(variable, 1).second;
  return values_[variable] = own ? variable : NewValue(variable);
}

std::string OnnxGraph::NewValue(const std::string& hint) {
  std::string name;
  do {
    name = absl::StrCat(hint, "/", names_[absl::StrCat(hint, "/")]++);
  } while (!names_.emplace(name, 1).second);
  return name;
}

std::string OnnxGraph::Constant(const Array& array) {
  const std::string key =
      absl::StrCat(Name(array.dtype), ToString(array.shape),
                   absl::string_view(array.data<char>(), array.size_bytes()));
  const auto [it, added] = constants_.try_emplace(key);
  if (added) {
    it->second = NewValue("constant");
    FillTensor(array, it->second, proto_->graph->add_initializer());
  }
  return it->second;
}

absl::Status OnnxGraph::AddNode(absl::string_view op_type,
                                const std::string& name,
                                const OnnxValues& inputs,
                                const OnnxValues& outputs,
                                const OnnxAttrs& attrs) {
  if (!HasOperator(op_type, opset_))
    return Unimplemented("opset %d has no %s", opset_, op_type);
  auto* node = proto_->current()->add_node();
  node->set_op_type(std::string(op_type));
  node->set_name(name);
  // Trailing absent inputs are left out.
  size_t count = inputs.size();
  while (count > 0 && inputs[count - 1].empty()) --count;
  for (size_t i = 0; i < count; ++i) node->add_input(inputs[i]);
  for (const std::string& output : outputs) node->add_output(output);
  for (const auto& [attr, value] : attrs) {
    auto* out = node->add_attribute();
    out->set_name(attr);
    std::visit(AttrWriter{out}, value);
  }
  return absl::OkStatus();
}

absl::Status OnnxGraph::DeclareOutputs() {
  for (const std::string& name : model_.names.fetches) {
    auto value = ValueOf(name);
    if (!value.ok())
      return Annotate(value.status(), absl::StrCat("fetch '", name, "'"));
    if (*value != name) {
      if (!names_.emplace(name, 1).second)
        return Unimplemented(
            "output '%s' has the name of an input or parameter that an op "
            "overwrites; ONNX names each value once",
            name);
      PD_RETURN_IF_ERROR(AddNode("Identity", absl::StrCat("fetch/", name),
                                 {*value}, {name}, {}));
    }
    const VarDesc& var = *model_.program.global().FindVar(name);
    auto* output = proto_->graph->add_output();
    output->set_name(name);
    auto* type = output->mutable_type()->mutable_tensor_type();
    type->set_elem_type(ElementType(var.dtype));
  }
  return absl::OkStatus();
}

void OnnxGraph::CompleteOutputs() {
  for (auto& output : *proto_->graph->mutable_output()) {
    auto* type = output.mutable_type()->mutable_tensor_type();
    if (type->has_shape()) continue;
    const VarDesc& var = *model_.program.global().FindVar(output.name());
    for (const int64_t extent : var.shape) {
      auto* dim = type->mutable_shape()->add_dim();
      if (extent >= 0) dim->set_dim_value(extent);
    }
    type->mutable_shape();  // even without extents
  }
}

absl::Status OnnxGraph::Check() {
  try {
    // Types are checked, and failures at single nodes are errors too. It runs
    // on a copy: what it infers for inner values need not be in the file. The
    // outputs' shapes are its own, for programs state some of them wrongly.
    onnx::ModelProto inferred = proto_->model;
    onnx::shape_inference::InferShapes(
        inferred, onnx::OpSchemaRegistry::Instance(),
        onnx::ShapeInferenceOptions(/*check_type_val=*/true,
                                    /*strict_mode_val=*/1,
                                    /*data_prop_val=*/true));
    proto_->graph->mutable_output()->Swap(
        inferred.mutable_graph()->mutable_output());
    CompleteOutputs();
    onnx::checker::check_model(proto_->model);
  } catch (const std::exception& error) {
    return CheckerRefusal(error.what());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> OnnxGraph::Finish() {
  PD_RETURN_IF_ERROR(DeclareOutputs());
  const size_t bytes = proto_->model.ByteSizeLong();
  for (auto& [key, value] : ClassMetadata(model_.names)) {
    auto* entry = proto_->model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(std::move(value));
  }
  if (bytes > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return ResourceExhausted(
        "the model needs %d bytes; an ONNX file holds at most %d", bytes,
        std::numeric_limits<int32_t>::max());
  PD_RETURN_IF_ERROR(Check());
  return proto_->model.SerializeAsString();
}

}  // namespace pd
