// SPDX-License-Identifier: Apache-2.0
// Out[b, k, t] = the Fourier transform over j of Window[j] X[b, t hop + j]:
// frames of n_fft samples, hop_length apart. With `onesided` k goes to n_fft/2
// only; `normalized` divides by the square root of n_fft.
// X@GRAD[b, t hop + j] = the sum over t of Window[j] times the real part of
// the inverse transform, with the same factor, of Out@GRAD.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/fft_lines.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Geometry {
  int64_t batch, samples, n, hop, bins, frames;
};

absl::StatusOr<Geometry> GeometryOf(const OpDesc& op, const Shape& x) {
  Geometry g;
  g.n = op.Attr<int32_t>("n_fft");
  g.hop = op.Attr<int32_t>("hop_length");
  if (x.size() != 2)
    return InvalidArgument("X has shape %s; expected rank 2", ToString(x));
  if (g.n < 1 || g.hop < 1)
    return InvalidArgument(
        "attr 'n_fft' is %d, 'hop_length' is %d; expected 1 or more", g.n,
        g.hop);
  g.batch = x[0];
  g.samples = x[1];
  if (g.samples >= 0 && g.samples < g.n)
    return InvalidArgument("X has %d samples; attr 'n_fft' is %d", g.samples,
                           g.n);
  g.bins = op.Attr<bool>("onesided") ? g.n / 2 + 1 : g.n;
  g.frames = g.samples < 0 ? -1 : 1 + (g.samples - g.n) / g.hop;
  return g;
}

absl::Status InferForward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64)
    return InvalidArgument("X is %s; expected float32 or float64",
                           Name(x.dtype));
  PD_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(context->op(), x.shape));
  context->SetOutput(
      "Out", {g.batch, g.bins, g.frames},
      x.dtype == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128);
  return absl::OkStatus();
}

struct Plan {
  Geometry g;
  std::shared_ptr<const Fft> fft;
  double scale;
};

absl::StatusOr<Plan> MakePlan(const BindContext& context, const Tensor& x) {
  Plan plan;
  PD_ASSIGN_OR_RETURN(plan.g, GeometryOf(context.op(), x.shape()));
  PD_RETURN_IF_ERROR(ExpectElements(context, "Window", x.dtype(), plan.g.n));
  plan.fft = std::make_shared<Fft>(plan.g.n);
  PD_ASSIGN_OR_RETURN(
      plan.scale,
      FftScale(context.Attr<bool>("normalized") ? "ortho" : "backward", true,
               plan.g.n));
  return plan;
}

absl::StatusOr<Step> BindStftForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* window = context->Input("Window");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Plan plan, MakePlan(*context, *x));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using R = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const Geometry& g = plan.g;
      std::vector<std::complex<double>> work(static_cast<size_t>(g.n));
      for (int64_t b = 0; b < g.batch; ++b)
        for (int64_t t = 0; t < g.frames; ++t) {
          const R* from = x->data<R>() + b * g.samples + t * g.hop;
          for (int64_t j = 0; j < g.n; ++j)
            work[static_cast<size_t>(j)] = from[j] * window->data<R>()[j];
          plan.fft->Run(work.data(), false);
          auto* to = out->data<std::complex<R>>() + b * g.bins * g.frames + t;
          for (int64_t k = 0; k < g.bins; ++k)
            to[k * g.frames] =
                std::complex<R>(work[static_cast<size_t>(k)] * plan.scale);
        }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindGrad(BindContext* context) {
  Tensor* window = context->Input("Window");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  PD_ASSIGN_OR_RETURN(const Plan plan, MakePlan(*context, *dx));
  const bool narrow = dx->dtype() == DType::kFloat32;
  PD_RETURN_IF_ERROR(ExpectInput(
      *context, "Out@GRAD", narrow ? DType::kComplex64 : DType::kComplex128,
      {plan.g.batch, plan.g.bins, plan.g.frames}));
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using R = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const Geometry& g = plan.g;
      std::vector<std::complex<double>> work(static_cast<size_t>(g.n));
      std::fill_n(dx->data<R>(), dx->size(), R(0));
      for (int64_t b = 0; b < g.batch; ++b)
        for (int64_t t = 0; t < g.frames; ++t) {
          const auto* from =
              dout->data<std::complex<R>>() + b * g.bins * g.frames + t;
          std::fill(work.begin(), work.end(), std::complex<double>());
          for (int64_t k = 0; k < g.bins; ++k)
            work[static_cast<size_t>(k)] = from[k * g.frames];
          plan.fft->Run(work.data(), true);
          R* to = dx->data<R>() + b * g.samples + t * g.hop;
          for (int64_t j = 0; j < g.n; ++j)
            to[j] += static_cast<R>(work[static_cast<size_t>(j)].real() *
                                    plan.scale) *
                     window->data<R>()[j];
        }
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterStft(OpRegistry* registry) {
  OpDef op("stft"), grad("stft_grad");
  op.Input("X").Input("Window").Output("Out");
  op.Infer(InferForward).Reference(BindStftForward);
  op.Grad(GradSpec{"stft_grad", {"X", "Window"}, {}, {"Out"}, {"X"}});
  grad.Input("X").Input("Window").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindGrad);
  for (OpDef* def : {&op, &grad}) {
    def->RequiredAttr("n_fft", AttrType::kInt);
    def->RequiredAttr("hop_length", AttrType::kInt);
    def->RequiredAttr("normalized", AttrType::kBoolean);
    def->RequiredAttr("onesided", AttrType::kBoolean);
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(grad));
}

}  // namespace pd
