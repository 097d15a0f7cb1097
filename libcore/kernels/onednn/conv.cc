// SPDX-License-Identifier: Apache-2.0
// conv2d, depthwise_conv2d, fused_conv2d, conv3d and their gradients through
// oneDNN in the layouts that it likes best. Weights are kept in the forward
// layout, those of several groups row-major: no layout of ours says how oneDNN
// wants them, so they are rearranged in each run.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/half.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace onednn {
namespace {

struct ConvProblem {
  Convolution conv;        // layouts: as the tensors lie now, or any
  bool depthwise = false;  // weights have one dimension more in oneDNN
  int64_t groups = 1;      // several: likewise

  bool IsGrouped() const { return groups > 1 && !depthwise; }
};

// oneDNN's [G, 1, 1, KH, KW] of a depthwise convolution is our [G, 1, KH, KW].
absl::StatusOr<LayoutPtr> WeightLayout(const ConvProblem& p,
                                       const LayoutPtr& theirs,
                                       const Shape& shape) {
  if (!p.depthwise || theirs == nullptr) return theirs;
  Layout layout;
  layout.shape = shape;
  const size_t from[] = {0, 2, 3, 4};
  for (size_t i : from) {
    layout.padded.push_back(theirs->padded[i]);
    layout.strides.push_back(theirs->strides[i]);
  }
  for (const Layout::Block& block : theirs->blocks) {
    if (block.dim == 1 || block.dim == 2)
      return Unimplemented("oneDNN wants blocks of channels inside a group");
    layout.blocks.push_back({block.dim == 0 ? 0 : block.dim - 1, block.size});
  }
  return Canonical(std::move(layout));
}

ArgSpec WeightSpec(const ConvProblem& p, const Tensor& filter) {
  ArgSpec spec;
  spec.shape = filter.shape();
  if (p.groups > 1) {
    spec.shape[0] /= p.groups;
    spec.shape.insert(spec.shape.begin(), p.groups);
  }
  spec.any = true;
  return spec;
}

// oneDNN's blocks of channels do not straddle groups. What is no whole block
// lies channels last, for which it has a kernel in either direction.
void ChooseLayouts(const ConvGeometry& g, ConvProblem* p) {
  constexpr int64_t kBlock = 16;
  const bool whole = g.in_channels / g.groups % kBlock == 0 &&
                     g.out_channels / g.groups % kBlock == 0;
  for (ArgSpec* spec : {&p->conv.src, &p->conv.dst}) {
    spec->any = !p->IsGrouped() || whole;
    if (!spec->any) spec->layout = PermutedLayout(spec->shape, {0, 2, 3, 1});
  }
}

absl::StatusOr<ConvProblem> ReadConvProblem(BindContext* context) {
  const OpDesc& op = context->op();
  const Tensor* x = context->Input("Input");
  const Tensor* w = context->Input("Filter");
  if (x->dtype() != w->dtype())
    return Unimplemented("Input and Filter differ in type");
  PD_RETURN_IF_ERROR(TakesType(x->dtype()));
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConv(op, x->shape(), w->shape()));
  if (g.channels_last) return Unimplemented("it is for NCHW");
  if (g.axes.size() != 2 && g.groups != 1)
    return Unimplemented("it is for one group of volumes");
  ConvProblem p;
  p.groups = g.groups;
  p.depthwise =
      g.groups > 1 && g.groups == g.in_channels && g.groups == g.out_channels;
  if (x->size() == 0 || NumElements(g.OutputShape()) == 0)
    return Unimplemented("the image is empty");
  const std::string activation = op.AttrOr<std::string>("fuse_activation", "");
  if (!activation.empty() && activation != "relu" && activation != "relu6")
    return Unimplemented("it has no activation '%s'", activation);
  p.conv.relu.on = !activation.empty();
  if (activation == "relu6") p.conv.relu.top = op.Attr<float>("fuse_alpha");
  p.conv.src.shape = x->shape();
  p.conv.dst.shape = g.OutputShape();
  ChooseLayouts(g, &p);
  p.conv.weights = WeightSpec(p, *w);
  for (ArgSpec* spec :
       {&p.conv.src, &p.conv.weights, &p.conv.bias, &p.conv.dst})
    spec->dtype = x->dtype();
  for (const WindowAxis& axis : g.axes) {
    p.conv.strides.push_back(axis.stride);
    p.conv.dilations.push_back(axis.dilation);
    p.conv.pad_before.push_back(axis.pad_before);
    p.conv.pad_after.push_back(axis.pad_after);
  }
  return p;
}

// Weights of several groups as `conv` wants them, or their gradient as it
// writes it: rearranged before or after it.
absl::StatusOr<PrimitivePtr> BindGroupedWeights(BindContext* context,
                                                const ConvProblem& p,
                                                Primitive* conv, Arg arg,
                                                Tensor* filter) {
  PD_ASSIGN_OR_RETURN(const LayoutPtr theirs, conv->LayoutOf(arg));
  ArgSpec plain = p.conv.weights;
  plain.any = false;
  ArgSpec packed = plain;
  packed.layout = theirs;
  const int64_t elements =
      theirs != nullptr ? theirs->Elements() : NumElements(plain.shape);
  Tensor* bytes =
      context->Scratch(static_cast<size_t>(elements) * sizeof(float));
  conv->Bind(arg, bytes);
  const bool gradient = arg == Arg::kDiffWeights;
  PD_ASSIGN_OR_RETURN(PrimitivePtr reorder, gradient ? Reorder(packed, plain)
                                                     : Reorder(plain, packed));
  if (reorder->ScratchpadBytes() > 0)
    return Unimplemented("oneDNN's reorder wants a scratchpad");
  reorder->Bind(Arg::kSrc, gradient ? bytes : filter);
  reorder->Bind(Arg::kDst, gradient ? filter : bytes);
  return reorder;
}

// The weights of `conv`. What has to run before it, null for nothing.
absl::StatusOr<PrimitivePtr> BindWeights(BindContext* context,
                                         const ConvProblem& p,
                                         Primitive* conv) {
  Tensor* filter = context->Input("Filter");
  if (p.IsGrouped()) {
    PD_ASSIGN_OR_RETURN(filter, context->In(filter, nullptr));
    return BindGroupedWeights(context, p, conv, Arg::kWeights, filter);
  }
  PD_ASSIGN_OR_RETURN(const LayoutPtr theirs, conv->LayoutOf(Arg::kWeights));
  PD_ASSIGN_OR_RETURN(const LayoutPtr ours,
                      WeightLayout(p, theirs, filter->shape()));
  PD_ASSIGN_OR_RETURN(filter, context->In(filter, ours));
  conv->Bind(Arg::kWeights, filter);
  return PrimitivePtr();
}

absl::Status RunBoth(const PrimitivePtr& first, const PrimitivePtr& second) {
  if (first != nullptr) PD_RETURN_IF_ERROR(first->Run());
  return second != nullptr ? second->Run() : absl::OkStatus();
}

// Puts ResidualData where the convolution adds its result: into Output, over
// itself where the plan lets them share their bytes.
struct Residual {
  Tensor *from = nullptr, *to = nullptr;

  void Run() const {
    if (from->raw() == to->raw()) return;
    constexpr int64_t kGrain = 65536;  // bytes per thread at least
    const auto* x = static_cast<const std::byte*>(from->raw());
    auto* y = static_cast<std::byte*>(to->raw());
    ParallelFor(static_cast<int64_t>(to->bytes()), kGrain,
                [=](int64_t begin, int64_t end) {
                  std::copy(x + begin, x + end, y + begin);
                });
  }
};

// `src` and `dst` are what the convolution reads and writes: it reads around
// each place that it writes.
absl::StatusOr<Residual> BindResidual(BindContext* context, const Tensor* src,
                                      Tensor* dst) {
  Tensor* residual = context->Input("ResidualData");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ResidualData", dst->dtype(), dst->shape()));
  PD_ASSIGN_OR_RETURN(residual, context->In(residual, dst->layout()));
  if (residual != src) context->MayShare(residual, dst);
  return Residual{residual, dst};
}

}  // namespace

absl::StatusOr<Step> BindConv(BindContext* context) {
  PD_ASSIGN_OR_RETURN(ConvProblem p, ReadConvProblem(context));
  Tensor* bias = context->Input("Bias");
  p.conv.sum = context->Input("ResidualData") != nullptr;
  if (bias != nullptr) {
    p.conv.bias.shape = {p.conv.dst.shape[1]};
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", p.conv.dst.dtype,
                                      p.conv.dst.shape[1]));
  }
  PD_ASSIGN_OR_RETURN(PrimitivePtr conv, ConvolutionForward(p.conv));
  PD_ASSIGN_OR_RETURN(const LayoutPtr src_layout, conv->LayoutOf(Arg::kSrc));
  PD_ASSIGN_OR_RETURN(Tensor * src,
                      context->In(context->Input("Input"), src_layout));
  conv->Bind(Arg::kSrc, src);
  PD_ASSIGN_OR_RETURN(const PrimitivePtr weights,
                      BindWeights(context, p, conv.get()));
  if (bias != nullptr) conv->Bind(Arg::kBias, bias);
  PD_ASSIGN_OR_RETURN(const LayoutPtr dst_layout, conv->LayoutOf(Arg::kDst));
  PD_ASSIGN_OR_RETURN(Tensor * dst,
                      context->Out(context->Output("Output"), dst_layout));
  conv->Bind(Arg::kDst, dst);
  BindScratchpad(context, conv.get());
  if (!p.conv.sum)
    return Step([=](const RunContext&) { return RunBoth(weights, conv); });
  PD_ASSIGN_OR_RETURN(const Residual residual, BindResidual(context, src, dst));
  return Step([=](const RunContext&) {
    residual.Run();
    return RunBoth(weights, conv);
  });
}

namespace {

// The gradient behind a fused ReLU: dout where 0 < out < top. Both lie as
// `layout`.
struct Cut {
  Tensor *out = nullptr, *dout = nullptr, *result = nullptr;
  float top = 0;

  void Run() const {
    dout->dtype() == DType::kFloat32 ? RunAs<float>() : RunAs<BFloat16>();
  }

  template <typename T>
  void RunAs() const {
    constexpr int64_t kGrain = 16384;  // elements per thread at least
    const T *y = out->data<T>(), *dy = dout->data<T>();
    T* to = result->data<T>();
    ParallelFor(dout->physical_size(), kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const T g = dy[i];
        const float value = static_cast<float>(y[i]);
        to[i] = value > 0.0f && value < top ? g : T(0.0f);
      }
    });
  }
};

absl::StatusOr<Cut> BindCut(BindContext* context, const Relu& relu,
                            const LayoutPtr& layout) {
  Cut cut;
  cut.top = relu.top;
  cut.out = context->Input("Output");
  if (cut.out == nullptr) return InvalidArgument("'Output' is missing");
  PD_ASSIGN_OR_RETURN(cut.out, context->In(cut.out, layout));
  PD_ASSIGN_OR_RETURN(cut.dout,
                      context->In(context->Input("Output@GRAD"), layout));
  cut.result = context->Scratch(cut.dout->bytes());
  return cut;
}

Convolution WithOutput(const ConvProblem& p, const LayoutPtr& layout) {
  Convolution c = p.conv;
  c.dst.any = false;
  c.dst.layout = layout;
  return c;
}

// The layout in which both gradients read the incoming one: as the forward
// output lies, or row-major where oneDNN has a gradient as a product of
// matrices only.
absl::StatusOr<LayoutPtr> IncomingLayout(const ConvProblem& p,
                                         bool wants_weights, bool wants_data) {
  PD_ASSIGN_OR_RETURN(const PrimitivePtr forward, ConvolutionForward(p.conv));
  PD_ASSIGN_OR_RETURN(const LayoutPtr layout, forward->LayoutOf(Arg::kDst));
  const Convolution c = WithOutput(p, layout);
  if (wants_weights &&
      absl::IsUnimplemented(ConvolutionBackwardWeights(c).status()))
    return nullptr;
  if (wants_data && absl::IsUnimplemented(ConvolutionBackwardData(c).status()))
    return nullptr;
  return layout;
}

// A primitive, and what rearranges its weights, or null.
struct Gradient {
  PrimitivePtr primitive, reorder;
};

absl::StatusOr<Gradient> BindWeightGrad(BindContext* context,
                                        const ConvProblem& p,
                                        const LayoutPtr& out_layout) {
  Tensor* dfilter = context->Output("Filter@GRAD");
  Tensor* dbias = context->Output("Bias@GRAD");
  Convolution c = WithOutput(p, out_layout);
  if (dbias != nullptr) c.bias.shape = {c.dst.shape[1]};
  PD_ASSIGN_OR_RETURN(PrimitivePtr weights, ConvolutionBackwardWeights(c));
  PD_RETURN_IF_ERROR(
      BindIn(context, weights.get(), Arg::kSrc, context->Input("Input")));
  PrimitivePtr reorder;
  if (p.IsGrouped()) {
    PD_ASSIGN_OR_RETURN(dfilter, context->Out(dfilter, nullptr));
    PD_ASSIGN_OR_RETURN(reorder,
                        BindGroupedWeights(context, p, weights.get(),
                                           Arg::kDiffWeights, dfilter));
  } else {
    PD_ASSIGN_OR_RETURN(const LayoutPtr theirs,
                        weights->LayoutOf(Arg::kDiffWeights));
    PD_ASSIGN_OR_RETURN(const LayoutPtr ours,
                        WeightLayout(p, theirs, dfilter->shape()));
    PD_ASSIGN_OR_RETURN(dfilter, context->Out(dfilter, ours));
    weights->Bind(Arg::kDiffWeights, dfilter);
  }
  if (dbias != nullptr) weights->Bind(Arg::kDiffBias, dbias);
  BindScratchpad(context, weights.get());
  return Gradient{weights, reorder};
}

absl::StatusOr<Gradient> BindConvDataGrad(BindContext* context,
                                          const ConvProblem& p,
                                          const LayoutPtr& out_layout) {
  PD_ASSIGN_OR_RETURN(PrimitivePtr data,
                      ConvolutionBackwardData(WithOutput(p, out_layout)));
  PD_ASSIGN_OR_RETURN(const PrimitivePtr weights,
                      BindWeights(context, p, data.get()));
  PD_RETURN_IF_ERROR(BindOut(context, data.get(), Arg::kDiffSrc,
                             context->Output("Input@GRAD")));
  BindScratchpad(context, data.get());
  return Gradient{data, weights};
}

}  // namespace

absl::StatusOr<Step> BindConvGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(ConvProblem p, ReadConvProblem(context));
  if (context->Input("ResidualData") != nullptr)
    return Unimplemented("its residual has no gradient");
  Tensor* dout = context->Input("Output@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Output@GRAD", p.conv.dst.dtype, p.conv.dst.shape));
  const bool wants_weights = context->Output("Filter@GRAD") != nullptr;
  const bool wants_data = context->Output("Input@GRAD") != nullptr;
  if (context->Output("Bias@GRAD") != nullptr && !wants_weights)
    return Unimplemented("the gradient of the bias is wanted without Filter's");
  const Relu relu = std::exchange(p.conv.relu, {});
  PD_ASSIGN_OR_RETURN(const LayoutPtr out_layout,
                      IncomingLayout(p, wants_weights, wants_data));
  p.conv.winograd = true;
  Cut cut;
  if (relu.on) {
    PD_ASSIGN_OR_RETURN(cut, BindCut(context, relu, out_layout));
    dout = cut.result;
  } else {
    PD_ASSIGN_OR_RETURN(dout, context->In(dout, out_layout));
  }
  Gradient weights, data;
  if (wants_weights) {
    PD_ASSIGN_OR_RETURN(weights, BindWeightGrad(context, p, out_layout));
    weights.primitive->Bind(Arg::kDiffDst, dout);
  } else {
    context->NoBuffer(context->Input("Input"));
  }
  if (wants_data) {
    PD_ASSIGN_OR_RETURN(data, BindConvDataGrad(context, p, out_layout));
    data.primitive->Bind(Arg::kDiffDst, dout);
  } else {
    context->NoBuffer(context->Input("Filter"));
  }
  return Step([=](const RunContext&) -> absl::Status {
    if (relu.on) cut.Run();
    PD_RETURN_IF_ERROR(RunBoth(weights.primitive, weights.reorder));
    return RunBoth(data.reorder, data.primitive);
  });
}

}  // namespace onednn
}  // namespace pd
