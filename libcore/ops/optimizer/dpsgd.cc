// SPDX-License-Identifier: Apache-2.0
// Differentially private SGD (M. Abadi et al., "Deep learning with differential
// privacy", 2016), with one draw of noise for the whole parameter, as in
// PaddlePaddle:
//   ParamOut = Param - LearningRate *
//              (Grad / max(1, |Grad| / clip) + sigma * N(0, 1) / batch_size)
// The noise is a function of the seed (the attribute, else the run's), the
// name of ParamOut and the step.
#include <cmath>

#include "libcore/base/rng.h"
#include "libcore/ops/common/sum_of_squares.h"
#include "libcore/ops/optimizer/rule_update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindDpsgd(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const UpdatedParam p, ReadUpdatedParam(context));
  if (IsSelectedRows(p.grad))
    return InvalidArgument("'Grad' is selected rows; expected a dense tensor");
  const double clip = context->Attr<float>("clip");
  const double batch = context->Attr<float>("batch_size");
  const double sigma = context->Attr<float>("sigma");
  if (!(clip > 0) || !(batch > 0))
    return InvalidArgument(
        "attrs 'clip' and 'batch_size' are %g and %g; expected more than 0",
        clip, batch);
  const auto seed = static_cast<uint32_t>(context->Attr<int32_t>("seed"));
  const uint64_t stream = StreamOf(context->op().Out("ParamOut"));
  const int64_t n = p.param->size();
  Tensor* squares = context->Scratch(SquaresParts(n) * sizeof(double));
  return DispatchFloat(p.param->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext& run) {
      const T* grad = p.grad->data<T>();
      const double norm =
          std::sqrt(SumOfSquares(grad, n, squares->data<double>()));
      const double noise =
          sigma * Philox(seed != 0 ? seed : run.seed, stream).Normal(run.step);
      const T scale = static_cast<T>(norm > clip ? norm / clip : 1);
      const T shift = static_cast<T>(noise / batch);
      const T rate = static_cast<T>(ScalarOf(*p.rate));
      const T* param = p.param->data<T>();
      T* out = p.param_out->data<T>();
      ParallelFor(n, kUpdateGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          out[i] = param[i] - rate * (grad[i] / scale + shift);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferDpsgd(InferContext* context) {
  return InferUpdate(context, {"Param"});
}

}  // namespace

absl::Status RegisterDpsgd(OpRegistry* registry) {
  OpDef op("dpsgd");
  op.Input("Param").Input("Grad").Input("LearningRate").Output("ParamOut");
  op.Attr("clip", 10.0f).Attr("batch_size", 16.0f).Attr("sigma", 1.0f);
  op.Attr("seed", 0);
  op.Infer(InferDpsgd).NoGrad().Reference(BindDpsgd);
  return registry->Add(std::move(op));
}

}  // namespace pd
