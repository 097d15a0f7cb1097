// SPDX-License-Identifier: Apache-2.0
// ATen's operators that move, pick, join or make elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/torch_import/call.h"

namespace pd {
namespace {

using Ints = TorchCall::Ints;

void ImportReshape(TorchCall* call) {
  call->Give(call->Reshape(call->Tensor("self")));
}

void ImportPermute(TorchCall* call) {
  Ints perm = call->IntList("dims");
  for (int64_t& axis : perm) axis = call->Axis(axis, call->Rank("self"));
  call->Give(call->Transpose(call->Tensor("self"), perm));
}

void ImportTranspose(TorchCall* call) {
  const int64_t rank = call->Rank("self");
  Ints perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), int64_t{0});
  const int64_t a = call->Axis(call->Int("dim0", 0), rank);
  const int64_t b = call->Axis(call->Int("dim1", 1), rank);
  if (!call->ok() || rank < 2) return call->Give(call->Tensor("self"));
  std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  call->Give(call->Transpose(call->Tensor("self"), perm));
}

void ImportSelect(TorchCall* call) {
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  const std::string index =
      call->Scalar(static_cast<double>(call->Int("index", 0)), DType::kInt64);
  call->Give(call->Emit("Gather", {call->Tensor("self"), index},
                        {{"axis", OnnxInt(axis)}}));
}

std::string SliceOf(TorchCall* call, const std::string& x, int64_t axis,
                    int64_t start, int64_t end, int64_t step = 1) {
  return call->Emit("Slice",
                    {x, call->ConstInts({start}), call->ConstInts({end}),
                     call->ConstInts({axis}), call->ConstInts({step})});
}

void ImportSlice(TorchCall* call) {
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  call->Give(SliceOf(call, call->Tensor("self"), axis, call->Int("start", 0),
                     call->Int("end", std::numeric_limits<int64_t>::max()),
                     call->Int("step", 1)));
}

// The tensor with a slice of it replaced.
void ImportSliceScatter(TorchCall* call) {
  const std::string x = call->Tensor("self");
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  const int64_t extent = call->Extent("self", axis);
  if (call->Int("step", 1) != 1) call->Fail(Unimplemented("a step"));
  const auto place = [&](const char* name, int64_t otherwise) {
    const int64_t at = call->Int(name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  const int64_t start = place("start", 0);
  const int64_t end = std::max(start, place("end", extent));
  TorchCall::Names parts;
  if (start > 0) parts.push_back(SliceOf(call, x, axis, 0, start));
  if (end > start) parts.push_back(call->Tensor("src"));
  if (end < extent) parts.push_back(SliceOf(call, x, axis, end, extent));
  call->Give(parts.size() == 1
                 ? parts[0]
                 : call->Emit("Concat", parts, {{"axis", OnnxInt(axis)}}));
}

void ImportSelectScatter(TorchCall* call) {
  const std::string x = call->Tensor("self");
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  const int64_t extent = call->Extent("self", axis);
  int64_t index = call->Int("index", 0);
  if (index < 0) index += extent;
  if (call->ok() && (index < 0 || index >= extent))
    call->Fail(InvalidArgument("index %d of an axis of %d", index, extent));
  if (!call->ok()) return;
  TorchCall::Names parts;
  if (index > 0) parts.push_back(SliceOf(call, x, axis, 0, index));
  parts.push_back(
      call->Emit("Unsqueeze", {call->Tensor("src"), call->ConstInts({axis})}));
  if (index + 1 < extent)
    parts.push_back(SliceOf(call, x, axis, index + 1, extent));
  call->Give(call->Emit("Concat", parts, {{"axis", OnnxInt(axis)}}));
}

// `src` in the shape and the dtype of what it is written over.
void ImportCopy(TorchCall* call) {
  if (IsDynamic(call->OutShape()))
    call->Fail(
        Unimplemented("a copy into shape %s", ToString(call->OutShape())));
  std::string src = call->Tensor("src");
  if (call->TypeOf("src") != call->OutType())
    src = call->Cast(src, call->OutType());
  call->Give(call->Emit("Expand", {src, call->ConstInts(call->OutShape())}));
}

// The elements as they lie in memory, where all are taken in their order.
void ImportAsStrided(TorchCall* call) {
  const Shape &from = call->ShapeOf("self"), &to = call->OutShape();
  const Ints strides = call->IntList("stride");
  int64_t step = 1;
  bool plain =
      !IsDynamic(from) && !IsDynamic(to) && CheckedBytes(from, 8).ok() &&
      CheckedBytes(to, 8).ok() && NumElements(from) == NumElements(to) &&
      strides.size() == to.size() && call->Int("storage_offset", 0) == 0;
  for (size_t i = to.size(); plain && i-- > 0; step *= to[i])
    plain = to[i] == 1 || strides[i] == step;
  if (!plain)
    call->Fail(Unimplemented("strides %s of shape %s", ToString(strides),
                             ToString(to)));
  call->Give(call->Reshape(call->Tensor("self")));
}

void ImportCat(TorchCall* call) {
  const TorchCall::Names xs = call->Tensors("tensors");
  const int64_t axis = call->Axis(
      call->Int("dim", 0), static_cast<int64_t>(call->OutShape().size()));
  if (call->ok() && xs.empty()) call->Fail(InvalidArgument("no tensors"));
  call->Give(call->Emit("Concat", xs, {{"axis", OnnxInt(axis)}}));
}

void ImportStack(TorchCall* call) {
  TorchCall::Names xs = call->Tensors("tensors");
  const int64_t axis = call->Axis(
      call->Int("dim", 0), static_cast<int64_t>(call->OutShape().size()));
  const std::string axes = call->ConstInts({axis});
  for (std::string& x : xs) x = call->Emit("Unsqueeze", {x, axes});
  call->Give(call->Emit("Concat", xs, {{"axis", OnnxInt(axis)}}));
}

// chunk, split, split_with_sizes: parts as long as the file says.
void ImportSplit(TorchCall* call) {
  const std::string x = call->Tensor("self");
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  int64_t start = 0;
  for (size_t i = 0; i < call->outputs().size(); ++i) {
    const Shape& shape = call->OutShape(i);
    if (!call->ok()) return;
    const int64_t extent = static_cast<size_t>(axis) < shape.size()
                               ? shape[static_cast<size_t>(axis)]
                               : -1;
    if (extent < 0 || start > kMaxMade)
      return call->Fail(Unimplemented("a part of shape %s", ToString(shape)));
    call->Give(SliceOf(call, x, axis, start, start + extent), i);
    start += extent;
  }
}

void ImportUnbind(TorchCall* call) {
  const std::string x = call->Tensor("self");
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  for (size_t i = 0; i < call->outputs().size(); ++i)
    call->Give(
        call->Emit("Gather",
                   {x, call->Scalar(static_cast<double>(i), DType::kInt64)},
                   {{"axis", OnnxInt(axis)}}),
        i);
}

// A symbol is an extent that stays.
void ImportExpand(TorchCall* call) {
  Shape shape = call->OutShape();
  const Shape& from = call->ShapeOf("self");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    const size_t more = shape.size() - std::min(shape.size(), from.size());
    if (i < more || from[i - more] >= 0)
      call->Fail(
          Unimplemented("axis %d is repeated as often as the batch is "
                        "large; a fixed one settles it",
                        i));
    shape[i] = 1;
  }
  call->Give(
      call->Emit("Expand", {call->Tensor("self"), call->ConstInts(shape)}));
}

void ImportRepeat(TorchCall* call) {
  std::string x = call->Tensor("self");
  const Ints repeats = call->IntList("repeats");
  const auto more = static_cast<int64_t>(repeats.size()) - call->Rank("self");
  if (call->ok() && more > 0) {
    Ints axes(static_cast<size_t>(more));
    std::iota(axes.begin(), axes.end(), int64_t{0});
    x = call->Emit("Unsqueeze", {x, call->ConstInts(axes)});
  }
  call->Give(call->Emit("Tile", {x, call->ConstInts(repeats)}));
}

// Pads are listed from the last axis on: before, behind.
void ImportPad(TorchCall* call) {
  const Ints pad = call->IntList("pad");
  const int64_t rank = call->Rank("self");
  const std::string mode = call->Text("mode", "constant");
  if (call->ok() &&
      (pad.size() % 2 != 0 || static_cast<int64_t>(pad.size()) > 2 * rank))
    call->Fail(InvalidArgument("pad is %s for %d axes", ToString(pad), rank));
  if (!call->ok()) return;
  Ints pads(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t axis = static_cast<size_t>(rank) - 1 - i;
    pads[axis] = pad[2 * i];
    pads[axis + static_cast<size_t>(rank)] = pad[2 * i + 1];
  }
  const char* onnx = mode == "replicate"  ? "edge"
                     : mode == "reflect"  ? "reflect"
                     : mode == "circular" ? "wrap"
                                          : "constant";
  call->Give(
      call->Emit("Pad",
                 {call->Tensor("self"), call->ConstInts(pads),
                  call->Scalar(call->Number("value", 0), call->TypeOf("self"))},
                 {{"mode", OnnxText(onnx)}}));
}

void ImportGather(TorchCall* call) {
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  call->Give(call->Emit(call->onnx_type(),
                        {call->Tensor("self"), call->Tensor("index")},
                        {{"axis", OnnxInt(axis)}}));
}

void ImportCumsum(TorchCall* call) {
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  std::string x = call->Tensor("self");
  if (call->TypeOf("self") != call->OutType())
    x = call->Cast(x, call->OutType());
  call->Give(call->Emit(
      "CumSum", {x, call->Scalar(static_cast<double>(axis), DType::kInt64)}));
}

void ImportArg(TorchCall* call) {
  std::string x = call->Tensor("self");
  if (!call->Has("dim")) {
    const std::string flat = call->Emit("Reshape", {x, call->ConstInts({-1})});
    return call->Give(
        call->Emit(call->onnx_type(), {flat},
                   {{"axis", OnnxInt(0)}, {"keepdims", OnnxInt(0)}}));
  }
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  call->Give(call->Emit(call->onnx_type(), {x},
                        {{"axis", OnnxInt(axis)},
                         {"keepdims", OnnxInt(call->Int("keepdim", 0))}}));
}

// The extreme along an axis and its place.
void ImportExtreme(TorchCall* call) {
  const bool largest = std::string(call->onnx_type()) == "ReduceMax";
  const int64_t axis = call->Axis(call->Int("dim", 0), call->Rank("self"));
  const std::string x = call->Tensor("self");
  const int64_t keep = call->Int("keepdim", 0);
  call->Give(call->Emit(call->onnx_type(), {x, call->ConstInts({axis})},
                        {{"keepdims", OnnxInt(keep)}}));
  if (call->outputs().size() > 1)
    call->Give(
        call->Emit(largest ? "ArgMax" : "ArgMin", {x},
                   {{"axis", OnnxInt(axis)}, {"keepdims", OnnxInt(keep)}}),
        1);
}

void ImportTopK(TorchCall* call) {
  const int64_t axis = call->Axis(call->Int("dim", -1), call->Rank("self"));
  const auto out = call->EmitMany(
      "TopK", {call->Tensor("self"), call->ConstInts({call->Int("k", 1)})}, 2,
      {{"axis", OnnxInt(axis)},
       {"largest", OnnxInt(call->Int("largest", 1))},
       {"sorted", OnnxInt(call->Int("sorted", 1))}});
  call->Give(out[0]);
  call->Give(out[1], 1);
}

// Checks that a tensor of the output's shape may be made now.
bool MayMake(TorchCall* call) {
  const Shape& shape = call->OutShape();
  if (call->ok() && (IsDynamic(shape) || !CheckedBytes(shape, 8).ok() ||
                     NumElements(shape) > kMaxMade))
    call->Fail(Unimplemented("a tensor of shape %s", ToString(shape)));
  return call->ok();
}

void ImportFull(TorchCall* call) {
  if (!MayMake(call)) return;
  const std::string kind = call->onnx_type();
  double value = kind == "ones" ? 1 : 0;
  for (const char* name : {"fill_value", "s", "value"})
    if (kind.empty()) value = call->Number(name, value);
  call->Give(call->Emit("Expand", {call->Scalar(value, call->OutType()),
                                   call->ConstInts(call->OutShape())}));
}

void ImportArange(TorchCall* call) {
  if (!MayMake(call)) return;
  const double start = call->Number("start", 0), step = call->Number("step", 1);
  const int64_t count = NumElements(call->OutShape());
  std::vector<double> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = start + step * static_cast<double>(i);
  call->Give(
      call->Cast(call->Constant(MakeArray({count}, numbers)), call->OutType()));
}

// x[i, j, ...] with a list of tensors: those of the first axes, of one
// dimension each or scalars.
void ImportIndex(TorchCall* call) {
  const TorchCall::Names indices = call->Tensors("indices");
  if (indices.size() != 1)
    call->Fail(Unimplemented("%d tensors as indices", indices.size()));
  if (!call->ok()) return;
  call->Give(call->Emit("Gather", {call->Tensor("self"), indices[0]},
                        {{"axis", OnnxInt(0)}}));
}

void ImportTril(TorchCall* call) {
  const std::string k = call->Scalar(
      static_cast<double>(call->Int("diagonal", 0)), DType::kInt64);
  const bool upper = std::string(call->onnx_type()) == "upper";
  call->Give(call->Emit("Trilu", {call->Tensor("self"), k},
                        {{"upper", OnnxInt(upper ? 1 : 0)}}));
}

// Elements that leave an axis at its end come back at its beginning.
void ImportRoll(TorchCall* call) {
  std::string x = call->Tensor("self");
  const Ints dims = call->IntList("dims"), shifts = call->IntList("shifts");
  if (call->ok() && (dims.empty() || dims.size() != shifts.size()))
    call->Fail(Unimplemented("shifts %s over axes %s", ToString(shifts),
                             ToString(dims)));
  for (size_t i = 0; i < dims.size() && call->ok(); ++i) {
    const int64_t axis = call->Axis(dims[i], call->Rank("self"));
    const int64_t extent = call->Extent("self", axis);
    if (!call->ok() || extent == 0) break;
    const int64_t cut =
        ((extent - shifts[i] % extent) % extent + extent) % extent;
    x = call->Emit(
        "Concat",
        {SliceOf(call, x, axis, cut, extent), SliceOf(call, x, axis, 0, cut)},
        {{"axis", OnnxInt(axis)}});
  }
  call->Give(x);
}

void ImportFlip(TorchCall* call) {
  std::string x = call->Tensor("self");
  for (const int64_t dim : call->IntList("dims"))
    x = SliceOf(call, x, call->Axis(dim, call->Rank("self")), -1,
                std::numeric_limits<int64_t>::min(), -1);
  call->Give(x);
}

}  // namespace

TorchImportEntries TorchShapeImports() {
  return {
      {"_unsafe_view.default", ImportReshape},
      {"arange.default", ImportArange},
      {"arange.start", ImportArange},
      {"arange.start_step", ImportArange},
      {"argmax.default", ImportArg, "ArgMax"},
      {"argmin.default", ImportArg, "ArgMin"},
      {"as_strided.default", ImportAsStrided},
      {"cat.default", ImportCat},
      {"chunk.default", ImportSplit},
      {"constant_pad_nd.default", ImportPad},
      {"copy.default", ImportCopy},
      {"cumsum.default", ImportCumsum},
      {"expand.default", ImportExpand},
      {"expand_as.default", ImportExpand},
      {"flatten.using_ints", ImportReshape},
      {"flip.default", ImportFlip},
      {"full.default", ImportFull},
      {"fill.Scalar", ImportFull},
      {"full_like.default", ImportFull},
      {"gather.default", ImportGather, "GatherElements"},
      {"index.Tensor", ImportIndex},
      {"index_select.default", ImportGather, "Gather"},
      {"max.dim", ImportExtreme, "ReduceMax"},
      {"min.dim", ImportExtreme, "ReduceMin"},
      {"new_ones.default", ImportFull, "ones"},
      {"new_zeros.default", ImportFull, "zeros"},
      {"ones.default", ImportFull, "ones"},
      {"ones_like.default", ImportFull, "ones"},
      {"pad.default", ImportPad},
      {"permute.default", ImportPermute},
      {"repeat.default", ImportRepeat},
      {"reshape.default", ImportReshape},
      {"roll.default", ImportRoll},
      {"scalar_tensor.default", ImportFull},
      {"select.int", ImportSelect},
      {"select_scatter.default", ImportSelectScatter},
      {"slice.Tensor", ImportSlice},
      {"slice_scatter.default", ImportSliceScatter},
      {"split.Tensor", ImportSplit},
      {"split.default", ImportSplit},
      {"split_with_sizes.default", ImportSplit},
      {"squeeze.default", ImportReshape},
      {"squeeze.dim", ImportReshape},
      {"squeeze.dims", ImportReshape},
      {"stack.default", ImportStack},
      {"t.default", ImportTranspose},
      {"topk.default", ImportTopK},
      {"transpose.int", ImportTranspose},
      {"tril.default", ImportTril, "lower"},
      {"triu.default", ImportTril, "upper"},
      {"unbind.int", ImportUnbind},
      {"unflatten.int", ImportReshape},
      {"unsqueeze.default", ImportReshape},
      {"view.default", ImportReshape},
      {"view_as.default", ImportReshape},
      {"zero.default", ImportFull, "zeros"},
      {"zeros.default", ImportFull, "zeros"},
      {"zeros_like.default", ImportFull, "zeros"},
  };
}

}  // namespace pd
