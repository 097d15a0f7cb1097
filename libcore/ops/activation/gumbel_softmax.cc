// SPDX-License-Identifier: Apache-2.0
// A sample of a categorical distribution by its logits X (Jang et al., 2017):
//   Soft = softmax((X + G) / temperature) along `axis`, G Gumbel's noise
//   Out = Soft, or when `hard` 1 at its largest element and 0 elsewhere
//   X@GRAD = Soft (Out@GRAD - sum(Soft Out@GRAD)) / temperature
// PaddlePaddle keeps no Soft and takes Out for it, without the temperature: 0
// when `hard`. Its saved gradient ops are followed; ours read Soft.
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/activation/softmax_grad.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/random/random_source.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferGumbelSoftmaxForward(InferContext* context) {
  const float temperature = context->Attr<float>("temperature");
  if (!(temperature > 0))
    return InvalidArgument("attr 'temperature' is %g; expected more than 0",
                           temperature);
  const Shape& shape = context->Input("X").shape;
  if (!shape.empty())
    PD_RETURN_IF_ERROR(
        NormalizeAxis(context->Attr<int32_t>("axis"), shape.size()).status());
  context->Share("X", "Soft");
  return InferUnary(context);
}

// Line elements from `start` on, `inner` apart: softmax of what is there.
template <typename T>
void Softmax(const AxisView& view, int64_t start, T* line) {
  const int64_t end = start + view.n * view.inner;
  T max = line[start], sum = T(0);
  for (int64_t i = start; i < end; i += view.inner)
    max = std::max(max, line[i]);
  for (int64_t i = start; i < end; i += view.inner)
    sum += line[i] = std::exp(line[i] - max);
  for (int64_t i = start; i < end; i += view.inner) line[i] /= sum;
}

// 1 at the largest of `from`, 0 elsewhere; `from` may be `to`.
template <typename T>
void OneHot(const AxisView& view, int64_t start, const T* from, T* to) {
  const int64_t end = start + view.n * view.inner;
  int64_t best = start;
  for (int64_t i = start; i < end; i += view.inner)
    if (from[i] > from[best]) best = i;
  for (int64_t i = start; i < end; i += view.inner)
    to[i] = i == best ? T(1) : T(0);
}

absl::StatusOr<Step> BindGumbelSoftmaxForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* soft = context->Output("Soft");
  const auto temperature =
      static_cast<double>(context->Attr<float>("temperature"));
  const bool hard = context->Attr<bool>("hard");
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  const RandomSource source = RandomSourceOf(*context);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext& run) {
      const Philox numbers = source.Numbers(run);
      const T* in = x->data<T>();
      T* to = out->data<T>();
      T* sample = soft != nullptr ? soft->data<T>() : to;
      ForEachLine(view, [&](int64_t, int64_t start) {
        const int64_t end = start + view.n * view.inner;
        for (int64_t i = start; i < end; i += view.inner)
          sample[i] = static_cast<T>(
              (in[i] - std::log(-std::log(OpenUniform(numbers, i)))) /
              temperature);
        Softmax(view, start, sample);
        if (hard) {
          OneHot(view, start, sample, to);
        } else if (sample != to) {
          for (int64_t i = start; i < end; i += view.inner) to[i] = sample[i];
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindGumbelSoftmaxGrad(BindContext* context) {
  Tensor* soft = context->Input("Soft");
  const double factor =
      soft != nullptr ? 1 / context->Attr<float>("temperature") : 1.0;
  if (soft == nullptr) soft = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", soft->dtype(), soft->shape()));
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(soft->shape(), context->Attr<int32_t>("axis")));
  return DispatchFloat(soft->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      SoftmaxGrad(view, soft->data<T>(), dout->data<T>(),
                  static_cast<T>(factor), dx->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterGumbelSoftmax(OpRegistry* registry) {
  OpDef op("gumbel_softmax"), grad("gumbel_softmax_grad");
  op.Input("X").Output("Out").IntermediateOutput("Soft");
  op.Attr("temperature", 1.0f).Attr("hard", false).Attr("axis", int32_t{-1});
  op.Infer(InferGumbelSoftmaxForward).Reference(BindGumbelSoftmaxForward);
  op.Grad(GradSpec{"gumbel_softmax_grad", {}, {"Out", "Soft"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("Out").OptionalInput("Soft").Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("temperature", 1.0f).Attr("axis", int32_t{-1});
  grad.Infer(InferGrad).NoGrad().Reference(BindGumbelSoftmaxGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
