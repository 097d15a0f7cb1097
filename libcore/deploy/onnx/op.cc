// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/op.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

const Shape& NoShape() {
  static const auto* none = new Shape;
  return *none;
}

const VarDesc& NoVar() {
  static const auto* none = new VarDesc;
  return *none;
}

template <typename T>
Array ScalarArray(double value) {
  std::byte* bytes = nullptr;
  Array array = NewCopy(DTypeOf<T>(), {}, &bytes);
  if constexpr (sizeof(T) == 2 && std::is_class_v<T>)  // Float16, BFloat16
    *reinterpret_cast<T*>(bytes) = T(static_cast<float>(value));
  else
    *reinterpret_cast<T*>(bytes) = static_cast<T>(value);
  return array;
}

}  // namespace

OnnxOp::OnnxOp(const OpDesc& desc, const char* onnx_type, OnnxGraph* graph)
    : desc_(desc), onnx_type_(onnx_type), graph_(graph) {}

void OnnxOp::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

const VarDesc& OnnxOp::Var(const std::string& name) {
  const VarDesc* var = graph_->model().program.FindVar(graph_->block(), name);
  if (var != nullptr) return *var;
  Fail(NotFound("variable '%s' is not declared", name));
  return NoVar();
}

bool OnnxOp::Has(absl::string_view slot) const {
  const std::string& name = desc_.In(slot);
  return !name.empty() && name != kEmptyVar;
}

std::string OnnxOp::In(absl::string_view slot) {
  const OnnxValues values = Ins(slot);
  if (values.size() == 1) return values[0];
  Fail(InvalidArgument("input '%s' holds %d variables; expected 1", slot,
                       values.size()));
  return "";
}

std::string OnnxOp::OptionalIn(absl::string_view slot) {
  return Has(slot) ? In(slot) : "";
}

OnnxValues OnnxOp::Ins(absl::string_view slot) {
  Ignore(slot);
  OnnxValues values;
  for (const std::string& name : desc_.Input(slot))
    values.push_back(ValueOf(name));
  return values;
}

std::string OnnxOp::ValueOf(const std::string& variable) {
  auto value = graph_->ValueOf(variable);
  Fail(value.status());
  return value.ok() ? *value : "";
}

void OnnxOp::Ignore(absl::string_view slot) {
  asked_.insert(std::string(slot));
}

const Shape& OnnxOp::ShapeOf(absl::string_view slot) {
  return Has(slot) ? Var(desc_.In(slot)).shape : NoShape();
}

int64_t OnnxOp::Rank(absl::string_view slot) {
  return static_cast<int64_t>(ShapeOf(slot).size());
}

DType OnnxOp::TypeOf(absl::string_view slot) {
  return Has(slot) ? Var(desc_.In(slot)).dtype : DType::kFloat32;
}

bool OnnxOp::HasOut(absl::string_view slot) const {
  const std::string& name = desc_.Out(slot);
  return !name.empty() && name != kEmptyVar;
}

const VarDesc& OnnxOp::OutVar(absl::string_view slot) {
  return Var(desc_.Out(slot));
}

const OpDesc* OnnxOp::MakerOf(absl::string_view slot) const {
  const std::string& name = desc_.In(slot);
  for (const OpDesc& op :
       model().program.blocks[static_cast<size_t>(graph_->block())].ops)
    for (const auto& [output, names] : op.outputs)
      for (const std::string& made : names)
        if (made == name) return &op;
  return nullptr;
}

const Array* OnnxOp::Param(absl::string_view slot) const {
  const auto& params = graph_->model().params;
  const auto it = params.find(desc_.In(slot));
  return it == params.end() ? nullptr : &it->second;
}

bool OnnxOp::HasAttr(const char* name) const {
  return desc_.FindAttr(name) != nullptr;
}

const Attribute& OnnxOp::At(const char* name) {
  static const Attribute kNone = int32_t{0};
  if (const Attribute* a = desc_.FindAttr(name)) return *a;
  Fail(InvalidArgument("attr '%s' is missing", name));
  return kNone;
}

int64_t OnnxOp::Int(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<int32_t>(&a)) return *v;
  if (const auto* v = std::get_if<int64_t>(&a)) return *v;
  if (const auto* v = std::get_if<bool>(&a)) return *v ? 1 : 0;
  Fail(InvalidArgument("attr '%s' is of type %s; expected int", name,
                       Name(pd::TypeOf(a))));
  return 0;
}

double OnnxOp::Float(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<float>(&a)) return *v;
  if (const auto* v = std::get_if<double>(&a)) return *v;
  if (const auto* v = std::get_if<ScalarAttr>(&a)) {
    if (const auto* d = std::get_if<double>(&v->value)) return *d;
    if (const auto* i = std::get_if<int64_t>(&v->value))
      return static_cast<double>(*i);
  }
  return static_cast<double>(Int(name));
}

bool OnnxOp::Bool(const char* name) { return Int(name) != 0; }

std::string OnnxOp::Str(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<std::string>(&a)) return *v;
  Fail(InvalidArgument("attr '%s' is of type %s; expected string", name,
                       Name(pd::TypeOf(a))));
  return "";
}

std::vector<int64_t> OnnxOp::Ints(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<std::vector<int32_t>>(&a))
    return {v->begin(), v->end()};
  if (const auto* v = std::get_if<std::vector<int64_t>>(&a)) return *v;
  return {Int(name)};
}

std::vector<float> OnnxOp::Floats(const char* name) {
  const Attribute& a = At(name);
  if (const auto* v = std::get_if<std::vector<float>>(&a)) return *v;
  return {};
}

std::string OnnxOp::NodeName(const std::string& output) const {
  return absl::StrCat(desc_.type, "/", output);
}

std::string OnnxOp::Emit(absl::string_view op_type, const OnnxValues& inputs,
                         const OnnxAttrs& attrs) {
  return EmitSeveral(1, op_type, inputs, attrs)[0];
}

OnnxValues OnnxOp::EmitSeveral(size_t count, absl::string_view op_type,
                               const OnnxValues& inputs,
                               const OnnxAttrs& attrs) {
  std::string hint = desc_.type;
  for (const auto& slot : desc_.outputs)
    if (!slot.second.empty()) {
      hint = slot.second.front();
      break;
    }
  OnnxValues outputs;
  for (size_t i = 0; i < count; ++i)
    outputs.push_back(graph_->NewValue(absl::StrCat(hint, "/", op_type)));
  EmitTo(outputs, op_type, inputs, attrs);
  return outputs;
}

void OnnxOp::EmitTo(const OnnxValues& outputs, absl::string_view op_type,
                    const OnnxValues& inputs, const OnnxAttrs& attrs) {
  if (!status_.ok()) return;
  Fail(graph_->AddNode(op_type, NodeName(outputs[0]), inputs, outputs, attrs));
}

void OnnxOp::Give(absl::string_view slot, absl::string_view op_type,
                  const OnnxValues& inputs, const OnnxAttrs& attrs) {
  const OnnxValues outputs = NewOuts(slot);
  if (outputs.size() != 1)
    Fail(InvalidArgument("output '%s' holds %d variables; expected 1", slot,
                         outputs.size()));
  EmitTo(outputs, op_type, inputs, attrs);
}

OnnxValues OnnxOp::NewOuts(absl::string_view slot) {
  OnnxValues values;
  for (const std::string& name : desc_.Output(slot)) {
    made_.insert(name);
    values.push_back(graph_->NewValueOf(name));
  }
  return values;
}

void OnnxOp::Alias(absl::string_view slot, const std::string& value) {
  const std::string& name = desc_.Out(slot);
  if (name.empty() || !status_.ok()) return;
  made_.insert(name);
  graph_->SetAlias(name, value);
}

std::string OnnxOp::ConstInts(const std::vector<int64_t>& values) {
  return ConstArray(MakeArray({static_cast<int64_t>(values.size())}, values));
}

std::string OnnxOp::ConstFloats(const std::vector<float>& values) {
  return ConstArray(MakeArray({static_cast<int64_t>(values.size())}, values));
}

std::string OnnxOp::Scalar(const std::string& x) { return Reshape(x, {}); }

std::string OnnxOp::Extent(const std::string& x, int64_t axis) {
  return Emit("Gather", {Emit("Shape", {x}), ConstInt(axis)},
              {{"axis", int64_t{0}}});
}

std::string OnnxOp::Counting(const std::string& count) {
  return Emit("Range", {ConstInt(0), count, ConstInt(1)});
}

std::string OnnxOp::ConstInt(int64_t value) {
  return ConstArray(MakeArray({}, std::vector<int64_t>{value}));
}

std::string OnnxOp::Const(double value, DType dtype) {
  const auto array = DispatchTypes<float, double, Float16, BFloat16, int64_t,
                                   int32_t, int16_t, int8_t, uint8_t, bool>(
      dtype, [&](auto tag) -> absl::StatusOr<Array> {
        return ScalarArray<typename decltype(tag)::type>(value);
      });
  Fail(array.status());
  return array.ok() ? ConstArray(*array) : "";
}

std::string OnnxOp::ConstArray(const Array& array) {
  return graph_->Constant(array);
}

std::string OnnxOp::RequestedShape(absl::string_view slot) {
  Ignore(slot);  // ShapeTensor overrides it
  if (Has("ShapeTensor")) return IntVector("ShapeTensor");
  return Has(slot) ? IntVector(slot) : ConstInts(Ints("shape"));
}

std::string OnnxOp::BatchLikeShape() {
  const auto shape = Ints("shape");
  const int64_t from = Int("input_dim_idx");
  const auto to = static_cast<size_t>(Int("output_dim_idx"));
  if (to >= shape.size()) {
    Fail(InvalidArgument("attr 'output_dim_idx' is %d for shape %s", to,
                         ToString(shape)));
    return "";
  }
  OnnxValues parts;
  const auto place = shape.begin() + static_cast<ptrdiff_t>(to);
  if (to > 0) parts.push_back(ConstInts({shape.begin(), place}));
  parts.push_back(Slice(Emit("Shape", {In("Input")}), {0}, {from}, {from + 1}));
  if (to + 1 < shape.size())
    parts.push_back(ConstInts({place + 1, shape.end()}));
  return Emit("Concat", parts, {{"axis", int64_t{0}}});
}

std::string OnnxOp::IntVector(absl::string_view slot) {
  OnnxValues parts;
  for (const std::string& value : Ins(slot))
    parts.push_back(Reshape(Cast(value, DType::kInt64), {-1}));
  if (parts.size() == 1) return parts[0];
  return Emit("Concat", parts, {{"axis", int64_t{0}}});
}

std::string OnnxOp::Reshape(const std::string& x,
                            const std::vector<int64_t>& shape) {
  return Emit("Reshape", {x, ConstInts(shape)});
}

std::string OnnxOp::Transpose(const std::string& x,
                              const std::vector<int64_t>& perm) {
  return Emit("Transpose", {x}, {{"perm", perm}});
}

std::string OnnxOp::Unsqueeze(const std::string& x,
                              const std::vector<int64_t>& axes) {
  if (axes.empty()) return x;
  if (opset() >= 13) return Emit("Unsqueeze", {x, ConstInts(axes)});
  return Emit("Unsqueeze", {x}, {{"axes", axes}});
}

std::string OnnxOp::Squeeze(const std::string& x,
                            const std::vector<int64_t>& axes) {
  if (axes.empty()) return x;
  if (opset() >= 13) return Emit("Squeeze", {x, ConstInts(axes)});
  return Emit("Squeeze", {x}, {{"axes", axes}});
}

std::string OnnxOp::Cast(const std::string& x, DType to) {
  return Emit("Cast", {x}, {{"to", OnnxNumberOf(to)}});
}

std::string OnnxOp::Clip(const std::string& x, double low, double high,
                         DType dtype) {
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  if (opset() >= 11)
    return Emit("Clip", {x, has_low ? Const(low, dtype) : "",
                         has_high ? Const(high, dtype) : ""});
  OnnxAttrs attrs;
  if (has_low) attrs.emplace_back("min", static_cast<float>(low));
  if (has_high) attrs.emplace_back("max", static_cast<float>(high));
  return Emit("Clip", {x}, attrs);
}

std::string OnnxOp::Reduce(const char* op_type, const std::string& x,
                           const std::vector<int64_t>& axes, bool keep_dims) {
  OnnxAttrs attrs = {{"keepdims", int64_t{keep_dims}}};
  // Only the sum takes its axes as an input before opset 18.
  if (opset() >= 13 && absl::string_view(op_type) == "ReduceSum")
    return Emit(op_type, {x, axes.empty() ? "" : ConstInts(axes)}, attrs);
  if (!axes.empty()) attrs.emplace_back("axes", axes);
  return Emit(op_type, {x}, attrs);
}

std::string OnnxOp::Pad(const std::string& x, const std::vector<int64_t>& pads,
                        const std::string& mode, double value, DType dtype) {
  if (opset() >= 11)
    return Emit("Pad", {x, ConstInts(pads), Const(value, dtype)},
                {{"mode", mode}});
  return Emit(
      "Pad", {x},
      {{"mode", mode}, {"pads", pads}, {"value", static_cast<float>(value)}});
}

std::string OnnxOp::Slice(const std::string& x,
                          const std::vector<int64_t>& axes,
                          const std::vector<int64_t>& starts,
                          const std::vector<int64_t>& ends) {
  if (opset() >= 10)
    return Emit("Slice",
                {x, ConstInts(starts), ConstInts(ends), ConstInts(axes)});
  return Emit("Slice", {x},
              {{"starts", starts}, {"ends", ends}, {"axes", axes}});
}

absl::Status OnnxOp::Finish() {
  for (const auto& [slot, names] : desc_.inputs)
    if (Has(slot) && asked_.count(slot) == 0)
      Fail(Unimplemented("input '%s' ('%s') has no counterpart in ONNX", slot,
                         names.front()));
  for (const auto& slot : desc_.outputs)
    for (const std::string& name : slot.second)
      if (name != kEmptyVar && made_.count(name) == 0 &&
          graph_->model().params.count(name) == 0)
        graph_->SetAbsent(name, desc_.type);
  return status_;
}

}  // namespace pd
