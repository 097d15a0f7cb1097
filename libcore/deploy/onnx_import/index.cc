// SPDX-License-Identifier: Apache-2.0
// Operators that pick elements: by index, by size, by condition.
#include <algorithm>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"
#include "libcore/ops/reduce/ranked.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;
using Dim = OnnxNode::Dim;

std::string Counting(OnnxNode* node, int64_t count) {
  if (node->ok() && (count < 0 || count > (1 << 24)))
    node->Fail(Unimplemented("an extent of %d", count));
  if (!node->ok()) return "";
  Ints values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return node->ConstInts(values);
}

// Negative indices count from the end: PaddlePaddle's ops take none. Known
// ones are looked at, others go through a modulus of the extent.
std::string NonNegative(OnnxNode* node, size_t input, const std::string& x,
                        int64_t axis) {
  const std::string index = node->In(input);
  const int64_t extent = node->Extent(x, axis);
  if (const auto known = node->KnownInts(input)) {
    bool negative = false;
    Ints values = *known;
    for (int64_t& value : values) {
      negative = negative || value < 0;
      if (value < 0) value += extent;
    }
    if (!negative) return index;
    if (extent >= 0)
      return node->Constant(MakeArray(node->Known(input)->shape, values));
  }
  return node->FromStart(index, x, axis);
}

// x[..., i, ...]: the axis disappears.
std::string PickOne(OnnxNode* node, const std::string& x, int64_t axis,
                    int64_t i) {
  constexpr int64_t kEnd = int64_t{1} << 31;
  const std::vector<int32_t> axes = OnnxAttrInts({axis});
  return node->Emit("slice", {{"Input", {x}}},
                    {{"axes", axes},
                     {"starts", OnnxAttrInts({i})},
                     {"ends", OnnxAttrInts({i == -1 ? kEnd : i + 1})},
                     {"infer_flags", std::vector<int32_t>{1}},
                     {"decrease_axis", axes}});
}

void ImportGather(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(node->Int("axis", 0), rank);
  const std::string raw = node->In(1);
  const int64_t index_rank = node->Rank(raw);
  if (!node->ok()) return;
  const auto known = node->KnownInts(1);
  if (index_rank == 0 && known.has_value())
    return node->Give(0, PickOne(node, x, axis, (*known)[0]));
  const std::string index = NonNegative(node, 1, x, axis);
  if (index_rank == 1) return node->Give(0, node->Gather(x, index, axis));
  const std::string flat =
      node->Gather(x, node->Reshape(index, {index_rank == 0 ? 1 : -1}), axis);
  if (index_rank == 0) return node->Give(0, node->Squeeze(flat, {axis}));
  std::vector<Dim> dims;
  for (int64_t i = 0; i < axis; ++i) dims.push_back({-1, x, i});
  for (int64_t i = 0; i < index_rank; ++i) dims.push_back({-1, raw, i});
  for (int64_t i = axis + 1; i < rank; ++i) dims.push_back({-1, x, i});
  node->Give(0, node->ReshapeTo(flat, dims));
}

void ImportGatherElements(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(node->Int("axis", 0), rank);
  const std::string index = NonNegative(node, 1, x, axis);
  if (node->ok() && node->Rank(index) != rank)
    node->Fail(InvalidArgument("x has %d dimensions, indices %d", rank,
                               node->Rank(index)));
  // PaddlePaddle's op wants the other extents to be the same.
  for (int64_t i = 0; i < rank && node->ok(); ++i) {
    const int64_t extent = node->Extent(index, i);
    if (i != axis && extent >= 0 && extent != node->Extent(x, i))
      x = node->Slice(x, {i}, {0}, {extent});
  }
  node->Give(0,
             node->Emit("take_along_axis", {{"Input", {x}}, {"Index", {index}}},
                        {{"Axis", static_cast<int32_t>(axis)}}, "Result"));
}

// Indices that end in batch_dims numbers more.
std::string WithBatchIndices(OnnxNode* node, const std::string& index,
                             const Shape& shape, int64_t batch_dims) {
  OnnxNode::Names parts;
  Shape one(shape.begin(), shape.end() - 1);
  one.push_back(1);
  for (int64_t i = 0; i < batch_dims; ++i) {
    Shape along(shape.size(), 1);
    along[static_cast<size_t>(i)] = shape[static_cast<size_t>(i)];
    const std::string count =
        node->Reshape(Counting(node, shape[static_cast<size_t>(i)]), along);
    parts.push_back(node->Expand(count, one));
  }
  parts.push_back(index);
  return node->Concat(parts, static_cast<int64_t>(shape.size()) - 1);
}

void ImportGatherND(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t batch_dims = node->Int("batch_dims", 0);
  std::string index = node->In(1);
  const Shape shape = node->ShapeOf(index), from = node->ShapeOf(x);
  if (!node->ok()) return;
  if (shape.empty() || shape.back() < 0 || batch_dims < 0 ||
      batch_dims >= static_cast<int64_t>(shape.size()) ||
      batch_dims + shape.back() > static_cast<int64_t>(from.size()))
    return node->Fail(InvalidArgument("indices of shape %s into %s",
                                      ToString(shape), ToString(from)));
  const auto known = node->KnownInts(1);
  const bool plain =
      known.has_value() && std::all_of(known->begin(), known->end(),
                                       [](int64_t i) { return i >= 0; });
  if (!plain) index = node->FromStart(index, x, batch_dims, shape.back());
  if (batch_dims > 0) {
    if (IsDynamic(shape))
      return node->Fail(Unimplemented("indices of shape %s", ToString(shape)));
    index = WithBatchIndices(node, index, shape, batch_dims);
  }
  node->Give(0, node->Emit("gather_nd", {{"X", {x}}, {"Index", {index}}}));
}

// off + (on - off) * (index == 0, 1, ...).
void ImportOneHot(OnnxNode* node) {
  const std::string index = node->Cast(node->In(0), DType::kInt64);
  const double depth = node->NeedNumber(1);
  const int64_t rank = node->Rank(index) + 1;
  const int64_t axis = node->Axis(node->Int("axis", -1), rank);
  const auto count = static_cast<int64_t>(std::clamp(depth, -1.0, 1e9));
  const std::string numbers = Counting(node, count);
  if (!node->ok()) return;
  Ints along(static_cast<size_t>(rank), 1);
  along[static_cast<size_t>(axis)] = count;
  // Indices from -depth on count from the end.
  const std::string negative = node->Cast(
      node->Binary("less_than", index, node->Scalar(0, DType::kInt64)),
      DType::kInt64);
  const std::string wrapped =
      node->Add(index, node->Affine(negative, static_cast<double>(count), 0));
  const std::string hit = node->Binary(
      "equal", node->Unsqueeze(wrapped, {axis}), node->Reshape(numbers, along));
  const std::string values = node->In(2);
  const std::string off = node->Slice(values, {0}, {0}, {1});
  const std::string on = node->Slice(values, {0}, {1}, {2});
  node->Give(0, node->Add(off, node->Mul(node->Cast(hit, node->TypeOf(values)),
                                         node->Sub(on, off))));
}

void ImportTopK(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t axis = node->Axis(node->Int("axis", -1), node->Rank(x));
  OnnxNode::Slots inputs = {{"X", {x}}};
  OnnxNode::Attrs attrs = {{"axis", static_cast<int32_t>(axis)},
                           {"largest", node->Int("largest", 1) != 0},
                           {"sorted", node->Int("sorted", 1) != 0},
                           {kTiesByPlace, true}};
  if (node->HasAttr("k"))
    attrs["k"] = OnnxAttrInts({node->Int("k", 1)})[0];
  else if (const auto k = node->KnownInts(1); k.has_value() && k->size() == 1)
    attrs["k"] = OnnxAttrInts(*k)[0];
  else
    inputs.push_back({"K", {node->In(1)}});
  const auto outs =
      node->EmitMany("top_k_v2", inputs, {{"Out", 1}, {"Indices", 1}}, attrs);
  node->Give(0, outs[0]);
  node->Give(1, outs[1]);
}

void ImportArg(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t axis = node->Axis(node->Int("axis", 0), node->Rank(x));
  const bool last = node->Int("select_last_index", 0) != 0;
  if (last) x = node->Flip(x, {axis});
  std::string out =
      node->Unary(node->op_type(), x,
                  {{"axis", axis},
                   {"keepdims", node->Int("keepdims", 1) != 0},
                   {"dtype", static_cast<int32_t>(DType::kInt64)}});
  if (last) {
    const int64_t extent = node->Extent(x, axis);
    if (extent < 0)
      return node->Fail(
          Unimplemented("the extent of axis %d is not known", axis));
    out = node->Affine(out, -1, static_cast<double>(extent - 1));
  }
  node->Give(0, out);
}

void ImportNonZero(OnnxNode* node) {
  const std::string found = node->Emit(
      "where_index", {{"Condition", {node->Cast(node->In(0), DType::kBool)}}});
  node->Give(0, node->Transpose(found, {1, 0}));
}

void ImportCompress(OnnxNode* node) {
  std::string x = node->In(0);
  int64_t axis = 0;
  if (node->HasAttr("axis"))
    axis = node->Axis(node->Int("axis", 0), node->Rank(x));
  else
    x = node->Reshape(x, {-1});
  const std::string index = node->Emit(
      "where_index", {{"Condition", {node->Cast(node->In(1), DType::kBool)}}});
  node->Give(0, node->Gather(x, node->Squeeze(index, {1}), axis));
}

void ImportCumSum(OnnxNode* node) {
  const std::string x = node->In(0);
  const auto axis = static_cast<int64_t>(node->NeedNumber(1));
  node->Give(
      0, node->Unary(
             "cumsum", x,
             {{"axis", static_cast<int32_t>(node->Axis(axis, node->Rank(x)))},
              {"exclusive", node->Int("exclusive", 0) != 0},
              {"reverse", node->Int("reverse", 0) != 0}}));
}

// PaddlePaddle's op knows neither direction nor exclusion: the line is turned
// around, and moved by one place with a 1 in front.
void ImportCumProd(OnnxNode* node) {
  std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  const int64_t axis =
      node->Axis(static_cast<int64_t>(node->NeedNumber(1)), node->Rank(x));
  const int64_t extent = node->Extent(x, axis);
  const bool exclusive = node->Int("exclusive", 0) != 0;
  const bool reverse = node->Int("reverse", 0) != 0;
  if (node->ok() && exclusive && extent < 1)
    node->Fail(Unimplemented("axis %d of %d elements", axis, extent));
  if (!node->ok()) return;
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16)
    x = node->Cast(x, DType::kFloat32);
  if (reverse) x = node->Flip(x, {axis});
  if (exclusive) {
    const std::string first = node->Slice(x, {axis}, {0}, {1});
    const std::string one = node->FullLike(first, 1, node->TypeOf(x));
    x = extent == 1
            ? one
            : node->Concat({one, node->Slice(x, {axis}, {0}, {extent - 1})},
                           axis);
  }
  std::string out =
      node->Unary("cumprod", x, {{"dim", static_cast<int32_t>(axis)}});
  if (reverse) out = node->Flip(out, {axis});
  node->Give(0, node->Cast(out, dtype));
}

// PaddlePaddle's op sorts. Where ONNX asks for the order of appearance, the
// values are put into the order of their first indices.
void ImportUnique(OnnxNode* node) {
  const std::string x = node->In(0);
  OnnxNode::Attrs attrs = {{"return_index", true},
                           {"return_inverse", true},
                           {"return_counts", true},
                           {"is_sorted", true},
                           {"dtype", static_cast<int32_t>(DType::kInt64)}};
  int64_t axis = 0;
  if (node->HasAttr("axis")) {
    axis = node->Axis(node->Int("axis", 0), node->Rank(x));
    attrs["axis"] = std::vector<int32_t>{static_cast<int32_t>(axis)};
  }
  auto outs = node->EmitMany(
      "unique", {{"X", {x}}},
      {{"Out", 1}, {"Indices", 1}, {"Index", 1}, {"Counts", 1}}, attrs);
  if (node->Int("sorted", 1) == 0) {
    const auto order = [&](const std::string& keys) {
      return node->EmitMany("argsort", {{"X", {keys}}},
                            {{"Out", 1}, {"Indices", 1}},
                            {{"axis", static_cast<int32_t>(0)}})[1];
    };
    const std::string by_place = order(outs[1]);
    outs[2] = node->Gather(order(by_place), outs[2], 0);
    outs[0] = node->Gather(outs[0], by_place, axis);
    outs[1] = node->Gather(outs[1], by_place, 0);
    outs[3] = node->Gather(outs[3], by_place, 0);
  }
  for (size_t i = 0; i < outs.size(); ++i) node->Give(i, outs[i]);
}

// Rows t < length of sequence b come from length - 1 - t, others stay.
void ImportReverseSequence(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t time_axis = node->Int("time_axis", 0);
  const int64_t batch_axis = node->Int("batch_axis", 1);
  const Shape shape = node->ShapeOf(x);
  if (!node->ok()) return;
  if (shape.size() < 2 || IsDynamic(shape) || time_axis + batch_axis != 1 ||
      time_axis * batch_axis != 0)
    return node->Fail(Unimplemented("a tensor of shape %s over time axis %d",
                                    ToString(shape), time_axis));
  Ints perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[static_cast<size_t>(time_axis)]);
  perm[1] = 1 - perm[0];
  x = node->Transpose(x, perm);
  const Shape rows = node->ShapeOf(x);
  if (!node->ok()) return;
  const std::string lengths = node->Cast(node->In(1), DType::kInt64);
  const std::string time = node->Reshape(Counting(node, rows[0]), {rows[0], 1});
  const std::string back = node->Affine(node->Sub(time, lengths), -1, -1);
  const std::string inside =
      node->Cast(node->Binary("less_than", time, lengths), DType::kInt64);
  const std::string from = node->Add(
      node->Mul(inside, back), node->Mul(node->Affine(inside, -1, 1), time));
  const std::string index =
      node->Add(node->Affine(from, static_cast<double>(rows[1]), 0),
                Counting(node, rows[1]));
  Shape flat(rows.begin() + 1, rows.end());
  flat[0] = rows[0] * rows[1];
  const std::string out =
      node->Gather(node->Reshape(x, flat), node->Reshape(index, {-1}), 0);
  node->Give(0, node->Transpose(node->Reshape(out, rows), perm));
}

// Features by number: elements of the last axis.
void ImportArrayFeatures(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  if (node->ok() && rank < 1)
    return node->Fail(InvalidArgument("a scalar has no features"));
  const std::string at = node->Cast(node->In(1), DType::kInt64);
  node->Give(0, node->Gather(x, node->Reshape(at, {-1}), rank - 1));
}

}  // namespace

OnnxImportEntries IndexImports() {
  return {
      {"ArgMax", ImportArg, "arg_max"},
      {"ArgMin", ImportArg, "arg_min"},
      {"Compress", ImportCompress},
      {"ai.onnx.ml:ArrayFeatureExtractor", ImportArrayFeatures},
      {"CumProd", ImportCumProd},
      {"CumSum", ImportCumSum},
      {"Gather", ImportGather},
      {"GatherElements", ImportGatherElements},
      {"GatherND", ImportGatherND},
      {"NonZero", ImportNonZero},
      {"OneHot", ImportOneHot},
      {"ReverseSequence", ImportReverseSequence},
      {"TopK", ImportTopK},
      {"Unique", ImportUnique},
  };
}

}  // namespace pd
