// SPDX-License-Identifier: Apache-2.0
// LAMB (Y. You et al., "Large batch optimization for deep learning", 2020):
//   Moment1Out = beta1 * Moment1 + (1 - beta1) * Grad
//   Moment2Out = beta2 * Moment2 + (1 - beta2) * Grad^2
//   u = (Moment1Out / (1 - Beta1Pow))
//       / (sqrt(Moment2Out / (1 - Beta2Pow)) + epsilon) + weight_decay * Param
//   r = |Param| / |u|, or 1 when either is 0
//   ParamOut = Param - LearningRate * r * u
//   Beta1PowOut = beta1 * Beta1Pow, Beta2PowOut = beta2 * Beta2Pow
// Without weight_decay, unless always_adapt, r is 1. Rows that are not selected
// have gradient 0. SkipUpdate true: every output is a copy of its input.
#include <cmath>

#include "libcore/ops/common/sum_of_squares.h"
#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Lamb {
  UpdatedParam p;
  UpdatedState moment1, moment2;
  Tensor *beta1_pow, *beta2_pow, *beta1_pow_out, *beta2_pow_out;
  const Tensor* skip;
  float beta1, beta2, epsilon, decay;
  bool adapts;
  Tensor *u, *squares;
  Tensor* dense = nullptr;  // the gradient, where it comes as rows
};

void SkipUpdate(const Lamb& l) {
  CopyUnlessSame(l.p.param, l.p.param_out);
  if (l.p.master != nullptr) CopyUnlessSame(l.p.master, l.p.master_out);
  CopyUnlessSame(l.moment1.in, l.moment1.out);
  CopyUnlessSame(l.moment2.in, l.moment2.out);
  if (l.beta1_pow_out != nullptr) CopyUnlessSame(l.beta1_pow, l.beta1_pow_out);
  if (l.beta2_pow_out != nullptr) CopyUnlessSame(l.beta2_pow, l.beta2_pow_out);
}

// The moments, and u.
template <typename G, typename M, typename P>
void MoveMoments(const Lamb& l, const G* grad, const P* param) {
  const M beta1 = static_cast<M>(l.beta1), beta2 = static_cast<M>(l.beta2);
  const M down1 = static_cast<M>(1 - ScalarOf(*l.beta1_pow));
  const M down2 = static_cast<M>(1 - ScalarOf(*l.beta2_pow));
  const M epsilon = static_cast<M>(l.epsilon), decay = static_cast<M>(l.decay);
  const M* in1 = l.moment1.in->data<M>();
  const M* in2 = l.moment2.in->data<M>();
  M* out1 = l.moment1.out->data<M>();
  M* out2 = l.moment2.out->data<M>();
  M* u = l.u->data<M>();
  ParallelFor(l.p.param->size(), kUpdateGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const M g = static_cast<M>(grad[i]);
      const M m1 = beta1 * in1[i] + (M(1) - beta1) * g;
      const M m2 = beta2 * in2[i] + (M(1) - beta2) * g * g;
      out1[i] = m1;
      out2[i] = m2;
      u[i] = m1 / down1 / (std::sqrt(m2 / down2) + epsilon) +
             decay * static_cast<M>(param[i]);
    }
  });
}

template <typename T, typename M, typename P>
void MoveParam(const Lamb& l, const P* param) {
  const int64_t n = l.p.param->size();
  double ratio = 1;
  if (l.adapts) {
    double* squares = l.squares->data<double>();
    const double size = std::sqrt(SumOfSquares(param, n, squares));
    const double step = std::sqrt(SumOfSquares(l.u->data<M>(), n, squares));
    if (size > 0 && step > 0) ratio = size / step;
  }
  const M rate = static_cast<M>(ScalarOf(*l.p.rate) * ratio);
  const M* u = l.u->data<M>();
  T* out = l.p.param_out->data<T>();
  M* master = l.p.master != nullptr ? l.p.master_out->data<M>() : nullptr;
  ParallelFor(n, kUpdateGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const M next = static_cast<M>(param[i]) - rate * u[i];
      out[i] = static_cast<T>(next);
      if (master != nullptr) master[i] = next;
    }
  });
}

template <typename T, typename M, typename G, typename P>
void UpdateLamb(const Lamb& l, const G* grad, const P* param) {
  MoveMoments<G, M>(l, grad, param);
  MoveParam<T, M>(l, param);
  if (l.beta1_pow_out != nullptr)
    SetScalar(l.beta1_pow_out, ScalarOf(*l.beta1_pow) * l.beta1);
  if (l.beta2_pow_out != nullptr)
    SetScalar(l.beta2_pow_out, ScalarOf(*l.beta2_pow) * l.beta2);
}

template <typename T, typename G, typename M>
absl::Status Run(const Lamb& l) {
  if (l.skip != nullptr && *l.skip->data<bool>()) {
    SkipUpdate(l);
    return absl::OkStatus();
  }
  const auto with_param = [&](auto* grad) {
    if (l.p.master != nullptr)
      UpdateLamb<T, M>(l, grad, static_cast<const M*>(l.p.master->data<M>()));
    else
      UpdateLamb<T, M>(l, grad, static_cast<const T*>(l.p.param->data<T>()));
  };
  if (l.dense == nullptr) {
    with_param(static_cast<const G*>(l.p.grad->data<G>()));
    return absl::OkStatus();
  }
  PD_RETURN_IF_ERROR(CheckRows("Grad", *l.p.grad, l.p.param->dim(0)));
  M* dense = l.dense->data<M>();
  std::fill(dense, dense + l.p.param->size(), M(0));
  AddRows<G>(*l.p.grad, dense);
  with_param(static_cast<const M*>(dense));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindLamb(BindContext* context) {
  Lamb l;
  PD_ASSIGN_OR_RETURN(l.p, ReadUpdatedParam(context));
  PD_ASSIGN_OR_RETURN(l.moment1,
                      ReadUpdatedState(context, l.p, "Moment1", "Moment1Out"));
  PD_ASSIGN_OR_RETURN(l.moment2,
                      ReadUpdatedState(context, l.p, "Moment2", "Moment2Out"));
  l.beta1_pow = context->Input("Beta1Pow");
  l.beta2_pow = context->Input("Beta2Pow");
  PD_RETURN_IF_ERROR(CheckScalar("Beta1Pow", l.beta1_pow));
  PD_RETURN_IF_ERROR(CheckScalar("Beta2Pow", l.beta2_pow));
  l.beta1_pow_out = context->Output("Beta1PowOut");
  l.beta2_pow_out = context->Output("Beta2PowOut");
  l.skip = context->Input("SkipUpdate");
  if (l.skip != nullptr &&
      (l.skip->dtype() != DType::kBool || l.skip->size() != 1))
    return InvalidArgument("'SkipUpdate' is %s %s; expected one bool",
                           Name(l.skip->dtype()), ToString(l.skip->shape()));
  l.beta1 = context->Attr<float>("beta1");
  l.beta2 = context->Attr<float>("beta2");
  l.epsilon = context->Attr<float>("epsilon");
  l.decay = context->Attr<float>("weight_decay");
  l.adapts = l.decay > 0 || context->Attr<bool>("always_adapt");
  const int64_t n = l.p.param->size();
  l.u = SparseScratch(context, l.p, SparseUse::kEveryRow);
  l.squares = context->Scratch(SquaresParts(n) * sizeof(double));
  if (IsSelectedRows(l.p.grad))
    l.dense = SparseScratch(context, l.p, SparseUse::kEveryRow);
  return DispatchUpdate(
      l.p, [&](auto param, auto grad, auto state) -> absl::StatusOr<Step> {
        using T = typename decltype(param)::type;
        using G = typename decltype(grad)::type;
        using M = typename decltype(state)::type;
        return Step([l](const RunContext&) { return Run<T, G, M>(l); });
      });
}

absl::Status InferLamb(InferContext* context) {
  return InferUpdate(context, {"Param", "Moment1", "Moment2", "Beta1Pow",
                               "Beta2Pow", "MasterParam"});
}

}  // namespace

absl::Status RegisterLamb(OpRegistry* registry) {
  OpDef op("lamb");
  op.Input("Param").Input("Grad").Input("LearningRate").Input("Moment1");
  op.Input("Moment2").Input("Beta1Pow").Input("Beta2Pow");
  op.OptionalInput("MasterParam").OptionalInput("SkipUpdate");
  op.Output("ParamOut").Output("Moment1Out").Output("Moment2Out");
  op.OptionalOutput("Beta1PowOut").OptionalOutput("Beta2PowOut");
  op.OptionalOutput("MasterParamOut");
  op.RequiredAttr("weight_decay", AttrType::kFloat);
  op.Attr("beta1", 0.9f).Attr("beta2", 0.999f).Attr("epsilon", 1e-6f);
  op.Attr("always_adapt", false).Attr("multi_precision", false);
  op.Infer(InferLamb).NoGrad().Reference(BindLamb);
  return registry->Add(std::move(op));
}

}  // namespace pd
