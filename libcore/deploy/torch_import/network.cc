// SPDX-License-Identifier: Apache-2.0
// ATen's operators that have weights, multiply matrices, slide windows,
// normalize or attend.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/torch_import/call.h"

namespace pd {
namespace {

using Attrs = TorchCall::Attrs;
using Ints = TorchCall::Ints;

Ints BothSides(const Ints& pads) {
  Ints both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

TorchCall::Names WithBias(TorchCall* call, TorchCall::Names inputs) {
  if (call->Has("bias")) inputs.push_back(call->Tensor("bias"));
  return inputs;
}

void Convolve(TorchCall* call, bool transposed) {
  const int64_t rank = call->Rank("weight") - 2;
  if (call->ok() && rank < 1)
    call->Fail(InvalidArgument("a filter of shape %s",
                               ToString(call->ShapeOf("weight"))));
  if (call->ok() && call->Rank("input") != rank + 2)
    call->Fail(Unimplemented("an input without a batch"));
  if (!call->ok()) return;
  const auto axes = static_cast<size_t>(rank);
  Attrs attrs = {{"strides", OnnxInts(call->IntsOf("stride", axes, 1))},
                 {"dilations", OnnxInts(call->IntsOf("dilation", axes, 1))},
                 {"group", OnnxInt(call->Int("groups", 1))}};
  const std::string mode = call->Text("padding", "");
  if (mode == "same")
    attrs["auto_pad"] = OnnxText("SAME_UPPER");
  else
    attrs["pads"] = OnnxInts(BothSides(
        mode.empty() ? call->IntsOf("padding", axes, 0) : Ints(axes, 0)));
  if (transposed)
    attrs["output_padding"] = OnnxInts(call->IntsOf("output_padding", axes, 0));
  call->Give(call->Emit(
      transposed ? "ConvTranspose" : "Conv",
      WithBias(call, {call->Tensor("input"), call->Tensor("weight")}), attrs));
}

void ImportConv(TorchCall* call) { Convolve(call, false); }
void ImportConvTranspose(TorchCall* call) { Convolve(call, true); }
void ImportConvolution(TorchCall* call) {
  Convolve(call, call->Int("transposed", 0) != 0);
}

// [outputs, inputs] is stored as [inputs, outputs], as PaddlePaddle has it.
void ImportLinear(TorchCall* call) {
  const std::string weight = call->TransposedWeight("weight");
  const std::string out = call->Emit("MatMul", {call->Tensor("input"), weight});
  call->Give(call->Has("bias") ? call->Emit("Add", {out, call->Tensor("bias")})
                               : out);
}

void ImportMatMul(TorchCall* call) {
  const char* second = call->Has("mat2") ? "mat2" : "other";
  call->Give(
      call->Emit("MatMul", {call->Tensor("self"), call->Tensor(second)}));
}

// beta self + alpha product
void ImportAddProduct(TorchCall* call) {
  const bool batched = call->Has("batch1");
  const DType dtype = call->OutType();
  std::string product =
      call->Emit("MatMul", {call->Tensor(batched ? "batch1" : "mat1"),
                            call->Tensor(batched ? "batch2" : "mat2")});
  std::string x = call->Tensor("self");
  const auto scaled = [&](const char* name, const std::string& value) {
    const double factor = call->Number(name, 1);
    return factor == 1
               ? value
               : call->Emit("Mul", {value, call->Scalar(factor, dtype)});
  };
  call->Give(call->Emit("Add", {scaled("alpha", product), scaled("beta", x)}));
}

void ImportEinsum(TorchCall* call) {
  call->Give(call->Emit("Einsum", call->Tensors("tensors"),
                        {{"equation", OnnxText(call->Text("equation", ""))}}));
}

void ImportEmbedding(TorchCall* call) {
  call->Give(call->Emit("Gather",
                        {call->Tensor("weight"), call->Tensor("indices")},
                        {{"axis", OnnxInt(0)}}));
}

// A weight, or as many equal numbers as there are channels.
std::string WeightOr(TorchCall* call, const char* name, int64_t count,
                     float otherwise) {
  if (call->Has(name)) return call->Tensor(name);
  if (count > kMaxMade) call->Fail(Unimplemented("%d channels", count));
  if (!call->ok()) return "";
  return call->Constant(MakeArray<float>(
      {count}, std::vector<float>(static_cast<size_t>(count), otherwise)));
}

void ImportBatchNorm(TorchCall* call) {
  if (call->Int("training", 0) != 0)
    call->Fail(Unimplemented(
        "statistics of the batch itself; expected a network that was exported "
        "after eval()"));
  const int64_t channels = call->Extent("input", 1);
  call->Give(
      call->Emit("BatchNormalization",
                 {call->Tensor("input"), WeightOr(call, "weight", channels, 1),
                  WeightOr(call, "bias", channels, 0),
                  call->Tensor("running_mean"), call->Tensor("running_var")},
                 {{"epsilon", OnnxFloat(call->Number("eps", 1e-5))}}));
}

// Outputs behind the first are for gradients.
void ImportLayerNorm(TorchCall* call) {
  const auto axes =
      static_cast<int64_t>(call->IntList("normalized_shape").size());
  const Shape& shape = call->ShapeOf("input");
  if (call->ok() && (axes < 1 || axes > static_cast<int64_t>(shape.size())))
    call->Fail(InvalidArgument("%d axes of shape %s", axes, ToString(shape)));
  if (!call->ok()) return;
  const Shape last(shape.end() - axes, shape.end());
  if (IsDynamic(last) || !CheckedBytes(last, 4).ok() ||
      NumElements(last) > kMaxMade)
    return call->Fail(Unimplemented("axes of %s", ToString(last)));
  std::string scale = call->TensorOr("weight");
  if (scale.empty())
    scale = call->Constant(MakeArray<float>(
        last, std::vector<float>(static_cast<size_t>(NumElements(last)), 1)));
  TorchCall::Names inputs = {call->Tensor("input"), scale};
  const auto out =
      call->EmitMany("LayerNormalization", WithBias(call, inputs), 1,
                     {{"axis", OnnxInt(-axes)},
                      {"epsilon", OnnxFloat(call->Number("eps", 1e-5))}});
  call->Give(out[0]);
}

void ImportGroupNorm(TorchCall* call) {
  const int64_t channels = call->Extent("input", 1);
  call->Give(
      call->Emit("GroupNormalization",
                 {call->Tensor("input"), WeightOr(call, "weight", channels, 1),
                  WeightOr(call, "bias", channels, 0)},
                 {{"num_groups", OnnxInt(call->Int("num_groups", 1))},
                  {"epsilon", OnnxFloat(call->Number("eps", 1e-5))}}));
}

void ImportInstanceNorm(TorchCall* call) {
  if (call->Int("use_input_stats", 1) == 0)
    call->Fail(Unimplemented("running statistics"));
  const int64_t channels = call->Extent("input", 1);
  call->Give(
      call->Emit("InstanceNormalization",
                 {call->Tensor("input"), WeightOr(call, "weight", channels, 1),
                  WeightOr(call, "bias", channels, 0)},
                 {{"epsilon", OnnxFloat(call->Number("eps", 1e-5))}}));
}

void ImportSoftmax(TorchCall* call) {
  const int64_t axis = call->Axis(call->Int("dim", -1), call->Rank("self"));
  const DType dtype = call->OutType();
  std::string x = call->Tensor("self");
  if (call->TypeOf("self") != dtype) x = call->Cast(x, dtype);
  call->Give(call->Emit(call->onnx_type(), {x}, {{"axis", OnnxInt(axis)}}));
}

// Windows of a pooling with as many axes as the operator's name says.
void ImportPool(TorchCall* call) {
  const std::string type = call->onnx_type();
  const bool mean = type == "AveragePool";
  const int64_t rank = call->Rank("self") - 2;
  if (call->ok() && (rank < 1 || rank > 3))
    call->Fail(Unimplemented("an input without a batch"));
  if (!call->ok()) return;
  const auto axes = static_cast<size_t>(rank);
  const Ints kernel = call->IntsOf("kernel_size", axes, 1);
  const Ints stride = call->IntList("stride").empty()
                          ? kernel
                          : call->IntsOf("stride", axes, 1);
  Attrs attrs = {
      {"kernel_shape", OnnxInts(kernel)},
      {"strides", OnnxInts(stride)},
      {"pads", OnnxInts(BothSides(call->IntsOf("padding", axes, 0)))},
      {"ceil_mode", OnnxInt(call->Int("ceil_mode", 0))}};
  if (mean) {
    if (call->Has("divisor_override"))
      call->Fail(Unimplemented("divisor_override"));
    attrs["count_include_pad"] = OnnxInt(call->Int("count_include_pad", 1));
  } else {
    attrs["dilations"] = OnnxInts(call->IntsOf("dilation", axes, 1));
  }
  const size_t outputs = call->Wants(1) ? 2 : 1;
  const auto out =
      call->EmitMany(type.c_str(), {call->Tensor("self")}, outputs, attrs);
  for (size_t i = 0; i < outputs; ++i) call->Give(out[i], i);
}

// Row i has the weights of the mean over [i in / out, (i + 1) in / out),
// rounded down and up.
Array MeansOf(int64_t in, int64_t out) {
  std::vector<float> rows(static_cast<size_t>(in * out), 0);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    for (int64_t j = begin; j < end; ++j)
      rows[static_cast<size_t>(i * in + j)] =
          1 / static_cast<float>(end - begin);
  }
  return MakeArray({out, in}, rows);
}

// Windows of one size exist where the extents are multiples; other means over
// one or two axes are products with a matrix for each.
void ImportAdaptivePool(TorchCall* call) {
  constexpr int64_t kMost = 1 << 12;
  const bool mean = std::string(call->onnx_type()) == "AveragePool";
  const int64_t rank = call->Rank("self") - 2;
  if (call->ok() && rank < 1)
    call->Fail(Unimplemented("an input without a batch"));
  if (!call->ok()) return;
  const Ints want = call->IntsOf("output_size", static_cast<size_t>(rank), 1);
  std::string x = call->Tensor("self");
  if (std::all_of(want.begin(), want.end(), [](int64_t n) { return n == 1; }))
    return call->Give(
        call->Emit(mean ? "GlobalAveragePool" : "GlobalMaxPool", {x}));
  Ints extents, kernel;
  bool even = true;
  for (int64_t i = 0; i < rank && call->ok(); ++i) {
    const int64_t out = want[static_cast<size_t>(i)];
    extents.push_back(call->Extent("self", i + 2));
    if (out < 1 || out > kMost || extents.back() > kMost)
      return call->Fail(
          Unimplemented("an axis of %d pooled to %d", extents.back(), out));
    kernel.push_back(extents.back() / out);
    even = even && extents.back() % out == 0;
  }
  if (!call->ok()) return;
  if (even)
    return call->Give(call->Emit(
        call->onnx_type(), {x},
        {{"kernel_shape", OnnxInts(kernel)}, {"strides", OnnxInts(kernel)}}));
  if (!mean || rank > 2 || call->TypeOf("self") != DType::kFloat32)
    return call->Fail(Unimplemented("axes of %s pooled to %s",
                                    ToString(extents), ToString(want)));
  if (rank == 2)
    x = call->Emit("MatMul", {call->Constant(MeansOf(extents[0], want[0])), x});
  const std::string last = call->Constant(MeansOf(extents.back(), want.back()));
  call->Give(call->Emit("MatMul", {x, call->Transpose(last, {1, 0})}));
}

// To the extents that the file says of the output.
void ImportUpsample(TorchCall* call) {
  const Shape& shape = call->OutShape();
  if (call->ok() &&
      (shape.size() < 3 || IsDynamic(Shape(shape.begin() + 2, shape.end()))))
    call->Fail(Unimplemented("an output of shape %s", ToString(shape)));
  if (!call->ok()) return;
  const bool corners = call->Int("align_corners", 0) != 0;
  const std::string mode = call->onnx_type();
  Ints axes, sizes;
  for (size_t i = 2; i < shape.size(); ++i) {
    axes.push_back(static_cast<int64_t>(i));
    sizes.push_back(shape[i]);
  }
  Attrs attrs = {{"mode", OnnxText(mode)}, {"axes", OnnxInts(axes)}};
  attrs["coordinate_transformation_mode"] =
      OnnxText(mode == "nearest" ? "asymmetric"
               : corners         ? "align_corners"
                                 : "half_pixel");
  if (mode == "nearest") attrs["nearest_mode"] = OnnxText("floor");
  if (mode == "cubic") attrs["cubic_coeff_a"] = OnnxFloat(-0.75);
  call->Give(call->Emit("Resize",
                        {call->Tensor(call->Has("input") ? "input" : "self"),
                         "", "", call->ConstInts(sizes)},
                        attrs));
}

void ImportPixelShuffle(TorchCall* call) {
  call->Give(call->Emit("DepthToSpace", {call->Tensor("self")},
                        {{"blocksize", OnnxInt(call->Int("upscale_factor", 1))},
                         {"mode", OnnxText("CRD")}}));
}

// softmax(q k' * scale + mask) v. A mask of bool keeps where it is true.
void ImportAttention(TorchCall* call) {
  const int64_t rank = call->Rank("query");
  const DType dtype = call->TypeOf("query");
  const int64_t width = call->Extent("query", -1);
  if (call->ok() && (rank < 2 || rank != call->Rank("key")))
    call->Fail(Unimplemented("heads of different numbers"));
  if (!call->ok()) return;
  const double scale =
      call->Number("scale", 1 / std::sqrt(static_cast<double>(width)));
  Ints perm;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  std::string scores = call->Emit(
      "MatMul",
      {call->Tensor("query"), call->Transpose(call->Tensor("key"), perm)});
  scores = call->Emit("Mul", {scores, call->Scalar(scale, dtype)});
  if (call->Int("is_causal", 0) != 0) {
    const int64_t rows = call->Extent("query", -2);
    const int64_t columns = call->Extent("key", -2);
    if (call->ok() &&
        (rows > kMaxMade || columns > kMaxMade || rows * columns > kMaxMade))
      call->Fail(Unimplemented("a causal mask of %d x %d", rows, columns));
    if (!call->ok()) return;
    std::vector<float> mask(static_cast<size_t>(rows * columns), 0);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = i + 1; j < columns; ++j)
        mask[static_cast<size_t>(i * columns + j)] = -INFINITY;
    std::string added = call->Constant(MakeArray({rows, columns}, mask));
    if (dtype != DType::kFloat32) added = call->Cast(added, dtype);
    scores = call->Emit("Add", {scores, added});
  }
  if (call->Has("attn_mask")) {
    const std::string mask = call->Tensor("attn_mask");
    scores = call->TypeOf("attn_mask") == DType::kBool
                 ? call->Emit("Where",
                              {mask, scores, call->Scalar(-INFINITY, dtype)})
                 : call->Emit("Add", {scores, mask});
  }
  const std::string weights =
      call->Emit("Softmax", {scores}, {{"axis", OnnxInt(rank - 1)}});
  call->Give(call->Emit("MatMul", {weights, call->Tensor("value")}));
}

// x over `dim`, all axes where it is not given.
std::string Reduced(TorchCall* call, const char* op_type,
                    const std::string& x) {
  Ints axes = call->IntList("dim");
  for (int64_t& axis : axes) axis = call->Axis(axis, call->Rank("self"));
  TorchCall::Names inputs = {x};
  if (!axes.empty()) inputs.push_back(call->ConstInts(axes));
  return call->Emit(op_type, inputs,
                    {{"keepdims", OnnxInt(call->Int("keepdim", 0))}});
}

void ImportReduce(TorchCall* call) {
  std::string x = call->Tensor("self");
  const DType dtype = call->OutType();
  if (call->TypeOf("self") != dtype) x = call->Cast(x, dtype);
  call->Give(Reduced(call, call->onnx_type(), x));
}

// any and all: the largest and the smallest of 0 and 1.
void ImportTruth(TorchCall* call) {
  std::string x = call->Tensor("self");
  if (call->TypeOf("self") != DType::kBool) x = call->Cast(x, DType::kBool);
  x = call->Cast(x, DType::kInt32);
  call->Give(call->Cast(Reduced(call, call->onnx_type(), x), DType::kBool));
}

// With `correction` fewer elements than there are in the quotient.
void ImportVariance(TorchCall* call) {
  const std::string x = call->Tensor("self");
  const DType dtype = call->OutType();
  Ints axes = call->IntList("dim");
  double count = 1;
  for (int64_t i = 0; i < call->Rank("self") && call->ok(); ++i) {
    const bool taken = axes.empty() ||
                       std::any_of(axes.begin(), axes.end(), [&](int64_t axis) {
                         return call->Axis(axis, call->Rank("self")) == i;
                       });
    if (taken) count *= static_cast<double>(call->Extent("self", i));
  }
  const double correction =
      call->Number("correction", call->Int("unbiased", 1) != 0 ? 1 : 0);
  TorchCall::Names over;
  if (!axes.empty()) over = {call->ConstInts(axes)};
  const auto mean = [&](const std::string& value, bool keep) {
    TorchCall::Names inputs = {value};
    inputs.insert(inputs.end(), over.begin(), over.end());
    return call->Emit("ReduceMean", inputs, {{"keepdims", OnnxInt(keep)}});
  };
  const std::string off = call->Emit("Sub", {x, mean(x, true)});
  std::string out =
      mean(call->Emit("Mul", {off, off}), call->Int("keepdim", 0) != 0);
  if (correction != 0)
    out = call->Emit(
        "Mul",
        {out, call->Scalar(count / std::max(count - correction, 0.0), dtype)});
  if (std::string(call->onnx_type()) == "Sqrt") out = call->Emit("Sqrt", {out});
  call->Give(out);
}

// x y over the norms, of which none is below eps.
void ImportCosineSimilarity(TorchCall* call) {
  const std::string x = call->Tensor("x1"), y = call->Tensor("x2");
  const DType dtype = call->OutType();
  const std::string axes =
      call->ConstInts({call->Axis(call->Int("dim", 1), call->Rank("x1"))});
  const std::string least = call->Scalar(call->Number("eps", 1e-8), dtype);
  const Attrs drop = {{"keepdims", OnnxInt(0)}};
  const auto norm = [&](const std::string& v) {
    return call->Emit("Max", {call->Emit("ReduceL2", {v, axes}, drop), least});
  };
  const std::string product =
      call->Emit("ReduceSum", {call->Emit("Mul", {x, y}), axes}, drop);
  call->Give(
      call->Emit("Div", {product, call->Emit("Mul", {norm(x), norm(y)})}));
}

void ImportNorm(TorchCall* call) {
  const double p = call->Number(call->Has("ord") ? "ord" : "p", 2);
  if (p != 1 && p != 2) call->Fail(Unimplemented("a norm of order %g", p));
  call->Give(
      Reduced(call, p == 1 ? "ReduceL1" : "ReduceL2", call->Tensor("self")));
}

}  // namespace

TorchImportEntries TorchNetworkImports() {
  return {
      {"_log_softmax.default", ImportSoftmax, "LogSoftmax"},
      {"_native_batch_norm_legit_no_training.default", ImportBatchNorm},
      {"_softmax.default", ImportSoftmax, "Softmax"},
      {"adaptive_avg_pool1d.default", ImportAdaptivePool, "AveragePool"},
      {"adaptive_avg_pool2d.default", ImportAdaptivePool, "AveragePool"},
      {"adaptive_avg_pool3d.default", ImportAdaptivePool, "AveragePool"},
      {"_adaptive_avg_pool2d.default", ImportAdaptivePool, "AveragePool"},
      {"addmm.default", ImportAddProduct},
      {"all.default", ImportTruth, "ReduceMin"},
      {"all.dim", ImportTruth, "ReduceMin"},
      {"amax.default", ImportReduce, "ReduceMax"},
      {"amin.default", ImportReduce, "ReduceMin"},
      {"any.default", ImportTruth, "ReduceMax"},
      {"any.dim", ImportTruth, "ReduceMax"},
      {"avg_pool1d.default", ImportPool, "AveragePool"},
      {"avg_pool2d.default", ImportPool, "AveragePool"},
      {"avg_pool3d.default", ImportPool, "AveragePool"},
      {"baddbmm.default", ImportAddProduct},
      {"batch_norm.default", ImportBatchNorm},
      {"bmm.default", ImportMatMul},
      {"conv1d.default", ImportConv},
      {"conv1d.padding", ImportConv},
      {"conv2d.default", ImportConv},
      {"conv2d.padding", ImportConv},
      {"conv3d.default", ImportConv},
      {"conv_transpose1d.default", ImportConvTranspose},
      {"conv_transpose2d.input", ImportConvTranspose},
      {"conv_transpose3d.input", ImportConvTranspose},
      {"convolution.default", ImportConvolution},
      {"cosine_similarity.default", ImportCosineSimilarity},
      {"einsum.default", ImportEinsum},
      {"embedding.default", ImportEmbedding},
      {"group_norm.default", ImportGroupNorm},
      {"instance_norm.default", ImportInstanceNorm},
      {"layer_norm.default", ImportLayerNorm},
      {"linalg_vector_norm.default", ImportNorm},
      {"linear.default", ImportLinear},
      {"log_softmax.int", ImportSoftmax, "LogSoftmax"},
      {"matmul.default", ImportMatMul},
      {"max_pool1d.default", ImportPool, "MaxPool"},
      {"max_pool2d.default", ImportPool, "MaxPool"},
      {"max_pool2d_with_indices.default", ImportPool, "MaxPool"},
      {"max_pool3d.default", ImportPool, "MaxPool"},
      {"mean.default", ImportReduce, "ReduceMean"},
      {"mean.dim", ImportReduce, "ReduceMean"},
      {"mm.default", ImportMatMul},
      {"native_layer_norm.default", ImportLayerNorm},
      {"norm.ScalarOpt_dim", ImportNorm},
      {"pixel_shuffle.default", ImportPixelShuffle},
      {"prod.dim_int", ImportReduce, "ReduceProd"},
      {"scaled_dot_product_attention.default", ImportAttention},
      {"softmax.int", ImportSoftmax, "Softmax"},
      {"std.correction", ImportVariance, "Sqrt"},
      {"std.dim", ImportVariance, "Sqrt"},
      {"sum.default", ImportReduce, "ReduceSum"},
      {"sum.dim_IntList", ImportReduce, "ReduceSum"},
      {"upsample_bicubic2d.vec", ImportUpsample, "cubic"},
      {"upsample_bilinear2d.vec", ImportUpsample, "linear"},
      {"upsample_linear1d.vec", ImportUpsample, "linear"},
      {"upsample_nearest1d.vec", ImportUpsample, "nearest"},
      {"upsample_nearest2d.vec", ImportUpsample, "nearest"},
      {"var.correction", ImportVariance},
      {"var.dim", ImportVariance},
  };
}

}  // namespace pd
