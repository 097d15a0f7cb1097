// SPDX-License-Identifier: Apache-2.0
// Weight, with axis `dim` in front, as a matrix W [h, w]. power_iters times
//   v = W^T u / (|W^T u| + eps); u = W v / (|W v| + eps)
// beginning with U and V, which stay; then sigma = u^T W v, Out = Weight /
// sigma. The gradient is PaddlePaddle's, element by element:
//   Weight@GRAD = Out@GRAD * (1 - u v^T * sum(Out)) / sigma
// That is not the derivative, which for fixed u and v is
//   Out@GRAD / sigma - u v^T * sum(Out@GRAD * Weight) / sigma^2
// but it is what PaddlePaddle's networks are trained with.
#include "libcore/ops/norm/spectral_norm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int32_t kMostIterations = 100000;

}  // namespace

absl::StatusOr<SpectralMatrix> ReadSpectralMatrix(const BindContext& context) {
  const Tensor* weight = context.Input("Weight");
  SpectralMatrix m;
  const int32_t dim = context.Attr<int32_t>("dim");
  if (weight->rank() < 2 || dim < 0)
    return InvalidArgument("'Weight' has shape %s and attr 'dim' is %d",
                           ToString(weight->shape()), dim);
  PD_ASSIGN_OR_RETURN(m.view, ViewAxis(weight->shape(), dim));
  m.h = m.view.n;
  m.w = m.view.outer * m.view.inner;
  m.iterations = context.Attr<int32_t>("power_iters");
  if (m.iterations < 0 || m.iterations > kMostIterations)
    return InvalidArgument("attr 'power_iters' is %d; expected 0 to %d",
                           m.iterations, kMostIterations);
  m.eps = context.Attr<float>("eps");
  PD_RETURN_IF_ERROR(ExpectElements(context, "U", weight->dtype(), m.h));
  PD_RETURN_IF_ERROR(ExpectElements(context, "V", weight->dtype(), m.w));
  return m;
}

namespace {

void Normalize(double eps, std::vector<double>* v) {
  double squares = 0;
  for (double x : *v) squares += x * x;
  const double norm = std::sqrt(squares) + eps;
  for (double& x : *v) x /= norm;
}

// The vectors after the iterations, and sigma.
struct Direction {
  std::vector<double> u, v;
  double sigma = 0;
};

template <typename T>
Direction Iterate(const SpectralMatrix& m, const T* weight, const T* u,
                  const T* v) {
  Direction d;
  d.u.assign(u, u + m.h);
  d.v.assign(v, v + m.w);
  const auto times = [&](const std::vector<double>& from, bool transposed,
                         std::vector<double>* to) {
    std::fill(to->begin(), to->end(), 0.0);
    for (int64_t r = 0; r < m.h; ++r)
      for (int64_t c = 0; c < m.w; ++c) {
        const double x = weight[m.At(r, c)];
        transposed ? (*to)[c] += x * from[r] : (*to)[r] += x * from[c];
      }
  };
  for (int32_t i = 0; i < m.iterations; ++i) {
    times(d.u, true, &d.v);
    Normalize(m.eps, &d.v);
    times(d.v, false, &d.u);
    Normalize(m.eps, &d.u);
  }
  std::vector<double> wv(d.u.size());
  times(d.v, false, &wv);
  for (size_t r = 0; r < wv.size(); ++r) d.sigma += d.u[r] * wv[r];
  return d;
}

absl::StatusOr<Step> BindSpectral(BindContext* context) {
  Tensor* weight = context->Input("Weight");
  Tensor* u = context->Input("U");
  Tensor* v = context->Input("V");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const SpectralMatrix m, ReadSpectralMatrix(*context));
  return DispatchFloat(weight->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const Direction d =
          Iterate(m, weight->data<T>(), u->data<T>(), v->data<T>());
      for (int64_t i = 0; i < weight->size(); ++i)
        out->data<T>()[i] = static_cast<T>(weight->data<T>()[i] / d.sigma);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSpectralGrad(BindContext* context) {
  Tensor* weight = context->Input("Weight");
  Tensor* u = context->Input("U");
  Tensor* v = context->Input("V");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dweight = context->Output("Weight@GRAD");
  PD_ASSIGN_OR_RETURN(const SpectralMatrix m, ReadSpectralMatrix(*context));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", weight->dtype(), weight->shape()));
  return DispatchFloat(weight->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const Direction d =
          Iterate(m, weight->data<T>(), u->data<T>(), v->data<T>());
      double sum = 0;
      for (int64_t i = 0; i < weight->size(); ++i) sum += weight->data<T>()[i];
      sum /= d.sigma;
      for (int64_t r = 0; r < m.h; ++r)
        for (int64_t c = 0; c < m.w; ++c) {
          const int64_t i = m.At(r, c);
          dweight->data<T>()[i] = static_cast<T>(
              dout->data<T>()[i] * (1 - d.u[r] * d.v[c] * sum) / d.sigma);
        }
      return absl::OkStatus();
    });
  });
}

absl::Status InferSpectral(InferContext* context) {
  context->Share("Weight", "Out");
  return absl::OkStatus();
}

void AddSlotsAndAttrs(OpDef* def) {
  def->Input("Weight").Input("U").Input("V").Attr("dim", int32_t{0});
  def->Attr("power_iters", int32_t{1}).Attr("eps", 1e-12f);
}

}  // namespace

absl::Status RegisterSpectralNorm(OpRegistry* registry) {
  OpDef op("spectral_norm");
  AddSlotsAndAttrs(&op);
  op.Output("Out").Infer(InferSpectral).Reference(BindSpectral);
  op.Grad(GradSpec{
      "spectral_norm_grad", {"Weight", "U", "V"}, {}, {"Out"}, {"Weight"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("spectral_norm_grad");
  AddSlotsAndAttrs(&grad);
  grad.Input("Out@GRAD").Output("Weight@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSpectralGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
