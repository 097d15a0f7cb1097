// SPDX-License-Identifier: Apache-2.0
// Per channel: Out = X * Scale + Bias.
//   X@GRAD = Out@GRAD * Scale; Scale@GRAD = sum(Out@GRAD * X);
//   Bias@GRAD = sum(Out@GRAD)
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// X as [outer, channels, inner].
struct Channels {
  int64_t outer, channels, inner;
};

absl::StatusOr<Channels> ReadChannels(const OpDesc& op, const Shape& x) {
  if (x.size() < 2)
    return InvalidArgument("'X' has shape %s; expected rank 2 or more",
                           ToString(x));
  const bool last = op.Attr<std::string>("data_layout") == "NHWC";
  const size_t at = last ? x.size() - 1 : 1;
  if (IsDynamic(x)) return Channels{-1, x[at], -1};
  return Channels{NumElements(x, 0, at), x[at],
                  NumElements(x, at + 1, x.size())};
}

// Calls body(first element, channel) for every run of `inner` elements.
template <typename Body>
void ForEachRun(const Channels& c, const Body& body) {
  ParallelFor(c.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t n = 0; n < c.outer; ++n)
        body((n * c.channels + i) * c.inner, i);
  });
}

absl::StatusOr<Step> BindForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* scale = context->Input("Scale");
  Tensor* bias = context->Input("Bias");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Channels c,
                      ReadChannels(context->op(), x->shape()));
  for (const char* slot : {"Scale", "Bias"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), c.channels));
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachRun(c, [&](int64_t first, int64_t channel) {
        const T a = scale->data<T>()[channel], b = bias->data<T>()[channel];
        for (int64_t i = first; i < first + c.inner; ++i)
          out->data<T>()[i] = x->data<T>()[i] * a + b;
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindBackward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* scale = context->Input("Scale");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dscale = context->Output("Scale@GRAD");
  Tensor* dbias = context->Output("Bias@GRAD");
  PD_ASSIGN_OR_RETURN(const Channels c,
                      ReadChannels(context->op(), dout->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Scale", dout->dtype(), c.channels));
  if (dscale != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "X", dout->dtype(), dout->shape()));
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* d = dout->data<T>();
      if (dscale != nullptr) std::fill_n(dscale->data<T>(), c.channels, T(0));
      if (dbias != nullptr) std::fill_n(dbias->data<T>(), c.channels, T(0));
      ForEachRun(c, [&](int64_t first, int64_t channel) {
        const T a = scale->data<T>()[channel];
        double dot = 0, sum = 0;
        for (int64_t i = first; i < first + c.inner; ++i) {
          if (dscale != nullptr) dot += double{d[i]} * x->data<T>()[i];
          sum += d[i];
          if (dx != nullptr) dx->data<T>()[i] = d[i] * a;
        }
        if (dscale != nullptr)
          dscale->data<T>()[channel] += static_cast<T>(dot);
        if (dbias != nullptr) dbias->data<T>()[channel] += static_cast<T>(sum);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status Infer(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Channels c, ReadChannels(context->op(), x.shape));
  for (const char* slot : {"Scale", "Bias"}) {
    const Shape& shape = context->Input(slot).shape;
    if (shape.size() != 1 ||
        (shape[0] != c.channels && shape[0] >= 0 && c.channels >= 0))
      return InvalidArgument("'%s' has shape %s; 'X' %s has %d channels", slot,
                             ToString(shape), ToString(x.shape), c.channels);
  }
  return InferUnary(context);
}

absl::Status InferGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"})
    context->Share("Scale", slot);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterAffineChannel(OpRegistry* registry) {
  OpDef op("affine_channel");
  op.Input("X").Input("Scale").Input("Bias").Output("Out");
  op.Attr("data_layout", std::string("AnyLayout"));
  op.Infer(Infer).Reference(BindForward);
  op.Grad(GradSpec{"affine_channel_grad",
                   {"X", "Scale"},
                   {},
                   {"Out"},
                   {"X", "Scale", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("affine_channel_grad");
  grad.OptionalInput("X").Input("Scale").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Scale@GRAD");
  grad.OptionalOutput("Bias@GRAD");
  grad.Attr("data_layout", std::string("AnyLayout"));
  grad.Infer(InferGrad).NoGrad().Reference(BindBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
