// SPDX-License-Identifier: Apache-2.0
// Elements put to places that an index names, and gathered from such places.
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

using Ints = std::vector<int64_t>;

int64_t NormalAxis(OnnxOp* op, int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  op->Fail(InvalidArgument("axis %d of a tensor of rank %d", axis, rank));
  return 0;
}

// `value` broadcast to the shape that `like` has.
std::string ExpandAs(OnnxOp* op, const std::string& value,
                     const std::string& like) {
  return op->Emit("Expand", {value, op->Emit("Shape", {like})});
}

void GiveScatterNd(OnnxOp* op, const char* slot, const OnnxValues& inputs,
                   bool add) {
  OnnxAttrs attrs;
  if (add) {
    if (op->opset() < 16)
      op->Fail(Unimplemented("ONNX adds in ScatterND since opset 16"));
    attrs.emplace_back("reduction", std::string("add"));
  }
  op->Give(slot, "ScatterND", inputs, attrs);
}

// Rows of Updates replace rows of X; without overwrite these are 0 first and
// all updates are added.
void ConvertScatter(OnnxOp* op) {
  const std::string rows =
      op->Reshape(op->Cast(op->In("Ids"), DType::kInt64), {-1, 1});
  const std::string updates = op->In("Updates");
  std::string data = op->In("X");
  const bool overwrite = op->Bool("overwrite");
  if (!overwrite)
    data = op->Emit(
        "ScatterND",
        {data, rows, ExpandAs(op, op->Const(0, op->TypeOf("X")), updates)});
  GiveScatterNd(op, "Out", {data, rows, updates}, !overwrite);
}

void ConvertScatterNdAdd(OnnxOp* op) {
  const std::string index = op->Cast(op->In("Index"), DType::kInt64);
  GiveScatterNd(op, "Out", {op->In("X"), index, op->In("Updates")}, true);
}

void ConvertPutAlongAxis(OnnxOp* op) {
  const std::string index = op->In("Index");
  OnnxAttrs attrs = {
      {"axis", NormalAxis(op, op->Int("Axis"), op->Rank("Input"))}};
  std::string reduce = op->Str("Reduce");
  if (reduce == "multiply") reduce = "mul";
  if (reduce != "assign") {
    const bool known = reduce == "add" || reduce == "mul";
    if (!known || !op->Bool("Include_self"))
      op->Fail(
          Unimplemented("attr 'Reduce' is '%s' and 'Include_self' %d; "
                        "ONNX adds and multiplies with what is there",
                        reduce, op->Bool("Include_self")));
    if (op->opset() < 16)
      op->Fail(Unimplemented("ONNX reduces in ScatterElements since opset 16"));
    attrs.emplace_back("reduction", reduce);
  }
  op->Give("Result", "ScatterElements",
           {op->In("Input"), index, ExpandAs(op, op->In("Value"), index)},
           attrs);
}

void ConvertTakeAlongAxis(OnnxOp* op) {
  op->Give("Result", "GatherElements", {op->In("Input"), op->In("Index")},
           {{"axis", NormalAxis(op, op->Int("Axis"), op->Rank("Input"))}});
}

void ConvertIndexSample(OnnxOp* op) {
  op->Give("Out", "GatherElements", {op->In("X"), op->In("Index")},
           {{"axis", int64_t{1}}});
}

template <typename T, typename Stored>
std::vector<T> Numbers(const std::vector<Stored>& from) {
  return std::vector<T>(from.begin(), from.end());
}

// The attribute that holds an op's values, as numbers of one kind.
std::string StoredValues(OnnxOp* op) {
  for (const char* name :
       {"values", "bool_values", "int32_values", "int64_values", "fp32_values",
        "fp64_values", "fp16_values"}) {
    const Attribute* a = op->desc().FindAttr(name);
    if (a == nullptr) continue;
    std::vector<double> reals;
    Ints ints;
    if (const auto* scalars = std::get_if<std::vector<ScalarAttr>>(a)) {
      for (const ScalarAttr& scalar : *scalars) {
        if (const auto* i = std::get_if<int64_t>(&scalar.value))
          ints.push_back(*i);
        else if (const auto* b = std::get_if<bool>(&scalar.value))
          ints.push_back(*b ? 1 : 0);
        else if (const auto* d = std::get_if<double>(&scalar.value))
          reals.push_back(*d);
        else
          op->Fail(Unimplemented("attr '%s' holds complex numbers", name));
      }
    } else if (const auto* v = std::get_if<std::vector<int32_t>>(a)) {
      ints = Numbers<int64_t>(*v);
    } else if (const auto* w = std::get_if<std::vector<int64_t>>(a)) {
      ints = *w;
    } else if (const auto* f = std::get_if<std::vector<float>>(a)) {
      reals = Numbers<double>(*f);
    } else if (const auto* d = std::get_if<std::vector<double>>(a)) {
      reals = *d;
    }
    if (!reals.empty())
      return op->ConstArray(
          MakeArray({static_cast<int64_t>(reals.size())}, reals));
    if (!ints.empty()) return op->ConstInts(ints);
  }
  op->Fail(InvalidArgument("no attribute holds its values"));
  return "";
}

void ConvertAssignValue(OnnxOp* op) {
  op->Give("Out", "Reshape",
           {op->Cast(StoredValues(op), op->OutVar("Out").dtype),
            op->ConstInts(op->Ints("shape"))});
}

// Bounds of a slice: those of a list of tensors, else of an attribute.
std::string Bound(OnnxOp* op, const char* slot, const char* attr, size_t i) {
  const auto& names = op->desc().Input(slot);
  op->Ignore(slot);
  if (names.size() == 1 && i > 0) {
    const auto at = static_cast<int64_t>(i);
    return op->Slice(
        op->Reshape(op->Cast(op->ValueOf(names[0]), DType::kInt64), {-1}), {0},
        {at}, {at + 1});
  }
  if (i < names.size())
    return op->Reshape(op->Cast(op->ValueOf(names[i]), DType::kInt64), {-1});
  const Ints values = op->Ints(attr);
  if (i < values.size()) return op->ConstInts({values[i]});
  if (!names.empty() || !values.empty() || absl::string_view(attr) != "steps")
    op->Fail(InvalidArgument("attr '%s' has %d numbers for axis %d", attr,
                             values.size(), i));
  return op->ConstInts({1});
}

// The places along one axis that a slice names, as an int64 vector.
std::string PlacesAlong(OnnxOp* op, const std::string& x, size_t i,
                        int64_t axis, bool decreases) {
  const Shape& shape = op->ShapeOf("Input");
  std::string all;
  if (shape[static_cast<size_t>(axis)] >= 0) {
    Ints numbers(static_cast<size_t>(shape[static_cast<size_t>(axis)]));
    std::iota(numbers.begin(), numbers.end(), 0);
    all = op->ConstInts(numbers);
  } else {
    all = op->Counting(op->Extent(x, axis));
  }
  const std::string start = Bound(op, "StartsTensorList", "starts", i);
  const std::string step = Bound(op, "StepsTensorList", "steps", i);
  std::string end = Bound(op, "EndsTensorList", "ends", i);
  const auto is = [&](const std::string& value, int64_t number) {
    return op->Emit("Equal", {value, op->ConstInts({number})});
  };
  // PaddlePaddle writes the last element alone as [-1:0]; ONNX would take that
  // for an empty slice, so its end becomes the largest integer.
  if (decreases)
    end = op->Emit("Where",
                   {op->Emit("And", {is(start, -1), is(end, 0)}),
                    op->ConstInts({std::numeric_limits<int32_t>::max()}), end});
  const std::string back = op->Emit("Less", {step, op->ConstInts({0})});
  end = op->Emit("Where",
                 {op->Emit("And", {back, is(end, -1)}),
                  op->ConstInts({std::numeric_limits<int32_t>::min()}), end});
  return op->Emit("Slice", {all, start, end, op->ConstInts({0}), step});
}

bool Contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The value with an axis for each of X's, to be broadcast: without the axes
// that None made, with those that an integer index took away.
std::string FullRank(OnnxOp* op, std::string value, int64_t value_rank,
                     int64_t rank) {
  const Ints decreased = op->Ints("decrease_axes");
  const Ints none = op->Ints("none_axes");
  Ints targets;  // X's axis of each of the value's; -1: None's
  size_t next = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    for (; next < none.size() && none[next] <= axis; ++next)
      targets.push_back(-1);
    if (!Contains(decreased, axis)) targets.push_back(axis);
  }
  for (; next < none.size(); ++next) targets.push_back(-1);
  const auto count = static_cast<int64_t>(targets.size());
  Ints drop, kept;
  for (int64_t i = 0; i < value_rank; ++i) {
    const int64_t at = count - value_rank + i;
    if (at < 0 || targets[static_cast<size_t>(at)] < 0)
      drop.push_back(i);
    else
      kept.push_back(targets[static_cast<size_t>(at)]);
  }
  value = op->Squeeze(value, drop);
  Ints add;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!Contains(kept, axis)) add.push_back(axis);
  return op->Unsqueeze(value, add);
}

// The part is gathered axis by axis, replaced, and scattered back.
void ConvertSetValue(OnnxOp* op) {
  const int64_t rank = op->Rank("Input");
  if (op->opset() < 11) {
    op->Fail(
        Unimplemented("ONNX has Range and ScatterElements since opset 11"));
    return;
  }
  const DType dtype = op->TypeOf("Input");
  const Ints decreased = op->Ints("decrease_axes");
  std::string value;
  int64_t value_rank = 0;
  if (op->Has("ValueTensor")) {
    value = op->In("ValueTensor");
    value_rank = op->Rank("ValueTensor");
  } else {
    const Ints shape = op->Ints("shape");
    value = op->Reshape(op->Cast(StoredValues(op), dtype), shape);
    value_rank = static_cast<int64_t>(shape.size());
  }
  value = FullRank(op, value, value_rank, rank);
  std::vector<std::string> parts = {op->In("Input")}, places;
  Ints axes = op->Ints("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = NormalAxis(op, axes[i], rank);
    if (!op->status().ok()) return;
    places.push_back(
        PlacesAlong(op, parts[0], i, axes[i], Contains(decreased, axes[i])));
    parts.push_back(
        op->Emit("Gather", {parts.back(), places.back()}, {{"axis", axes[i]}}));
  }
  std::string y = ExpandAs(op, value, parts.back());
  for (size_t i = axes.size(); i-- > 0;) {
    Ints along(static_cast<size_t>(rank), 1);
    along[static_cast<size_t>(axes[i])] = -1;
    y = op->Emit("ScatterElements",
                 {parts[i], ExpandAs(op, op->Reshape(places[i], along), y), y},
                 {{"axis", axes[i]}});
  }
  op->Alias("Out", y);
}

// The numbers of one index for each axis of x that it names: integers as they
// are, of a mask those of the places where it holds.
OnnxValues IndicesOf(OnnxOp* op, const std::string& variable,
                     const std::string& value) {
  const VarDesc* var = op->model().program.global().FindVar(variable);
  if (var == nullptr || var->dtype != DType::kBool)
    return {op->Cast(value, DType::kInt64)};
  const std::string places = op->Emit("NonZero", {value});
  OnnxValues axes;
  for (int64_t i = 0; i < static_cast<int64_t>(var->shape.size()); ++i)
    axes.push_back(op->Squeeze(op->Slice(places, {0}, {i}, {i + 1}), {0}));
  return axes;
}

// Slices of x that the indices name together become the value, or get it added.
void ConvertIndexPut(OnnxOp* op) {
  const std::string x = op->In("x");
  const OnnxValues given = op->Ins("indices");
  const auto& variables = op->desc().Input("indices");
  OnnxValues indices;
  int64_t common = 1;  // the rank that they have together
  for (size_t i = 0; i < given.size(); ++i) {
    const VarDesc* var = op->model().program.global().FindVar(variables[i]);
    if (var != nullptr && var->dtype != DType::kBool)
      common = std::max(common, static_cast<int64_t>(var->shape.size()));
    for (std::string& one : IndicesOf(op, variables[i], given[i]))
      indices.push_back(std::move(one));
  }
  const auto named = static_cast<int64_t>(indices.size());
  if (named == 0 || named > op->Rank("x")) {
    op->Fail(InvalidArgument("%d indices of a tensor of rank %d", named,
                             op->Rank("x")));
    return;
  }
  // A sum of zeros has the shape to which all of them broadcast.
  std::string zeros;
  for (const std::string& index : indices) {
    const std::string none = op->Emit("Mul", {index, op->ConstInts({0})});
    zeros = zeros.empty() ? none : op->Emit("Add", {zeros, none});
  }
  for (std::string& index : indices)
    index = op->Unsqueeze(op->Emit("Add", {index, zeros}), {common});
  const std::string shape = op->Emit(
      "Concat",
      {op->Emit("Shape", {zeros}),
       op->Slice(op->Emit("Shape", {x}), {0}, {named}, {op->Rank("x")})},
      {{"axis", int64_t{0}}});
  std::string value = op->In("value");
  Ints surplus;
  for (int64_t i = common + op->Rank("x") - named; i < op->Rank("value"); ++i)
    surplus.push_back(static_cast<int64_t>(surplus.size()));
  if (!surplus.empty()) value = op->Squeeze(value, surplus);
  GiveScatterNd(op, "out",
                {x, op->Emit("Concat", indices, {{"axis", int64_t{-1}}}),
                 op->Emit("Expand", {value, shape})},
                op->Bool("accumulate"));
}

}  // namespace

OnnxConverters ScatterConverters() {
  return {
      {"assign_value", ConvertAssignValue},
      {"index_put", ConvertIndexPut},
      {"index_sample", ConvertIndexSample},
      {"put_along_axis", ConvertPutAlongAxis},
      {"scatter", ConvertScatter},
      {"scatter_nd_add", ConvertScatterNdAdd},
      {"set_value", ConvertSetValue},
      {"take_along_axis", ConvertTakeAlongAxis},
  };
}

}  // namespace pd
