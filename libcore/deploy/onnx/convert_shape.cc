// SPDX-License-Identifier: Apache-2.0
// Ops that move elements without changing them.
#include <algorithm>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

int64_t AxisOf(OnnxOp* op, const char* attr, int64_t rank) {
  const int64_t axis = op->Int(attr);
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  op->Fail(
      InvalidArgument("attr '%s' is %d; X has rank %d, so it must be in "
                      "[%d, %d]",
                      attr, axis, rank, -rank, rank - 1));
  return 0;
}

void ConvertReshape(OnnxOp* op) {
  const std::string shape = op->RequestedShape("Shape");
  op->Give("Out", "Reshape", {op->In("X"), shape});
}

// The dimensions [start, stop] become one.
void ConvertFlattenRange(OnnxOp* op) {
  const Shape& x = op->ShapeOf("X");
  const auto rank = static_cast<int64_t>(x.size());
  if (rank == 0) {
    op->Alias("Out", op->Reshape(op->In("X"), {1}));
    return;
  }
  const int64_t start = AxisOf(op, "start_axis", rank);
  const int64_t stop = AxisOf(op, "stop_axis", rank);
  const std::string in = op->In("X");
  if (start == 1 && stop == rank - 1) {
    op->Give("Out", "Flatten", {in}, {{"axis", int64_t{1}}});
    return;
  }
  std::vector<int64_t> shape(static_cast<size_t>(start), 0);  // 0: as it is
  shape.push_back(-1);
  const Shape after(x.begin() + stop + 1, x.end());
  if (!IsDynamic(after)) {
    shape.insert(shape.end(), after.begin(), after.end());
    op->Give("Out", "Reshape", {in, op->ConstInts(shape)});
    return;
  }
  const std::string extents = op->Emit("Shape", {in});
  const std::string tail = op->Slice(extents, {0}, {stop + 1}, {rank});
  op->Give("Out", "Reshape",
           {in, op->Emit("Concat", {op->ConstInts(shape), tail},
                         {{"axis", int64_t{0}}})});
}

void ConvertFlatten(OnnxOp* op) {
  op->Give("Out", "Flatten", {op->In("X")}, {{"axis", op->Int("axis")}});
}

void ConvertTranspose(OnnxOp* op) {
  op->Give("Out", "Transpose", {op->In("X")}, {{"perm", op->Ints("axis")}});
}

void ConvertSqueeze(OnnxOp* op) {
  const Shape& x = op->ShapeOf("X");
  const auto rank = static_cast<int64_t>(x.size());
  std::vector<int64_t> axes = op->Ints("axes");
  if (axes.empty()) {
    axes.resize(x.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  // Axes of another extent than 1 stay.
  std::vector<int64_t> ones;
  for (int64_t axis : axes) {
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank && x[static_cast<size_t>(axis)] == 1)
      ones.push_back(axis);
  }
  op->Alias("Out", op->Squeeze(op->In("X"), ones));
}

void ConvertUnsqueeze(OnnxOp* op) {
  // PaddlePaddle inserts one after the other; ONNX all at once, counting in
  // the result.
  std::vector<bool> inserted(static_cast<size_t>(op->Rank("X")), false);
  for (int64_t axis : op->Ints("axes")) {
    const auto rank = static_cast<int64_t>(inserted.size());
    if (axis < 0) axis += rank + 1;
    if (axis < 0 || axis > rank) {
      op->Fail(
          InvalidArgument("attr 'axes' holds %d for a rank of %d", axis, rank));
      return;
    }
    inserted.insert(inserted.begin() + axis, true);
  }
  std::vector<int64_t> axes;
  for (size_t i = 0; i < inserted.size(); ++i)
    if (inserted[i]) axes.push_back(static_cast<int64_t>(i));
  op->Alias("Out", op->Unsqueeze(op->In("X"), axes));
}

void ConvertConcat(OnnxOp* op) {
  op->Give("Out", "Concat", op->Ins("X"),
           {{"axis", AxisOf(op, "axis", op->Rank("X"))}});
}

void ConvertStack(OnnxOp* op) {
  const int64_t axis = AxisOf(op, "axis", op->Rank("X") + 1);
  OnnxValues parts;
  for (const std::string& x : op->Ins("X"))
    parts.push_back(op->Unsqueeze(x, {axis}));
  op->Give("Y", "Concat", parts, {{"axis", axis}});
}

void ConvertUnstack(OnnxOp* op) {
  const int64_t axis = AxisOf(op, "axis", op->Rank("X"));
  const std::string x = op->In("X");
  const OnnxValues parts = op->NewOuts(op->type() == "unbind" ? "Out" : "Y");
  // A scalar place takes its axis away.
  for (size_t i = 0; i < parts.size(); ++i)
    op->EmitTo({parts[i]}, "Gather", {x, op->ConstInt(static_cast<int64_t>(i))},
               {{"axis", axis}});
}

void ConvertSplit(OnnxOp* op) {
  const Shape& x = op->ShapeOf("X");
  const int64_t axis = AxisOf(op, "axis", op->Rank("X"));
  const std::string in = op->In("X");
  std::vector<int64_t> sections = op->Ints("sections");
  const int64_t extent = x.empty() ? -1 : x[static_cast<size_t>(axis)];
  const auto rest = std::find(sections.begin(), sections.end(), -1);
  if (rest != sections.end()) {
    if (extent < 0) {
      op->Fail(
          Unimplemented("attr 'sections' holds -1 and X has shape %s; the "
                        "extent of the axis must be known",
                        ToString(x)));
      return;
    }
    *rest = 0;
    *rest =
        extent - std::accumulate(sections.begin(), sections.end(), int64_t{0});
  }
  OnnxValues inputs = {in};
  OnnxAttrs attrs = {{"axis", axis}};
  if (!sections.empty()) {
    if (op->opset() >= 13)
      inputs.push_back(op->ConstInts(sections));
    else
      attrs.emplace_back("split", sections);
  }
  op->EmitTo(op->NewOuts("Out"), "Split", inputs, attrs);
}

// Drops the axes that slice and its kin leave with one element; a result
// without any other keeps one where the program says [1].
std::string Decreased(OnnxOp* op, const std::string& x, const char* in) {
  auto axes = op->Ints("decrease_axis");
  if (!axes.empty() && static_cast<int64_t>(axes.size()) == op->Rank(in) &&
      op->OutVar("Out").shape.size() == 1)
    axes.pop_back();
  return op->Squeeze(x, axes);
}

void ConvertSlice(OnnxOp* op) {
  const auto axes = op->Ints("axes");
  const std::string x = op->In("Input");
  if (!op->Has("StartsTensor") && !op->Has("EndsTensor") &&
      !op->Has("StartsTensorList") && !op->Has("EndsTensorList")) {
    op->Alias(
        "Out",
        Decreased(op, op->Slice(x, axes, op->Ints("starts"), op->Ints("ends")),
                  "Input"));
    return;
  }
  const auto bound = [&](const char* tensor, const char* list,
                         const char* attr) {
    if (op->Has(list)) return op->IntVector(list);
    return op->Has(tensor) ? op->IntVector(tensor)
                           : op->ConstInts(op->Ints(attr));
  };
  if (op->opset() < 10) {
    op->Fail(Unimplemented("bounds that are tensors"));
    return;
  }
  const std::string y =
      op->Emit("Slice", {x, bound("StartsTensor", "StartsTensorList", "starts"),
                         bound("EndsTensor", "EndsTensorList", "ends"),
                         op->ConstInts(axes)});
  op->Alias("Out", Decreased(op, y, "Input"));
}

void ConvertStridedSlice(OnnxOp* op) {
  if (op->opset() < 10) {
    op->Fail(Unimplemented("strides"));
    return;
  }
  auto ends = op->Ints("ends");
  const auto strides = op->Ints("strides"), axes = op->Ints("axes");
  const Shape& x = op->ShapeOf("Input");
  for (size_t i = 0; i < ends.size() && i < strides.size(); ++i) {
    if (strides[i] >= 0 || ends[i] >= 0) continue;
    const auto axis = i < axes.size() ? static_cast<size_t>(axes[i]) : x.size();
    const int64_t extent = axis < x.size() ? x[axis] : -1;
    if (ends[i] == -1)  // before the first element, not the last
      ends[i] = std::numeric_limits<int32_t>::min();
    else if (extent >= 0 && ends[i] + extent < 0)  // the first one is left out
      ends[i] = 0;
  }
  const std::string y =
      op->Emit("Slice", {op->In("Input"), op->ConstInts(op->Ints("starts")),
                         op->ConstInts(ends), op->ConstInts(axes),
                         op->ConstInts(strides)});
  op->Alias("Out", Decreased(op, y, "Input"));
}

// From the last element to the first along some axes.
void ConvertFlip(OnnxOp* op) {
  const int64_t rank = op->Rank("X");
  std::vector<int64_t> axes;
  for (int64_t axis : op->Ints("axis")) {
    if (axis < 0) axis += rank;
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      axes.push_back(axis);
  }
  if (rank == 0 || axes.empty()) {
    op->Alias("Out", op->In("X"));
    return;
  }
  if (op->opset() < 10) {
    op->Fail(Unimplemented("strides"));
    return;
  }
  const std::vector<int64_t> back(axes.size(), -1);
  const std::vector<int64_t> before(axes.size(),
                                    std::numeric_limits<int32_t>::min());
  op->Give("Out", "Slice",
           {op->In("X"), op->ConstInts(back), op->ConstInts(before),
            op->ConstInts(axes), op->ConstInts(back)});
}

// x with element i of an axis at i + shift (an int64 vector of one element),
// around the end.
std::string Rolled(OnnxOp* op, const std::string& x, int64_t axis,
                   const std::string& shift) {
  const std::string extent =
      op->Slice(op->Emit("Shape", {x}), {0}, {axis}, {axis + 1});
  const std::string places =
      op->Emit("Range", {op->ConstInt(0), op->Scalar(extent), op->ConstInt(1)});
  const std::string from =
      op->Emit("Mod", {op->Emit("Sub", {places, shift}), extent});
  return op->Emit("Gather", {x, from}, {{"axis", axis}});
}

void ConvertRoll(OnnxOp* op) {
  if (op->opset() < 11) {
    op->Fail(Unimplemented("ONNX has Range since opset 11"));
    return;
  }
  const std::string in = op->In("X");
  std::vector<int64_t> axes = op->Ints("axis");
  const std::vector<int64_t> shifts = op->Ints("shifts");
  const bool flat = axes.empty();
  if (flat) axes = {0};
  const std::string tensor =
      op->Has("ShiftsTensor") ? op->IntVector("ShiftsTensor") : "";
  if (tensor.empty() && shifts.size() != axes.size()) {
    op->Fail(
        InvalidArgument("%d shifts for %d axes", shifts.size(), axes.size()));
    return;
  }
  if (op->Rank("X") == 0) {
    op->Alias("Out", in);
    return;
  }
  std::string y = flat ? op->Reshape(in, {-1}) : in;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    y = Rolled(op, y, axes[i] < 0 ? axes[i] + op->Rank("X") : axes[i],
               tensor.empty() ? op->ConstInts({shifts[i]})
                              : op->Slice(tensor, {0}, {at}, {at + 1}));
  }
  if (flat) y = op->Emit("Reshape", {y, op->Emit("Shape", {in})});
  op->Alias("Out", y);
}

void ConvertExpandAs(OnnxOp* op) {
  const std::string x = op->In("X");
  const std::string shape = op->Has("Y")
                                ? op->Emit("Shape", {op->In("Y")})
                                : op->ConstInts(op->Ints("target_shape"));
  op->Give("Out", "Expand", {x, shape});
}

void ConvertMeshgrid(OnnxOp* op) {
  const OnnxValues x = op->Ins("X"), out = op->NewOuts("Out");
  OnnxValues extents;
  for (const std::string& one : x)
    extents.push_back(op->Emit("Shape", {op->Reshape(one, {-1})}));
  const std::string shape = op->Emit("Concat", extents, {{"axis", int64_t{0}}});
  for (size_t i = 0; i < x.size() && i < out.size(); ++i) {
    std::vector<int64_t> along(x.size(), 1);
    along[i] = -1;
    op->EmitTo({out[i]}, "Expand", {op->Reshape(x[i], along), shape});
  }
}

// ONNX's Expand broadcasts both ways.
void ConvertBroadcastTensors(OnnxOp* op) {
  const OnnxValues x = op->Ins("X"), out = op->NewOuts("Out");
  std::string widest = x.empty() ? std::string() : x[0];
  for (size_t i = 1; i < x.size(); ++i)
    widest = op->Emit("Expand", {widest, op->Emit("Shape", {x[i]})});
  const std::string shape = op->Emit("Shape", {widest});
  for (size_t i = 0; i < x.size() && i < out.size(); ++i)
    op->EmitTo({out[i]}, "Expand", {x[i], shape});
}

void ConvertExpand(OnnxOp* op) {
  std::string shape;
  if (op->Has("expand_shapes_tensor")) {
    shape = op->IntVector("expand_shapes_tensor");
  } else if (op->Has("Shape")) {
    shape = op->IntVector("Shape");
  } else {
    auto extents = op->Ints("shape");
    // -1 keeps the extent, as 1 does in ONNX.
    std::replace(extents.begin(), extents.end(), int64_t{-1}, int64_t{1});
    shape = op->ConstInts(extents);
  }
  op->Give("Out", "Expand", {op->In("X"), shape});
}

void ConvertTile(OnnxOp* op) {
  auto repeats = op->Ints("repeat_times");
  std::string x = op->In("X");
  const auto rank = static_cast<size_t>(op->Rank("X"));
  while (repeats.size() < rank) repeats.insert(repeats.begin(), 1);
  std::vector<int64_t> leading(repeats.size() - rank);
  std::iota(leading.begin(), leading.end(), 0);
  op->Give("Out", "Tile", {op->Unsqueeze(x, leading), op->ConstInts(repeats)});
}

void ConvertAssign(OnnxOp* op) { op->Alias("Out", op->In("X")); }

void ConvertShape(OnnxOp* op) {
  const std::string shape = op->Emit("Shape", {op->In("Input")});
  op->Alias("Out", op->OutVar("Out").dtype == DType::kInt64
                       ? shape
                       : op->Cast(shape, DType::kInt32));
}

// [N, C, H, W]: zeros, a value, mirrored or repeated borders.
void ConvertPad(OnnxOp* op) {
  const auto pads = op->Ints(op->HasAttr("paddings") ? "paddings" : "padding");
  const auto rank = static_cast<size_t>(op->Rank("X"));
  // pad lists (begin, end) from the first axis on; pad2d and pad3d list the
  // spatial axes, pad3d from the last one.
  std::vector<int64_t> begins(rank, 0), ends(rank, 0);
  const bool spatial = op->type() != "pad";
  const std::string format = spatial ? op->Str("data_format") : "NCHW";
  if (pads.size() != (spatial ? 2 * (rank - 2) : 2 * rank) ||
      format.substr(0, 2) != "NC") {
    op->Fail(Unimplemented("%d paddings in layout '%s' for X of rank %d",
                           pads.size(), format, rank));
    return;
  }
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const size_t axis = op->type() == "pad3d" ? rank - 1 - i
                        : spatial             ? 2 + i
                                              : i;
    begins[axis] = pads[2 * i];
    ends[axis] = pads[2 * i + 1];
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  std::string mode = spatial ? op->Str("mode") : "constant";
  if (mode == "circular") {
    op->Fail(
        Unimplemented("attr 'mode' is 'circular', which ONNX has from "
                      "opset 19 on"));
    return;
  }
  if (mode == "replicate") mode = "edge";
  const double value = op->Float(op->HasAttr("value") ? "value" : "pad_value");
  op->Alias("Out", op->Pad(op->In("X"), begins, mode, value, op->TypeOf("X")));
}

}  // namespace

OnnxConverters ShapeConverters() {
  return {
      {"broadcast_tensors", ConvertBroadcastTensors},
      {"assign", ConvertAssign},
      {"share_data", ConvertAssign},
      {"concat", ConvertConcat},
      {"expand_as_v2", ConvertExpandAs},
      {"expand_v2", ConvertExpand},
      {"flatten2", ConvertFlatten},
      {"flatten_contiguous_range", ConvertFlattenRange},
      {"flip", ConvertFlip},
      {"meshgrid", ConvertMeshgrid},
      {"pad", ConvertPad},
      {"pad2d", ConvertPad},
      {"pad3d", ConvertPad},
      {"reshape2", ConvertReshape},
      {"reverse", ConvertFlip},
      {"roll", ConvertRoll},
      {"shape", ConvertShape},
      {"slice", ConvertSlice},
      {"split", ConvertSplit},
      {"squeeze2", ConvertSqueeze},
      {"stack", ConvertStack},
      {"strided_slice", ConvertStridedSlice},
      {"tile", ConvertTile},
      {"transpose2", ConvertTranspose},
      {"unbind", ConvertUnstack},
      {"unsqueeze2", ConvertUnsqueeze},
      {"unstack", ConvertUnstack},
  };
}

}  // namespace pd
