// SPDX-License-Identifier: Apache-2.0
// fused_conv2d: a convolution (conv.cc), a bias for each channel, a residual
// and an activation ("", relu, or relu6 up to fuse_alpha) in one op.
//   z = conv2d(Input, Filter) + Bias + ResidualData
//   Output = fuse_activation(z)
// fused_conv2d_grad, with g = Output@GRAD, or 0 where the activation gave
// Output <= 0, or relu6 its upper bound:
//   ResidualData@GRAD = g, Bias@GRAD[o] = sum of g over all but channels,
//   Input@GRAD and Filter@GRAD as of conv2d with g as gradient of its output.
// The gradient reads Output, so z is kept by nobody. Passes put these ops in
// the place of conv2d, elementwise_add and relu.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Strides {
  int64_t n, c, h, w;
};

struct Conv {
  ConvGeometry g;
  WindowAxis h, w;
  Strides in, out;
  int64_t group_in, group_out;  // channels a group
  bool relu = false;
  double top = std::numeric_limits<double>::infinity();  // of a relu

  int64_t Weight(int64_t o, int64_t i) const {
    return (o * group_in + i) * h.kernel * w.kernel;
  }
};

Strides StridesOf(const Shape& shape, bool channels_last) {
  const std::vector<int64_t> s = RowMajorStrides(shape);
  return channels_last ? Strides{s[0], s[3], s[1], s[2]}
                       : Strides{s[0], s[1], s[2], s[3]};
}

absl::StatusOr<Conv> ReadFused(const OpDesc& op, const Shape& input,
                               const Shape& filter) {
  Conv c;
  PD_ASSIGN_OR_RETURN(c.g, ReadConv(op, input, filter));
  if (c.g.axes.size() != 2)
    return InvalidArgument("'Input' has shape %s; expected rank 4",
                           ToString(input));
  const std::string activation = op.Attr<std::string>("fuse_activation");
  if (!activation.empty() && activation != "relu" && activation != "relu6")
    return InvalidArgument(
        "attr 'fuse_activation' is '%s'; expected '', relu or relu6",
        activation);
  c.relu = !activation.empty();
  if (activation == "relu6") {
    c.top = op.Attr<float>("fuse_alpha");
    if (!(c.top > 0))
      return InvalidArgument(
          "attr 'fuse_alpha' is %g; relu6 wants its bound, more than 0", c.top);
  }
  c.h = c.g.axes[0];
  c.w = c.g.axes[1];
  c.in = StridesOf(input, c.g.channels_last);
  c.out = StridesOf(c.g.OutputShape(), c.g.channels_last);
  c.group_in = c.g.in_channels / c.g.groups;
  c.group_out = c.g.out_channels / c.g.groups;
  return c;
}

// Calls body(out, in, weight) for every product of image n and channel o:
// offsets in the output, the input and the weights.
template <typename Body>
void ForEachProduct(const Conv& c, int64_t n, int64_t o, const Body& body) {
  for (int64_t i = 0; i < c.group_in; ++i) {
    const int64_t channel = o / c.group_out * c.group_in + i;
    for (int64_t kh = 0; kh < c.h.kernel; ++kh) {
      const auto [top, bottom] = c.h.Valid(kh);
      for (int64_t kw = 0; kw < c.w.kernel; ++kw) {
        const auto [left, right] = c.w.Valid(kw);
        for (int64_t y = top; y < bottom; ++y)
          for (int64_t x = left; x < right; ++x)
            body(n * c.out.n + o * c.out.c + y * c.out.h + x * c.out.w,
                 n * c.in.n + channel * c.in.c + c.h.Source(y, kh) * c.in.h +
                     c.w.Source(x, kw) * c.in.w,
                 c.Weight(o, i) + kh * c.w.kernel + kw);
      }
    }
  }
}

// Calls body(offset) for every element of channel o of image n of the output.
template <typename Body>
void ForEachOutput(const Conv& c, int64_t n, int64_t o, const Body& body) {
  for (int64_t y = 0; y < c.h.out; ++y)
    for (int64_t x = 0; x < c.w.out; ++x)
      body(n * c.out.n + o * c.out.c + y * c.out.h + x * c.out.w);
}

absl::StatusOr<Step> BindFusedConvForward(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* bias = context->Input("Bias");
  Tensor* residual = context->Input("ResidualData");
  Tensor* output = context->Output("Output");
  PD_ASSIGN_OR_RETURN(
      const Conv c, ReadFused(context->op(), input->shape(), filter->shape()));
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Bias", input->dtype(), c.g.out_channels));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "ResidualData",
                                         input->dtype(), output->shape()));
  return DispatchFloat(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *x = input->data<T>(), *w = filter->data<T>();
      T* out = output->data<T>();
      ParallelFor(
          c.g.batch * c.g.out_channels, 1, [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; ++p) {
              const int64_t n = p / c.g.out_channels, o = p % c.g.out_channels;
              const T start = bias != nullptr ? bias->data<T>()[o] : T(0);
              ForEachOutput(c, n, o, [&](int64_t at) {
                out[at] = start + (residual != nullptr ? residual->data<T>()[at]
                                                       : T(0));
              });
              ForEachProduct(c, n, o, [&](int64_t to, int64_t from, int64_t k) {
                out[to] += x[from] * w[k];
              });
              if (!c.relu) continue;
              ForEachOutput(c, n, o, [&](int64_t at) {
                if (out[at] < T(0)) out[at] = T(0);
                if (out[at] > static_cast<T>(c.top))
                  out[at] = static_cast<T>(c.top);
              });
            }
          });
      return absl::OkStatus();
    });
  });
}

// Tensors of the gradient op; null: not wanted.
struct FusedConvGradTensors {
  Tensor *x, *w, *out, *dout, *cut;
  Tensor *dx, *dw, *dbias, *dresidual;
};

template <typename T>
void FusedConvBackward(const Conv& c, const FusedConvGradTensors& t) {
  T* g = t.cut->data<T>();
  const T *dout = t.dout->data<T>(), *out = t.out->data<T>();
  for (int64_t i = 0; i < t.dout->size(); ++i)
    g[i] = !c.relu || (out[i] > T(0) && out[i] < static_cast<T>(c.top))
               ? dout[i]
               : T(0);
  if (t.dresidual != nullptr)
    std::copy(g, g + t.dout->size(), t.dresidual->data<T>());
  if (t.dx != nullptr) {
    T* dx = t.dx->data<T>();
    std::fill(dx, dx + t.dx->size(), T(0));
    ParallelFor(c.g.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        for (int64_t o = 0; o < c.g.out_channels; ++o)
          ForEachProduct(c, n, o, [&](int64_t from, int64_t to, int64_t k) {
            dx[to] += g[from] * t.w->data<T>()[k];
          });
    });
  }
  ParallelFor(c.g.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      T sum = T(0);
      if (t.dw != nullptr)
        std::fill(t.dw->data<T>() + c.Weight(o, 0),
                  t.dw->data<T>() + c.Weight(o + 1, 0), T(0));
      for (int64_t n = 0; n < c.g.batch; ++n) {
        ForEachOutput(c, n, o, [&](int64_t at) { sum += g[at]; });
        if (t.dw == nullptr) continue;
        ForEachProduct(c, n, o, [&](int64_t from, int64_t at, int64_t k) {
          t.dw->data<T>()[k] += g[from] * t.x->data<T>()[at];
        });
      }
      if (t.dbias != nullptr) t.dbias->data<T>()[o] = sum;
    }
  });
}

absl::StatusOr<Step> BindFusedConvBackward(BindContext* context) {
  FusedConvGradTensors t;
  t.x = context->Input("Input");
  t.w = context->Input("Filter");
  t.out = context->Input("Output");
  t.dout = context->Input("Output@GRAD");
  t.dx = context->Output("Input@GRAD");
  t.dw = context->Output("Filter@GRAD");
  t.dbias = context->Output("Bias@GRAD");
  t.dresidual = context->Output("ResidualData@GRAD");
  for (const char* slot : {"Bias", "ResidualData"})
    if (Tensor* unread = context->Input(slot)) context->NoBuffer(unread);
  PD_ASSIGN_OR_RETURN(const Conv c,
                      ReadFused(context->op(), t.x->shape(), t.w->shape()));
  const DType dtype = t.x->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Output@GRAD", dtype, c.g.OutputShape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Output", dtype, c.g.OutputShape()));
  t.cut = context->Scratch(t.dout->bytes());
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      FusedConvBackward<T>(c, t);
      return absl::OkStatus();
    });
  });
}

absl::Status InferFusedConvForward(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  const TensorMeta& filter = context->Input("Filter");
  if (input.shape.size() != 4)
    return InvalidArgument("'Input' has shape %s; expected rank 4",
                           ToString(input.shape));
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConv(context->op(), input.shape, filter.shape));
  if (input.dtype != filter.dtype)
    return InvalidArgument("'Input' is %s; 'Filter' is %s", Name(input.dtype),
                           Name(filter.dtype));
  context->SetOutput("Output", g.OutputShape(), input.dtype);
  return absl::OkStatus();
}

void AddFusedConvAttrs(OpDef* def) {
  def->Attr("strides", std::vector<int32_t>{1, 1})
      .Attr("paddings", std::vector<int32_t>{0, 0})
      .Attr("padding_algorithm", std::string("EXPLICIT"))
      .Attr("dilations", std::vector<int32_t>{1, 1})
      .Attr("groups", int32_t{1})
      .Attr("data_format", std::string("NCHW"))
      .Attr("fuse_activation", std::string())
      .Attr("fuse_alpha", 0.0f)
      .Attr("fuse_residual_connection", false)
      .Attr("force_fp32_output", false);
}

}  // namespace

absl::Status RegisterFusedConv2d(OpRegistry* registry) {
  OpDef conv("fused_conv2d");
  conv.Input("Input").Input("Filter").OptionalInput("Bias");
  conv.OptionalInput("ResidualData").Output("Output");
  AddFusedConvAttrs(&conv);
  conv.Infer(InferFusedConvForward).Reference(BindFusedConvForward);
  conv.Grad(GradSpec{"fused_conv2d_grad",
                     {"Input", "Filter", "Bias", "ResidualData"},
                     {"Output"},
                     {"Output"},
                     {"Input", "Filter", "Bias", "ResidualData"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(conv)));

  OpDef grad("fused_conv2d_grad");
  grad.Input("Input").Input("Filter").OptionalInput("Bias");
  grad.OptionalInput("ResidualData").Input("Output").Input("Output@GRAD");
  for (const char* slot :
       {"Input@GRAD", "Filter@GRAD", "Bias@GRAD", "ResidualData@GRAD"})
    grad.OptionalOutput(slot);
  AddFusedConvAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindFusedConvBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
