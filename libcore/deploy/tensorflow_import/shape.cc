// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes, pick elements or make tensors.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/node.h"
#include "libcore/deploy/tensorflow_import/call.h"

namespace pd {
namespace {

using Attrs = TfCall::Attrs;
using Ints = TfCall::Ints;
using Names = TfCall::Names;

void ImportSame(TfCall* call) { call->GiveSame(0); }

void ImportSameMany(TfCall* call) {
  for (size_t i = 0; i < call->InputCount(); ++i) call->GiveSame(i, i);
}

// How many elements a list of integers has; -1 where that is not known.
int64_t LengthOf(TfCall* call, size_t i) {
  if (const Array* known = call->Known(i)) return known->size();
  const TfNode* pack = call->Maker(call->node(), i, "Pack");
  return pack == nullptr ? -1 : static_cast<int64_t>(pack->inputs.size());
}

// A picture says its shape without being turned around.
void ImportShapeOf(TfCall* call) {
  const DType dtype = call->Type("out_type", DType::kInt32);
  std::string shape;
  if (call->IsFirst(0))
    shape =
        call->Emit("Gather", {call->Emit("Shape", {call->InFirst(0)}),
                              call->ConstInts(ChannelsLast(call->Rank(0)))});
  else
    shape = call->Emit("Shape", {call->In(0)});
  call->Give(dtype == DType::kInt64 ? shape : call->Cast(shape, dtype), 1);
}

void ImportSizeOf(TfCall* call) {
  const std::string size = call->Emit("Size", {call->In(0)});
  call->Give(call->Cast(size, call->Type("out_type", DType::kInt32)), 0);
}

void ImportRankOf(TfCall* call) {
  const std::string shape = call->Emit("Shape", {call->In(0)});
  call->Give(call->Cast(call->Emit("Size", {shape}), DType::kInt32), 0);
}

// Whether element `i` of a Pack is the extent of axis `i` of input 0.
bool IsOwnExtent(TfCall* call, const TfNode& pack, size_t i) {
  const TfNode* slice = call->Maker(pack, i, "StridedSlice");
  if (slice == nullptr) return false;
  const TfNode* shape = call->Maker(*slice, 0, "Shape");
  if (shape == nullptr || shape->inputs.empty() ||
      call->node().inputs.empty() || shape->inputs[0] != call->node().inputs[0])
    return false;
  const auto begin = call->build().graph.initializers.find(
      slice->inputs.size() > 1 ? slice->inputs[1] : "");
  if (begin == call->build().graph.initializers.end()) return false;
  const auto at = OnnxInts(begin->second);
  const auto shrink = slice->attrs.find("shrink_axis_mask");
  return at.has_value() && at->size() == 1 &&
         (*at)[0] == static_cast<int64_t>(i) && shrink != slice->attrs.end() &&
         shrink->second.i == 1;
}

// The shape that a Pack makes, as far as it is known: extents that stay are 0,
// one that is not known is -1. Nothing where several are not known.
std::optional<Ints> PackedShape(TfCall* call) {
  const TfNode* pack = call->Maker(call->node(), 1, "Pack");
  if (pack == nullptr) return std::nullopt;
  Ints shape;
  bool open = false;
  for (size_t i = 0; i < pack->inputs.size(); ++i) {
    const TfNode* number = call->Maker(*pack, i, "Const");
    const auto value = call->build().graph.initializers.find(
        number == nullptr ? "" : number->name);
    int64_t extent = -1;
    if (value != call->build().graph.initializers.end()) {
      const auto ints = OnnxInts(value->second);
      if (!ints.has_value() || ints->size() != 1 || (*ints)[0] == 0)
        return std::nullopt;
      extent = (*ints)[0];
    } else if (IsOwnExtent(call, *pack, i)) {
      extent = 0;
    }
    if (extent < 0 && open) return std::nullopt;
    open = open || extent < 0;
    shape.push_back(extent);
  }
  return shape;
}

void ImportReshaped(TfCall* call) {
  const std::string x = call->In(0);
  const auto known = call->KnownInts(1);
  int64_t rank = LengthOf(call, 1);
  std::string shape;
  bool zeros = true;
  if (known.has_value()) {
    shape = call->ConstInts(*known);
  } else if (const auto packed = PackedShape(call)) {
    zeros = false;
    rank = static_cast<int64_t>(packed->size());
    shape = call->ConstInts(*packed);
  } else {
    shape = call->InInt64(1);
    if (const TfNode* of = call->Maker(call->node(), 1, "Shape")) {
      const auto value =
          call->build().values.find(of->inputs.empty() ? "" : of->inputs[0]);
      if (value != call->build().values.end()) rank = value->second->rank;
    }
  }
  // 0 is an extent of 0 in TensorFlow; where the shape is not known, it is
  // taken as it is.
  const bool empty = zeros && known.has_value() &&
                     std::count(known->begin(), known->end(), 0) > 0;
  call->Give(call->Emit("Reshape", {x, shape},
                        {{"allowzero", OnnxInt(empty ? 1 : 0)}}),
             rank);
}

void ImportSqueezed(TfCall* call) {
  const char* name =
      call->node().attrs.count("squeeze_dims") > 0 ? "squeeze_dims" : "axis";
  Ints axes = call->IntList(name);
  const int64_t rank = call->Rank(0);
  if (axes.empty()) return call->Give(call->Emit("Squeeze", {call->In(0)}));
  const auto count = static_cast<int64_t>(axes.size());
  if (rank >= 0)
    for (int64_t& axis : axes)
      if (axis < 0) axis += rank;
  // A picture of one place becomes its channels.
  std::sort(axes.begin(), axes.end());
  const bool picture = call->IsFirst(0) && count == rank - 2 &&
                       axes.front() == 1 && axes.back() == rank - 2;
  if (picture)
    for (int64_t& axis : axes) ++axis;
  call->Give(call->Emit("Squeeze", {picture ? call->InFirst(0) : call->In(0),
                                    call->ConstInts(axes)}),
             rank < 0 ? -1 : rank - count);
}

void ImportExpanded(TfCall* call) {
  const Ints axis = call->NeedInts(1);
  const int64_t rank = call->Rank(0);
  // A filter stays a constant.
  if (const Array* known = call->Known(0);
      known != nullptr && axis.size() == 1 && axis[0] >= -rank - 1 &&
      axis[0] <= rank) {
    Array expanded = *known;
    expanded.shape.insert(
        expanded.shape.begin() + (axis[0] < 0 ? axis[0] + rank + 1 : axis[0]),
        1);
    return call->Give(call->Constant(expanded), rank + 1);
  }
  call->Give(call->Emit("Unsqueeze", {call->In(0), call->ConstInts(axis)}),
             rank < 0 ? -1 : rank + 1);
}

void ImportTransposed(TfCall* call) {
  const int64_t rank = call->Rank(0) >= 0 ? call->Rank(0) : LengthOf(call, 1);
  call->Give(call->Emit("tensorflow:Transpose", {call->In(0), call->In(1)}),
             rank);
}

// Pictures are joined by channels as they are.
void JoinValues(TfCall* call, size_t begin, size_t end, size_t at) {
  const Ints given = call->NeedInts(at);
  if (!call->ok() || begin >= end) return;
  if (given.size() != 1)
    return call->Fail(InvalidArgument("%d axes", given.size()));
  bool first = true;
  int64_t rank = -1;
  for (size_t i = begin; i < end; ++i) {
    first = first && call->IsFirst(i);
    rank = std::max(rank, call->Rank(i));
  }
  int64_t axis = given[0];
  if (first && axis < 0) axis += rank;
  first = first && axis >= 0 && axis < rank;
  if (first) axis = ChannelsLast(rank)[static_cast<size_t>(axis)];
  Names names;
  for (size_t i = begin; i < end; ++i)
    names.push_back(first ? call->InFirst(i) : call->In(i));
  const std::string y = call->Emit("Concat", names, {{"axis", OnnxInt(axis)}});
  if (first)
    call->GiveFirst(y, rank);
  else
    call->Give(y, rank);
}

void ImportJoin(TfCall* call) { JoinValues(call, 1, call->InputCount(), 0); }

void ImportJoinV2(TfCall* call) {
  if (call->InputCount() < 2)
    return call->Fail(InvalidArgument("it has nothing to join"));
  JoinValues(call, 0, call->InputCount() - 1, call->InputCount() - 1);
}

// The parts of input `x` along the axis that input `at` says.
void GiveParts(TfCall* call, size_t x, size_t at, size_t count, Names more) {
  const Ints given = call->NeedInts(at);
  if (!call->ok()) return;
  if (given.size() != 1 || count == 0 || count > 1 << 16)
    return call->Fail(
        InvalidArgument("%d parts along %d axes", count, given.size()));
  const int64_t rank = call->Rank(x);
  int64_t axis = given[0];
  if (axis < 0 && rank >= 0) axis += rank;
  const bool first = call->IsFirst(x) && axis >= 0 && axis < rank;
  if (first) axis = ChannelsLast(rank)[static_cast<size_t>(axis)];
  Names inputs = {first ? call->InFirst(x) : call->In(x)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  const Names parts =
      call->EmitMany("Split", inputs, count, {{"axis", OnnxInt(axis)}});
  for (size_t i = 0; i < count; ++i)
    if (first)
      call->GiveFirst(parts[i], rank, i);
    else
      call->Give(parts[i], rank, i);
}

void ImportParts(TfCall* call) {
  const int64_t count = call->Int("num_split", 0);
  GiveParts(call, 1, 0, static_cast<size_t>(std::max<int64_t>(0, count)), {});
}

// One size may be what is left.
void ImportPartsV(TfCall* call) {
  const Ints sizes = call->NeedInts(1);
  if (std::count(sizes.begin(), sizes.end(), -1) > 0) {
    const Ints axis = call->NeedInts(2);
    if (!call->ok()) return;
    if (axis.size() != 1 || std::count(sizes.begin(), sizes.end(), -1) > 1)
      return call->Fail(InvalidArgument("parts of %s", ToString(sizes)));
    const Names parts = call->EmitMany(
        "tensorflow:SplitRest", {call->In(0)}, sizes.size(),
        {{"axis", OnnxInt(axis[0])}, {"sizes", OnnxInts(sizes)}});
    for (size_t i = 0; i < parts.size(); ++i)
      call->Give(parts[i], call->Rank(0), i);
    return;
  }
  GiveParts(call, 0, 2, sizes.size(), {call->ConstInts(sizes)});
}

void ImportPacked(TfCall* call) {
  const int64_t axis = call->Int("axis", 0);
  const std::string at = call->ConstInts({axis});
  Names names;
  for (size_t i = 0; i < call->InputCount(); ++i)
    names.push_back(call->Emit("Unsqueeze", {call->In(i), at}));
  const int64_t rank = call->Rank(0);
  call->Give(call->Emit("Concat", names, {{"axis", OnnxInt(axis)}}),
             rank < 0 ? -1 : rank + 1);
}

void ImportUnpacked(TfCall* call) {
  const int64_t axis = call->Int("axis", 0), count = call->Int("num", 0);
  if (count < 1 || count > 1 << 16)
    return call->Fail(InvalidArgument("%d parts", count));
  const Names parts =
      call->EmitMany("Split", {call->In(0)}, static_cast<size_t>(count),
                     {{"axis", OnnxInt(axis)}});
  const std::string at = call->ConstInts({axis});
  const int64_t rank = call->Rank(0) < 0 ? -1 : call->Rank(0) - 1;
  for (size_t i = 0; i < parts.size(); ++i)
    call->Give(call->Emit("Squeeze", {parts[i], at}), rank, i);
}

void ImportSliced(TfCall* call) {
  call->Give(
      call->Emit("tensorflow:Slice", {call->In(0), call->In(1), call->In(2)}),
      call->Rank(0));
}

int64_t BitsOf(int64_t mask, int64_t count) {
  int64_t bits = 0;
  for (int64_t i = 0; i < count; ++i) bits += mask >> i & 1;
  return bits;
}

void ImportStridedSlice(TfCall* call) {
  Attrs attrs;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask",
                           "new_axis_mask", "shrink_axis_mask"})
    attrs[name] = OnnxInt(call->Int(name, 0));
  const int64_t count = LengthOf(call, 3);
  int64_t rank = call->Rank(0);
  if (count < 0 || count > 62)
    return call->Fail(Unimplemented("steps whose number is not known"));
  if (rank >= 0) {
    const int64_t added = attrs["new_axis_mask"].i;
    rank += BitsOf(added, count) -
            BitsOf(attrs["shrink_axis_mask"].i & ~added, count);
  }
  call->Give(
      call->Emit("tensorflow:StridedSlice",
                 {call->In(0), call->In(1), call->In(2), call->In(3)}, attrs),
      rank);
}

// Rows of input 0 at those of input 1.
void ImportRows(TfCall* call) {
  Ints axis = {0};
  if (call->InputCount() > 2) axis = call->NeedInts(2);
  const int64_t batches = call->Int("batch_dims", 0);
  const int64_t rank = call->Rank(0), at = call->Rank(1);
  if (!call->ok()) return;
  if (axis.size() != 1) return call->Fail(InvalidArgument("no axis"));
  const std::string x = call->In(0), index = call->In(1);
  const int64_t out =
      rank < 0 || at < 0 ? -1 : rank + at - 1 - std::max<int64_t>(0, batches);
  if (batches == 0)
    return call->Give(
        call->Emit("Gather", {x, index}, {{"axis", OnnxInt(axis[0])}}), out);
  if (batches < 0 || axis[0] != batches)
    return call->Fail(
        Unimplemented("axis %d and batch_dims %d; equal ones are "
                      "supported",
                      axis[0], batches));
  const std::string rows = call->Emit(
      "Unsqueeze", {call->Cast(index, DType::kInt64), call->ConstInts({-1})});
  call->Give(
      call->Emit("GatherND", {x, rows}, {{"batch_dims", OnnxInt(batches)}}),
      out);
}

void ImportElements(TfCall* call) {
  const std::string index = call->Cast(call->In(1), DType::kInt64);
  call->Give(call->Emit("GatherND", {call->In(0), index},
                        {{"batch_dims", OnnxInt(call->Int("batch_dims", 0))}}));
}

void ImportScattered(TfCall* call) {
  const std::string zeros = call->Emit(
      "Expand", {call->Scalar(0, call->Type("T")), call->InInt64(2)});
  call->Give(call->Emit("ScatterND", {zeros, call->In(0), call->In(1)},
                        {{"reduction", OnnxText("add")}}),
             LengthOf(call, 2));
}

void ImportTiled(TfCall* call) {
  call->Give(call->Emit("Tile", {call->In(0), call->InInt64(1)}),
             call->Rank(0));
}

void ImportFilled(TfCall* call) {
  call->Give(call->Emit("Expand", {call->In(1), call->InInt64(0)}),
             LengthOf(call, 0));
}

void ImportBroadcast(TfCall* call) {
  call->Give(call->Emit("Expand", {call->In(0), call->InInt64(1)}),
             LengthOf(call, 1));
}

void ImportCounted(TfCall* call) {
  call->Give(call->Emit("Range", {call->In(0), call->In(1), call->In(2)}), 1);
}

void ImportLike(TfCall* call) {
  const int64_t rank = call->Rank(0);
  const bool first = call->IsFirst(0);
  const bool ones = call->node().op == "OnesLike";
  const std::string y =
      call->Emit("tensorflow:Like", {first ? call->InFirst(0) : call->In(0)},
                 {{"value", OnnxInt(ones ? 1 : 0)}});
  if (first)
    call->GiveFirst(y, rank);
  else
    call->Give(y, rank);
}

void ImportHot(TfCall* call) {
  const Ints depth = call->NeedInts(1);
  const int64_t rank = call->Rank(0);
  call->Give(call->Emit("tensorflow:OneHot",
                        {call->In(0), call->ConstInts(depth), call->In(2),
                         call->In(3)},
                        {{"axis", OnnxInt(call->Int("axis", -1))}}),
             rank < 0 ? -1 : rank + 1);
}

void ImportPlaces(TfCall* call) {
  const std::string places = call->Emit("NonZero", {call->In(0)});
  call->Give(call->Transpose(places, {1, 0}), 2);
}

// Diagonals below and above which is 0; a negative number keeps them all.
void ImportBand(TfCall* call) {
  const Ints below = call->NeedInts(1), above = call->NeedInts(2);
  if (!call->ok()) return;
  if (below.size() != 1 || above.size() != 1)
    return call->Fail(InvalidArgument("no numbers of diagonals"));
  const int64_t rank = call->Rank(0);
  std::string x = call->In(0);
  if (below[0] >= 0)
    x = call->Emit("Trilu", {x, call->ConstInts({-below[0]})},
                   {{"upper", OnnxInt(1)}});
  if (above[0] >= 0)
    x = call->Emit("Trilu", {x, call->ConstInts({above[0]})},
                   {{"upper", OnnxInt(0)}});
  if (below[0] < 0 && above[0] < 0) return call->GiveSame(0);
  call->Give(x, rank);
}

// By nodes of the domain "tensorflow" that know shapes.
void ImportWithInts(TfCall* call) {
  Names names;
  for (size_t i = 0; i < call->InputCount(); ++i) names.push_back(call->In(i));
  call->Give(call->Emit(call->onnx_type(), names), call->Rank(0));
}

}  // namespace

TfImportEntries TfShapeImports() {
  return {
      {"BatchToSpaceND", ImportWithInts, "tensorflow:BatchToSpaceND"},
      {"BroadcastTo", ImportBroadcast},
      {"CheckNumerics", ImportSame},
      {"Concat", ImportJoin},
      {"ConcatV2", ImportJoinV2},
      {"DisableCopyOnRead", ImportSame},
      {"EnsureShape", ImportSame},
      {"ExpandDims", ImportExpanded},
      {"Fill", ImportFilled},
      {"Gather", ImportRows},
      {"GatherNd", ImportElements},
      {"GatherV2", ImportRows},
      {"Identity", ImportSame},
      {"IdentityN", ImportSameMany},
      {"MatrixBandPart", ImportBand},
      {"OneHot", ImportHot},
      {"OnesLike", ImportLike},
      {"Pack", ImportPacked},
      {"PreventGradient", ImportSame},
      {"Range", ImportCounted},
      {"Rank", ImportRankOf},
      {"Reshape", ImportReshaped},
      {"ResourceGather", ImportRows},
      {"ResourceGatherNd", ImportElements},
      {"ReverseV2", ImportWithInts, "tensorflow:Reverse"},
      {"ScatterNd", ImportScattered},
      {"Shape", ImportShapeOf},
      {"Size", ImportSizeOf},
      {"Slice", ImportSliced},
      {"Snapshot", ImportSame},
      {"SpaceToBatchND", ImportWithInts, "tensorflow:SpaceToBatchND"},
      {"Split", ImportParts},
      {"SplitV", ImportPartsV},
      {"Squeeze", ImportSqueezed},
      {"StopGradient", ImportSame},
      {"StridedSlice", ImportStridedSlice},
      {"Tile", ImportTiled},
      {"Transpose", ImportTransposed},
      {"Unpack", ImportUnpacked},
      {"Where", ImportPlaces},
      {"ZerosLike", ImportLike},
  };
}

}  // namespace pd
