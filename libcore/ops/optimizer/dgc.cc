// SPDX-License-Identifier: Apache-2.0
// The updates around deep gradient compression (Y. Lin et al., 2018):
//   dgc_clip_by_norm: X * max_norm / max(|X|, max_norm) from step
//     rampup_begin_step on; before it, or where that is negative, X
//   dgc_momentum: Grad_out = Grad / nranks; ParamOut as of momentum with that
//     gradient before rampup_begin_step, and as of sgd from there on, when the
//     compression keeps the velocity itself. Where rampup_begin_step is
//     negative, everything stays as it is.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/sum_of_squares.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindDgcClip(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* step = context->Input("current_step");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "current_step", DType::kFloat32, 1));
  const float begin = context->Attr<float>("rampup_begin_step");
  const double most = context->Attr<float>("max_norm");
  if (!(most > 0))
    return InvalidArgument("attr 'max_norm' is %g; expected more than 0", most);
  Tensor* squares = context->Scratch(SquaresParts(x->size()) * sizeof(double));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext&) {
      const float now = *step->data<float>();
      T factor = T(1);
      if (begin >= 0 && !(now < begin)) {
        const double norm =
            std::sqrt(SumOfSquares(x->data<T>(), n, squares->data<double>()));
        if (norm > most) factor = static_cast<T>(most / norm);
      }
      for (int64_t i = 0; i < n; ++i)
        out->data<T>()[i] = x->data<T>()[i] * factor;
      return absl::OkStatus();
    });
  });
}

struct DgcMomentum {
  float mu = 0, decay = 0, begin = -1;
  bool nesterov = false;
};

absl::StatusOr<Step> BindDgcMomentum(BindContext* context) {
  Tensor* param = context->Input("Param");
  Tensor* grad = context->Input("Grad");
  Tensor* velocity = context->Input("Velocity");
  Tensor* rate = context->Input("LearningRate");
  Tensor* step = context->Input("current_step");
  Tensor* ranks = context->Input("nranks");
  Tensor* param_out = context->Output("ParamOut");
  Tensor* velocity_out = context->Output("VelocityOut");
  Tensor* grad_out = context->Output("Grad_out");
  const DType dtype = param->dtype();
  for (const char* slot : {"Grad", "Velocity"})
    PD_RETURN_IF_ERROR(ExpectInput(*context, slot, dtype, param->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "LearningRate", dtype, 1));
  for (const char* slot : {"current_step", "nranks"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kFloat32, 1));
  if (context->Input("MasterParam") != nullptr)
    return Unimplemented(
        "'MasterParam' is given; expected parameters in floats");
  DgcMomentum m;
  const std::string& method =
      context->Attr<std::string>("regularization_method");
  if (!method.empty() && method != "l2_decay")
    return InvalidArgument(
        "attr 'regularization_method' is '%s'; expected '' or l2_decay",
        method);
  m.decay = method.empty() ? 0 : context->Attr<float>("regularization_coeff");
  m.mu = context->Attr<float>("mu");
  m.nesterov = context->Attr<bool>("use_nesterov");
  m.begin = context->Attr<float>("rampup_begin_step");
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = param->size()](const RunContext&) -> absl::Status {
      const float count = *ranks->data<float>();
      if (!(count >= 1))
        return InvalidArgument("'nranks' is %g; expected 1 or more", count);
      const bool off = m.begin < 0;
      const bool momentum = !off && *step->data<float>() < m.begin;
      const T lr = *rate->data<T>(), share = T(1) / static_cast<T>(count);
      for (int64_t i = 0; i < n; ++i) {
        const T p = param->data<T>()[i], v = velocity->data<T>()[i];
        T g = grad->data<T>()[i];
        if (!off) g *= share;
        grad_out->data<T>()[i] = g;
        T v_out = v, p_out = p;
        if (momentum) {
          g += static_cast<T>(m.decay) * p;
          v_out = static_cast<T>(m.mu) * v + g;
          p_out =
              p - lr * (m.nesterov ? g + static_cast<T>(m.mu) * v_out : v_out);
        } else if (!off) {
          p_out = p - lr * g;
        }
        velocity_out->data<T>()[i] = v_out;
        param_out->data<T>()[i] = p_out;
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferDgcMomentum(InferContext* context) {
  context->Share("Param", "ParamOut");
  context->Share("Velocity", "VelocityOut");
  context->Share("Grad", "Grad_out");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterDgc(OpRegistry* registry) {
  OpDef clip("dgc_clip_by_norm");
  clip.Input("current_step").Input("X").Output("Out");
  clip.Attr("rampup_begin_step", -1.0f);
  clip.RequiredAttr("max_norm", AttrType::kFloat);
  clip.Infer(InferUnary).NoGrad().Reference(BindDgcClip);
  PD_RETURN_IF_ERROR(registry->Add(std::move(clip)));

  OpDef op("dgc_momentum");
  for (const char* slot :
       {"Param", "Grad", "Velocity", "LearningRate", "current_step", "nranks"})
    op.Input(slot);
  op.OptionalInput("MasterParam").OptionalOutput("MasterParamOut");
  op.Output("ParamOut").Output("VelocityOut").Output("Grad_out");
  op.RequiredAttr("mu", AttrType::kFloat).Attr("use_nesterov", false);
  op.Attr("regularization_method", std::string());
  op.Attr("regularization_coeff", 0.0f).Attr("multi_precision", false);
  op.Attr("rescale_grad", 1.0f).Attr("rampup_begin_step", -1.0f);
  op.Infer(InferDgcMomentum).NoGrad().Reference(BindDgcMomentum);
  return registry->Add(std::move(op));
}

}  // namespace pd
