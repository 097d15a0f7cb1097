// SPDX-License-Identifier: Apache-2.0
// Ops that move, repeat, choose and fill elements, and those that change or
// tell shapes.
#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/bundle/runtime/bundle_format.h"

namespace pd {
namespace {

using pd_run::kNoValue;
using pd_run::PadMode;
using pd_run::ReshapeMode;

BundleOp::Ints WithMode(int64_t mode, const BundleOp::Ints& rest) {
  BundleOp::Ints ints = {mode};
  ints.insert(ints.end(), rest.begin(), rest.end());
  return ints;
}

// A parameter in another shape, as biases of PaddlePaddle's convolutions are,
// is a parameter again, which a convolution takes.
bool ReshapeParam(BundleOp* op) {
  const BundleOp::Ints shape = op->IntsOf("shape");
  if (!op->IsParam("X") || op->TypeOf("X") != DType::kFloat32 ||
      op->Has("Shape") || op->Has("ShapeTensor") || shape.empty() ||
      *std::min_element(shape.begin(), shape.end()) < 1)
    return false;
  Array param = *op->Param("X");
  if (NumElements(shape) != param.size()) return false;
  param.shape = shape;
  op->AliasParam("Out", std::move(param));
  return true;
}

// The same with axes of extent 1, as filters of one dimension get one.
bool UnsqueezeParam(BundleOp* op) {
  if (!op->IsParam("X") || op->TypeOf("X") != DType::kFloat32 ||
      op->Has("AxesTensor") || op->Has("AxesTensorList"))
    return false;
  Array param = *op->Param("X");
  for (int64_t axis : op->IntsOf("axes")) {
    const auto rank = static_cast<int64_t>(param.shape.size());
    if (axis < 0) axis += rank + 1;
    if (axis < 0 || axis > rank) return false;
    param.shape.insert(param.shape.begin() + axis, 1);
  }
  op->AliasParam("Out", std::move(param));
  return true;
}

void LowerReshape(BundleOp* op) {
  if (ReshapeParam(op)) return;
  const uint32_t x = op->In("X");
  const uint32_t given = op->IntVector("Shape", "ShapeTensor");
  op->Give("Out", "reshape", {x, given},
           WithMode(static_cast<int64_t>(ReshapeMode::kReshape),
                    op->IntsOf("shape")));
}

void LowerFlatten(BundleOp* op) {
  const uint32_t x = op->In("X");
  if (op->type() == "flatten_contiguous_range")
    return op->Alias(
        "Out", op->Reshape(ReshapeMode::kFlatten, x,
                           {op->Int("start_axis"), op->Int("stop_axis")}));
  // To a matrix: what is before the axis, and the rest.
  const int64_t axis = op->Int("axis");
  const auto rank = static_cast<int64_t>(op->ShapeOf("X").size());
  if (axis < 0 || axis >= rank)
    return op->Refuse(absl::StrCat("attr 'axis' is ", axis));
  uint32_t rows = op->Reshape(ReshapeMode::kUnsqueeze, x, {0});
  // Behind a first dimension of 1, axis `axis` is the one before the rest.
  rows = op->Reshape(ReshapeMode::kFlatten, rows, {0, axis});
  op->Alias("Out", op->Reshape(ReshapeMode::kFlatten, rows, {1, -1}));
}

void LowerSqueeze(BundleOp* op) {
  op->Alias("Out", op->Reshape(ReshapeMode::kSqueeze, op->In("X"),
                               op->IntsOf("axes")));
}

void LowerUnsqueeze(BundleOp* op) {
  if (UnsqueezeParam(op)) return;
  const uint32_t x = op->In("X");
  const uint32_t given = op->IntVector("AxesTensor", "AxesTensorList");
  op->Give("Out", "reshape", {x, given},
           WithMode(static_cast<int64_t>(ReshapeMode::kUnsqueeze),
                    op->IntsOf("axes")));
}

void LowerTranspose(BundleOp* op) {
  op->Give("Out", "transpose", {op->In("X")}, op->IntsOf("axis"));
}

void LowerConcat(BundleOp* op) {
  op->Give("Out", "concat", op->Ins("X"), {op->Int("axis")});
}

void LowerStack(BundleOp* op) {
  BundleOp::Inputs parts;
  for (const uint32_t x : op->Ins("X"))
    parts.push_back(op->Reshape(ReshapeMode::kUnsqueeze, x, {op->Int("axis")}));
  op->Give("Y", "concat", std::move(parts), {op->Int("axis")});
}

void LowerSplit(BundleOp* op) {
  op->GiveAll("Out", "split", {op->In("X")}, [&] {
    BundleOp::Ints ints = {op->Int("axis"), 0};
    for (const int64_t section : op->IntsOf("sections"))
      ints.push_back(section);
    return ints;
  }());
}

void LowerUnbind(BundleOp* op) {
  op->GiveAll(op->type() == "unstack" ? "Y" : "Out", "split", {op->In("X")},
              {op->Int("axis"), 1});
}

void LowerSlice(BundleOp* op) {
  const bool strided = op->type() == "strided_slice";
  const uint32_t x = op->In("Input");
  const BundleOp::Ints axes = op->IntsOf("axes");
  BundleOp::Ints starts = op->IntsOf("starts"), ends = op->IntsOf("ends");
  BundleOp::Ints steps(axes.size(), 1);
  if (strided) steps = op->IntsOf("strides");
  const uint32_t from = op->IntVector("StartsTensor", "StartsTensorList");
  const uint32_t to = op->IntVector("EndsTensor", "EndsTensorList");
  const uint32_t by =
      strided ? op->IntVector("StridesTensor", "StridesTensorList") : kNoValue;
  // Numbers that tensors hold need not stand in the attributes.
  for (const auto& [numbers, given] :
       {std::pair{&starts, from}, {&ends, to}, {&steps, by}})
    if (given != kNoValue) numbers->resize(axes.size(), 1);
  if (starts.size() != axes.size() || ends.size() != axes.size() ||
      steps.size() != axes.size())
    return op->Refuse("its axes, starts and ends differ in number");
  BundleOp::Ints ints;
  for (size_t i = 0; i < axes.size(); ++i)
    ints.insert(ints.end(), {axes[i], starts[i], ends[i], steps[i]});
  const uint32_t part = op->Emit("slice", {x, from, to, by}, std::move(ints));
  const BundleOp::Ints removed = op->IntsOf("decrease_axis");
  if (removed.empty()) return op->Alias("Out", part);
  op->AliasScalar("Out", op->Reshape(ReshapeMode::kSqueeze, part, removed),
                  removed.size() == op->ShapeOf("Input").size());
}

void LowerExpand(BundleOp* op) {
  const bool tile = op->type() == "tile";
  const uint32_t x = op->In("X");
  const uint32_t given =
      tile ? op->IntVector("RepeatTimes", "repeat_times_tensor")
           : op->IntVector("Shape", "expand_shapes_tensor");
  op->Give("Out", "expand", {x, given},
           WithMode(static_cast<int64_t>(tile ? pd_run::ExpandMode::kTile
                                              : pd_run::ExpandMode::kShape),
                    op->IntsOf(tile ? "repeat_times" : "shape")));
}

void LowerExpandAs(BundleOp* op) {
  const uint32_t x = op->In("X");
  const BundleOp::Ints target = op->IntsOf("target_shape");
  const uint32_t like = op->OptionalIn("Y");
  op->Give("Out", "expand", {x, like},
           WithMode(static_cast<int64_t>(pd_run::ExpandMode::kLike),
                    like == kNoValue ? target : BundleOp::Ints{}));
}

void LowerGather(BundleOp* op) {
  const int64_t axis = op->Int(op->type() == "gather" ? "axis" : "dim");
  const uint32_t x = op->In("X");
  uint32_t index = op->In("Index");
  // An index of [n, 1] is one of [n] here.
  if (op->type() == "gather" && op->ShapeOf("Index").size() == 2)
    index = op->Reshape(ReshapeMode::kSqueeze, index, {1});
  op->Give("Out", "gather", {x, index}, {axis, -1});
}

// Channel i of group j becomes channel j of group i.
void LowerShuffle(BundleOp* op) {
  const bool first = op->type() == "shuffle_channel";
  const int64_t groups = op->Int(first ? "group" : "groups");
  const Shape& shape = op->ShapeOf("X");
  const uint32_t x = op->In("X");
  if (!first && op->Str("data_format") != "NCHW")
    op->Refuse("its channels come last");
  if (shape.size() != 4 || shape[1] < 1 || groups < 1 || shape[1] % groups != 0)
    return op->Refuse(absl::StrCat("'X' has shape ", ToString(shape),
                                   "; expected a multiple of ", groups,
                                   " channels"));
  std::vector<int64_t> order;
  for (int64_t c = 0; c < shape[1]; ++c)
    order.push_back(c % groups * (shape[1] / groups) + c / groups);
  op->Give("Out", "gather", {x, op->Constant(MakeArray({shape[1]}, order))},
           {1, -1});
}

void LowerLookup(BundleOp* op) {
  uint32_t ids = op->In("Ids");
  if (op->type() == "lookup_table")
    ids = op->Reshape(ReshapeMode::kSqueeze, ids, {-1});
  const uint32_t table = op->In("W");
  // A negative padding counts rows from the end; -1 is none.
  int64_t padding = op->Int("padding_idx");
  const Shape& shape = op->ShapeOf("W");
  if (padding < -1 && !shape.empty()) padding += shape[0];
  op->Give("Out", "gather", {table, ids}, {0, padding});
}

PadMode ModeOf(BundleOp* op, const std::string& mode) {
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "replicate" || mode == "edge") return PadMode::kEdge;
  if (mode == "circular") return PadMode::kCircular;
  if (mode != "constant")
    op->Refuse(absl::StrCat("attr 'mode' is '", mode, "'"));
  return PadMode::kConstant;
}

// pad says the two paddings of every axis, pad2d and pad3d those of the last
// ones, pad3d the innermost first.
void LowerPad(BundleOp* op) {
  op->ExpectFloat("X");
  const uint32_t x = op->In("X");
  BundleOp::Ints pads = op->IntsOf("paddings");
  PadMode mode = PadMode::kConstant;
  const bool plain = op->type() == "pad", flat = op->type() == "pad2d";
  if (!plain) {
    mode = ModeOf(op, op->Str("mode"));
    const std::string format = op->Str("data_format");
    if (format != (flat ? "NCHW" : "NCDHW"))
      op->Refuse("its channels come last");
    if (pads.size() != (flat ? 4u : 6u))
      return op->Refuse("its paddings stand in a tensor");
    if (!flat) pads = {pads[4], pads[5], pads[2], pads[3], pads[0], pads[1]};
    pads.insert(pads.begin(), 4, 0);
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; }))
    op->Refuse("its paddings are below 0");
  const float value =
      static_cast<float>(op->Float(plain || flat ? "pad_value" : "value"));
  op->Give("Out", "pad", {x}, WithMode(static_cast<int64_t>(mode), pads),
           {value});
}

void LowerRange(BundleOp* op) {
  op->Give("Out", "range", {op->In("Start"), op->In("End"), op->In("Step")});
}

void LowerShapeOf(BundleOp* op) { op->Give("Out", "shape", {op->In("Input")}); }

// The numbers of pd_run::FillInts, then the value as a float.
void GiveFill(BundleOp* op, BundleOp::Inputs inputs, pd_run::FillMode mode,
              double value, const BundleOp::Ints& dims, int64_t from = 0,
              int64_t to = 0) {
  const auto type = BundleType(op->OutType("Out"));
  op->Fail(type.status());
  if (!type.ok()) return;
  const bool whole = value > -9e18 && value < 9e18;
  if (*type != pd_run::DType::kFloat32 && !whole)
    op->Refuse("its value is no integer");
  BundleOp::Ints ints = {static_cast<int64_t>(*type),
                         static_cast<int64_t>(mode),
                         whole ? static_cast<int64_t>(value) : 0, from, to};
  ints.insert(ints.end(), dims.begin(), dims.end());
  op->Give("Out", "fill", std::move(inputs), std::move(ints),
           {static_cast<float>(value)});
}

// "str_value" holds more digits than the float, and names that this has not.
double FillValue(BundleOp* op) {
  const std::string text = op->desc().AttrOr<std::string>("str_value", "");
  double value = op->Float("value");
  if (!text.empty() && !absl::SimpleAtod(text, &value))
    op->Refuse(absl::StrCat("its value is '", text, "'"));
  return value;
}

void LowerFillConstant(BundleOp* op) {
  const uint32_t shape = op->IntVector("ShapeTensor", "ShapeTensorList");
  GiveFill(op, {kNoValue, shape}, pd_run::FillMode::kShape, FillValue(op),
           shape == kNoValue ? op->IntsOf("shape") : BundleOp::Ints{});
}

void LowerFillLike(BundleOp* op) {
  const double value = op->type() == "fill_any_like" ? op->Float("value") : 0.0;
  GiveFill(op, {op->In("X")}, pd_run::FillMode::kLike, value, {});
}

void LowerFillBatch(BundleOp* op) {
  GiveFill(op, {op->In("Input")}, pd_run::FillMode::kBatch, FillValue(op),
           op->IntsOf("shape"), op->Int("input_dim_idx"),
           op->Int("output_dim_idx"));
}

void LowerAssignValue(BundleOp* op) {
  const BundleOp::Ints dims = op->IntsOf("shape");
  const auto give = [&](auto values) {
    if (NumElements(dims) != static_cast<int64_t>(values.size()))
      return op->Refuse("its values do not fill its shape");
    op->Alias("Out", op->Constant(MakeArray(dims, values)));
  };
  const DType dtype = op->OutType("Out");
  if (dtype == DType::kFloat32)
    give(op->desc().AttrOr<std::vector<float>>("fp32_values", {}));
  else if (dtype == DType::kInt32)
    give(op->desc().AttrOr<std::vector<int32_t>>("int32_values", {}));
  else if (dtype == DType::kInt64)
    give(op->desc().AttrOr<std::vector<int64_t>>("int64_values", {}));
  else
    op->Refuse(absl::StrCat("its values are ", Name(dtype)));
}

}  // namespace

Lowerings ShapeLowerings() {
  return {
      {"assign_value", LowerAssignValue},
      {"channel_shuffle", LowerShuffle},
      {"concat", LowerConcat},
      {"expand_as_v2", LowerExpandAs},
      {"expand_v2", LowerExpand},
      {"fill_any_like", LowerFillLike},
      {"fill_constant", LowerFillConstant},
      {"fill_constant_batch_size_like", LowerFillBatch},
      {"fill_zeros_like", LowerFillLike},
      {"flatten2", LowerFlatten},
      {"flatten_contiguous_range", LowerFlatten},
      {"gather", LowerGather},
      {"index_select", LowerGather},
      {"lookup_table", LowerLookup},
      {"lookup_table_v2", LowerLookup},
      {"pad", LowerPad},
      {"pad2d", LowerPad},
      {"pad3d", LowerPad},
      {"range", LowerRange},
      {"reshape", LowerReshape},
      {"reshape2", LowerReshape},
      {"shape", LowerShapeOf},
      {"shuffle_channel", LowerShuffle},
      {"slice", LowerSlice},
      {"split", LowerSplit},
      {"squeeze2", LowerSqueeze},
      {"stack", LowerStack},
      {"strided_slice", LowerSlice},
      {"tile", LowerExpand},
      {"transpose2", LowerTranspose},
      {"unbind", LowerUnbind},
      {"unsqueeze2", LowerUnsqueeze},
      {"unstack", LowerUnbind},
  };
}

}  // namespace pd
