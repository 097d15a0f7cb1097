// SPDX-License-Identifier: Apache-2.0
// conv2d, depthwise_conv2d: cross-correlation of images with filters.
//   Output[n, o, y, x] = sum over i, kh, kw of
//     Filter[o, i, kh, kw] *
//     Input[n, g * I + i, y * stride + kh * dilation - pad, x * ... ]
// with I = channels / groups inputs a group and g the group of o; positions in
// the padding count as 0.
//   Input@GRAD[n, c, ...]    = the same sum over o and taps of
//                              Filter * Output@GRAD
//   Filter@GRAD[o, i, kh, kw] = sum over n, y, x of Input * Output@GRAD
// Filters are OIHW for both data formats. The loops go tap by tap over rows of
// the output, so the innermost one is contiguous in NCHW.
#include <algorithm>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/window.h"

namespace pd {
namespace {

// Geometry and strides, all in elements.
struct Conv {
  struct Strides {
    int64_t n, c, h, w;
  };
  ConvGeometry g;
  WindowAxis h, w;
  Strides in, out;
  int64_t group_in, group_out;  // channels a group

  int64_t FilterOffset(int64_t o, int64_t i) const {
    return (o * group_in + i) * h.kernel * w.kernel;
  }
};

Conv::Strides StridesOf(const Shape& shape, bool channels_last) {
  const std::vector<int64_t> s = RowMajorStrides(shape);
  return channels_last ? Conv::Strides{s[0], s[3], s[1], s[2]}
                       : Conv::Strides{s[0], s[1], s[2], s[3]};
}

absl::StatusOr<Conv> ReadConv2d(const OpDesc& op, const Shape& input,
                                const Shape& filter) {
  Conv c;
  PD_ASSIGN_OR_RETURN(c.g, ReadConv(op, input, filter));
  if (c.g.axes.size() != 2)
    return InvalidArgument("'Input' has shape %s; expected rank 4",
                           ToString(input));
  c.h = c.g.axes[0];
  c.w = c.g.axes[1];
  c.in = StridesOf(input, c.g.channels_last);
  c.out = StridesOf(c.g.OutputShape(), c.g.channels_last);
  c.group_in = c.g.in_channels / c.g.groups;
  c.group_out = c.g.out_channels / c.g.groups;
  return c;
}

// y += a * x
template <typename T>
void Axpy(int64_t n, T a, const T* x, int64_t x_step, T* y, int64_t y_step) {
  if (x_step == 1 && y_step == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * y_step] += a * x[i * x_step];
  }
}

// Calls body(tap, in, out, count): for filter tap `tap` the elements
// in + i * stride * c.in.w and out + i * c.out.w, i < count, of one image and
// channel meet.
template <typename Body>
void ForEachRow(const Conv& c, const Body& body) {
  for (int64_t kh = 0; kh < c.h.kernel; ++kh) {
    const auto [top, bottom] = c.h.Valid(kh);
    for (int64_t kw = 0; kw < c.w.kernel; ++kw) {
      const auto [left, right] = c.w.Valid(kw);
      for (int64_t y = top; y < bottom; ++y)
        body(kh * c.w.kernel + kw,
             c.h.Source(y, kh) * c.in.h + c.w.Source(left, kw) * c.in.w,
             y * c.out.h + left * c.out.w, right - left);
    }
  }
}

// Sets every element of one channel of one image to 0.
template <typename T>
void ClearPlane(T* plane, const Conv::Strides& s, int64_t h, int64_t w) {
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x) plane[y * s.h + x * s.w] = T(0);
}

template <typename T>
void Forward(const Conv& c, const T* input, const T* filter, T* output) {
  const int64_t in_step = c.w.stride * c.in.w;
  ParallelFor(c.g.batch * c.g.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / c.g.out_channels, o = p % c.g.out_channels;
      T* out = output + n * c.out.n + o * c.out.c;
      ClearPlane(out, c.out, c.h.out, c.w.out);
      for (int64_t i = 0; i < c.group_in; ++i) {
        const int64_t channel = o / c.group_out * c.group_in + i;
        const T* in = input + n * c.in.n + channel * c.in.c;
        const T* taps = filter + c.FilterOffset(o, i);
        ForEachRow(c, [&](int64_t tap, int64_t x, int64_t y, int64_t count) {
          Axpy(count, taps[tap], in + x, in_step, out + y, c.out.w);
        });
      }
    }
  });
}

template <typename T>
void BackwardInput(const Conv& c, const T* filter, const T* dout, T* din) {
  const int64_t in_step = c.w.stride * c.in.w;
  ParallelFor(c.g.batch * c.g.in_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / c.g.in_channels, channel = p % c.g.in_channels;
      const int64_t group = channel / c.group_in, i = channel % c.group_in;
      T* in = din + n * c.in.n + channel * c.in.c;
      ClearPlane(in, c.in, c.h.in, c.w.in);
      for (int64_t o = group * c.group_out; o < (group + 1) * c.group_out;
           ++o) {
        const T* out = dout + n * c.out.n + o * c.out.c;
        const T* taps = filter + c.FilterOffset(o, i);
        ForEachRow(c, [&](int64_t tap, int64_t x, int64_t y, int64_t count) {
          Axpy(count, taps[tap], out + y, c.out.w, in + x, in_step);
        });
      }
    }
  });
}

template <typename T>
void BackwardFilter(const Conv& c, const T* input, const T* dout, T* dfilter) {
  const int64_t in_step = c.w.stride * c.in.w;
  const int64_t taps = c.h.kernel * c.w.kernel;
  ParallelFor(
      c.g.out_channels * c.group_in, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const int64_t o = p / c.group_in, i = p % c.group_in;
          const int64_t channel = o / c.group_out * c.group_in + i;
          T* sums = dfilter + p * taps;
          std::fill(sums, sums + taps, T(0));
          for (int64_t n = 0; n < c.g.batch; ++n) {
            const T* in = input + n * c.in.n + channel * c.in.c;
            const T* out = dout + n * c.out.n + o * c.out.c;
            ForEachRow(
                c, [&](int64_t tap, int64_t x, int64_t y, int64_t count) {
                  double sum = 0;
                  for (int64_t j = 0; j < count; ++j)
                    sum += double{in[x + j * in_step]} * out[y + j * c.out.w];
                  sums[tap] += static_cast<T>(sum);
                });
          }
        }
      });
}

absl::StatusOr<Step> BindConv2d(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* output = context->Output("Output");
  PD_ASSIGN_OR_RETURN(const Conv conv, ReadConv2d(context->op(), input->shape(),
                                                  filter->shape()));
  return DispatchFloat(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Forward<T>(conv, input->data<T>(), filter->data<T>(), output->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindConv2dGrad(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* din = context->Output("Input@GRAD");
  Tensor* dfilter = context->Output("Filter@GRAD");
  if (dfilter == nullptr) context->NoBuffer(input);
  if (din == nullptr) context->NoBuffer(filter);
  PD_ASSIGN_OR_RETURN(const Conv conv, ReadConv2d(context->op(), input->shape(),
                                                  filter->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Filter", input->dtype(), filter->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Output@GRAD", input->dtype(),
                                 conv.g.OutputShape()));
  return DispatchFloat(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (din != nullptr)
        BackwardInput<T>(conv, filter->data<T>(), dout->data<T>(),
                         din->data<T>());
      if (dfilter != nullptr)
        BackwardFilter<T>(conv, input->data<T>(), dout->data<T>(),
                          dfilter->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferConv2d(InferContext* context) {
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

void AddAttrs(OpDef* def) {
  def->Attr("strides", std::vector<int32_t>{1, 1})
      .Attr("paddings", std::vector<int32_t>{0, 0})
      .Attr("padding_algorithm", std::string("EXPLICIT"))
      .Attr("dilations", std::vector<int32_t>{1, 1})
      .Attr("groups", int32_t{1})
      .Attr("data_format", std::string("NCHW"));
}

}  // namespace

absl::Status RegisterConv2d(OpRegistry* registry) {
  for (const char* type : {"conv2d", "depthwise_conv2d"}) {
    const std::string grad_type = std::string(type) + "_grad";
    OpDef conv(type);
    conv.Input("Input").Input("Filter").Output("Output");
    AddAttrs(&conv);
    conv.Infer(InferConv2d).Reference(BindConv2d);
    conv.Grad(GradSpec{
        grad_type, {"Input", "Filter"}, {}, {"Output"}, {"Input", "Filter"}});
    PD_RETURN_IF_ERROR(registry->Add(std::move(conv)));

    OpDef grad(grad_type);
    grad.Input("Input").Input("Filter").Input("Output@GRAD");
    grad.OptionalOutput("Input@GRAD").OptionalOutput("Filter@GRAD");
    AddAttrs(&grad);
    grad.Infer(InferGradLikeInput).NoGrad().Reference(BindConv2dGrad);
    PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  }
  return absl::OkStatus();
}

}  // namespace pd
