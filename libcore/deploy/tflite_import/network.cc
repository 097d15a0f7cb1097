// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that slide windows, multiply matrices, resize or reduce.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/tflite_import/call.h"

namespace pd {
namespace {

using Attrs = TfliteCall::Attrs;
using Ints = TfliteCall::Ints;
using Names = TfliteCall::Names;

constexpr int64_t kMostStep = int64_t{1} << 20;

// Options of windows have width and height in this order.
LayoutWindow Window(TfliteCall* call, const Ints& kernel, int64_t padding,
                    const Ints& strides, const Ints& dilations) {
  LayoutWindow window;
  window.kernel = kernel;
  window.strides = strides;
  window.dilations = dilations;
  window.same = padding == 0;
  for (const Ints* numbers : {&kernel, &strides, &dilations})
    for (const int64_t number : *numbers)
      if (number < 1 || number > kMostStep)
        call->Fail(InvalidArgument("a window with %s", ToString(*numbers)));
  call->WantRank(0, 4);
  return window;
}

// The constant filter of a window; an error unless it has four axes.
const Array* Filter(TfliteCall* call, size_t i) {
  const Array* filter = call->Known(i);
  if (filter == nullptr || filter->shape.size() != 4 ||
      filter->dtype != DType::kFloat32)
    call->Fail(Unimplemented("a filter that is no constant of four axes"));
  return call->ok() ? filter : nullptr;
}

Names WithBias(TfliteCall* call, Names inputs, size_t i) {
  if (call->Has(i)) inputs.push_back(call->X(i));
  return inputs;
}

// [outputs, height, width, inputs]
void ImportConv(TfliteCall* call) {
  const Array* filter = Filter(call, 1);
  if (filter == nullptr) return;
  const Shape& shape = filter->shape;
  const LayoutWindow window = Window(call, {shape[1], shape[2]}, call->Byte(0),
                                     {call->Word(2), call->Word(1)},
                                     {call->Word(5, 1), call->Word(4, 1)});
  if (!call->ok()) return;
  LayoutTensor& x = call->In();
  const int64_t inputs = x.shape[3];
  if (shape[3] < 1 || inputs < 1 || inputs % shape[3] != 0)
    return call->Fail(
        DataLoss("a filter of %s for %d channels", ToString(shape), inputs));
  Attrs attrs = call->graph().WindowAttrs(window, SpatialOf(x.shape));
  attrs["group"] = OnnxInt(inputs / shape[3]);
  const Names operands =
      WithBias(call,
               {call->graph().Front(&x),
                call->Param(1, "filter", PermutedArray(*filter, {0, 3, 1, 2}))},
               2);
  call->GiveActivated(call->graph().Emit("Conv", operands, attrs),
                      call->Byte(3), true);
}

// [1, height, width, inputs * multiplier]
void ImportDepthwise(TfliteCall* call) {
  const Array* filter = Filter(call, 1);
  if (filter == nullptr) return;
  const Shape& shape = filter->shape;
  const LayoutWindow window = Window(call, {shape[1], shape[2]}, call->Byte(0),
                                     {call->Word(2), call->Word(1)},
                                     {call->Word(6, 1), call->Word(5, 1)});
  if (!call->ok()) return;
  LayoutTensor& x = call->In();
  const int64_t inputs = x.shape[3];
  if (shape[0] != 1 || inputs < 1 || shape[3] % inputs != 0)
    return call->Fail(
        DataLoss("a filter of %s for %d channels", ToString(shape), inputs));
  Attrs attrs = call->graph().WindowAttrs(window, SpatialOf(x.shape));
  attrs["group"] = OnnxInt(inputs);
  const Names operands =
      WithBias(call,
               {call->graph().Front(&x),
                call->Param(1, "filter", PermutedArray(*filter, {3, 0, 1, 2}))},
               2);
  call->GiveActivated(call->graph().Emit("Conv", operands, attrs),
                      call->Byte(4), true);
}

// The gradient of a convolution, whose output's extents are input 0; the file
// says them of the output as well.
void ImportTransposeConv(TfliteCall* call) {
  const Array* filter = Filter(call, 1);
  const Shape out = call->OutFact().shape;
  if (filter == nullptr || !call->ok()) return;
  LayoutTensor& x = call->In(2);
  const Ints strides = {call->Word(2), call->Word(1)};
  if (x.rank() != 4 || out.size() != 4 || IsDynamic(SpatialOf(x.shape)) ||
      IsDynamic(SpatialOf(out)) || strides[0] < 1 || strides[1] < 1 ||
      strides[0] > kMostStep || strides[1] > kMostStep)
    return call->Fail(Unimplemented("shape %s made %s by steps of %s",
                                    ToString(x.shape), ToString(out),
                                    ToString(strides)));
  Ints pads(4, 0), more(2, 0);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t left_out =
        (x.shape[i + 1] - 1) * strides[i] + filter->shape[i + 1] - out[i + 1];
    const int64_t cut = std::max<int64_t>(left_out, 0);
    pads[i] = cut / 2;
    pads[i + 2] = cut - cut / 2;
    more[i] = std::max<int64_t>(-left_out, 0);
  }
  const Names operands =
      WithBias(call,
               {call->graph().Front(&x),
                call->Param(1, "filter", PermutedArray(*filter, {3, 0, 1, 2}))},
               3);
  call->GiveActivated(call->graph().Emit("ConvTranspose", operands,
                                         {{"strides", OnnxInts(strides)},
                                          {"pads", OnnxInts(pads)},
                                          {"output_padding", OnnxInts(more)}}),
                      call->Byte(3), true);
}

void ImportPool(TfliteCall* call) {
  const Ints kernel = {call->Word(4), call->Word(3)};
  const LayoutWindow window = Window(call, kernel, call->Byte(0),
                                     {call->Word(2), call->Word(1)}, {1, 1});
  if (!call->ok()) return;
  LayoutTensor& x = call->In();
  Attrs attrs = call->graph().WindowAttrs(window, SpatialOf(x.shape));
  attrs["kernel_shape"] = OnnxInts(kernel);
  call->GiveActivated(
      call->graph().Emit(call->onnx_type(), {call->graph().Front(&x)}, attrs),
      call->Byte(5), true);
}

// [outputs, inputs]; stored as [inputs, outputs], as PaddlePaddle has it.
void ImportFullyConnected(TfliteCall* call) {
  LayoutGraph& graph = call->graph();
  call->WantRank(1, 2);
  if (call->Byte(1) != 0) call->Fail(Unimplemented("shuffled weights"));
  if (!call->ok()) return;
  const int64_t inputs = call->In(1).shape[1];
  const Array* known = call->Known(1);
  const std::string weights =
      known != nullptr ? call->Param(1, "T", PermutedArray(*known, {1, 0}))
                       : graph.Transpose(call->X(1), {1, 0});
  std::string x = call->X();
  if (call->Byte(2) == 0 && call->Rank() != 2)
    x = graph.Reshape(x, {-1, inputs});
  std::string y = graph.Emit("MatMul", {x, weights});
  if (call->Has(2)) y = graph.Emit("Add", {y, call->X(2)});
  call->GiveActivated(y, call->Byte(0));
}

void ImportBatchMatMul(TfliteCall* call) {
  Names names;
  for (size_t i = 0; i < 2; ++i) {
    std::string x = call->X(i);
    const int64_t rank = call->Rank(i);
    if (call->ok() && rank < 2)
      call->Fail(InvalidArgument("a matrix of %d axes", rank));
    if (!call->ok()) return;
    if (call->Byte(i) != 0) {
      Ints perm;
      for (int64_t axis = 0; axis < rank - 2; ++axis) perm.push_back(axis);
      perm.insert(perm.end(), {rank - 1, rank - 2});
      x = call->graph().Transpose(x, perm);
    }
    names.push_back(x);
  }
  call->Give(call->graph().Emit("MatMul", names));
}

void Resize(TfliteCall* call, bool corners, bool half) {
  const Ints sizes = call->KnownInts(1);
  call->WantRank(0, 4);
  if (call->ok() && sizes.size() != 2)
    call->Fail(InvalidArgument("a size of %s", ToString(sizes)));
  if (!call->ok()) return;
  const std::string mode = call->onnx_type();
  const bool nearest = mode == "nearest";
  Attrs attrs = {{"axes", OnnxInts({2, 3})},
                 {"mode", OnnxText(mode)},
                 {"coordinate_transformation_mode",
                  OnnxText(corners   ? "align_corners"
                           : !half   ? "asymmetric"
                           : nearest ? "tf_half_pixel_for_nn"
                                     : "half_pixel")}};
  if (nearest)
    attrs["nearest_mode"] = OnnxText(corners ? "round_prefer_ceil" : "floor");
  LayoutGraph& graph = call->graph();
  const std::string x = graph.Front(&call->In());
  call->Give(graph.Emit("Resize", {x, "", "", graph.ConstInts(sizes)}, attrs),
             true);
}

void ImportBilinear(TfliteCall* call) {
  Resize(call, call->Byte(2) != 0, call->Byte(3) != 0);
}

void ImportNearest(TfliteCall* call) {
  Resize(call, call->Byte(0) != 0, call->Byte(1) != 0);
}

void ImportReduce(TfliteCall* call) {
  LayoutTensor& x = call->In();
  Ints axes = call->KnownInts(1);
  for (int64_t& axis : axes) axis = call->Axis(axis, x.rank());
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const bool keep = call->Byte(0) != 0;
  // Of all axes but the batch and the channels the order stays.
  Ints spatial;
  for (int64_t axis = 1; axis < x.rank() - 1; ++axis) spatial.push_back(axis);
  const bool front = !x.front.empty() && (keep || axes == spatial);
  if (front)
    for (int64_t& axis : axes) axis = FrontAxis(axis, x.rank());
  const std::string in = front ? graph.Front(&x) : graph.Plain(&x);
  call->Give(graph.Reduce(call->onnx_type(), in, axes, keep), front);
}

void ImportArg(TfliteCall* call) {
  const int64_t axis = call->Axis(call->KnownInt(1), call->Rank());
  const auto& dtype = call->OutFact().dtype;
  if (!call->ok()) return;
  const std::string place =
      call->graph().Emit(call->onnx_type(), {call->X()},
                         {{"axis", OnnxInt(axis)}, {"keepdims", OnnxInt(0)}});
  call->Give(call->graph().Cast(place, dtype.value_or(DType::kInt64)));
}

void ImportTopK(TfliteCall* call) {
  const Names out = call->graph().EmitMany(
      "TopK", {call->X(), call->graph().ConstInts({call->KnownInt(1)})}, 2,
      {{"axis", OnnxInt(-1)}});
  call->Give(out[0]);
  call->Give(call->graph().Cast(out[1], DType::kInt32), false, 1);
}

void ImportCumsum(TfliteCall* call) {
  call->Give(call->graph().Emit("CumSum", {call->X(), call->X(1)},
                                {{"exclusive", OnnxInt(call->Byte(0) != 0)},
                                 {"reverse", OnnxInt(call->Byte(1) != 0)}}));
}

void ImportDepthToSpace(TfliteCall* call) {
  call->WantRank(0, 4);
  const std::string x = call->graph().Front(&call->In());
  const std::string type = call->onnx_type();
  Attrs attrs = {{"blocksize", OnnxInt(call->Word(0))}};
  if (type == "DepthToSpace") attrs["mode"] = OnnxText("DCR");
  call->Give(call->graph().Emit(type.c_str(), {x}, attrs), true);
}

}  // namespace

TfliteImportEntries TfliteNetworkImports() {
  return {
      {1, "AVERAGE_POOL_2D", ImportPool, "AveragePool"},
      {3, "CONV_2D", ImportConv},
      {4, "DEPTHWISE_CONV_2D", ImportDepthwise},
      {5, "DEPTH_TO_SPACE", ImportDepthToSpace, "DepthToSpace"},
      {9, "FULLY_CONNECTED", ImportFullyConnected},
      {17, "MAX_POOL_2D", ImportPool, "MaxPool"},
      {23, "RESIZE_BILINEAR", ImportBilinear, "linear"},
      {26, "SPACE_TO_DEPTH", ImportDepthToSpace, "SpaceToDepth"},
      {40, "MEAN", ImportReduce, "ReduceMean"},
      {48, "TOPK_V2", ImportTopK},
      {56, "ARG_MAX", ImportArg, "ArgMax"},
      {67, "TRANSPOSE_CONV", ImportTransposeConv},
      {74, "SUM", ImportReduce, "ReduceSum"},
      {79, "ARG_MIN", ImportArg, "ArgMin"},
      {81, "REDUCE_PROD", ImportReduce, "ReduceProd"},
      {82, "REDUCE_MAX", ImportReduce, "ReduceMax"},
      {89, "REDUCE_MIN", ImportReduce, "ReduceMin"},
      {97, "RESIZE_NEAREST_NEIGHBOR", ImportNearest, "nearest"},
      {126, "BATCH_MATMUL", ImportBatchMatMul},
      {128, "CUMSUM", ImportCumsum},
  };
}

}  // namespace pd
