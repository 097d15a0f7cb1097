// SPDX-License-Identifier: Apache-2.0
// Operators of TensorFlow that need to know shapes: nodes of the domain
// "tensorflow" (tensorflow_import/ makes them). Inputs and attributes are
// TensorFlow's.
#include <algorithm>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;
using Dim = OnnxNode::Dim;

constexpr int64_t kToTheEnd = std::numeric_limits<int32_t>::max();
// More are not made now.
constexpr int64_t kMostMade = 1 << 24;

void ImportTfUnary(OnnxNode* node) {
  node->Give(0, node->Unary(node->op_type(), node->In(0)));
}

void ImportTfBias(OnnxNode* node) {
  node->Give(0, node->Emit("elementwise_add",
                           {{"X", {node->In(0)}}, {"Y", {node->In(1)}}},
                           {{"axis", static_cast<int32_t>(1)}}));
}

void ImportTfMatMul(OnnxNode* node) {
  const std::string x = node->In(0), y = node->In(1);
  const DType dtype = node->TypeOf(x);
  const bool a = node->Int("adj_x", 0) != 0, b = node->Int("adj_y", 0) != 0;
  if (IsFloating(dtype)) return node->Give(0, node->MatMul(x, y, a, b));
  const std::string out = node->MatMul(node->Cast(x, DType::kFloat64),
                                       node->Cast(y, DType::kFloat64), a, b);
  node->Give(0, node->Cast(out, dtype));
}

void ImportTfTranspose(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  Ints perm = node->NeedInts(1);
  if (!node->ok()) return;
  perm = node->Axes(perm, rank);
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Ints all(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  if (node->ok() && sorted != all)
    node->Fail(InvalidArgument("axes %s of a tensor of %d dimensions",
                               ToString(perm), rank));
  node->Give(0, node->Transpose(x, perm));
}

// The slices of a tensor: those that are known, which are taken at once, and
// the axes that are dropped or added then.
struct TfSlices {
  Ints axes, starts, ends, steps;
  Ints dropped, added;
};

// Element `i` of an input, as a vector of one element.
std::string ElementOf(OnnxNode* node, size_t input, int64_t i) {
  return node->Cast(node->Slice(node->In(input), {0}, {i}, {i + 1}),
                    DType::kInt64);
}

// One axis from `start` to `end`, variables of one element; "" is from the
// beginning or to the end.
std::string SliceByValues(OnnxNode* node, const std::string& x, int64_t axis,
                          const std::string& start, const std::string& end,
                          int64_t step) {
  OnnxNode::Slots inputs = {{"Input", {x}}};
  OnnxNode::Attrs attrs = {
      {"axes", OnnxAttrInts({axis})},
      {"starts", OnnxAttrInts({start.empty() ? 0 : -1})},
      {"ends", OnnxAttrInts({end.empty() ? kToTheEnd : -1})},
      {"infer_flags", std::vector<int32_t>{-1}}};
  if (!start.empty()) inputs.push_back({"StartsTensor", {start}});
  if (!end.empty()) inputs.push_back({"EndsTensor", {end}});
  if (step != 1) attrs["strides"] = OnnxAttrInts({step});
  return node->Emit(step == 1 ? "slice" : "strided_slice", inputs,
                    std::move(attrs));
}

// An index that counts from the end if it is negative, as one that does not.
std::string FromTheBeginning(OnnxNode* node, const std::string& x, int64_t axis,
                             const std::string& index) {
  const int64_t extent = node->Extent(x, axis);
  const std::string size =
      extent >= 0 ? node->ConstInts({extent})
                  : node->Slice(node->ShapeVar(x), {0}, {axis}, {axis + 1});
  return node->Binary("elementwise_mod", index, size);
}

// Bounds of a step backwards as PaddlePaddle has them: an end of -1 is before
// the first element.
void BackwardBounds(int64_t extent, bool from_end, bool to_begin,
                    int64_t* start, int64_t* end) {
  if (extent >= 0) {
    if (*start < 0) *start += extent;
    *start =
        from_end ? extent - 1 : std::clamp<int64_t>(*start, -1, extent - 1);
    if (*end < 0) *end += extent;
    *end = to_begin ? -1 : std::clamp<int64_t>(*end, -1, extent - 1);
    return;
  }
  if (from_end) *start = kToTheEnd;
  if (to_begin) *end = -1;
}

class StridedSlice {
 public:
  explicit StridedSlice(OnnxNode* node)
      : node_(node), x_(node->In(0)), rank_(node->Rank(x_)) {}

  void Import() {
    steps_ = node_->NeedInts(3);
    begins_ = node_->KnownInts(1);
    ends_ = node_->KnownInts(2);
    const auto count = static_cast<int64_t>(steps_.size());
    int64_t taken = 0;
    for (int64_t i = 0; i < count; ++i)
      taken += !Bit("ellipsis_mask", i) && !Bit("new_axis_mask", i);
    if (node_->ok() &&
        (count > 62 || taken > rank_ ||
         (begins_.has_value() && begins_->size() != steps_.size()) ||
         (ends_.has_value() && ends_->size() != steps_.size())))
      node_->Fail(InvalidArgument("%d slices of a tensor of %d dimensions",
                                  count, rank_));
    int64_t axis = 0, out = 0;
    for (int64_t i = 0; i < count && node_->ok(); ++i) {
      if (Bit("ellipsis_mask", i)) {
        out += rank_ - taken;
        axis += rank_ - taken;
        taken = rank_;  // a second one stands for nothing
      } else if (Bit("new_axis_mask", i)) {
        slices_.added.push_back(out++);
      } else if (Bit("shrink_axis_mask", i)) {
        TakeOne(i, axis);
        slices_.dropped.push_back(axis++);
      } else {
        TakePart(i, axis++);
        ++out;
      }
    }
    if (!slices_.axes.empty())
      x_ = node_->Slice(x_, slices_.axes, slices_.starts, slices_.ends,
                        slices_.steps);
    x_ = node_->Squeeze(x_, slices_.dropped);
    if (!slices_.added.empty()) x_ = node_->Unsqueeze(x_, slices_.added);
    node_->Give(0, x_);
  }

 private:
  bool Bit(const char* mask, int64_t i) {
    return (node_->Int(mask, 0) >> i & 1) != 0;
  }

  void TakeOne(int64_t i, int64_t axis) {
    if (begins_.has_value()) {
      const int64_t at = (*begins_)[static_cast<size_t>(i)];
      Add(axis, at, at == -1 ? kToTheEnd : at + 1, 1);
      return;
    }
    const std::string at =
        FromTheBeginning(node_, x_, axis, ElementOf(node_, 1, i));
    x_ = node_->Gather(x_, at, axis);
  }

  void TakePart(int64_t i, int64_t axis) {
    const auto at = static_cast<size_t>(i);
    const int64_t step = steps_[at];
    const bool from_first = Bit("begin_mask", i), to_last = Bit("end_mask", i);
    if (step == 0) return node_->Fail(InvalidArgument("a step is 0"));
    if ((from_first || begins_.has_value()) && (to_last || ends_.has_value())) {
      int64_t start = from_first ? 0 : (*begins_)[at];
      int64_t end = to_last ? kToTheEnd : (*ends_)[at];
      if (step < 0)
        BackwardBounds(node_->Extent(x_, axis), from_first, to_last, &start,
                       &end);
      if (start != 0 || end != kToTheEnd || step != 1)
        Add(axis, start, end, step);
      return;
    }
    if (step < 0)
      return node_->Fail(Unimplemented(
          "a step of %d between bounds that are not known", step));
    x_ =
        SliceByValues(node_, x_, axis, from_first ? "" : ElementOf(node_, 1, i),
                      to_last ? "" : ElementOf(node_, 2, i), step);
  }

  void Add(int64_t axis, int64_t start, int64_t end, int64_t step) {
    slices_.axes.push_back(axis);
    slices_.starts.push_back(start);
    slices_.ends.push_back(end);
    slices_.steps.push_back(step);
  }

  OnnxNode* node_;
  std::string x_;
  int64_t rank_;
  Ints steps_;
  std::optional<Ints> begins_, ends_;
  TfSlices slices_;
};

void ImportTfStridedSlice(OnnxNode* node) { StridedSlice(node).Import(); }

// From begin on as many elements as size says; -1 is all that follow.
void ImportTfSlice(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const auto begin = node->KnownInts(1), size = node->KnownInts(2);
  if (!node->ok()) return;
  const auto fits = [&](const std::optional<Ints>& ints) {
    return !ints.has_value() || static_cast<int64_t>(ints->size()) == rank;
  };
  if (!fits(begin) || !fits(size))
    return node->Fail(
        InvalidArgument("a slice of a tensor of %d dimensions", rank));
  Ints axes, starts, ends;
  for (int64_t i = 0; i < rank && node->ok(); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool rest = size.has_value() && (*size)[at] == -1;
    if (begin.has_value() && size.has_value()) {
      if ((*begin)[at] < 0 || (*size)[at] < -1 || (*begin)[at] > kToTheEnd ||
          (*size)[at] > kToTheEnd)
        return node->Fail(InvalidArgument("begin %s, size %s", ToString(*begin),
                                          ToString(*size)));
      axes.push_back(i);
      starts.push_back((*begin)[at]);
      ends.push_back(rest ? kToTheEnd : (*begin)[at] + (*size)[at]);
      continue;
    }
    const std::string from = ElementOf(node, 1, i);
    std::string to;
    if (!rest) to = node->Add(from, ElementOf(node, 2, i));
    x = SliceByValues(node, x, i, from, to, 1);
  }
  node->Give(0, axes.empty() ? x : node->Slice(x, axes, starts, ends));
}

// Parts of sizes of which one is -1: what the others leave.
void ImportTfSplitRest(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t axis = node->Axis(node->Int("axis", 0), node->Rank(x));
  const Ints sizes = node->AttrInts("sizes");
  int64_t behind = 0;  // elements of the parts that are still to come
  for (const int64_t size : sizes) {
    if (size < -1 || size > kToTheEnd)
      node->Fail(InvalidArgument("parts of %s", ToString(sizes)));
    behind += std::max<int64_t>(0, size);
  }
  if (!node->ok()) return;
  int64_t begin = 0;
  bool from_end = false;  // places count from the end
  for (size_t i = 0; i < sizes.size(); ++i) {
    behind -= std::max<int64_t>(0, sizes[i]);
    from_end = from_end || sizes[i] == -1;
    int64_t end = from_end ? -behind : begin + sizes[i];
    if (end == 0 && from_end) end = kToTheEnd;
    node->Give(i, node->Slice(x, {axis}, {begin}, {end}));
    begin = end;
  }
}

void ImportTfReverse(OnnxNode* node) {
  const std::string x = node->In(0);
  const Ints axes = node->Axes(node->NeedInts(1), node->Rank(x));
  node->Give(0, axes.empty() ? x : node->Flip(x, axes));
}

void ImportTfLike(OnnxNode* node) {
  const std::string x = node->In(0);
  node->Give(0, node->FullLike(x, static_cast<double>(node->Int("value", 0)),
                               node->TypeOf(x)));
}

// `on` where the index is 0, 1, ... along a new axis, `off` elsewhere: an index
// that is none of them is nowhere.
void ImportTfOneHot(OnnxNode* node) {
  const std::string index = node->Cast(node->In(0), DType::kInt64);
  const Ints depth = node->NeedInts(1);
  const int64_t rank = node->Rank(index) + 1;
  const int64_t axis = node->Axis(node->Int("axis", -1), rank);
  if (!node->ok()) return;
  if (depth.size() != 1 || depth[0] < 0 || depth[0] > kMostMade)
    return node->Fail(InvalidArgument("a depth of %s", ToString(depth)));
  Ints numbers(static_cast<size_t>(depth[0]));
  std::iota(numbers.begin(), numbers.end(), 0);
  Shape along(static_cast<size_t>(rank), 1);
  along[static_cast<size_t>(axis)] = depth[0];
  const std::string hit =
      node->Binary("equal", node->Unsqueeze(index, {axis}),
                   node->Constant(MakeArray(along, numbers)));
  const std::string on = node->In(2), off = node->In(3);
  node->Give(0, node->Add(off, node->Mul(node->Cast(hit, node->TypeOf(on)),
                                         node->Sub(on, off))));
}

// Pads that mirror the elements with those at the edge.
void ImportTfSymmetricPad(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const Ints pads = node->NeedInts(1);
  if (node->ok() && static_cast<int64_t>(pads.size()) != 2 * rank)
    node->Fail(InvalidArgument("pads %s", ToString(pads)));
  for (int64_t axis = 0; axis < rank && node->ok(); ++axis) {
    const int64_t before = pads[static_cast<size_t>(axis)];
    const int64_t after = pads[static_cast<size_t>(axis + rank)];
    if (before == 0 && after == 0) continue;
    const int64_t extent = node->Extent(x, axis);
    if (extent < 1 || before < 0 || after < 0 || before > extent ||
        after > extent || extent > kMostMade)
      return node->Fail(Unimplemented("pads of %d and %d on an extent of %d",
                                      before, after, extent));
    Ints index;
    for (int64_t i = -before; i < extent + after; ++i)
      index.push_back(i < 0 ? -1 - i : i < extent ? i : 2 * extent - 1 - i);
    x = node->Gather(x, node->ConstInts(index), axis);
  }
  node->Give(0, x);
}

// The blocks and pads of SpaceToBatchND and its reverse.
struct TfBlocks {
  Ints sizes, pads;
};

TfBlocks BlocksOf(OnnxNode* node, const std::string& x) {
  TfBlocks b;
  b.sizes = node->NeedInts(1);
  b.pads = node->NeedInts(2);
  const auto small = [](const Ints& values, int64_t least) {
    return std::all_of(values.begin(), values.end(),
                       [&](int64_t v) { return v >= least && v <= kMostMade; });
  };
  if (node->ok() && (b.sizes.empty() || b.sizes.size() > 4 ||
                     b.pads.size() != 2 * b.sizes.size() ||
                     !small(b.sizes, 1) || !small(b.pads, 0) ||
                     node->Rank(x) <= static_cast<int64_t>(b.sizes.size())))
    node->Fail(InvalidArgument("blocks %s, pads %s for shape %s",
                               ToString(b.sizes), ToString(b.pads),
                               ToString(node->ShapeOf(x))));
  return b;
}

void ImportTfSpaceToBatch(OnnxNode* node) {
  std::string x = node->In(0);
  const TfBlocks b = BlocksOf(node, x);
  const int64_t rank = node->Rank(x);
  if (!node->ok()) return;
  const auto count = static_cast<int64_t>(b.sizes.size());
  Ints pads = {0, 0};
  pads.insert(pads.end(), b.pads.begin(), b.pads.end());
  pads.resize(static_cast<size_t>(2 * rank), 0);
  x = node->Unary("pad", x,
                  {{"paddings", OnnxAttrInts(pads)}, {"pad_value", 0.0f}});
  std::vector<Dim> split = {{-1, x, 0}}, joined;
  Ints perm, rest;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = b.sizes[static_cast<size_t>(i)];
    const int64_t extent = node->Extent(x, i + 1);
    if (!node->ok()) return;
    if (extent < 0 || extent % size != 0)
      return node->Fail(
          Unimplemented("an extent of %d in blocks of %d", extent, size));
    split.push_back({extent / size});
    split.push_back({size});
    perm.push_back(2 * i + 2);
    rest.push_back(2 * i + 1);
  }
  perm.push_back(0);
  perm.insert(perm.end(), rest.begin(), rest.end());
  for (int64_t i = count + 1; i < rank; ++i) {
    split.push_back({-1, x, i});
    perm.push_back(i + count);
  }
  const std::string blocks = node->Transpose(node->ReshapeTo(x, split), perm);
  joined.push_back({-1});
  for (int64_t i = 1; i < rank; ++i) joined.push_back({-1, blocks, i + count});
  node->Give(0, node->ReshapeTo(blocks, joined));
}

void ImportTfBatchToSpace(OnnxNode* node) {
  const std::string x = node->In(0);
  const TfBlocks b = BlocksOf(node, x);
  const int64_t rank = node->Rank(x);
  if (!node->ok()) return;
  const auto count = static_cast<int64_t>(b.sizes.size());
  std::vector<Dim> split, joined = {{-1}};
  for (const int64_t size : b.sizes) split.push_back({size});
  split.push_back({-1});
  Ints perm = {count}, axes, starts, ends;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t extent = node->Extent(x, i + 1);
    if (!node->ok()) return;
    if (extent < 0 || extent > kMostMade)
      return node->Fail(Unimplemented("an extent of %d in blocks of %d", extent,
                                      b.sizes[at]));
    perm.push_back(count + 1 + i);
    perm.push_back(i);
    joined.push_back({extent * b.sizes[at]});
    axes.push_back(i + 1);
    starts.push_back(b.pads[2 * at]);
    ends.push_back(extent * b.sizes[at] - b.pads[2 * at + 1]);
  }
  for (int64_t i = 1; i < rank; ++i) {
    split.push_back({-1, x, i});
    if (i <= count) continue;
    perm.push_back(count + i);
    joined.push_back({-1, x, i});
  }
  const std::string blocks = node->Transpose(node->ReshapeTo(x, split), perm);
  node->Give(0,
             node->Slice(node->ReshapeTo(blocks, joined), axes, starts, ends));
}

}  // namespace

OnnxImportEntries TensorflowImports() {
  return {
      {"tensorflow:BatchToSpaceND", ImportTfBatchToSpace},
      {"tensorflow:BiasAdd", ImportTfBias},
      {"tensorflow:Expm1", ImportTfUnary, "expm1"},
      {"tensorflow:IsFinite", ImportTfUnary, "isfinite_v2"},
      {"tensorflow:Like", ImportTfLike},
      {"tensorflow:Log1p", ImportTfUnary, "log1p"},
      {"tensorflow:MatMul", ImportTfMatMul},
      {"tensorflow:OneHot", ImportTfOneHot},
      {"tensorflow:Reverse", ImportTfReverse},
      {"tensorflow:Slice", ImportTfSlice},
      {"tensorflow:SpaceToBatchND", ImportTfSpaceToBatch},
      {"tensorflow:SplitRest", ImportTfSplitRest},
      {"tensorflow:StridedSlice", ImportTfStridedSlice},
      {"tensorflow:SymmetricPad", ImportTfSymmetricPad},
      {"tensorflow:Transpose", ImportTfTranspose},
  };
}

}  // namespace pd
