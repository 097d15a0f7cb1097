// SPDX-License-Identifier: Apache-2.0
// Layers of Keras that have weights, slide windows or normalize.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

using Attrs = KerasCall::Attrs;
using Ints = KerasCall::Ints;

// The kernel's axes are those of the window, inputs, outputs; ONNX's outputs,
// inputs, those of the window.
Ints FilterPerm(int64_t rank, std::initializer_list<int64_t> front) {
  Ints perm = front;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  return perm;
}

LayoutWindow ReadWindow(KerasCall* call, const Ints& kernel,
                        const char* strides, bool dilates) {
  const size_t axes = kernel.size();
  LayoutWindow window;
  window.kernel = kernel;
  window.strides = call->Has(strides) ? call->IntsOf(strides, axes, 1) : kernel;
  window.dilations =
      dilates ? call->IntsOf("dilation_rate", axes, 1) : Ints(axes, 1);
  const std::string padding = call->Text("padding", "valid");
  window.same = padding == "same";
  window.causal = padding == "causal";
  if (!window.same && !window.causal && padding != "valid")
    call->Fail(Unimplemented("padding '%s'", padding));
  for (size_t i = 0; i < axes; ++i)
    if (kernel[i] < 1 || window.strides[i] < 1 || window.dilations[i] < 1)
      call->Fail(InvalidArgument("kernel %s, strides %s, dilations %s",
                                 ToString(kernel), ToString(window.strides),
                                 ToString(window.dilations)));
  if (static_cast<size_t>(call->Rank()) != axes + 2)
    call->Fail(InvalidArgument("a window of %d axes over shape %s", axes,
                               ToString(call->In().shape)));
  return window;
}

// The extents of a weight that are those of the window.
Ints KernelOf(const Array& weight, size_t axes) {
  return axes > weight.shape.size()
             ? Ints()
             : Ints(weight.shape.begin(),
                    weight.shape.begin() + static_cast<int64_t>(axes));
}

KerasCall::Names WithBias(KerasCall* call, KerasCall::Names inputs, size_t at,
                          int64_t outputs) {
  if (!call->Flag("use_bias", true)) return inputs;
  const Array& bias = call->Weight(at, 1);
  if (call->ok() && bias.shape[0] != outputs)
    call->Fail(
        DataLoss("a bias of %s for %d outputs", ToString(bias.shape), outputs));
  inputs.push_back(call->Param("bias", bias));
  return inputs;
}

size_t BiasCount(KerasCall* call) { return call->Flag("use_bias", true); }

// The part of a layer that all convolutions have: the axes that they slide
// along, the first of their kernels, and the window.
struct Sliding {
  int64_t axes = 0;
  const Array& kernel;
  LayoutWindow window;
};

Sliding SlidingKernel(KerasCall* call, size_t kernels) {
  const int64_t axes = call->Rank() - 2;
  call->WantWeights(kernels + BiasCount(call));
  const Array& kernel = call->Weight(0, axes + 2);
  LayoutWindow window = ReadWindow(
      call, KernelOf(kernel, static_cast<size_t>(std::max<int64_t>(axes, 0))),
      "strides", true);
  if (axes < 1)
    call->Fail(InvalidArgument("an input without axes to slide on"));
  return {axes, kernel, std::move(window)};
}

void ImportConv(KerasCall* call) {
  const auto [axes, kernel, window] = SlidingKernel(call, 1);
  if (!call->ok()) return;
  const int64_t outputs = kernel.shape.back();
  const Shape spatial = call->SpatialShape();
  Attrs attrs = call->graph().WindowAttrs(window, spatial);
  attrs["group"] = OnnxInt(call->Int("groups", 1));
  const std::string y = call->graph().Emit(
      "Conv",
      WithBias(call,
               {call->Spatial(),
                call->Param(
                    "kernel",
                    PermutedArray(kernel, FilterPerm(axes, {axes + 1, axes})))},
               1, outputs),
      attrs);
  call->Give(call->Activated(call->FromSpatial(
      y, call->graph().WindowExtents(window, spatial), outputs)));
}

// A filter for each input channel, "depth_multiplier" of them: [window...,
// inputs, multiplier] is [inputs * multiplier, 1, window...].
std::string DepthFilter(KerasCall* call, const char* name, const Array& kernel,
                        int64_t axes) {
  auto filter = PermutedArray(kernel, FilterPerm(axes, {axes, axes + 1}));
  if (filter.ok()) {
    const int64_t channels = filter->shape[0] * filter->shape[1];
    filter->shape.erase(filter->shape.begin());
    filter->shape[0] = channels;
    filter->shape.insert(filter->shape.begin() + 1, 1);
  }
  return call->Param(name, filter);
}

// DepthwiseConv and SeparableConv, which has a product of channels behind it.
void ImportDepthwise(KerasCall* call, bool separable) {
  const auto [axes, kernel, window] = SlidingKernel(call, separable ? 2 : 1);
  const Shape spatial = call->SpatialShape();
  const int64_t inputs = call->Channels();
  if (!call->ok()) return;
  if (kernel.shape[static_cast<size_t>(axes)] != inputs)
    call->Fail(DataLoss("a kernel of %s for %d channels",
                        ToString(kernel.shape), inputs));
  int64_t outputs = inputs * kernel.shape.back();
  LayoutGraph& graph = call->graph();
  Attrs attrs = graph.WindowAttrs(window, spatial);
  attrs["group"] = OnnxInt(inputs);
  KerasCall::Names operands = {
      call->Spatial(), DepthFilter(call, "depthwise_kernel", kernel, axes)};
  if (!separable) operands = WithBias(call, operands, 1, outputs);
  std::string y = graph.Emit("Conv", operands, attrs);
  if (separable) {
    const Array& point = call->Weight(1, axes + 2);
    if (!call->ok()) return;
    outputs = point.shape.back();
    y = graph.Emit(
        "Conv",
        WithBias(
            call,
            {y, call->Param(
                    "pointwise_kernel",
                    PermutedArray(point, FilterPerm(axes, {axes + 1, axes})))},
            2, outputs));
  }
  call->Give(call->Activated(
      call->FromSpatial(y, graph.WindowExtents(window, spatial), outputs)));
}

void ImportDepthwiseConv(KerasCall* call) { ImportDepthwise(call, false); }
void ImportSeparableConv(KerasCall* call) { ImportDepthwise(call, true); }

// The gradient of a convolution: [window..., outputs, inputs]. TensorFlow
// leaves out of what the windows cover as much as makes the output's extent.
void ImportConvTranspose(KerasCall* call) {
  const auto [axes, kernel, window] = SlidingKernel(call, 1);
  if (window.causal) call->Fail(Unimplemented("padding 'causal'"));
  const Shape spatial = call->SpatialShape();
  if (!call->ok()) return;
  const auto count = static_cast<size_t>(axes);
  const Ints extra = call->IntsOf("output_padding", count, 0);
  Ints pads(2 * count, 0), more(count, 0);
  Shape extents;
  for (size_t i = 0; i < count; ++i) {
    const int64_t k = window.kernel[i], stride = window.strides[i];
    const int64_t reach = (k - 1) * window.dilations[i] + 1;
    int64_t out_over =
        std::max<int64_t>(reach - stride, 0);  // over in * stride
    if (window.same) out_over = 0;
    if (call->Has("output_padding"))
      out_over = reach - stride - (window.same ? 2 * (k / 2) : 0) + extra[i];
    const int64_t left_out = reach - stride - out_over;
    pads[i] = std::max<int64_t>(left_out, 0) / 2;
    pads[count + i] = std::max<int64_t>(left_out, 0) - pads[i];
    more[i] = std::max<int64_t>(-left_out, 0);
    extents.push_back(spatial[i] < 0 ? -1 : spatial[i] * stride + out_over);
  }
  const int64_t outputs = kernel.shape[count];
  const std::string y = call->graph().Emit(
      "ConvTranspose",
      WithBias(call,
               {call->Spatial(),
                call->Param(
                    "kernel",
                    PermutedArray(kernel, FilterPerm(axes, {axes + 1, axes})))},
               1, outputs),
      {{"strides", OnnxInts(window.strides)},
       {"dilations", OnnxInts(window.dilations)},
       {"pads", OnnxInts(pads)},
       {"output_padding", OnnxInts(more)}});
  call->Give(call->Activated(call->FromSpatial(y, extents, outputs)));
}

void ImportPool(KerasCall* call, const char* op_type) {
  const auto axes = static_cast<size_t>(std::max<int64_t>(call->Rank() - 2, 1));
  const Ints kernel = call->IntsOf("pool_size", axes, 2);
  const LayoutWindow window = ReadWindow(call, kernel, "strides", false);
  const Shape spatial = call->SpatialShape();
  if (!call->ok()) return;
  Attrs attrs = call->graph().WindowAttrs(window, spatial);
  attrs["kernel_shape"] = OnnxInts(kernel);
  const std::string y = call->graph().Emit(op_type, {call->Spatial()}, attrs);
  call->Give(call->FromSpatial(y, call->graph().WindowExtents(window, spatial),
                               call->Channels()));
}

void ImportMaxPool(KerasCall* call) { ImportPool(call, "MaxPool"); }
void ImportAveragePool(KerasCall* call) { ImportPool(call, "AveragePool"); }

void ImportGlobalPool(KerasCall* call, const char* op_type) {
  const int64_t axes = call->Rank() - 2;
  const Shape spatial = call->SpatialShape();
  if (!call->ok()) return;
  Ints over;
  for (int64_t i = 0; i < axes; ++i) over.push_back(2 + i);
  const bool keep = call->Flag("keepdims", false);
  const std::string y =
      call->graph().Reduce(op_type, call->Spatial(), over, keep);
  if (keep)
    return call->Give(
        call->FromSpatial(y, Shape(spatial.size(), 1), call->Channels()));
  call->Give(y, {call->In().shape[0], call->Channels()});
}

void ImportGlobalMax(KerasCall* call) { ImportGlobalPool(call, "ReduceMax"); }
void ImportGlobalAverage(KerasCall* call) {
  const std::string& mask = call->In().mask;
  if (mask.empty()) return ImportGlobalPool(call, "ReduceMean");
  call->WantRank(3);
  if (call->front()) call->WantUnmasked();
  if (!call->ok()) return;
  // The mean of the steps that count.
  LayoutGraph& graph = call->graph();
  const bool keep = call->Flag("keepdims", false);
  const std::string counts = graph.Emit(
      "Unsqueeze", {graph.Cast(mask, DType::kFloat32), graph.ConstInts({2})});
  const std::string sum = graph.Reduce(
      "ReduceSum", graph.Emit("Mul", {call->X(), counts}), {1}, keep);
  const Shape& in = call->In().shape;
  call->Give(
      graph.Emit("Div", {sum, graph.Reduce("ReduceSum", counts, {1}, keep)}),
      keep ? Shape{in[0], 1, in[2]} : Shape{in[0], in[2]});
}

void ImportDense(KerasCall* call) {
  call->WantWeights(1 + BiasCount(call));
  const Array& kernel = call->Weight(0, 2);
  Shape shape = call->In().shape;
  if (call->ok() && (shape.size() < 2 || shape.back() != kernel.shape[0]))
    call->Fail(InvalidArgument("a kernel of %s for an input of %s",
                               ToString(kernel.shape), ToString(shape)));
  if (!call->ok()) return;
  shape.back() = kernel.shape[1];
  std::string y =
      call->graph().Emit("MatMul", {call->X(), call->Param("kernel", kernel)});
  const KerasCall::Names added = WithBias(call, {y}, 1, kernel.shape[1]);
  if (added.size() > 1) y = call->graph().Emit("Add", added);
  KerasTensor x;
  static_cast<LayoutTensor&>(x) = call->graph().Made(y, shape, false);
  x.mask = call->In().mask;
  call->Give(call->Activated(x));
}

void ImportEmbedding(KerasCall* call) {
  call->WantWeights(1);
  const Array& table = call->Weight(0, 2);
  KerasTensor& ids = call->In();
  if (!call->ok()) return;
  std::string rows = call->X();
  if (ids.dtype != DType::kInt32 && ids.dtype != DType::kInt64)
    rows = call->graph().Cast(rows, DType::kInt32);
  Shape shape = ids.shape;
  shape.push_back(table.shape[1]);
  KerasTensor x;
  static_cast<LayoutTensor&>(x) = call->graph().Made(
      call->graph().Emit("Gather", {call->Param("embeddings", table), rows}),
      shape, false);
  if (call->Flag("mask_zero", false)) {
    LayoutGraph& graph = call->graph();
    x.mask = graph.Emit(
        "Not",
        {graph.Emit("Equal", {rows, graph.Scalar(0, ids.dtype == DType::kInt64
                                                        ? DType::kInt64
                                                        : DType::kInt32)})});
  }
  call->Give(x);
}

// Floats of a vector; an error for other dtypes.
std::vector<double> NumbersOf(KerasCall* call, const Array& array) {
  if (array.dtype != DType::kFloat32)
    call->Fail(Unimplemented("a weight of %s", Name(array.dtype)));
  if (!call->ok()) return {};
  return {array.data<float>(), array.data<float>() + array.size()};
}

std::string Numbers(KerasCall* call, const char* name,
                    const std::vector<double>& values) {
  return call->Param(
      name, MakeArray<float>({static_cast<int64_t>(values.size())},
                             std::vector<float>(values.begin(), values.end())));
}

void ImportBatchNorm(KerasCall* call) {
  const bool scale = call->Flag("scale", true);
  const bool center = call->Flag("center", true);
  call->WantWeights(2 + static_cast<size_t>(scale) +
                    static_cast<size_t>(center));
  const Ints axes = call->IntList("axis");
  if (axes.size() > 1) call->Fail(Unimplemented("several axes"));
  KerasTensor x = call->In();
  const int64_t rank = x.rank();
  const int64_t axis = call->Axis(axes.empty() ? -1 : axes[0], rank);
  if (!call->ok()) return;
  std::vector<double> parts[4];  // gamma, beta, mean, variance
  size_t next = 0;
  for (size_t i = 0; i < 4; ++i) {
    if ((i == 0 && !scale) || (i == 1 && !center)) continue;
    parts[i] = NumbersOf(call, call->Weight(next++, 1));
  }
  parts[0].resize(scale ? parts[0].size() : parts[2].size(), 1);
  parts[1].resize(center ? parts[1].size() : parts[2].size(), 0);
  const double epsilon = call->Number("epsilon", 1e-3);
  const int64_t extent = x.shape[static_cast<size_t>(axis)];
  for (const auto& part : parts)
    if (call->ok() && static_cast<int64_t>(part.size()) != extent)
      call->Fail(
          DataLoss("%d statistics for an axis of %d", part.size(), extent));
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const bool last = axis == rank - 1 && rank > 3;
  if (axis == 1 || last) {
    const std::string in = last ? graph.Front(&x) : graph.Plain(&x);
    const std::string y = graph.Emit(
        "BatchNormalization",
        {in, Numbers(call, "gamma", parts[0]), Numbers(call, "beta", parts[1]),
         Numbers(call, "moving_mean", parts[2]),
         Numbers(call, "moving_variance", parts[3])},
        {{"epsilon", OnnxFloat(epsilon)}});
    static_cast<LayoutTensor&>(x) = graph.Made(y, x.shape, last);
    return call->Give(x);
  }
  if (axis != rank - 1) call->Fail(Unimplemented("axis %d", axis));
  for (size_t i = 0; i < parts[0].size(); ++i) {
    parts[0][i] /= std::sqrt(parts[3][i] + epsilon);
    parts[1][i] -= parts[2][i] * parts[0][i];
  }
  const std::string scaled =
      graph.Emit("Mul", {graph.Plain(&x), Numbers(call, "scale", parts[0])});
  static_cast<LayoutTensor&>(x) =
      graph.Made(graph.Emit("Add", {scaled, Numbers(call, "offset", parts[1])}),
                 x.shape, false);
  call->Give(x);
}

void ImportLayerNorm(KerasCall* call) {
  const bool scale = call->Flag("scale", true);
  const bool center = call->Flag("center", true);
  if (call->Flag("rms_scaling", false))
    call->Fail(Unimplemented("rms_scaling"));
  call->WantWeights(static_cast<size_t>(scale) + static_cast<size_t>(center));
  KerasTensor x = call->In();
  Ints axes = call->IntList("axis");
  if (axes.empty()) axes = {-1};
  for (int64_t& axis : axes) axis = call->Axis(axis, x.rank());
  std::sort(axes.begin(), axes.end());
  const auto count = static_cast<int64_t>(axes.size());
  for (int64_t i = 0; i < count; ++i)
    if (call->ok() && axes[static_cast<size_t>(i)] != x.rank() - count + i)
      call->Fail(Unimplemented("axes %s of %d", ToString(axes), x.rank()));
  if (!call->ok()) return;
  const Shape last(x.shape.end() - count, x.shape.end());
  if (IsDynamic(last) || !CheckedBytes(last, 4).ok() ||
      NumElements(last) > kMaxMade)
    return call->Fail(Unimplemented("axes of %s", ToString(last)));
  KerasCall::Names inputs = {call->X()};
  for (size_t i = 0; i < 2; ++i) {
    if (i == 1 && !center) break;
    if (i == 0 && !scale) {
      inputs.push_back(call->graph().Constant(MakeArray<float>(
          last,
          std::vector<float>(static_cast<size_t>(NumElements(last)), 1))));
      continue;
    }
    const Array& weight = call->Weight(scale ? i : 0, count);
    if (call->ok() && weight.shape != last)
      call->Fail(DataLoss("a weight of %s for axes of %s",
                          ToString(weight.shape), ToString(last)));
    inputs.push_back(call->Param(i == 0 ? "gamma" : "beta", weight));
  }
  static_cast<LayoutTensor&>(x) = call->graph().Made(
      call->graph().Emit(
          "LayerNormalization", inputs,
          {{"axis", OnnxInt(-count)},
           {"epsilon", OnnxFloat(call->Number("epsilon", 1e-3))}}),
      x.shape, false);
  call->Give(x);
}

// Numbers of config, in whatever lists they are.
void TakeNumbers(const KerasValue& value, std::vector<double>* out) {
  if (value.kind == KerasValue::Kind::kInt ||
      value.kind == KerasValue::Kind::kFloat)
    out->push_back(value.f);
  for (const KerasValue& item : value.list) TakeNumbers(item, out);
  // A NumPy array: {"class_name": "__numpy__", "config": {"value": [...]}}.
  if (value.kind == KerasValue::Kind::kDict)
    TakeNumbers(
        value.dict.count("config") > 0 ? value["config"] : value["value"], out);
}

// (x - mean) / deviation, of the last axis.
void ImportNormalization(KerasCall* call) {
  KerasTensor x = call->In();
  const Ints axes = call->IntList("axis");
  if (call->Flag("invert", false)) call->Fail(Unimplemented("invert"));
  if (axes.size() > 1 ||
      (axes.size() == 1 && call->Axis(axes[0], x.rank()) != x.rank() - 1))
    call->Fail(Unimplemented("axes %s", ToString(axes)));
  std::vector<double> mean, variance;
  if (call->Has("mean")) {
    TakeNumbers(call->Config("mean"), &mean);
    TakeNumbers(call->Config("variance"), &variance);
  } else {
    mean = NumbersOf(call, call->Weight(0, -1));
    variance = NumbersOf(call, call->Weight(1, -1));
  }
  if (!call->ok()) return;
  if (mean.empty() || mean.size() != variance.size() ||
      (mean.size() > 1 && static_cast<int64_t>(mean.size()) != x.shape.back()))
    return call->Fail(DataLoss("%d means and %d variances for shape %s",
                               mean.size(), variance.size(),
                               ToString(x.shape)));
  constexpr double kLeast = 1e-7;
  for (double& v : variance) v = 1 / std::max(std::sqrt(v), kLeast);
  LayoutGraph& graph = call->graph();
  std::string in = call->X();
  if (x.dtype != DType::kFloat32) in = graph.Cast(in, DType::kFloat32);
  const std::string off = graph.Emit("Sub", {in, Numbers(call, "mean", mean)});
  static_cast<LayoutTensor&>(x) =
      graph.Made(graph.Emit("Mul", {off, Numbers(call, "scale", variance)}),
                 x.shape, false);
  call->Give(x);
}

}  // namespace

KerasImportEntries KerasNetworkImports() {
  return {
      {"AveragePooling1D", ImportAveragePool},
      {"AveragePooling2D", ImportAveragePool},
      {"AveragePooling3D", ImportAveragePool},
      {"BatchNormalization", ImportBatchNorm},
      {"BatchNormalizationV1", ImportBatchNorm},
      {"Conv1D", ImportConv},
      {"Conv1DTranspose", ImportConvTranspose},
      {"Conv2D", ImportConv},
      {"Conv2DTranspose", ImportConvTranspose},
      {"Conv3D", ImportConv},
      {"Dense", ImportDense},
      {"DepthwiseConv1D", ImportDepthwiseConv},
      {"DepthwiseConv2D", ImportDepthwiseConv},
      {"Embedding", ImportEmbedding},
      {"GlobalAveragePooling1D", ImportGlobalAverage},
      {"GlobalAveragePooling2D", ImportGlobalAverage},
      {"GlobalAveragePooling3D", ImportGlobalAverage},
      {"GlobalMaxPooling1D", ImportGlobalMax},
      {"GlobalMaxPooling2D", ImportGlobalMax},
      {"GlobalMaxPooling3D", ImportGlobalMax},
      {"LayerNormalization", ImportLayerNorm},
      {"MaxPooling1D", ImportMaxPool},
      {"MaxPooling2D", ImportMaxPool},
      {"MaxPooling3D", ImportMaxPool},
      {"Normalization", ImportNormalization},
      {"SeparableConv1D", ImportSeparableConv},
      {"SeparableConv2D", ImportSeparableConv},
  };
}

}  // namespace pd
