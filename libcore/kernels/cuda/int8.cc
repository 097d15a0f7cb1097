// SPDX-License-Identifier: Apache-2.0
// int8_conv2d, int8_conv2d_transpose and int8_matmul: rows of int8 (what each
// output position reads), their products with the weights by cuBLASLt in
// int32, and a kernel for what follows; the kernels are in int8.cu. A u is
// read as u - 128 where it may be above 127, and the sums are corrected by the
// weights' sums. Depthwise convolutions are a kernel of their own. Weights are
// constant: they go to the device when the op is bound.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/int8_bindings.h"
#include "libcore/ops/conv/window.h"

namespace pd::cuda {
namespace {

// The tensors of an op when it runs.
struct Tensors {
  Tensor *x, *out, *floats, *residual;

  void Give(Int8SumArgs* args) const {
    const bool bytes = out->dtype() == DType::kUInt8;
    args->bytes = bytes ? out->data<uint8_t>() : nullptr;
    args->floats = bytes ? At(floats) : At(out);
    if (residual == nullptr) return;
    if (residual->dtype() == DType::kUInt8)
      args->residual_bytes = residual->data<uint8_t>();
    else
      args->residual_floats = residual->data<float>();
  }
};

absl::StatusOr<Tensors> ReadTensors(const BindContext& context) {
  const Tensors t = {context.Input("Input"), context.Output("Output"),
                     context.Output("OutputFloat"),
                     context.Input("ResidualData")};
  if (t.x == nullptr || t.x->dtype() != DType::kUInt8 || t.out == nullptr)
    return Unimplemented("'Input' that is no uint8");
  if (t.x->size() == 0 || t.out->size() == 0)
    return Unimplemented("a product of nothing");
  if (t.residual != nullptr && (t.residual->shape() != t.out->shape() ||
                                (t.residual->dtype() != DType::kUInt8 &&
                                 t.residual->dtype() != DType::kFloat32)))
    return Unimplemented("'ResidualData' of another kind");
  return t;
}

// Sizes, scales, bias and epilogue of the sums; not their addresses or addends.
absl::StatusOr<Int8SumArgs> ReadSums(BindContext* context,
                                     DeviceBinding* binding,
                                     const Int8Channels& channels,
                                     const Int8WindowArgs& window) {
  Int8SumArgs args{};
  args.rows = window.rows;
  args.positions = window.out_h * window.out_w;
  args.groups = window.groups;
  args.outputs = static_cast<int64_t>(channels.scales.size()) / window.groups;
  args.width = RoundUp(args.outputs, kInt8Width);
  PD_ASSIGN_OR_RETURN(const Int8Epilogue epilogue,
                      ReadInt8Epilogue(context->op()));
  args.finish = FinishOf(epilogue);
  PD_ASSIGN_OR_RETURN(args.scales, Upload(binding, channels.scales));
  PD_ASSIGN_OR_RETURN(args.bias, Upload(binding, channels.bias));
  return args;
}

absl::StatusOr<Step> BindDepthwise(DeviceBinding* binding, const Tensors& t,
                                   const Int8Weights& weights,
                                   const Int8WindowArgs& window,
                                   const Int8SumArgs& sum) {
  Int8DepthwiseArgs args{window, nullptr, sum};
  PD_ASSIGN_OR_RETURN(args.weights, Upload(binding, weights.values));
  PD_ASSIGN_OR_RETURN(const auto start, Starter<Int8DepthwiseArgs>::Find(
                                            binding, "int8_depthwise"));
  return Step([=](const RunContext&) {
    Int8DepthwiseArgs run = args;
    run.window.x = t.x->data<uint8_t>();
    t.Give(&run.sum);
    return start.Elements(t.out->size(), run);
  });
}

// sum of (u - zero) w = sum of (u - shift) w + (shift - zero) sum of w
absl::StatusOr<Step> BindSums(BindContext* context, DeviceBinding* binding,
                              const Tensors& t, const Int8Weights& weights,
                              Int8WindowArgs window, Int8SumArgs sum) {
  window.depth = RoundUp(weights.taps * weights.channels, kInt8Depth);
  // Rows of a matrix may be what the product takes, as they are.
  const bool as_is = window.shift == 0 && window.channel_step == 1 &&
                     window.taps == 1 && window.depth == window.channels;
  PD_ASSIGN_OR_RETURN(auto bound,
                      BindBytes(CudaOf(binding), window.rows, sum.width,
                                window.depth, window.groups));
  PD_ASSIGN_OR_RETURN(const int8_t* const packed,
                      Upload(binding, PackWeights(weights, sum.groups,
                                                  sum.width, window.depth)));
  PD_ASSIGN_OR_RETURN(
      sum.corrections,
      Upload(binding, SumsOfWeights(weights, window.shift - window.zero)));
  PD_ASSIGN_OR_RETURN(const auto gather,
                      Starter<Int8WindowArgs>::Find(binding, "int8_rows"));
  PD_ASSIGN_OR_RETURN(const auto finish,
                      Starter<Int8SumArgs>::Find(binding, "int8_finish_sums"));
  const auto bytes = [](int64_t n) { return static_cast<size_t>(n); };
  const int64_t all_rows = window.groups * window.rows;
  Tensor* rows =
      as_is ? nullptr : context->Scratch(bytes(all_rows * window.depth));
  Tensor* sums =
      context->Scratch(bytes(all_rows * sum.width) * sizeof(int32_t));
  Tensor* workspace =
      bound->workspace() == 0 ? nullptr : context->Scratch(bound->workspace());
  return Step([=, bound = std::move(bound)](const RunContext&) {
    Int8WindowArgs from = window;
    from.x = t.x->data<uint8_t>();
    if (rows != nullptr) {
      from.rows_out = static_cast<int8_t*>(rows->raw());
      PD_RETURN_IF_ERROR(
          gather.Elements(all_rows * (from.depth / kInt8Depth), from));
    }
    PD_RETURN_IF_ERROR(bound->Run(
        rows != nullptr ? rows->raw() : t.x->raw(), packed, sums->raw(),
        workspace == nullptr ? nullptr : workspace->raw()));
    Int8SumArgs run = sum;
    run.sums = static_cast<const int32_t*>(sums->raw());
    t.Give(&run);
    return finish.Elements(all_rows * (run.width / kInt8Width), run);
  });
}

absl::StatusOr<Step> BindInt8Windows(BindContext* context,
                                     DeviceBinding* binding,
                                     Int8WindowArgs window) {
  PD_ASSIGN_OR_RETURN(const Tensors t, ReadTensors(*context));
  PD_ASSIGN_OR_RETURN(const Int8Constants c, ReadConstants(context, binding));
  const Int8In in = ReadInt8In(context->op(), "x");
  window.zero = in.zero;
  window.shift = in.high <= 127 && in.zero <= 127 ? 0 : 128;
  window.channels = c.weights.channels;
  window.taps = c.weights.taps;
  PD_ASSIGN_OR_RETURN(const Int8SumArgs sum,
                      ReadSums(context, binding, c.channels, window));
  if (window.groups > 1 && window.channels == 1)
    return BindDepthwise(binding, t, c.weights, window, sum);
  return BindSums(context, binding, t, c.weights, window, sum);
}

// `in` and `out` of the axes are those of the convolution whose gradient a
// transposed one is.
Int8WindowArgs WindowsOf(const ConvGeometry& g, bool transposed) {
  const WindowAxis &h = g.axes[0], &w = g.axes[1];
  Int8WindowArgs args{};
  args.transposed = transposed;
  args.in_h = transposed ? h.out : h.in;
  args.in_w = transposed ? w.out : w.in;
  args.out_h = transposed ? h.in : h.out;
  args.out_w = transposed ? w.in : w.out;
  args.rows = g.batch * args.out_h * args.out_w;
  args.groups = transposed ? 1 : g.groups;
  args.channel_step = args.in_h * args.in_w;
  args.image_step =
      (transposed ? g.out_channels : g.in_channels) * args.channel_step;
  args.kernel_w = w.kernel;
  args.stride_h = h.stride;
  args.stride_w = w.stride;
  args.pad_h = h.pad_before;
  args.pad_w = w.pad_before;
  args.dilation_h = h.dilation;
  args.dilation_w = w.dilation;
  return args;
}

absl::StatusOr<Step> BindInt8Conv(BindContext* context,
                                  DeviceBinding* binding) {
  const bool transposed = context->op().type == "int8_conv2d_transpose";
  const Shape &x = context->Input("Input")->shape(),
              &filter = context->Input("Filter")->shape();
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      transposed ? ReadConvTranspose(context->op(), x, filter)
                                 : ReadConv(context->op(), x, filter));
  return BindInt8Windows(context, binding, WindowsOf(g, transposed));
}

// A matrix: rows of one position, channels side by side.
absl::StatusOr<Step> BindMatmul(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(
      const Int8Product p,
      ReadInt8Product(context->op(), context->Input("Input")->shape(),
                      context->Input("Filter")->shape()));
  Int8WindowArgs args{};
  args.rows = p.rows;
  args.groups = args.channel_step = 1;
  args.image_step = p.depth;
  args.in_h = args.in_w = args.out_h = args.out_w = 1;
  args.kernel_w = args.stride_h = args.stride_w = 1;
  args.dilation_h = args.dilation_w = 1;
  return BindInt8Windows(context, binding, args);
}

}  // namespace

void AddInt8(KernelTable* kernels) {
  kernels->Add("int8_conv2d", {"cublaslt:int8", BindInt8Conv});
  kernels->Add("int8_conv2d_transpose", {"cublaslt:int8", BindInt8Conv});
  kernels->Add("int8_matmul", {"cublaslt:int8", BindMatmul});
}

}  // namespace pd::cuda
