// SPDX-License-Identifier: Apache-2.0
// Shapes of ATen's operators that have weights, multiply matrices, slide
// windows, normalize, attend or reduce.
#include <algorithm>
#include <cmath>

#include "libcore/deploy/torch_script/call.h"

namespace pd {
namespace {

void SameAsInput(ScriptCall* call) {
  const ScriptTensor& input = call->Tensor("input");
  call->Give(input.dtype, input.dims);
}

// Positions of a window of `kernel` elements, `dilation` apart.
int64_t Positions(ScriptCall* call, int64_t extent, int64_t kernel,
                  int64_t stride, int64_t pads, int64_t dilation) {
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const int64_t number : {extent, kernel, stride, pads, dilation})
    if (number < 0 || number > kMost)
      call->Fail(InvalidArgument("a window's size is %d", number));
  if (stride < 1) call->Fail(InvalidArgument("a stride of %d", stride));
  int64_t covered = 0;
  if (!call->ok() || __builtin_mul_overflow(dilation, kernel - 1, &covered) ||
      covered > kMost)
    return 1;
  const int64_t free = extent + pads - covered - 1;
  if (free < 0)
    call->Fail(InvalidArgument("a window of %d on an axis of %d with %d pads",
                               kernel, extent, pads));
  return free < 0 ? 1 : free / stride + 1;
}

void InferConvolution(ScriptCall* call) {
  const ScriptTensor &x = call->Tensor("input"), &w = call->Tensor("weight");
  if (call->ok() && (w.rank() < 3 || x.rank() != w.rank()))
    call->Fail(Unimplemented("an input of %d axes and a filter of %d", x.rank(),
                             w.rank()));
  if (!call->ok()) return;
  const size_t axes = w.dims.size() - 2;
  const ScriptValue* padding = call->Find("padding");
  const bool same = padding != nullptr && padding->text == "same";
  const bool valid = padding != nullptr && padding->text == "valid";
  const auto stride = call->IntsOf("stride", axes, 1);
  const auto dilation = call->IntsOf("dilation", axes, 1);
  std::vector<int64_t> pads(axes, 0);
  if (!same && !valid) pads = call->IntsOf("padding", axes, 0);
  const bool transposed = call->Int("transposed", 0) != 0;
  const auto more = call->IntsOf("output_padding", axes, 0);
  ScriptDims dims = {x.dims[0], w.dims[0]};
  if (transposed)
    dims[1] = call->Or(
        MultiplyInts(w.dims[1], ScriptInt{call->Int("groups", 1), false}));
  for (size_t i = 0; i < axes && call->ok(); ++i) {
    const int64_t extent = call->Known(x.dims[i + 2]);
    const int64_t kernel = call->Known(w.dims[i + 2]);
    ScriptInt out{extent, false};
    if (transposed) {
      const int64_t covered =
          call->Or(MultiplyInts({dilation[i], false}, {kernel - 1, false}))
              .value;
      const int64_t span =
          call->Or(MultiplyInts({stride[i], false}, {extent - 1, false})).value;
      out.value = span - 2 * pads[i] + covered + more[i] + 1;
    } else if (!same) {
      out.value =
          Positions(call, extent, kernel, stride[i],
                    2 * std::min(pads[i], int64_t{1} << 30), dilation[i]);
    }
    dims.push_back(out);
  }
  call->Give(x.dtype, dims);
}

// The rows of x by a matrix of [outputs, inputs].
void InferLinear(ScriptCall* call) {
  const ScriptTensor &x = call->Tensor("input"), &w = call->Tensor("weight");
  if (call->ok() && (x.rank() < 1 || w.rank() != 2))
    call->Fail(Unimplemented("an input of %d axes and a weight of %d", x.rank(),
                             w.rank()));
  if (!call->ok()) return;
  ScriptDims dims = x.dims;
  dims.back() = w.dims[0];
  call->Give(x.dtype, dims);
}

void GiveProduct(ScriptCall* call, const ScriptTensor& a,
                 const ScriptTensor& b) {
  if (a.rank() < 1 || b.rank() < 1)
    call->Fail(InvalidArgument("a product of a tensor without axes"));
  if (!call->ok()) return;
  ScriptDims left = a.dims, right = b.dims, tail;
  if (a.rank() > 1) tail.push_back(left[left.size() - 2]);
  if (b.rank() > 1) tail.push_back(right.back());
  left.resize(left.size() - std::min<size_t>(left.size(), 2));
  right.resize(right.size() - std::min<size_t>(right.size(), 2));
  ScriptDims dims = call->Broadcast(left, right);
  dims.insert(dims.end(), tail.begin(), tail.end());
  call->Give(a.dtype, dims);
}

void InferMatMul(ScriptCall* call) {
  GiveProduct(call, call->Tensor("self"),
              call->Tensor(call->Has("mat2") ? "mat2" : "other"));
}

void InferAddProduct(ScriptCall* call) {
  const bool batched = call->Has("batch1");
  GiveProduct(call, call->Tensor(batched ? "batch1" : "mat1"),
              call->Tensor(batched ? "batch2" : "mat2"));
}

void InferEmbedding(ScriptCall* call) {
  const ScriptTensor& weight = call->Tensor("weight");
  ScriptDims dims = call->Tensor("indices").dims;
  if (weight.rank() != 2) call->Fail(InvalidArgument("a table of other axes"));
  if (!call->ok()) return;
  dims.push_back(weight.dims[1]);
  call->Give(weight.dtype, dims);
}

void InferSoftmax(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  call->Give(call->TypeOr("dtype", self.dtype), self.dims);
}

void InferPool(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  if (self.rank() < 3) call->Fail(Unimplemented("an input without a batch"));
  if (!call->ok()) return;
  const size_t axes = self.dims.size() - 2;
  const auto kernel = call->IntsOf("kernel_size", axes, 1);
  const auto stride =
      call->Ints("stride").empty() ? kernel : call->IntsOf("stride", axes, 1);
  const auto pads = call->IntsOf("padding", axes, 0);
  const auto dilation = call->IntsOf("dilation", axes, 1);
  const bool ceil = call->Int("ceil_mode", 0) != 0;
  ScriptDims dims = {self.dims[0], self.dims[1]};
  for (size_t i = 0; i < axes && call->ok(); ++i) {
    const int64_t extent = call->Known(self.dims[i + 2]);
    const int64_t both = 2 * std::clamp<int64_t>(pads[i], -1, 1 << 30);
    int64_t out =
        Positions(call, extent, kernel[i], stride[i], both, dilation[i]);
    if (!call->ok()) return;
    // The last window begins within the axis or its pads in front.
    if (ceil) {
      const int64_t covered = (kernel[i] - 1) * dilation[i] + 1;
      const bool more = (extent + both - covered) % stride[i] != 0;
      if (more && out * stride[i] < extent + pads[i]) ++out;
    }
    dims.push_back({out, false});
  }
  call->Give(self.dtype, dims);
}

void InferAdaptivePool(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  if (self.rank() < 3) call->Fail(Unimplemented("an input without a batch"));
  if (!call->ok()) return;
  ScriptDims dims = {self.dims[0], self.dims[1]};
  for (const int64_t out : call->IntsOf("output_size", self.dims.size() - 2, 1))
    dims.push_back({out, false});
  call->Give(self.dtype, dims);
}

// To sizes, or extents times factors, rounded down.
void InferUpsample(ScriptCall* call) {
  const ScriptTensor& input = call->Tensor("input");
  if (input.rank() < 3) call->Fail(Unimplemented("an input without a batch"));
  if (!call->ok()) return;
  const size_t axes = input.dims.size() - 2;
  ScriptDims dims = {input.dims[0], input.dims[1]};
  const ScriptValue* factors = call->Find("scale_factors");
  if (call->Has("output_size")) {
    for (const int64_t size : call->IntsOf("output_size", axes, 1))
      dims.push_back({size, false});
  } else if (factors != nullptr && factors->IsSequence() &&
             factors->items->size() == axes) {
    for (size_t i = 0; i < axes; ++i) {
      const ScriptValue& factor = (*factors->items)[i];
      const double out =
          static_cast<double>(call->Known(input.dims[i + 2])) * factor.Number();
      if (!factor.IsNumber() || !(out >= 1 && out < 1e12))
        call->Fail(InvalidArgument("an axis resized to %g", out));
      if (!call->ok()) return;
      dims.push_back({static_cast<int64_t>(out), false});
    }
  } else {
    call->Fail(InvalidArgument("neither sizes nor factors for %d axes", axes));
  }
  call->Give(input.dtype, dims);
}

void InferPixelShuffle(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const ScriptInt factor{call->Int("upscale_factor", 1), false};
  if (self.rank() != 4) call->Fail(Unimplemented("%d axes", self.rank()));
  if (!call->ok()) return;
  ScriptDims dims = self.dims;
  for (int i = 0; i < 2; ++i) dims[1] = call->Or(DivideInts(dims[1], factor));
  for (const size_t i : {2, 3})
    dims[i] = call->Or(MultiplyInts(dims[i], factor));
  call->Give(self.dtype, dims);
}

void InferAttention(ScriptCall* call) {
  const ScriptTensor &q = call->Tensor("query"), &v = call->Tensor("value");
  if (q.rank() < 2 || v.rank() != q.rank())
    call->Fail(Unimplemented("heads of different numbers"));
  if (!call->ok()) return;
  ScriptDims dims = q.dims;
  dims.back() = v.dims.back();
  call->Give(q.dtype, dims);
}

ScriptDims ReducedDims(ScriptCall* call) {
  const ScriptTensor& self = call->Tensor("self");
  const ScriptDims over = call->Ints("dim");
  const bool keep = call->Int("keepdim", 0) != 0;
  std::vector<bool> gone(self.dims.size(), over.empty());
  for (const ScriptInt& axis : over) {
    const size_t at = call->Axis(call->Known(axis), self.rank());
    if (at < gone.size()) gone[at] = true;
  }
  ScriptDims dims;
  for (size_t i = 0; i < gone.size(); ++i)
    if (!gone[i])
      dims.push_back(self.dims[i]);
    else if (keep)
      dims.push_back({1, false});
  return dims;
}

void InferReduce(ScriptCall* call) {
  const DType dtype = call->Tensor("self").dtype;
  call->Give(call->TypeOr("dtype", dtype), ReducedDims(call));
}

// Sums of integers and bools have 64 bits.
void InferSum(ScriptCall* call) {
  const DType dtype = call->Tensor("self").dtype;
  call->Give(call->TypeOr("dtype", IsFloating(dtype) ? dtype : DType::kInt64),
             ReducedDims(call));
}

void InferTruth(ScriptCall* call) {
  call->Give(DType::kBool, ReducedDims(call));
}

void InferCosine(ScriptCall* call) {
  const ScriptTensor &x = call->Tensor("x1"), &y = call->Tensor("x2");
  ScriptDims dims = call->Broadcast(x.dims, y.dims);
  const size_t axis =
      call->Axis(call->Int("dim", 1), static_cast<int64_t>(dims.size()));
  if (axis < dims.size())
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  call->Give(x.dtype, dims);
}

// LSTM, GRU and RNN: the states' last axis is as wide as an output's half.
void InferRecurrent(ScriptCall* call) {
  const ScriptTensor& input = call->Tensor("input");
  const ScriptValue* hx = call->Find("hx");
  const bool pair = hx != nullptr && hx->IsSequence();
  std::vector<ScriptTensor> states;
  if (pair)
    states = call->Tensors("hx");
  else
    states.push_back(call->Tensor("hx"));
  if (call->ok() && (input.rank() != 3 || states[0].rank() != 3))
    call->Fail(Unimplemented("an input without a batch"));
  if (!call->ok()) return;
  const ScriptInt directions{call->Int("bidirectional", 0) != 0 ? 2 : 1, false};
  ScriptDims dims = input.dims;
  dims[2] = call->Or(MultiplyInts(states[0].dims[2], directions));
  call->Give(input.dtype, dims);
  for (const ScriptTensor& state : states) call->Give(state.dtype, state.dims);
}

constexpr char kConvolution[] =
    "t input, t weight, o bias, l stride, l padding, l dilation, i groups";
constexpr char kTransposed[] =
    "t input, t weight, o bias, l stride, l padding, l output_padding, i "
    "groups, l dilation";
constexpr char kMaxPool[] =
    "t self, l kernel_size, l stride, l padding, l dilation, b ceil_mode";
constexpr char kAveragePool[] =
    "t self, l kernel_size, l stride, l padding, b ceil_mode, b "
    "count_include_pad, i divisor_override";
constexpr char kRecurrent[] =
    "t input, t hx, T params, b has_biases, i num_layers, s dropout, b train, "
    "b bidirectional, b batch_first";

constexpr char kOver[] = "t self, l dim, b keepdim, |, i dtype";

void InferTransposed(ScriptCall* call);

ScriptOperators Windows() {
  return {
      {"_convolution", "convolution.default",
       "t input, t weight, o bias, l stride, l padding, l dilation, b "
       "transposed, l output_padding, i groups, b benchmark, b deterministic, "
       "b cudnn_enabled, b allow_tf32",
       InferConvolution},
      {"convolution", "convolution.default",
       "t input, t weight, o bias, l stride, l padding, l dilation, b "
       "transposed, l output_padding, i groups",
       InferConvolution},
      {"conv1d", "conv1d.default", kConvolution, InferConvolution},
      {"conv1d", "conv1d.padding",
       "t input, t weight, o bias, l stride, S padding, l dilation, i groups",
       InferConvolution},
      {"conv2d", "conv2d.default", kConvolution, InferConvolution},
      {"conv2d", "conv2d.padding",
       "t input, t weight, o bias, l stride, S padding, l dilation, i groups",
       InferConvolution},
      {"conv3d", "conv3d.default", kConvolution, InferConvolution},
      {"conv_transpose1d", "conv_transpose1d.default", kTransposed,
       InferTransposed},
      {"conv_transpose2d", "conv_transpose2d.input", kTransposed,
       InferTransposed},
      {"conv_transpose3d", "conv_transpose3d.input", kTransposed,
       InferTransposed},
      {"max_pool1d", "max_pool1d.default", kMaxPool, InferPool},
      {"max_pool2d", "max_pool2d.default", kMaxPool, InferPool},
      {"max_pool3d", "max_pool3d.default", kMaxPool, InferPool},
      {"avg_pool1d", "avg_pool1d.default", kAveragePool, InferPool},
      {"avg_pool2d", "avg_pool2d.default", kAveragePool, InferPool},
      {"avg_pool3d", "avg_pool3d.default", kAveragePool, InferPool},
      {"adaptive_avg_pool1d", "adaptive_avg_pool1d.default",
       "t self, l output_size", InferAdaptivePool},
      {"adaptive_avg_pool2d", "adaptive_avg_pool2d.default",
       "t self, l output_size", InferAdaptivePool},
      {"adaptive_avg_pool3d", "adaptive_avg_pool3d.default",
       "t self, l output_size", InferAdaptivePool},
      {"upsample_nearest1d", "upsample_nearest1d.vec",
       "t input, l output_size, n scale_factors", InferUpsample},
      {"upsample_nearest2d", "upsample_nearest2d.vec",
       "t input, l output_size, n scale_factors", InferUpsample},
      {"upsample_linear1d", "upsample_linear1d.vec",
       "t input, l output_size, b align_corners, n scale_factors",
       InferUpsample},
      {"upsample_bilinear2d", "upsample_bilinear2d.vec",
       "t input, l output_size, b align_corners, n scale_factors",
       InferUpsample},
      {"upsample_bicubic2d", "upsample_bicubic2d.vec",
       "t input, l output_size, b align_corners, n scale_factors",
       InferUpsample},
      {"pixel_shuffle", "pixel_shuffle.default", "t self, i upscale_factor",
       InferPixelShuffle},
  };
}

ScriptOperators Reductions() {
  return {
      {"all", "all.default", "t self", InferTruth},
      {"all", "all.dim", "t self, I dim, b keepdim", InferTruth},
      {"any", "any.default", "t self", InferTruth},
      {"any", "any.dim", "t self, I dim, b keepdim", InferTruth},
      {"amax", "amax.default", "t self, l dim, b keepdim", InferReduce},
      {"amin", "amin.default", "t self, l dim, b keepdim", InferReduce},
      {"mean", "mean.dim", kOver, InferReduce},
      {"mean", "mean.default", "t self, |, i dtype", InferReduce},
      {"sum", "sum.dim_IntList", kOver, InferSum},
      {"sum", "sum.default", "t self, |, i dtype", InferSum},
      {"prod", "prod.dim_int", "t self, I dim, b keepdim, |, i dtype",
       InferSum},
      {"std", "std.dim", "t self, l dim, B unbiased, b keepdim", InferReduce},
      {"std", "std.correction", "t self, l dim, |, s correction, b keepdim",
       InferReduce},
      {"var", "var.dim", "t self, l dim, B unbiased, b keepdim", InferReduce},
      {"var", "var.correction", "t self, l dim, |, s correction, b keepdim",
       InferReduce},
      {"norm", "norm.ScalarOpt_dim", "t self, s p, l dim, b keepdim",
       InferReduce},
      {"linalg_vector_norm", "linalg_vector_norm.default",
       "t self, s ord, l dim, b keepdim, |, i dtype", InferReduce},
      {"cosine_similarity", "cosine_similarity.default",
       "t x1, t x2, i dim, s eps", InferCosine},
  };
}

// The word that _convolution has as an argument.
void InferTransposed(ScriptCall* call) {
  auto arguments = call->arguments();
  arguments["transposed"] = ScriptValue::Bool(true);
  ScriptCall other(std::move(arguments), call->tensors());
  InferConvolution(&other);
  call->Fail(other.status());
  call->outputs = other.outputs;
}

}  // namespace

ScriptOperators ScriptNetworkOperators() {
  ScriptOperators rows = {
      {"addmm", "addmm.default", "t self, t mat1, t mat2, s beta, s alpha",
       InferAddProduct},
      {"baddbmm", "baddbmm.default",
       "t self, t batch1, t batch2, s beta, s alpha", InferAddProduct},
      {"bmm", "bmm.default", "t self, t mat2", InferMatMul},
      {"matmul", "matmul.default", "t self, t other", InferMatMul},
      {"mm", "mm.default", "t self, t mat2", InferMatMul},
      {"linear", "linear.default", "t input, t weight, o bias", InferLinear},
      {"embedding", "embedding.default",
       "t weight, t indices, i padding_idx, b scale_grad_by_freq, b sparse",
       InferEmbedding},
      {"batch_norm", "batch_norm.default",
       "t input, o weight, o bias, o running_mean, o running_var, b training, "
       "s momentum, s eps, b cudnn_enabled",
       SameAsInput},
      {"layer_norm", "layer_norm.default",
       "t input, l normalized_shape, o weight, o bias, s eps, b cudnn_enable",
       SameAsInput},
      {"group_norm", "group_norm.default",
       "t input, i num_groups, o weight, o bias, s eps, b cudnn_enabled",
       SameAsInput},
      {"instance_norm", "instance_norm.default",
       "t input, o weight, o bias, o running_mean, o running_var, b "
       "use_input_stats, s momentum, s eps, b cudnn_enabled",
       SameAsInput},
      {"softmax", "softmax.int", "t self, i dim, i dtype", InferSoftmax},
      {"log_softmax", "log_softmax.int", "t self, i dim, i dtype",
       InferSoftmax},
      {"scaled_dot_product_attention", "scaled_dot_product_attention.default",
       "t query, t key, t value, o attn_mask, s dropout_p, b is_causal, s "
       "scale, b enable_gqa",
       InferAttention},
      {"lstm", "lstm.input",
       "t input, T hx, T params, b has_biases, i num_layers, s dropout, b "
       "train, b bidirectional, b batch_first",
       InferRecurrent},
      {"gru", "gru.input", kRecurrent, InferRecurrent},
      {"rnn_tanh", "rnn_tanh.input", kRecurrent, InferRecurrent},
      {"rnn_relu", "rnn_relu.input", kRecurrent, InferRecurrent},
  };
  for (const ScriptOperators& more : {Windows(), Reductions()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace pd
