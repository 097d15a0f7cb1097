// SPDX-License-Identifier: Apache-2.0
// Local response normalisation of images over n (odd) neighbouring channels:
//   MidOut = k + alpha * sum of X^2 over the channels within (n - 1) / 2
//   Out = X * MidOut^-beta
//   X@GRAD = Out@GRAD * MidOut^-beta
//            - 2 alpha beta X * sum of Out@GRAD * Out / MidOut over the same
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Lrn {
  int64_t images, channels, positions, channel_step, position_step, reach;
  double k, alpha, beta;
};

absl::StatusOr<Lrn> ReadLrn(const OpDesc& op, const Shape& x) {
  const int32_t n = op.Attr<int32_t>("n");
  if (x.size() != 4)
    return InvalidArgument("'X' has shape %s; expected rank 4", ToString(x));
  if (n < 1 || n % 2 == 0)
    return InvalidArgument("attr 'n' is %d; expected an odd number", n);
  const bool last = op.Attr<std::string>("data_format") == "NHWC";
  Lrn l;
  l.images = x[0];
  l.channels = last ? x[3] : x[1];
  l.positions = last ? x[1] * x[2] : x[2] * x[3];
  l.channel_step = last ? 1 : l.positions;
  l.position_step = last ? l.channels : 1;
  l.reach = (n - 1) / 2;
  l.k = op.Attr<float>("k");
  l.alpha = op.Attr<float>("alpha");
  l.beta = op.Attr<float>("beta");
  return l;
}

// Calls body(first element of the image's position) for all.
template <typename Body>
void ForEachPosition(const Lrn& l, const Body& body) {
  ParallelFor(l.images * l.positions, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      body(i / l.positions * l.channels * l.positions +
           i % l.positions * l.position_step);
  });
}

// The sum of value(element) over the channels around c.
template <typename Value>
double SumAround(const Lrn& l, int64_t first, int64_t c, const Value& value) {
  double sum = 0;
  const int64_t end = std::min(l.channels - 1, c + l.reach);
  for (int64_t i = std::max<int64_t>(0, c - l.reach); i <= end; ++i)
    sum += value(first + i * l.channel_step);
  return sum;
}

absl::StatusOr<Step> BindLrn(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* mid = context->Output("MidOut");
  PD_ASSIGN_OR_RETURN(const Lrn l, ReadLrn(context->op(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      ForEachPosition(l, [&](int64_t first) {
        for (int64_t c = 0; c < l.channels; ++c) {
          const int64_t at = first + c * l.channel_step;
          const double middle =
              l.k + l.alpha * SumAround(l, first, c, [&](int64_t i) {
                      return double{in[i]} * in[i];
                    });
          if (mid != nullptr) mid->data<T>()[at] = static_cast<T>(middle);
          out->data<T>()[at] =
              static_cast<T>(in[at] * std::pow(middle, -l.beta));
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindLrnGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* mid = context->Input("MidOut");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Lrn l, ReadLrn(context->op(), x->shape()));
  for (const char* slot : {"Out", "MidOut", "Out@GRAD"})
    PD_RETURN_IF_ERROR(ExpectInput(*context, slot, x->dtype(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* d = dout->data<T>();
      const T* y = out->data<T>();
      const T* m = mid->data<T>();
      ForEachPosition(l, [&](int64_t first) {
        for (int64_t c = 0; c < l.channels; ++c) {
          const int64_t at = first + c * l.channel_step;
          const double around = SumAround(l, first, c, [&](int64_t i) {
            return double{d[i]} * y[i] / m[i];
          });
          dx->data<T>()[at] =
              static_cast<T>(d[at] * std::pow(double{m[at]}, -l.beta) -
                             2 * l.alpha * l.beta * x->data<T>()[at] * around);
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferLrn(InferContext* context) {
  PD_RETURN_IF_ERROR(
      ReadLrn(context->op(), context->Input("X").shape).status());
  context->Share("X", "MidOut");
  return InferUnary(context);
}

void AddLrnAttrs(OpDef* def) {
  def->Attr("n", int32_t{5}).Attr("k", 2.0f).Attr("alpha", 1e-4f);
  def->Attr("beta", 0.75f).Attr("data_format", std::string("AnyLayout"));
}

}  // namespace

absl::Status RegisterLrn(OpRegistry* registry) {
  OpDef op("lrn");
  op.Input("X").Output("Out").IntermediateOutput("MidOut");
  AddLrnAttrs(&op);
  op.Infer(InferLrn).Reference(BindLrn);
  op.Grad(GradSpec{"lrn_grad", {"X"}, {"Out", "MidOut"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("lrn_grad");
  grad.Input("X").Input("Out").Input("MidOut").Input("Out@GRAD");
  grad.Output("X@GRAD");
  AddLrnAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindLrnGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
