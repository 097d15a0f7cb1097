// SPDX-License-Identifier: Apache-2.0
// LARS (Y. You, I. Gitman, B. Ginsburg, "Large batch training of convolutional
// networks", 2017), for each parameter of the list, with its own
// lars_weight_decay d:
//   g = rescale_grad * Grad
//   rate = LearningRate * lars_coeff * |Param| / (|g| + d * |Param| + epsilon)
//          where d > 0 and both norms are, else LearningRate
//   VelocityOut = mu * Velocity + rate * (g + d * Param)
//   ParamOut = Param - VelocityOut
#include <cmath>
#include <vector>

#include "libcore/ops/common/sum_of_squares.h"
#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Lars {
  UpdatedParam p;
  UpdatedState velocity;
  Tensor* squares;
  float mu, coeff, decay, epsilon, rescale;
};

template <typename T, typename M, typename G, typename P>
void UpdateLarsMomentum(const Lars& l, const G* grad, const P* param) {
  const int64_t n = l.p.param->size();
  double* squares = l.squares->data<double>();
  const double size = std::sqrt(SumOfSquares(param, n, squares));
  const double slope =
      std::sqrt(SumOfSquares(grad, n, squares)) * std::fabs(double{l.rescale});
  double rate = ScalarOf(*l.p.rate);
  if (l.decay > 0 && size > 0 && slope > 0)
    rate *= l.coeff * size / (slope + l.decay * size + l.epsilon);
  const M local = static_cast<M>(rate), mu = static_cast<M>(l.mu);
  const M decay = static_cast<M>(l.decay), rescale = static_cast<M>(l.rescale);
  const M* in = l.velocity.in->data<M>();
  M* velocity = l.velocity.out->data<M>();
  T* out = l.p.param_out->data<T>();
  M* master = l.p.master != nullptr ? l.p.master_out->data<M>() : nullptr;
  ParallelFor(n, kUpdateGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const M p = static_cast<M>(param[i]);
      const M v =
          mu * in[i] + local * (rescale * static_cast<M>(grad[i]) + decay * p);
      velocity[i] = v;
      out[i] = static_cast<T>(p - v);
      if (master != nullptr) master[i] = p - v;
    }
  });
}

absl::StatusOr<Step> BindOneLarsMomentum(BindContext* context, size_t i,
                                         float decay) {
  Lars l;
  PD_ASSIGN_OR_RETURN(l.p, ReadUpdatedParam(context, i));
  if (IsSelectedRows(l.p.grad))
    return InvalidArgument("'Grad' is selected rows; expected a dense tensor");
  PD_ASSIGN_OR_RETURN(
      l.velocity, ReadUpdatedState(context, l.p, "Velocity", "VelocityOut", i));
  l.squares =
      context->Scratch(SquaresParts(l.p.param->size()) * sizeof(double));
  l.mu = context->Attr<float>("mu");
  l.coeff = context->Attr<float>("lars_coeff");
  l.decay = decay;
  l.epsilon = context->Attr<float>("epsilon");
  l.rescale = context->Attr<float>("rescale_grad");
  return DispatchUpdate(
      l.p, [&](auto param, auto grad, auto state) -> absl::StatusOr<Step> {
        using T = typename decltype(param)::type;
        using G = typename decltype(grad)::type;
        using M = typename decltype(state)::type;
        return Step([l](const RunContext&) {
          const G* g = l.p.grad->data<G>();
          if (l.p.master != nullptr)
            UpdateLarsMomentum<T, M>(
                l, g, static_cast<const M*>(l.p.master->data<M>()));
          else
            UpdateLarsMomentum<T, M>(
                l, g, static_cast<const T*>(l.p.param->data<T>()));
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindLars(BindContext* context) {
  // A number in old programs.
  std::vector<float> decays;
  if (const Attribute* a = context->op().FindAttr("lars_weight_decay")) {
    if (const auto* list = std::get_if<std::vector<float>>(a))
      decays = *list;
    else if (const auto* one = std::get_if<float>(a))
      decays = {*one};
  }
  const size_t n = context->InputCount("Param");
  if (decays.size() == 1) decays.resize(n, decays[0]);
  if (decays.size() != n)
    return InvalidArgument(
        "attr 'lars_weight_decay' holds %d numbers; expected 1 or %d",
        decays.size(), n);
  std::vector<Step> steps;
  for (size_t i = 0; i < n; ++i) {
    PD_ASSIGN_OR_RETURN(Step step, BindOneLarsMomentum(context, i, decays[i]));
    steps.push_back(std::move(step));
  }
  return UpdateAll(std::move(steps));
}

absl::Status InferLars(InferContext* context) {
  return InferUpdate(context, {"Param", "Velocity", "MasterParam"});
}

}  // namespace

absl::Status RegisterLarsMomentum(OpRegistry* registry) {
  OpDef op("lars_momentum");
  op.Inputs("Param").Inputs("Grad").Inputs("Velocity");
  op.Inputs("LearningRate").OptionalInputs("MasterParam");
  op.Outputs("ParamOut").Outputs("VelocityOut");
  op.OptionalOutputs("MasterParamOut");
  op.RequiredAttr("mu", AttrType::kFloat).Attr("lars_coeff", 0.001f);
  op.Attr("lars_weight_decay", std::vector<float>{0.0005f});
  op.Attr("epsilon", 0.0f).Attr("multi_precision", false);
  op.Attr("rescale_grad", 1.0f);
  op.Infer(InferLars).NoGrad().Reference(BindLars);
  return registry->Add(std::move(op));
}

}  // namespace pd
