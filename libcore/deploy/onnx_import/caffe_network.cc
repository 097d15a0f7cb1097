// SPDX-License-Identifier: Apache-2.0
// Layers of Caffe that have weights, slide windows or normalize.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/caffe_layer.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

size_t Bottoms(OnnxNode* node) {
  return static_cast<size_t>(
      std::clamp<int64_t>(CaffeInteger(node, "bottoms", 1), 0,
                          static_cast<int64_t>(node->InputCount())));
}

std::string AddAt(OnnxNode* node, const std::string& x, const std::string& y,
                  int64_t axis, const char* type = "elementwise_add") {
  return node->Emit(type, {{"X", {x}}, {"Y", {y}}},
                    {{"axis", static_cast<int32_t>(axis)}});
}

void ImportPreluLayer(OnnxNode* node) {
  NeedCaffeWeights(node, 1);
  const bool shared = CaffeInteger(node, "channel_shared", 0) != 0;
  if (!node->ok()) return;
  node->Give(
      0, node->Emit("prelu", {{"X", {node->In(0)}}, {"Alpha", {node->In(1)}}},
                    {{"mode", std::string(shared ? "all" : "channel")}}));
}

// Filters are [outputs, inputs of a group, ...], of Deconvolution [inputs,
// outputs of a group, ...], as PaddlePaddle's are.
void ImportConvolution(OnnxNode* node) {
  NeedCaffeWeights(node, 1);
  const std::string x = node->In(0), filter = node->In(1);
  const Shape shape = node->ShapeOf(filter);
  if (!node->ok()) return;
  if (shape.size() != 4 && shape.size() != 5)
    return node->Fail(Unimplemented("a filter of shape %s", ToString(shape)));
  if (CaffeInteger(node, "axis", 1) != 1)
    return node->Fail(Unimplemented("channels in another axis than 1"));
  const size_t rank = shape.size() - 2;
  const Ints kernel(shape.begin() + 2, shape.end());
  const Ints said = CaffePerAxis(node, "kernel", "kernel_size", rank, 0);
  if (node->ok() && said != kernel)
    return node->Fail(InvalidArgument("kernel_size is %s; its filter is of %s",
                                      ToString(said), ToString(shape)));
  const bool transposed = std::string(node->op_type()) == "conv_transpose";
  const int64_t groups = CaffeInteger(node, "group", 1);
  const int64_t outputs = CaffeInteger(node, "num_output", 0);
  if (node->ok() && groups < 1)
    node->Fail(InvalidArgument("group is %d", groups));
  if (!node->ok()) return;
  const bool fits = transposed
                        ? outputs % groups == 0 && outputs / groups == shape[1]
                        : outputs == shape[0];
  if (!fits)
    return node->Fail(InvalidArgument("num_output is %d; its filter is of %s",
                                      outputs, ToString(shape)));
  const std::string type =
      transposed ? (rank == 3 ? "conv3d_transpose" : "conv2d_transpose")
                 : (rank == 3 ? "conv3d" : "conv2d");
  std::string out = node->Emit(
      type, {{"Input", {x}}, {"Filter", {filter}}},
      {{"strides",
        OnnxAttrInts(CaffePerAxis(node, "stride", "stride", rank, 1))},
       {"paddings", OnnxAttrInts(CaffePerAxis(node, "pad", "pad", rank, 0))},
       {"dilations",
        OnnxAttrInts(CaffePerAxis(node, "dilation", "dilation", rank, 1))},
       {"padding_algorithm", std::string("EXPLICIT")},
       {"groups", OnnxAttrInts({groups})[0]}},
      "Output");
  if (node->InputCount() > 2) out = AddAt(node, out, node->In(2), 1);
  node->Give(0, out);
}

// All axes from `axis` on are one, the products' inner axis.
void ImportInnerProduct(OnnxNode* node) {
  NeedCaffeWeights(node, 1);
  std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  const int64_t axis = node->Axis(CaffeInteger(node, "axis", 1), rank);
  if (!node->ok()) return;
  if (axis + 1 < rank)
    x = node->Unary(
        "flatten_contiguous_range", x,
        {{"start_axis", static_cast<int32_t>(axis)}, {"stop_axis", -1}});
  const bool transposed = CaffeInteger(node, "transpose", 0) != 0;
  const std::string weight = node->In(1);
  const int64_t outputs = CaffeInteger(node, "num_output", 0);
  if (node->ok() && node->Extent(weight, transposed ? 1 : 0) != outputs)
    return node->Fail(InvalidArgument("num_output is %d; its weight is of %s",
                                      outputs,
                                      ToString(node->ShapeOf(weight))));
  std::string out = node->MatMul(x, weight, false, !transposed);
  if (node->InputCount() > 2) out = AddAt(node, out, node->In(2), -1);
  node->Give(0, out);
}

void ImportEmbed(OnnxNode* node) {
  NeedCaffeWeights(node, 1);
  std::string out = node->Emit(
      "lookup_table_v2", {{"Ids", {node->Cast(node->In(0), DType::kInt64)}},
                          {"W", {node->In(1)}}});
  if (node->InputCount() > 2) out = AddAt(node, out, node->In(2), -1);
  node->Give(0, out);
}

// The windows of a pooling over height and width. Caffe rounds their number up,
// and leaves out a last one that would start behind the tensor and its pad.
struct CaffeWindows {
  Ints kernel, stride, pad;
  Ints reach;  // of the last window behind the tensor
};

bool WindowsOf(OnnxNode* node, const Shape& shape, CaffeWindows* w) {
  w->kernel = CaffePerAxis(node, "kernel", "kernel_size", 2, 0);
  w->stride = CaffePerAxis(node, "stride", "stride", 2, 1);
  w->pad = CaffePerAxis(node, "pad", "pad", 2, 0);
  const bool floor = CaffeInteger(node, "round_mode", 0) == 1;
  if (!node->ok()) return false;
  const bool padded = w->pad[0] != 0 || w->pad[1] != 0;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t k = w->kernel[i], s = w->stride[i], p = w->pad[i];
    const int64_t extent = shape[i + 2], room = extent + 2 * p - k;
    if (extent < 0) {
      node->Fail(FailedPrecondition(
          "its input is of shape %s; height and width have to be known",
          ToString(shape)));
      return false;
    }
    if (k < 1 || s < 1 || p >= k || room < 0) {
      node->Fail(
          InvalidArgument("windows of %d, stride %d, pad %d over an axis of %d",
                          k, s, p, extent));
      return false;
    }
    int64_t count = (floor ? room : room + s - 1) / s + 1;
    if (padded && (count - 1) * s >= extent + p) --count;
    w->reach.push_back(std::max<int64_t>(0, (count - 1) * s + k - extent - p));
  }
  return true;
}

// A mean counts the pad, but no place behind it.
void ImportPooling(OnnxNode* node) {
  std::string x = node->In(0);
  const Shape shape = node->ShapeOf(x);
  const int64_t method = CaffeInteger(node, "pool", 0);
  if (!node->ok()) return;
  if (shape.size() != 4 || method < 0 || method > 1)
    return node->Fail(Unimplemented(
        "pool %d of a tensor of shape %s; MAX and AVE of four axes are", method,
        ToString(shape)));
  const std::string type = method == 0 ? "max" : "avg";
  if (CaffeInteger(node, "global_pooling", 0) != 0)
    return node->Give(0, node->Unary("pool2d", x,
                                     {{"ksize", std::vector<int32_t>{1, 1}},
                                      {"pooling_type", type},
                                      {"global_pooling", true}}));
  CaffeWindows w;
  if (!WindowsOf(node, shape, &w)) return;
  if (method == 1 && (w.pad[0] > 0 || w.pad[1] > 0)) {
    x = node->Unary("pad", x,
                    {{"paddings", OnnxAttrInts({0, 0, 0, 0, w.pad[0], w.pad[0],
                                                w.pad[1], w.pad[1]})},
                     {"pad_value", 0.0f}});
    for (size_t i = 0; i < 2; ++i) {
      w.reach[i] = std::max<int64_t>(0, w.reach[i] - w.pad[i]);
      w.pad[i] = 0;
    }
  }
  node->Give(0, node->Unary("pool2d", x,
                            {{"ksize", OnnxAttrInts(w.kernel)},
                             {"strides", OnnxAttrInts(w.stride)},
                             {"paddings", OnnxAttrInts({w.pad[0], w.reach[0],
                                                        w.pad[1], w.reach[1]})},
                             {"pooling_type", type},
                             {"exclusive", true},
                             {"padding_algorithm", std::string("EXPLICIT")}}));
}

// Across channels: x / (k + alpha / size * sum of squares) ^ beta. Within a
// channel the sum is over a square of places, and k is 1.
void ImportLrnLayer(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t size = CaffeInteger(node, "local_size", 5);
  const double alpha = CaffeNumber(node, "alpha", 1);
  const double beta = CaffeNumber(node, "beta", 0.75);
  if (node->ok() && (size < 1 || size > 65535 || size % 2 == 0))
    node->Fail(
        InvalidArgument("local_size is %d; expected an odd number", size));
  if (!node->ok()) return;
  if (CaffeInteger(node, "norm_region", 0) == 0)
    return node->Give(
        0, node->Unary("lrn", x,
                       {{"n", static_cast<int32_t>(size)},
                        {"alpha",
                         static_cast<float>(alpha / static_cast<double>(size))},
                        {"beta", static_cast<float>(beta)},
                        {"k", static_cast<float>(CaffeNumber(node, "k", 1))}}));
  const std::string mean =
      node->Unary("pool2d", node->Unary("square", x),
                  {{"ksize", OnnxAttrInts({size, size})},
                   {"strides", OnnxAttrInts({1, 1})},
                   {"paddings", OnnxAttrInts({size / 2, size / 2})},
                   {"pooling_type", std::string("avg")},
                   {"exclusive", false}});
  node->Give(
      0, node->Mul(x, node->Unary("pow", node->Affine(mean, alpha, 1),
                                  {{"factor", static_cast<float>(-beta)}})));
}

void ImportBatchNormLayer(OnnxNode* node) {
  if (CaffeInteger(node, "use_global_stats", 1) == 0)
    return node->Fail(Unimplemented("statistics of the batch itself"));
  OnnxImporter& importer = node->importer();
  const std::string mean = node->In(3), variance = node->In(4);
  OpDesc op;
  op.type = "batch_norm";
  op.SetInput("X", {node->In(0)});
  op.SetInput("Scale", {node->In(1)});
  op.SetInput("Bias", {node->In(2)});
  op.SetInput("Mean", {mean});
  op.SetInput("Variance", {variance});
  const std::string y = importer.NewVariable();
  op.SetOutput("Y", {y});
  op.SetOutput("MeanOut", {mean});
  op.SetOutput("VarianceOut", {variance});
  op.SetOutput("SavedMean", {importer.NewVariable()});
  op.SetOutput("SavedVariance", {importer.NewVariable()});
  op.attrs = {{"epsilon", static_cast<float>(CaffeNumber(node, "eps", 1e-5))},
              {"is_test", true},
              {"momentum", static_cast<float>(CaffeNumber(
                               node, "moving_average_fraction", 0.999))}};
  if (!node->ok()) return;
  node->Fail(importer.builder().Append(std::move(op)));
  node->Give(0, y);
}

// The second tensor's axes are those of the first from `axis` on.
std::string AlignedAt(OnnxNode* node, const std::string& x,
                      const std::string& y, const char* type) {
  const int64_t axis = node->Axis(CaffeInteger(node, "axis", 1), node->Rank(x));
  return AddAt(node, x, y, node->Rank(y) == 0 ? -1 : axis, type);
}

void ImportScale(OnnxNode* node) {
  const size_t bottoms = Bottoms(node);
  if (bottoms < 2) NeedCaffeWeights(node, bottoms);
  std::string out =
      AlignedAt(node, node->In(0), node->In(1), "elementwise_mul");
  if (node->InputCount() > 2)
    out = AlignedAt(node, out, node->In(2), "elementwise_add");
  node->Give(0, out);
}

void ImportBias(OnnxNode* node) {
  if (Bottoms(node) < 2) NeedCaffeWeights(node, 1);
  node->Give(0, AlignedAt(node, node->In(0), node->In(1), "elementwise_add"));
}

// Epsilon is added to the deviation, not to the variance.
void ImportMvn(OnnxNode* node) {
  const std::string x = node->In(0);
  Ints axes;
  for (int64_t i = CaffeInteger(node, "across_channels", 0) != 0 ? 1 : 2;
       i < node->Rank(x); ++i)
    axes.push_back(i);
  if (node->ok() && axes.empty())
    node->Fail(InvalidArgument("a tensor of shape %s has no such axes",
                               ToString(node->ShapeOf(x))));
  if (!node->ok()) return;
  const std::string off =
      node->Sub(x, node->Reduce("reduce_mean", x, axes, true));
  if (CaffeInteger(node, "normalize_variance", 1) == 0)
    return node->Give(0, off);
  const std::string variance =
      node->Reduce("reduce_mean", node->Unary("square", off), axes, true);
  node->Give(0, node->Div(off, node->Affine(node->Unary("sqrt", variance), 1,
                                            CaffeNumber(node, "eps", 1e-9))));
}

// x over its norm, over all of a picture or the channels of a place; SSD's.
void ImportNormalize(OnnxNode* node) {
  NeedCaffeWeights(node, 1);
  const std::string x = node->In(0);
  Ints axes = {1};
  if (CaffeInteger(node, "across_spatial", 1) != 0)
    for (int64_t i = 2; i < node->Rank(x); ++i) axes.push_back(i);
  const std::string squares =
      node->Reduce("reduce_sum", node->Unary("square", x), axes, true);
  const std::string norm = node->Unary(
      "sqrt", node->Affine(squares, 1, CaffeNumber(node, "eps", 1e-10)));
  node->Give(0, AddAt(node, node->Div(x, norm), node->In(1),
                      CaffeInteger(node, "channel_shared", 1) != 0 ? -1 : 1,
                      "elementwise_mul"));
}

}  // namespace

OnnxImportEntries CaffeNetworkImports() {
  return {
      {"caffe:BatchNorm", ImportBatchNormLayer},
      {"caffe:Bias", ImportBias},
      {"caffe:Convolution", ImportConvolution, "conv"},
      {"caffe:Deconvolution", ImportConvolution, "conv_transpose"},
      {"caffe:Embed", ImportEmbed},
      {"caffe:InnerProduct", ImportInnerProduct},
      {"caffe:LRN", ImportLrnLayer},
      {"caffe:MVN", ImportMvn},
      {"caffe:Normalize", ImportNormalize},
      {"caffe:PReLU", ImportPreluLayer},
      {"caffe:Pooling", ImportPooling},
      {"caffe:Scale", ImportScale},
  };
}

}  // namespace pd
