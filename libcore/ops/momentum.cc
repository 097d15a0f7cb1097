// SPDX-License-Identifier: Apache-2.0
// momentum, and merged_momentum for lists of parameters:
//   g = Grad, plus regularization_coeff * Param when regularization_method is
//       "l2_decay"
//   VelocityOut = mu * Velocity + g
//   ParamOut = Param - LearningRate * VelocityOut
//   use_nesterov: ParamOut = Param - LearningRate * (g + mu * VelocityOut)
// merged_momentum first multiplies Grad by rescale_grad; momentum ignores that
// attribute, as PaddlePaddle's CPU kernel does.
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/update.h"

namespace pd {
namespace {

struct Slot {
  Tensor *param, *grad, *velocity, *rate, *param_out, *velocity_out;
  float l2 = 0;  // 0: no decay
};

struct Numbers {
  float mu, rescale;
  bool nesterov;
};

template <typename T>
void Update(const Slot& s, const Numbers& numbers) {
  const T* param = s.param->data<T>();
  const T* grad = s.grad->data<T>();
  const T* velocity = s.velocity->data<T>();
  T* param_out = s.param_out->data<T>();
  T* velocity_out = s.velocity_out->data<T>();
  const T lr = static_cast<T>(ScalarOf(*s.rate));
  const T mu = numbers.mu, rescale = numbers.rescale, l2 = s.l2;
  const bool nesterov = numbers.nesterov;
  ParallelFor(s.param->size(), kUpdateGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T g = rescale * grad[i] + l2 * param[i];
      const T v = mu * velocity[i] + g;
      velocity_out[i] = v;
      param_out[i] = param[i] - lr * (nesterov ? g + mu * v : v);
    }
  });
}

absl::StatusOr<Slot> ReadSlot(BindContext* context, size_t i,
                              const std::string& method, float coeff) {
  PD_RETURN_IF_ERROR(CheckAlike(*context, "Param", "Grad", i));
  PD_RETURN_IF_ERROR(CheckAlike(*context, "Param", "Velocity", i));
  Slot s;
  s.param = context->Input("Param", i);
  s.grad = context->Input("Grad", i);
  s.velocity = context->Input("Velocity", i);
  // merged_momentum: one rate for all, or one each.
  s.rate = context->Input("LearningRate",
                          context->InputCount("LearningRate") == 1 ? 0 : i);
  PD_RETURN_IF_ERROR(CheckScalar("LearningRate", s.rate));
  s.param_out = context->Output("ParamOut", i);
  s.velocity_out = context->Output("VelocityOut", i);
  if (s.param_out == nullptr || s.velocity_out == nullptr)
    return InvalidArgument(
        "output %d of 'ParamOut' or 'VelocityOut' is "
        "missing",
        i);
  if (method == "l2_decay") {
    s.l2 = coeff;
  } else if (!method.empty()) {
    return InvalidArgument(
        "attr 'regularization_method' is '%s'; expected '' or l2_decay",
        method);
  }
  context->MayShare(s.param, s.param_out);
  context->MayShare(s.velocity, s.velocity_out);
  return s;
}

absl::StatusOr<Step> MakeStep(BindContext* context, std::vector<Slot> slots) {
  if (slots.empty()) return InvalidArgument("'Param' is empty");
  const Numbers numbers = {context->Attr<float>("mu"),
                           context->op().type == "momentum"
                               ? 1.0f
                               : context->Attr<float>("rescale_grad"),
                           context->Attr<bool>("use_nesterov")};
  const DType dtype = slots.front().param->dtype();
  for (const Slot& slot : slots)
    if (slot.param->dtype() != dtype)
      return InvalidArgument("'Param' holds both %s and %s", Name(dtype),
                             Name(slot.param->dtype()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([slots, numbers](const RunContext&) {
      for (const Slot& slot : slots) Update<T>(slot, numbers);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindMomentum(BindContext* context) {
  PD_ASSIGN_OR_RETURN(
      Slot slot,
      ReadSlot(context, 0, context->Attr<std::string>("regularization_method"),
               context->Attr<float>("regularization_coeff")));
  return MakeStep(context, {slot});
}

absl::StatusOr<Step> BindMergedMomentum(BindContext* context) {
  const auto& methods =
      context->Attr<std::vector<std::string>>("regularization_method");
  const auto& coeffs =
      context->Attr<std::vector<float>>("regularization_coeff");
  const size_t n = context->InputCount("Param");
  if ((!methods.empty() && methods.size() != n) ||
      methods.size() != coeffs.size())
    return InvalidArgument(
        "attrs 'regularization_method' and 'regularization_coeff' hold %d and "
        "%d; expected 0 or %d",
        methods.size(), coeffs.size(), n);
  std::vector<Slot> slots;
  for (size_t i = 0; i < n; ++i) {
    PD_ASSIGN_OR_RETURN(Slot slot,
                        ReadSlot(context, i, methods.empty() ? "" : methods[i],
                                 coeffs.empty() ? 0 : coeffs[i]));
    slots.push_back(slot);
  }
  return MakeStep(context, std::move(slots));
}

absl::Status InferMomentum(InferContext* context) {
  return InferUpdate(context, {"Param", "Velocity", "MasterParam"});
}

}  // namespace

absl::Status RegisterMomentum(OpRegistry* registry) {
  OpDef momentum("momentum");
  momentum.Input("Param").Input("Grad").Input("Velocity");
  momentum.Input("LearningRate").OptionalInput("MasterParam");
  momentum.Output("ParamOut").Output("VelocityOut");
  momentum.OptionalOutput("MasterParamOut");
  momentum.RequiredAttr("mu", AttrType::kFloat)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", std::string())
      .Attr("regularization_coeff", 0.0f)
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0f);
  momentum.Infer(InferMomentum).NoGrad().Reference(BindMomentum);
  PD_RETURN_IF_ERROR(registry->Add(std::move(momentum)));

  OpDef merged("merged_momentum");
  merged.Inputs("Param").Inputs("Grad").Inputs("Velocity");
  merged.Inputs("LearningRate").OptionalInputs("MasterParam");
  merged.Outputs("ParamOut").Outputs("VelocityOut");
  merged.OptionalOutputs("MasterParamOut");
  merged.RequiredAttr("mu", AttrType::kFloat)
      .Attr("use_nesterov", false)
      .Attr("regularization_method", std::vector<std::string>())
      .Attr("regularization_coeff", std::vector<float>())
      .Attr("multi_precision", false)
      .Attr("rescale_grad", 1.0f);
  merged.Infer(InferMomentum).NoGrad().Reference(BindMergedMomentum);
  return registry->Add(std::move(merged));
}

}  // namespace pd
