// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that move, cut, pad, repeat or join, and those that make
// tensors of numbers.
#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/tflite_import/call.h"

namespace pd {
namespace {

using Ints = TfliteCall::Ints;
using Names = TfliteCall::Names;

// The file says the shape of the output, but for extents that hang on those of
// the inputs; with several of them it is computed.
void ImportReshape(TfliteCall* call) {
  const Shape& shape = call->OutFact().shape;
  const bool open = std::count(shape.begin(), shape.end(), -1) > 1 ||
                    std::count(shape.begin(), shape.end(), 0) > 0;
  if (open && call->Has(1))
    return call->Give(
        call->graph().Emit("Reshape", {call->X(), call->Int64(1)}));
  call->Give(call->graph().Reshape(call->X(), shape));
}

// Both have the elements in their order.
void ImportSqueeze(TfliteCall* call) { ImportReshape(call); }

void ImportExpandDims(TfliteCall* call) {
  LayoutGraph& graph = call->graph();
  call->Give(graph.Emit("Unsqueeze",
                        {call->X(), graph.ConstInts({call->KnownInt(1)})}));
}

void ImportTranspose(TfliteCall* call) {
  const Ints perm = call->KnownInts(1);
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Ints all(static_cast<size_t>(call->Rank()));
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    call->Fail(InvalidArgument("axes %s of %d", ToString(perm), all.size()));
  if (!call->ok()) return;
  call->Give(call->graph().Transpose(call->X(), perm));
}

void ImportConcat(TfliteCall* call) {
  LayoutTensor& first = call->In();
  const int64_t rank = first.rank();
  const int64_t axis = call->Axis(call->Word(0), rank);
  bool front = false;
  for (size_t i = 0; i < call->inputs(); ++i) {
    front = front || !call->In(i).front.empty();
    call->WantRank(i, rank);
  }
  if (!call->ok()) return;
  Names names;
  for (size_t i = 0; i < call->inputs(); ++i)
    names.push_back(front ? call->graph().Front(&call->In(i)) : call->X(i));
  call->GiveActivated(
      call->graph().Emit(
          "Concat", names,
          {{"axis", OnnxInt(front ? FrontAxis(axis, rank) : axis)}}),
      call->Byte(1), front);
}

// Rows of two numbers, one for each axis of x.
void ImportPad(TfliteCall* call) {
  LayoutTensor& x = call->In();
  const Ints rows = call->KnownInts(1);
  const auto rank = static_cast<size_t>(x.rank());
  if (call->ok() && rows.size() != 2 * rank)
    call->Fail(InvalidArgument("%d paddings for shape %s", rows.size(),
                               ToString(x.shape)));
  if (!call->ok()) return;
  const bool front = !x.front.empty();
  Ints pads(2 * rank, 0);
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto to = static_cast<size_t>(
        front ? FrontAxis(static_cast<int64_t>(axis), x.rank())
              : static_cast<int64_t>(axis));
    pads[to] = rows[2 * axis];
    pads[rank + to] = rows[2 * axis + 1];
  }
  LayoutGraph& graph = call->graph();
  const std::string mode = call->onnx_type();
  Names inputs = {graph.Any(&x), graph.ConstInts(pads)};
  if (mode == "constant")
    inputs.push_back(call->Has(2) ? call->X(2) : graph.Scalar(0, x.dtype));
  if (mode == "reflect" && call->Byte(0) != 0)
    call->Fail(Unimplemented("symmetric padding"));
  call->Give(graph.Emit("Pad", inputs, {{"mode", OnnxText(mode)}}), front);
}

bool Bit(int64_t mask, size_t i) { return i < 32 && ((mask >> i) & 1) != 0; }

void ImportStridedSlice(TfliteCall* call) {
  const Ints begin = call->KnownInts(1), end = call->KnownInts(2),
             strides = call->KnownInts(3);
  if (call->Word(2) != 0 || call->Word(3) != 0 || call->Byte(5) != 0)
    call->Fail(Unimplemented("an ellipsis, a new axis or an offset"));
  if (begin.size() != end.size() || begin.size() != strides.size() ||
      static_cast<int64_t>(begin.size()) > call->Rank())
    call->Fail(InvalidArgument("%d starts, %d ends, %d strides for shape %s",
                               begin.size(), end.size(), strides.size(),
                               ToString(call->In().shape)));
  if (!call->ok()) return;
  Ints axes, starts, ends, steps, dropped;
  for (size_t i = 0; i < begin.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    axes.push_back(axis);
    const bool forward = strides[i] > 0;
    if (Bit(call->Word(4), i)) {
      dropped.push_back(axis);
      starts.push_back(begin[i]);
      ends.push_back(begin[i] == -1 || begin[i] == INT64_MAX ? INT64_MAX
                                                             : begin[i] + 1);
      steps.push_back(1);
      continue;
    }
    starts.push_back(!Bit(call->Word(0), i) ? begin[i]
                     : forward              ? 0
                                            : INT64_MAX);
    ends.push_back(!Bit(call->Word(1), i) ? end[i]
                   : forward              ? INT64_MAX
                                          : INT64_MIN);
    steps.push_back(strides[i]);
  }
  LayoutGraph& graph = call->graph();
  std::string y = graph.Slice(call->X(), axes, starts, ends, steps);
  if (!dropped.empty())
    y = graph.Emit("Squeeze", {y, graph.ConstInts(dropped)});
  call->Give(y);
}

void ImportSlice(TfliteCall* call) {
  const Ints begin = call->KnownInts(1), size = call->KnownInts(2);
  if (begin.size() != size.size() ||
      static_cast<int64_t>(begin.size()) != call->Rank())
    call->Fail(InvalidArgument("%d starts and %d sizes for shape %s",
                               begin.size(), size.size(),
                               ToString(call->In().shape)));
  if (!call->ok()) return;
  constexpr int64_t kMost = int64_t{1} << 40;
  Ints axes, ends;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (begin[i] < 0 || begin[i] > kMost || size[i] < -1 || size[i] > kMost)
      return call->Fail(
          InvalidArgument("%d elements from %d", size[i], begin[i]));
    axes.push_back(static_cast<int64_t>(i));
    ends.push_back(size[i] < 0 ? INT64_MAX : begin[i] + size[i]);
  }
  call->Give(call->graph().Slice(call->X(), axes, begin, ends));
}

void GiveAll(TfliteCall* call, const Names& parts) {
  for (size_t i = 0; i < call->outputs() && i < parts.size(); ++i)
    call->Give(parts[i], false, i);
}

// x in parts along an axis, of `sizes` or of equal ones.
Names Parts(TfliteCall* call, size_t x, int64_t axis, const Ints& sizes) {
  const size_t count = call->outputs();
  if (count < 1) call->Fail(InvalidArgument("it has no outputs"));
  if (!call->ok()) return Names(count);
  LayoutGraph& graph = call->graph();
  Names inputs = {call->X(x)};
  TfliteCall::Attrs attrs = {{"axis", OnnxInt(axis)}};
  if (sizes.empty())
    attrs["num_outputs"] = OnnxInt(static_cast<int64_t>(count));
  else
    inputs.push_back(graph.ConstInts(sizes));
  return graph.EmitMany("Split", inputs, count, attrs);
}

void ImportSplit(TfliteCall* call) {
  GiveAll(call, Parts(call, 1, call->KnownInt(0), {}));
}

void ImportSplitV(TfliteCall* call) {
  const Ints sizes = call->KnownInts(1);
  if (call->ok() && sizes.size() != call->outputs())
    call->Fail(InvalidArgument("%d parts for %d outputs", sizes.size(),
                               call->outputs()));
  GiveAll(call, Parts(call, 0, call->KnownInt(2), sizes));
}

void ImportPack(TfliteCall* call) {
  LayoutGraph& graph = call->graph();
  const int64_t axis = call->Word(1);
  Names rows;
  for (size_t i = 0; i < call->inputs(); ++i)
    rows.push_back(
        graph.Emit("Unsqueeze", {call->X(i), graph.ConstInts({axis})}));
  call->Give(graph.Emit("Concat", rows, {{"axis", OnnxInt(axis)}}));
}

void ImportUnpack(TfliteCall* call) {
  const int64_t axis = call->Word(1);
  LayoutGraph& graph = call->graph();
  Names parts =
      call->outputs() == 1 ? Names{call->X()} : Parts(call, 0, axis, {});
  for (std::string& part : parts)
    part = graph.Emit("Squeeze", {part, graph.ConstInts({axis})});
  GiveAll(call, parts);
}

void ImportGather(TfliteCall* call) {
  if (call->Word(1) != 0) call->Fail(Unimplemented("batch_dims"));
  call->Give(call->graph().Emit("Gather", {call->X(), call->X(1)},
                                {{"axis", OnnxInt(call->Word(0))}}));
}

void ImportLookup(TfliteCall* call) {
  call->Give(call->graph().Emit("Gather", {call->X(1), call->X(0)}));
}

void ImportGatherNd(TfliteCall* call) {
  call->Give(call->graph().Emit("GatherND", {call->X(), call->Int64(1)}));
}

// TILE and BROADCAST_TO: input 1 is numbers for axes.
void ImportByShape(TfliteCall* call) {
  call->Give(
      call->graph().Emit(call->onnx_type(), {call->X(), call->Int64(1)}));
}

void ImportFill(TfliteCall* call) {
  call->Give(call->graph().Emit("Expand", {call->X(1), call->Int64(0)}));
}

void ImportRange(TfliteCall* call) {
  call->Give(call->graph().Emit("Range", {call->X(0), call->X(1), call->X(2)}));
}

void ImportShape(TfliteCall* call) {
  const auto& dtype = call->OutFact().dtype;
  LayoutGraph& graph = call->graph();
  call->Give(graph.Cast(graph.Emit("Shape", {call->X()}),
                        dtype.value_or(DType::kInt32)));
}

void ImportOneHot(TfliteCall* call) {
  LayoutGraph& graph = call->graph();
  const std::string off = graph.Reshape(call->X(3), {1}),
                    on = graph.Reshape(call->X(2), {1});
  const std::string values =
      graph.Emit("Concat", {off, on}, {{"axis", OnnxInt(0)}});
  call->Give(graph.Emit(
      "OneHot", {call->X(), graph.ConstInts({call->KnownInt(1)}), values},
      {{"axis", OnnxInt(call->Word(0))}}));
}

void ImportReverse(TfliteCall* call) {
  std::string y = call->X();
  for (const int64_t axis : call->KnownInts(1))
    y = call->graph().Flip(y, call->Axis(axis, call->Rank()));
  call->Give(y);
}

constexpr int64_t kMostBlock = int64_t{1} << 20;

// Blocks and paddings of one or two axes behind the batch, which are known.
struct Blocks {
  Ints block, sides;
  Shape shape;  // of x
};

absl::StatusOr<Blocks> ReadBlocks(TfliteCall* call) {
  Blocks out;
  out.block = call->KnownInts(1);
  out.sides = call->KnownInts(2);
  out.shape = call->In().shape;
  const size_t axes = out.block.size();
  bool bad = axes < 1 || axes > 2 || out.shape.size() != axes + 2 ||
             out.sides.size() != 2 * axes;
  for (size_t i = 0; i < axes && !bad; ++i)
    bad = out.block[i] < 1 || out.block[i] > kMostBlock ||
          out.shape[i + 1] < 0 || out.sides[2 * i] < 0 ||
          out.sides[2 * i] > kMostBlock || out.sides[2 * i + 1] < 0 ||
          out.sides[2 * i + 1] > kMostBlock;
  if (bad || IsDynamic(SpatialOf(out.shape)) || out.shape.back() < 0)
    return Unimplemented("blocks of %s with %s for shape %s",
                         ToString(out.block), ToString(out.sides),
                         ToString(out.shape));
  return out;
}

// Pads; then what has the same place in blocks becomes a record of the batch.
void ImportSpaceToBatch(TfliteCall* call) {
  const auto blocks = ReadBlocks(call);
  if (!blocks.ok()) call->Fail(blocks.status());
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const size_t axes = blocks->block.size(), rank = axes + 2;
  Ints pads(2 * rank, 0), apart = {-1}, perm, together = {-1};
  for (size_t i = 0; i < axes; ++i) {
    pads[1 + i] = blocks->sides[2 * i];
    pads[rank + 1 + i] = blocks->sides[2 * i + 1];
    const int64_t extent =
        blocks->shape[i + 1] + blocks->sides[2 * i] + blocks->sides[2 * i + 1];
    if (extent % blocks->block[i] != 0)
      return call->Fail(InvalidArgument("an extent of %d in blocks of %d",
                                        extent, blocks->block[i]));
    apart.insert(apart.end(), {extent / blocks->block[i], blocks->block[i]});
    together.push_back(extent / blocks->block[i]);
    perm.push_back(2 + 2 * static_cast<int64_t>(i));
  }
  apart.push_back(blocks->shape.back());
  together.push_back(blocks->shape.back());
  perm.push_back(0);
  for (size_t i = 0; i < axes; ++i)
    perm.push_back(1 + 2 * static_cast<int64_t>(i));
  perm.push_back(1 + 2 * static_cast<int64_t>(axes));
  const std::string padded = graph.Emit(
      "Pad",
      {call->X(), graph.ConstInts(pads), graph.Scalar(0, call->In().dtype)});
  call->Give(graph.Reshape(graph.Transpose(graph.Reshape(padded, apart), perm),
                           together));
}

void ImportBatchToSpace(TfliteCall* call) {
  const auto blocks = ReadBlocks(call);
  if (!blocks.ok()) call->Fail(blocks.status());
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const auto axes = static_cast<int64_t>(blocks->block.size());
  Ints apart = blocks->block, perm = {axes}, together = {-1};
  apart.push_back(-1);
  Ints cut, starts, ends;
  for (int64_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    apart.push_back(blocks->shape[at + 1]);
    perm.insert(perm.end(), {axes + 1 + i, i});
    const int64_t extent = blocks->shape[at + 1] * blocks->block[at];
    together.push_back(extent);
    cut.push_back(i + 1);
    starts.push_back(blocks->sides[2 * at]);
    ends.push_back(extent - blocks->sides[2 * at + 1]);
    if (starts.back() > ends.back())
      return call->Fail(
          InvalidArgument("%s cut off of %d", ToString(blocks->sides), extent));
  }
  apart.push_back(blocks->shape.back());
  together.push_back(blocks->shape.back());
  perm.push_back(2 * axes + 1);
  const std::string y = graph.Reshape(
      graph.Transpose(graph.Reshape(call->X(), apart), perm), together);
  call->Give(graph.Slice(y, cut, starts, ends));
}

}  // namespace

TfliteImportEntries TfliteShapeImports() {
  return {
      {2, "CONCATENATION", ImportConcat},
      {7, "EMBEDDING_LOOKUP", ImportLookup},
      {22, "RESHAPE", ImportReshape},
      {34, "PAD", ImportPad, "constant"},
      {36, "GATHER", ImportGather},
      {37, "BATCH_TO_SPACE_ND", ImportBatchToSpace},
      {38, "SPACE_TO_BATCH_ND", ImportSpaceToBatch},
      {39, "TRANSPOSE", ImportTranspose},
      {43, "SQUEEZE", ImportSqueeze},
      {45, "STRIDED_SLICE", ImportStridedSlice},
      {49, "SPLIT", ImportSplit},
      {60, "PADV2", ImportPad, "constant"},
      {65, "SLICE", ImportSlice},
      {69, "TILE", ImportByShape, "Tile"},
      {70, "EXPAND_DIMS", ImportExpandDims},
      {77, "SHAPE", ImportShape},
      {83, "PACK", ImportPack},
      {85, "ONE_HOT", ImportOneHot},
      {88, "UNPACK", ImportUnpack},
      {94, "FILL", ImportFill},
      {96, "RANGE", ImportRange},
      {100, "MIRROR_PAD", ImportPad, "reflect"},
      {102, "SPLIT_V", ImportSplitV},
      {105, "REVERSE_V2", ImportReverse},
      {107, "GATHER_ND", ImportGatherNd},
      {130, "BROADCAST_TO", ImportByShape, "Expand"},
  };
}

}  // namespace pd
