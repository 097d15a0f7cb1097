// SPDX-License-Identifier: Apache-2.0
// Layers of Caffe that compute by element, move elements or reduce axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/caffe_layer.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

// Layers of one op without parameters.
void ImportPlainLayer(OnnxNode* node) {
  node->Give(0, node->Unary(node->op_type(), node->In(0)));
}

void ImportSame(OnnxNode* node) {
  const std::string x = node->In(0);
  for (size_t i = 0; i < node->OutputCount(); ++i) node->Give(i, x);
}

void ImportNothing(OnnxNode*) {}

void ImportReluLayer(OnnxNode* node) {
  const double slope = CaffeNumber(node, "negative_slope", 0);
  node->Give(0, slope == 0
                    ? node->Unary("relu", node->In(0))
                    : node->Unary("leaky_relu", node->In(0),
                                  {{"alpha", static_cast<float>(slope)}}));
}

void ImportEluLayer(OnnxNode* node) {
  node->Give(
      0, node->Unary(
             "elu", node->In(0),
             {{"alpha", static_cast<float>(CaffeNumber(node, "alpha", 1))}}));
}

std::string ScaledAndShifted(OnnxNode* node) {
  const double scale = CaffeNumber(node, "scale", 1);
  const double shift = CaffeNumber(node, "shift", 0);
  const std::string x = node->In(0);
  return scale == 1 && shift == 0 ? x : node->Affine(x, scale, shift);
}

// (shift + scale x) ^ power
void ImportPower(OnnxNode* node) {
  const double power = CaffeNumber(node, "power", 1);
  const std::string x = ScaledAndShifted(node);
  node->Give(
      0, power == 1
             ? x
             : node->Unary("pow", x, {{"factor", static_cast<float>(power)}}));
}

// base ^ (shift + scale x); -1 stands for e
void ImportExpLayer(OnnxNode* node) {
  const double base = CaffeNumber(node, "base", -1);
  std::string x = ScaledAndShifted(node);
  if (base != -1) x = node->Affine(x, std::log(base), 0);
  node->Give(0, node->Unary("exp", x));
}

// log_base(shift + scale x)
void ImportLogLayer(OnnxNode* node) {
  const double base = CaffeNumber(node, "base", -1);
  const std::string log = node->Unary("log", ScaledAndShifted(node));
  node->Give(0, base == -1 ? log : node->Affine(log, 1 / std::log(base), 0));
}

void ImportThreshold(OnnxNode* node) {
  const std::string x = node->In(0);
  const DType dtype = node->TypeOf(x);
  node->Give(
      0, node->Cast(node->Binary(
                        "greater_than", x,
                        node->Scalar(CaffeNumber(node, "threshold", 0), dtype)),
                    dtype));
}

void ImportConcatLayer(OnnxNode* node) {
  const OnnxNode::Names xs = node->Ins();
  if (!node->ok() || xs.empty()) return;
  const int64_t axis =
      CaffeInteger(node, "axis", CaffeInteger(node, "concat_dim", 1));
  node->Give(0, node->Concat(xs, node->Axis(axis, node->Rank(xs[0]))));
}

void ImportSlice(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t axis =
      node->Axis(CaffeInteger(node, "axis", CaffeInteger(node, "slice_dim", 1)),
                 node->Rank(x));
  const size_t count = node->OutputCount();
  Ints points = CaffeIntegers(node, "slice_point");
  if (points.empty()) {
    const int64_t extent = node->Extent(x, axis);
    const auto parts = static_cast<int64_t>(count);
    if (node->ok() && (extent < 0 || parts == 0 || extent % parts != 0))
      return node->Fail(
          InvalidArgument("%d tops of an axis of %d", parts, extent));
    for (int64_t i = 1; node->ok() && i < parts; ++i)
      points.push_back(extent / parts * i);
  }
  if (!node->ok()) return;
  if (points.size() + 1 != count)
    return node->Fail(
        InvalidArgument("%d slice_point for %d tops", points.size(), count));
  points.insert(points.begin(), 0);
  points.push_back(std::numeric_limits<int32_t>::max());
  for (size_t i = 0; i < count; ++i)
    node->Give(i, node->Slice(x, {axis}, {points[i]}, {points[i + 1]}));
}

// PROD, SUM with a factor for each bottom, MAX.
void ImportEltwise(OnnxNode* node) {
  OnnxNode::Names xs = node->Ins();
  const int64_t operation = CaffeInteger(node, "operation", 1);
  const std::vector<double> factors = CaffeNumbers(node, "coeff");
  if (!node->ok()) return;
  if (operation < 0 || operation > 2 || xs.empty() ||
      (!factors.empty() && factors.size() != xs.size()))
    return node->Fail(InvalidArgument("operation %d, %d coeff for %d bottoms",
                                      operation, factors.size(), xs.size()));
  static constexpr const char* kOps[] = {"elementwise_mul", "elementwise_add",
                                         "elementwise_max"};
  for (size_t i = 0; operation == 1 && i < factors.size(); ++i)
    if (factors[i] != 1) xs[i] = node->Affine(xs[i], factors[i], 0);
  std::string out = xs[0];
  for (size_t i = 1; i < xs.size(); ++i)
    out = node->Binary(kOps[operation], out, xs[i]);
  node->Give(0, out);
}

void ImportFlattenLayer(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const int64_t first = node->Axis(CaffeInteger(node, "axis", 1), rank);
  const int64_t last = node->Axis(CaffeInteger(node, "end_axis", -1), rank);
  if (!node->ok()) return;
  if (first > last)
    return node->Fail(InvalidArgument("axis %d to end_axis %d", first, last));
  node->Give(0, node->Unary("flatten_contiguous_range", x,
                            {{"start_axis", static_cast<int32_t>(first)},
                             {"stop_axis", static_cast<int32_t>(last)}}));
}

// `shape` takes the place of num_axes axes from `axis` on; 0 is the extent of
// the axis that stood there, -1 what is left.
void ImportReshapeLayer(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const Ints dims = CaffeIntegers(node, "shape");
  const int64_t axis = CaffeInteger(node, "axis", 0);
  const int64_t count = CaffeInteger(node, "num_axes", -1);
  if (!node->ok()) return;
  const int64_t first = axis < 0 ? axis + rank + 1 : axis;
  const int64_t end = count < 0 ? rank : first + count;
  if (first < 0 || first > rank || end > rank)
    return node->Fail(InvalidArgument("axis %d and num_axes %d of shape %s",
                                      axis, count, ToString(node->ShapeOf(x))));
  std::vector<OnnxNode::Dim> shape;
  for (int64_t i = 0; i < first; ++i) shape.push_back({-1, x, i});
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t from = first + static_cast<int64_t>(i);
    if (dims[i] == 0 && from >= rank)
      return node->Fail(InvalidArgument("dim 0 for axis %d of shape %s", from,
                                        ToString(node->ShapeOf(x))));
    shape.push_back(dims[i] == 0 ? OnnxNode::Dim{-1, x, from}
                                 : OnnxNode::Dim{dims[i]});
  }
  for (int64_t i = end; i < rank; ++i) shape.push_back({-1, x, i});
  node->Give(0, node->ReshapeTo(x, shape));
}

void ImportSoftmaxLayer(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t axis = node->Axis(CaffeInteger(node, "axis", 1), node->Rank(x));
  node->Give(0,
             node->Unary("softmax", x, {{"axis", static_cast<int32_t>(axis)}}));
}

// The places of the k largest along an axis, in x's dtype, and their values. Of
// equals the last is the largest, as Caffe sorts pairs of value and place; of
// several largest ones equals come in any order.
OnnxNode::Names LargestOf(OnnxNode* node, const std::string& x, int64_t axis,
                          int64_t k) {
  const int64_t extent = node->Extent(x, axis);
  if (node->ok() && (extent < 0 || k < 1 || k > extent))
    node->Fail(InvalidArgument("top_k is %d of an axis of %d", k, extent));
  if (!node->ok()) return {"", ""};
  const DType dtype = node->TypeOf(x);
  if (k == 1) {
    const std::string place =
        node->Unary("arg_max", node->Flip(x, {axis}),
                    {{"axis", axis},
                     {"keepdims", true},
                     {"dtype", static_cast<int32_t>(DType::kInt64)}});
    return {node->Affine(node->Cast(place, dtype), -1,
                         static_cast<double>(extent - 1)),
            node->Reduce("reduce_max", x, {axis}, true)};
  }
  auto top =
      node->EmitMany("top_k_v2", {{"X", {x}}}, {{"Out", 1}, {"Indices", 1}},
                     {{"k", static_cast<int32_t>(k)},
                      {"axis", static_cast<int32_t>(axis)},
                      {"largest", true},
                      {"sorted", true}});
  if (!node->ok()) return {"", ""};
  return {node->Cast(top[1], dtype), top[0]};
}

// Without an axis the largest numbers of each picture, a row of places and, if
// wanted, one of values; with one the places or the values.
void ImportArgMax(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t k = CaffeInteger(node, "top_k", 1);
  const bool values = CaffeInteger(node, "out_max_val", 0) != 0;
  if (node->HasAttr("axis")) {
    const auto top = LargestOf(
        node, x, node->Axis(CaffeInteger(node, "axis", 0), node->Rank(x)), k);
    return node->Give(0, top[values ? 1 : 0]);
  }
  x = node->Unary("flatten_contiguous_range", x,
                  {{"start_axis", 1}, {"stop_axis", -1}});
  const auto top = LargestOf(node, x, 1, k);
  const std::string places = node->Unsqueeze(top[0], {1});
  node->Give(0, values ? node->Concat({places, node->Unsqueeze(top[1], {1})}, 1)
                       : places);
}

// SUM, ASUM (of magnitudes), SUMSQ, MEAN over all axes from `axis` on.
void ImportReduction(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t operation = CaffeInteger(node, "operation", 1);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(CaffeInteger(node, "axis", 0), rank);
  if (!node->ok()) return;
  if (operation < 1 || operation > 4)
    return node->Fail(InvalidArgument("operation is %d", operation));
  if (operation == 2) x = node->Unary("abs", x);
  if (operation == 3) x = node->Unary("square", x);
  Ints axes;
  for (int64_t i = axis; i < rank && axis > 0; ++i) axes.push_back(i);
  const std::string out = node->Reduce(
      operation == 4 ? "reduce_mean" : "reduce_sum", x, axes, false);
  const double factor = CaffeNumber(node, "coeff", 1);
  node->Give(0, factor == 1 ? out : node->Affine(out, factor, 0));
}

void ImportTileLayer(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(CaffeInteger(node, "axis", 1), rank);
  if (!node->ok()) return;
  Ints times(static_cast<size_t>(rank), 1);
  times[static_cast<size_t>(axis)] = CaffeInteger(node, "tiles", 0);
  node->Give(0,
             node->Unary("tile", x, {{"repeat_times", OnnxAttrInts(times)}}));
}

// The extents from `axis` on become those of the second bottom.
void ImportCrop(OnnxNode* node) {
  const std::string x = node->In(0), like = node->In(1);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(CaffeInteger(node, "axis", 2), rank);
  Ints offsets = CaffeIntegers(node, "offset");
  if (!node->ok()) return;
  if (offsets.empty()) offsets = {0};
  const auto cut = static_cast<size_t>(rank - axis);
  if (offsets.size() == 1) offsets.resize(cut, offsets[0]);
  if (offsets.size() != cut)
    return node->Fail(
        InvalidArgument("%d offset for %d axes", offsets.size(), cut));
  Ints axes, ends;
  for (size_t i = 0; i < cut; ++i) {
    axes.push_back(axis + static_cast<int64_t>(i));
    const int64_t want = node->Extent(like, axes[i]);
    const int64_t has = node->Extent(x, axes[i]);
    if (!node->ok()) return;
    if (want < 0 || has < 0 || offsets[i] < 0 || offsets[i] + want > has)
      return node->Fail(InvalidArgument(
          "axis %d of %s cannot be cut to that of %s from %d on", axes[i],
          ToString(node->ShapeOf(x)), ToString(node->ShapeOf(like)),
          offsets[i]));
    ends.push_back(offsets[i] + want);
  }
  node->Give(0, node->Slice(x, axes, offsets, ends));
}

// Axes that `order` leaves out follow in their order.
void ImportPermute(OnnxNode* node) {
  const std::string x = node->In(0);
  Ints order = CaffeIntegers(node, "order");
  for (int64_t i = 0; i < node->Rank(x); ++i)
    if (std::find(order.begin(), order.end(), i) == order.end())
      order.push_back(i);
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i))
      return node->Fail(InvalidArgument("order is %s for shape %s",
                                        ToString(order),
                                        ToString(node->ShapeOf(x))));
  node->Give(0, node->Transpose(x, order));
}

}  // namespace

OnnxImportEntries CaffeTensorImports() {
  return {
      {"caffe:AbsVal", ImportPlainLayer, "abs"},
      {"caffe:ArgMax", ImportArgMax},
      {"caffe:BNLL", ImportPlainLayer, "softplus"},
      {"caffe:Concat", ImportConcatLayer},
      {"caffe:Crop", ImportCrop},
      {"caffe:Dropout", ImportSame},
      {"caffe:ELU", ImportEluLayer},
      {"caffe:Eltwise", ImportEltwise},
      {"caffe:Exp", ImportExpLayer},
      {"caffe:Flatten", ImportFlattenLayer},
      {"caffe:Log", ImportLogLayer},
      {"caffe:Permute", ImportPermute},
      {"caffe:Power", ImportPower},
      {"caffe:ReLU", ImportReluLayer},
      {"caffe:ReLU6", ImportPlainLayer, "relu6"},
      {"caffe:Reduction", ImportReduction},
      {"caffe:Reshape", ImportReshapeLayer},
      {"caffe:Sigmoid", ImportPlainLayer, "sigmoid"},
      {"caffe:Silence", ImportNothing},
      {"caffe:Slice", ImportSlice},
      {"caffe:Softmax", ImportSoftmaxLayer},
      {"caffe:Split", ImportSame},
      {"caffe:TanH", ImportPlainLayer, "tanh"},
      {"caffe:Threshold", ImportThreshold},
      {"caffe:Tile", ImportTileLayer},
  };
}

}  // namespace pd
