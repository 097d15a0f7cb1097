// SPDX-License-Identifier: Apache-2.0
// ParamOut = Param - LearningRate * Grad
#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/update.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindSgd(BindContext* context) {
  Tensor* param = context->Input("Param");
  Tensor* grad = context->Input("Grad");
  Tensor* rate = context->Input("LearningRate");
  Tensor* out = context->Output("ParamOut");
  PD_RETURN_IF_ERROR(CheckAlike(*context, "Param", "Grad"));
  PD_RETURN_IF_ERROR(CheckScalar("LearningRate", rate));
  context->MayShare(param, out);
  return DispatchFloat(param->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = param->size()](const RunContext&) {
      const T* p = param->data<T>();
      const T* g = grad->data<T>();
      T* result = out->data<T>();
      const T lr = static_cast<T>(ScalarOf(*rate));
      ParallelFor(n, kUpdateGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) result[i] = p[i] - lr * g[i];
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSgd(InferContext* context) {
  return InferUpdate(context, {"Param", "MasterParam"});
}

}  // namespace

absl::Status RegisterSgd(OpRegistry* registry) {
  OpDef sgd("sgd");
  sgd.Input("Param").Input("LearningRate").Input("Grad");
  sgd.OptionalInput("MasterParam");
  sgd.Output("ParamOut").OptionalOutput("MasterParamOut");
  sgd.Attr("multi_precision", false);
  sgd.Infer(InferSgd).NoGrad().Reference(BindSgd);
  return registry->Add(std::move(sgd));
}

}  // namespace pd
