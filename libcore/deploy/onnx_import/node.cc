// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx_import/node.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

OnnxNode::OnnxNode(const OnnxFileNode& file, const char* op_type, int64_t opset,
                   OnnxImporter* importer)
    : file_(file),
      op_type_(op_type),
      opset_(opset),
      importer_(importer),
      given_(file.outputs.size(), false) {}

void OnnxNode::Fail(const absl::Status& status) { status_.Update(status); }

// Inputs.

bool OnnxNode::Has(size_t i) const {
  return i < file_.inputs.size() && !file_.inputs[i].empty();
}

OnnxValue* OnnxNode::Value(size_t i) {
  if (!Has(i)) return nullptr;
  OnnxValue* value = importer_->Find(file_.inputs[i]);
  if (value == nullptr)
    Fail(InvalidArgument("it reads '%s', which nothing has made before it",
                         file_.inputs[i]));
  return value;
}

std::string OnnxNode::In(size_t i) {
  if (!Has(i)) {
    Fail(InvalidArgument("it has %d inputs; input %d is needed",
                         file_.inputs.size(), i));
    return "";
  }
  OnnxValue* value = Value(i);
  if (value == nullptr || !ok()) return "";
  if (value->is_list) {
    Fail(InvalidArgument("input '%s' is a sequence", file_.inputs[i]));
    return "";
  }
  const std::string variable = importer_->VariableOf(value, file_.inputs[i]);
  if (variable.empty())
    Fail(InvalidArgument("input '%s' has no value", file_.inputs[i]));
  return variable;
}

OnnxNode::Names OnnxNode::Ins(size_t first) {
  Names names;
  for (size_t i = first; i < InputCount(); ++i) names.push_back(In(i));
  return names;
}

const Array* OnnxNode::Known(size_t i) {
  const OnnxValue* value = Value(i);
  return value != nullptr && value->constant.has_value() ? &*value->constant
                                                         : nullptr;
}

int32_t OnnxNode::UnsignedBits(size_t i) {
  const OnnxValue* value = Has(i) ? Value(i) : nullptr;
  return value == nullptr ? 0 : value->unsigned_bits;
}

std::optional<OnnxNode::Ints> OnnxNode::KnownInts(size_t i) {
  const Array* array = Known(i);
  return array == nullptr ? std::nullopt : OnnxInts(*array);
}

OnnxNode::Ints OnnxNode::NeedInts(size_t i) {
  if (!Has(i)) {
    Fail(InvalidArgument("input %d is needed", i));
    return {};
  }
  if (auto ints = KnownInts(i)) return *ints;
  if (ok())
    Fail(FailedPrecondition(
        "input '%s' must be a constant: PaddlePaddle has an attribute there",
        file_.inputs[i]));
  return {};
}

double OnnxNode::NeedNumber(size_t i) {
  const Array* array = Known(i);
  if (array != nullptr && array->size() == 1) return OnnxNumbers(*array)[0];
  if (ok() && array != nullptr)
    Fail(InvalidArgument("input %d has %d elements; expected one", i,
                         array->size()));
  if (ok()) NeedInts(i);
  return 0;
}

std::optional<OnnxNode::Ints> OnnxNode::IntsOr(const char* attr, size_t i) {
  if (HasAttr(attr)) return AttrInts(attr);
  return KnownInts(i);
}

std::optional<OnnxNode::Ints> OnnxNode::NeedIntsOr(const char* attr, size_t i) {
  if (HasAttr(attr)) return AttrInts(attr);
  if (!Has(i)) return std::nullopt;
  return NeedInts(i);
}

// Facts.

// A copy: variables move when others are declared.
Shape OnnxNode::ShapeOf(const std::string& variable) {
  const VarDesc* var = ok() ? importer_->FindVar(variable) : nullptr;
  return var == nullptr ? Shape() : var->shape;
}

int64_t OnnxNode::Rank(const std::string& variable) {
  return static_cast<int64_t>(ShapeOf(variable).size());
}

int64_t OnnxNode::Extent(const std::string& variable, int64_t axis) {
  const Shape& shape = ShapeOf(variable);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  if (axis >= 0 && axis < static_cast<int64_t>(shape.size()))
    return shape[static_cast<size_t>(axis)];
  Fail(InvalidArgument("a tensor of shape %s has no axis %d", ToString(shape),
                       axis));
  return -1;
}

DType OnnxNode::TypeOf(const std::string& variable) {
  const VarDesc* var = ok() ? importer_->FindVar(variable) : nullptr;
  return var == nullptr ? DType::kFloat32 : var->dtype;
}

int64_t OnnxNode::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  Fail(InvalidArgument("axis is %d; a tensor of %d dimensions has [%d, %d]",
                       axis, rank, -rank, rank - 1));
  return 0;
}

OnnxNode::Ints OnnxNode::Axes(Ints axes, int64_t rank) {
  for (int64_t& axis : axes) axis = Axis(axis, rank);
  return axes;
}

// Attributes.

bool OnnxNode::HasAttr(const char* name) const {
  return file_.attrs.count(name) > 0;
}

const OnnxFileAttr* OnnxNode::FindAttr(const char* name,
                                       OnnxFileAttr::Kind kind) {
  const auto it = file_.attrs.find(name);
  if (it == file_.attrs.end()) return nullptr;
  if (it->second.kind == kind) return &it->second;
  Fail(InvalidArgument("attribute '%s' is of the wrong type", name));
  return nullptr;
}

int64_t OnnxNode::Int(const char* name, int64_t otherwise) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kInt);
  return attr == nullptr ? otherwise : attr->i;
}

float OnnxNode::Float(const char* name, float otherwise) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kFloat);
  return attr == nullptr ? otherwise : attr->f;
}

std::string OnnxNode::Str(const char* name, const char* otherwise) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kString);
  return attr == nullptr ? otherwise : attr->s;
}

OnnxNode::Ints OnnxNode::AttrInts(const char* name, Ints otherwise) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kInts);
  return attr == nullptr ? std::move(otherwise) : attr->ints;
}

std::vector<float> OnnxNode::Floats(const char* name,
                                    std::vector<float> otherwise) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kFloats);
  return attr == nullptr ? std::move(otherwise) : attr->floats;
}

std::vector<std::string> OnnxNode::Strings(const char* name) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kStrings);
  return attr == nullptr ? std::vector<std::string>() : attr->strings;
}

const Array* OnnxNode::Tensor(const char* name) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kTensor);
  return attr == nullptr ? nullptr : &attr->tensor;
}

const OnnxFileGraph* OnnxNode::Graph(const char* name) {
  const auto* attr = FindAttr(name, OnnxFileAttr::Kind::kGraph);
  if (attr != nullptr && attr->graph.size() == 1) return &attr->graph.front();
  Fail(InvalidArgument("it has no graph '%s'", name));
  return nullptr;
}

DType OnnxNode::ElementType(int64_t number) {
  const int32_t code =
      number < 0 || number > 1000 ? -1 : static_cast<int32_t>(number);
  const auto dtype = DTypeFromOnnx(code);
  if (dtype.has_value()) return *dtype;
  Fail(Unimplemented("element type %s: PaddlePaddle has no such tensors",
                     OnnxTypeName(code)));
  return DType::kFloat32;
}

// Outputs.

bool OnnxNode::Wants(size_t i) const {
  return i < file_.outputs.size() && !file_.outputs[i].empty();
}

void OnnxNode::GiveValue(size_t i, OnnxValue value) {
  if (!ok() || !Wants(i)) return;
  given_[i] = true;
  if (!value.constant.has_value())
    if (const Array* param = importer_->ParamOf(value.variable))
      value.constant = *param;
  Fail(importer_->Define(file_.outputs[i], std::move(value)));
}

void OnnxNode::Give(size_t i, const std::string& variable) {
  OnnxValue value;
  value.variable = variable;
  GiveValue(i, std::move(value));
}

void OnnxNode::GiveConstant(size_t i, const Array& array) {
  OnnxValue value;
  value.constant = array;
  GiveValue(i, std::move(value));
}

absl::Status OnnxNode::Finish() {
  for (size_t i = 0; i < file_.outputs.size() && ok(); ++i)
    if (Wants(i) && !given_[i])
      Fail(Unimplemented("its output %d, '%s', is not supported", i,
                         file_.outputs[i]));
  return status_;
}

// Ops.

std::string OnnxNode::Emit(absl::string_view op_type, const Slots& inputs,
                           Attrs attrs, const char* out) {
  const Names names = EmitMany(op_type, inputs, {{out, 1}}, std::move(attrs));
  return names.empty() ? "" : names.front();
}

OnnxNode::Names OnnxNode::EmitMany(
    absl::string_view op_type, const Slots& inputs,
    const std::vector<std::pair<const char*, size_t>>& outs, Attrs attrs) {
  Names all;
  size_t count = 0;
  for (const auto& [slot, n] : outs) count += n;
  if (!ok()) return Names(count);
  OpDesc op;
  op.type = std::string(op_type);
  op.attrs = std::move(attrs);
  for (const auto& [slot, names] : inputs)
    if (!names.empty() && !names.front().empty()) op.SetInput(slot, names);
  const OpDef* def = importer_->registry().Find(op_type);
  for (const auto& [slot, n] : outs) {
    Names names;
    for (size_t i = 0; i < n; ++i) names.push_back(importer_->NewVariable());
    all.insert(all.end(), names.begin(), names.end());
    op.SetOutput(slot, std::move(names));
  }
  // PaddlePaddle's kernels want their scratch outputs.
  if (def != nullptr)
    for (const SlotDef& slot : def->outputs())
      if (op.Output(slot.name).empty() && (slot.intermediate || !slot.optional))
        op.SetOutput(slot.name, {importer_->NewVariable()});
  Fail(importer_->builder().Append(std::move(op)));
  if (ok()) importer_->FoldLast(&all);
  return all;
}

std::string OnnxNode::Binary(const char* op_type, const std::string& x,
                             const std::string& y) {
  return Emit(op_type, {{"X", {x}}, {"Y", {y}}}, {{"axis", -1}});
}

std::string OnnxNode::Affine(const std::string& x, double scale, double bias) {
  const DType dtype = TypeOf(x);
  const auto exact = [](double v) {
    return static_cast<double>(static_cast<float>(v)) == v;
  };
  if (dtype != DType::kFloat64 || (exact(scale) && exact(bias)))
    return Unary("scale", x,
                 {{"scale", static_cast<float>(scale)},
                  {"bias", static_cast<float>(bias)},
                  {"bias_after_scale", true}});
  return Add(Mul(x, Scalar(scale, dtype)), Scalar(bias, dtype));
}

std::string OnnxNode::Cast(const std::string& x, DType to) {
  const DType from = TypeOf(x);
  if (!ok() || from == to) return x;
  return Unary("cast", x,
               {{"in_dtype", static_cast<int32_t>(from)},
                {"out_dtype", static_cast<int32_t>(to)}});
}

std::string OnnxNode::Reshape(const std::string& x, const Ints& shape) {
  return Unary("reshape2", x, {{"shape", OnnxAttrInts(shape)}});
}

std::string OnnxNode::ReshapeBy(const std::string& x,
                                const std::string& shape) {
  const Shape& extents = ShapeOf(shape);
  if (ok() && (extents.size() != 1 || extents[0] < 0)) {
    Fail(FailedPrecondition("the length of the shape is not known"));
    return "";
  }
  return Emit("reshape2", {{"X", {x}}, {"Shape", {shape}}});
}

std::string OnnxNode::ReshapeTo(const std::string& x,
                                const std::vector<Dim>& dims) {
  Ints shape;
  bool by_one_open = true;
  for (const Dim& dim : dims) {
    int64_t extent = dim.extent;
    if (!dim.of.empty()) extent = Extent(dim.of, dim.axis);
    if (extent < 0 && std::find(shape.begin(), shape.end(), -1) != shape.end())
      by_one_open = false;
    shape.push_back(extent < 0 ? -1 : extent);
  }
  if (!ok()) return "";
  // An extent of 0 would be taken for "as in x", and leaves -1 open.
  const bool empty = std::count(shape.begin(), shape.end(), 0) > 0;
  if (by_one_open && !empty) return Reshape(x, shape);
  Names parts;
  for (const Dim& dim : dims)
    parts.push_back(dim.of.empty() ? ConstInts({dim.extent})
                                   : Slice(ShapeVar(dim.of), {0}, {dim.axis},
                                           {dim.axis + 1}));
  return ReshapeBy(x, Concat(parts, 0));
}

std::string OnnxNode::Transpose(const std::string& x, const Ints& perm) {
  return Unary("transpose2", x, {{"axis", OnnxAttrInts(perm)}});
}

std::string OnnxNode::Unsqueeze(const std::string& x, const Ints& axes) {
  return Unary("unsqueeze2", x, {{"axes", OnnxAttrInts(axes)}});
}

std::string OnnxNode::Squeeze(const std::string& x, const Ints& axes) {
  if (axes.empty()) return x;
  return Unary("squeeze2", x, {{"axes", OnnxAttrInts(axes)}});
}

std::string OnnxNode::Concat(const Names& xs, int64_t axis) {
  if (xs.size() == 1) return xs.front();
  return Emit("concat", {{"X", xs}}, {{"axis", static_cast<int32_t>(axis)}});
}

std::string OnnxNode::Slice(const std::string& x, const Ints& axes,
                            const Ints& starts, const Ints& ends, Ints steps) {
  const bool strided =
      std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s != 1; });
  Attrs attrs = {{"axes", OnnxAttrInts(axes)},
                 {"starts", OnnxAttrInts(starts)},
                 {"ends", OnnxAttrInts(ends)},
                 {"infer_flags", std::vector<int32_t>(axes.size(), 1)}};
  if (strided) attrs["strides"] = OnnxAttrInts(steps);
  return Emit(strided ? "strided_slice" : "slice", {{"Input", {x}}},
              std::move(attrs));
}

OnnxNode::Names OnnxNode::Split(const std::string& x, int64_t axis,
                                size_t parts) {
  if (parts == 1) return {x};
  return EmitMany("split", {{"X", {x}}}, {{"Out", parts}},
                  {{"num", static_cast<int32_t>(parts)},
                   {"axis", static_cast<int32_t>(axis)}});
}

std::string OnnxNode::Flip(const std::string& x, const Ints& axes) {
  return Unary("flip", x, {{"axis", OnnxAttrInts(axes)}});
}

OnnxNode::Names OnnxNode::Broadcast(const Names& xs) {
  bool same = true;
  for (const std::string& x : xs)
    same = same && ShapeOf(x) == ShapeOf(xs.front()) && !IsDynamic(ShapeOf(x));
  if (same || !ok()) return xs;
  return EmitMany("broadcast_tensors", {{"X", xs}}, {{"Out", xs.size()}});
}

std::string OnnxNode::Where(const std::string& condition, const std::string& x,
                            const std::string& y) {
  const Shape shape = ShapeOf(condition);
  if (ShapeOf(x) == shape && ShapeOf(y) == shape && !IsDynamic(shape))
    return Emit("where", {{"Condition", {condition}}, {"X", {x}}, {"Y", {y}}});
  // Tensors that are broadcast together have one dtype.
  const Names all = Broadcast({x, y, Cast(condition, TypeOf(x))});
  return Emit("where", {{"Condition", {Cast(all[2], DType::kBool)}},
                        {"X", {all[0]}},
                        {"Y", {all[1]}}});
}

std::string OnnxNode::Expand(const std::string& x, const Ints& shape) {
  return Unary("expand_v2", x, {{"shape", OnnxAttrInts(shape)}});
}

std::string OnnxNode::MatMul(const std::string& x, const std::string& y,
                             bool trans_x, bool trans_y) {
  return Emit("matmul_v2", {{"X", {x}}, {"Y", {y}}},
              {{"trans_x", trans_x}, {"trans_y", trans_y}});
}

std::string OnnxNode::Reduce(const char* op_type, const std::string& x,
                             const Ints& axes, bool keep) {
  Attrs attrs = {{"reduce_all", axes.empty()}, {"keep_dim", keep}};
  const auto dims = OnnxAttrInts(axes);
  attrs["dim"] = axes.empty() ? std::vector<int32_t>{0} : dims;
  return Unary(op_type, x, std::move(attrs));
}

std::string OnnxNode::Gather(const std::string& x, const std::string& index,
                             int64_t axis) {
  return Emit("gather", {{"X", {x}}, {"Index", {index}}},
              {{"axis", static_cast<int32_t>(axis)}});
}

std::string OnnxNode::FromStart(const std::string& index, const std::string& x,
                                int64_t axis, int64_t count) {
  // An axis without elements has no indices, but a divisor of 0 is an error.
  Ints known;
  for (int64_t i = axis; i < axis + count; ++i)
    known.push_back(Extent(x, i) == 0 ? 1 : Extent(x, i));
  if (!ok()) return "";
  const std::string extents =
      IsDynamic(known) ? Binary("elementwise_max",
                                Slice(ShapeVar(x), {0}, {axis}, {axis + count}),
                                ConstInts({1}))
                       : ConstInts(known);
  return Binary("elementwise_mod", index, Cast(extents, TypeOf(index)));
}

std::string OnnxNode::ShapeVar(const std::string& x) {
  const Shape shape = ShapeOf(x);
  if (!IsDynamic(shape)) return ConstInts(shape);
  return Cast(Emit("shape", {{"Input", {x}}}), DType::kInt64);
}

std::string OnnxNode::Positions(const std::string& x, int64_t axis) {
  return Emit("range", {{"Start", {ConstInts({0})}},
                        {"End", {Slice(ShapeVar(x), {0}, {axis}, {axis + 1})}},
                        {"Step", {ConstInts({1})}}});
}

std::string OnnxNode::Full(const Shape& shape, double value, DType dtype) {
  return Emit("fill_constant", {},
              {{"shape", shape},
               {"dtype", static_cast<int32_t>(dtype)},
               {"value", static_cast<float>(value)},
               {"str_value", absl::StrFormat("%.17g", value)}});
}

std::string OnnxNode::FullLike(const std::string& x, double value,
                               DType dtype) {
  const Shape shape = ShapeOf(x);
  if (!IsDynamic(shape)) return Full(shape, value, dtype);
  return Unary("fill_any_like", x,
               {{"value", static_cast<float>(value)},
                {"dtype", static_cast<int32_t>(dtype)}});
}

// Constants.

std::string OnnxNode::Constant(const Array& array) {
  return ok() ? importer_->AddParam("constant", array) : "";
}

std::string OnnxNode::ConstInts(const Ints& values) {
  return Constant(MakeArray({static_cast<int64_t>(values.size())}, values));
}

std::string OnnxNode::Scalar(double value, DType dtype) {
  return Constant(OnnxArray(dtype, {}, {value}));
}

// Arrays.

std::optional<std::vector<int64_t>> OnnxInts(const Array& array) {
  if (IsComplex(array.dtype)) return std::nullopt;
  if (array.dtype == DType::kInt64)
    return std::vector<int64_t>(array.data<int64_t>(),
                                array.data<int64_t>() + array.size());
  const std::vector<double> numbers = OnnxNumbers(array);
  std::vector<int64_t> ints;
  for (const double n : numbers) {
    if (!(n >= -9e18 && n <= 9e18)) return std::nullopt;
    ints.push_back(static_cast<int64_t>(n));
  }
  return ints;
}

std::vector<double> OnnxNumbers(const Array& array) {
  std::vector<double> numbers;
  (void)DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t, uint8_t,
                      bool, Float16, BFloat16>(
      array.dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < array.size(); ++i)
          numbers.push_back(static_cast<double>(array.data<T>()[i]));
        return absl::OkStatus();
      });
  numbers.resize(static_cast<size_t>(array.size()));
  return numbers;
}

Array OnnxArray(DType dtype, Shape shape, const std::vector<double>& values) {
  PD_INVARIANT(static_cast<int64_t>(values.size()) == NumElements(shape));
  std::byte* bytes = nullptr;
  Array array = NewCopy(dtype, std::move(shape), &bytes);
  (void)DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t, uint8_t,
                      bool, Float16, BFloat16>(
      dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        auto* out = reinterpret_cast<T*>(bytes);
        for (const double value : values) {
          if constexpr (std::is_same_v<T, Float16> ||
                        std::is_same_v<T, BFloat16>)
            *out++ = T(static_cast<float>(value));
          else
            *out++ = static_cast<T>(value);
        }
        return absl::OkStatus();
      });
  return array;
}

std::vector<int32_t> OnnxAttrInts(const std::vector<int64_t>& values) {
  std::vector<int32_t> ints;
  for (const int64_t value : values)
    ints.push_back(static_cast<int32_t>(
        std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int32_t>::max())));
  return ints;
}

}  // namespace pd
