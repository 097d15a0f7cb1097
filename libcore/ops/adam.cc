// SPDX-License-Identifier: Apache-2.0
// adam, adamw, and merged_adam for lists of parameters:
//   Moment1Out = beta1 * Moment1 + (1 - beta1) * Grad
//   Moment2Out = beta2 * Moment2 + (1 - beta2) * Grad^2
//   rate = LearningRate * sqrt(1 - Beta2Pow) / (1 - Beta1Pow)
//   ParamOut = Param - rate * Moment1Out /
//              (sqrt(Moment2Out) + epsilon * sqrt(1 - Beta2Pow))
//   Beta1PowOut = beta1 * Beta1Pow, Beta2PowOut = beta2 * Beta2Pow, unless
//   use_global_beta_pow (somebody else then moves them on)
// adamw with with_decay: Param is first multiplied by
// 1 - LearningRate * lr_ratio * coeff. As in PaddlePaddle's CPU kernel,
// lr_ratio is not part of `rate`. lazy_mode: rows of Param that a sparse lookup
// did not touch stay as they are, moments too, when the gradient comes straight
// from the lookup's gradient op; the powers of beta are then moved on before
// they are used. SkipUpdate true: every output is a copy of its input.
// Beta1Tensor and the like replace the attributes, step by step.
#include <cmath>
#include <cstring>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/update.h"

namespace pd {
namespace {

struct Slot {
  Tensor *param, *grad, *rate, *moment1, *moment2, *beta1_pow, *beta2_pow;
  Tensor *param_out, *moment1_out, *moment2_out, *beta1_pow_out, *beta2_pow_out;
  Tensor* touched = nullptr;  // uint8 per row: 0, leave it; null: update all
};

struct Numbers {
  double beta1, beta2, epsilon;
  double decay = 0;  // of adamw, per learning rate
  bool global_beta_pow;
  // Null: the number above stands.
  Tensor *beta1_tensor = nullptr, *beta2_tensor = nullptr,
         *epsilon_tensor = nullptr, *skip = nullptr;
};

void SetScalar(Tensor* tensor, double value) {
  if (tensor->dtype() == DType::kFloat64)
    tensor->data<double>()[0] = value;
  else
    tensor->data<float>()[0] = static_cast<float>(value);
}

void CopyUnlessSame(const Tensor* from, Tensor* to) {
  if (from->raw() != to->raw())
    std::memcpy(to->raw(), from->raw(), from->bytes());
}

template <typename T>
void Update(const Slot& s, const Numbers& numbers) {
  const auto number = [](const Tensor* tensor, double otherwise) {
    return tensor != nullptr ? ScalarOf(*tensor) : otherwise;
  };
  const T beta1 = static_cast<T>(number(numbers.beta1_tensor, numbers.beta1));
  const T beta2 = static_cast<T>(number(numbers.beta2_tensor, numbers.beta2));
  const double beta1_pow = ScalarOf(*s.beta1_pow);
  const double beta2_pow = ScalarOf(*s.beta2_pow);
  // PaddlePaddle's sparse update moves the powers on before it uses them.
  const bool ahead = s.touched != nullptr && !numbers.global_beta_pow;
  const double correction = std::sqrt(1 - beta2_pow * (ahead ? beta2 : T(1)));
  const double lr = ScalarOf(*s.rate);
  const T rate = static_cast<T>(lr * correction /
                                (1 - beta1_pow * (ahead ? beta1 : T(1))));
  const T epsilon = static_cast<T>(
      number(numbers.epsilon_tensor, numbers.epsilon) * correction);
  const T keep = static_cast<T>(1 - lr * numbers.decay);
  const T* param = s.param->data<T>();
  const T* grad = s.grad->data<T>();
  const T* moment1 = s.moment1->data<T>();
  const T* moment2 = s.moment2->data<T>();
  T* param_out = s.param_out->data<T>();
  T* moment1_out = s.moment1_out->data<T>();
  T* moment2_out = s.moment2_out->data<T>();
  const auto update = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T g = grad[i];
      const T m1 = beta1 * moment1[i] + (T(1) - beta1) * g;
      const T m2 = beta2 * moment2[i] + (T(1) - beta2) * g * g;
      moment1_out[i] = m1;
      moment2_out[i] = m2;
      param_out[i] = keep * param[i] - rate * (m1 / (std::sqrt(m2) + epsilon));
    }
  };
  if (s.touched == nullptr) {
    ParallelFor(s.param->size(), kUpdateGrain, update);
  } else {
    CopyUnlessSame(s.param, s.param_out);
    CopyUnlessSame(s.moment1, s.moment1_out);
    CopyUnlessSame(s.moment2, s.moment2_out);
    const int64_t width = s.param->size() / s.touched->size();
    for (int64_t row = 0; row < s.touched->size(); ++row)
      if (s.touched->data<uint8_t>()[row] != 0)
        update(row * width, (row + 1) * width);
  }
  const bool move = !numbers.global_beta_pow;
  SetScalar(s.beta1_pow_out, move ? beta1_pow * beta1 : beta1_pow);
  SetScalar(s.beta2_pow_out, move ? beta2_pow * beta2 : beta2_pow);
}

void Skip(const Slot& s) {
  CopyUnlessSame(s.param, s.param_out);
  CopyUnlessSame(s.moment1, s.moment1_out);
  CopyUnlessSame(s.moment2, s.moment2_out);
  CopyUnlessSame(s.beta1_pow, s.beta1_pow_out);
  CopyUnlessSame(s.beta2_pow, s.beta2_pow_out);
}

absl::StatusOr<Slot> ReadSlot(BindContext* context, size_t i) {
  for (const char* slot : {"Grad", "Moment1", "Moment2"})
    PD_RETURN_IF_ERROR(CheckAlike(*context, "Param", slot, i));
  Slot s;
  s.param = context->Input("Param", i);
  s.grad = context->Input("Grad", i);
  // merged_adam: one rate for all, or one each.
  s.rate = context->Input("LearningRate",
                          context->InputCount("LearningRate") == 1 ? 0 : i);
  s.moment1 = context->Input("Moment1", i);
  s.moment2 = context->Input("Moment2", i);
  s.beta1_pow = context->Input("Beta1Pow", i);
  s.beta2_pow = context->Input("Beta2Pow", i);
  PD_RETURN_IF_ERROR(CheckScalar("LearningRate", s.rate));
  PD_RETURN_IF_ERROR(CheckScalar("Beta1Pow", s.beta1_pow));
  PD_RETURN_IF_ERROR(CheckScalar("Beta2Pow", s.beta2_pow));
  s.param_out = context->Output("ParamOut", i);
  s.moment1_out = context->Output("Moment1Out", i);
  s.moment2_out = context->Output("Moment2Out", i);
  s.beta1_pow_out = context->Output("Beta1PowOut", i);
  s.beta2_pow_out = context->Output("Beta2PowOut", i);
  for (const Tensor* out : {s.param_out, s.moment1_out, s.moment2_out,
                            s.beta1_pow_out, s.beta2_pow_out})
    if (out == nullptr) return InvalidArgument("output %d is missing", i);
  context->MayShare(s.param, s.param_out);
  context->MayShare(s.moment1, s.moment1_out);
  context->MayShare(s.moment2, s.moment2_out);
  context->MayShare(s.beta1_pow, s.beta1_pow_out);
  context->MayShare(s.beta2_pow, s.beta2_pow_out);
  return s;
}

Numbers ReadNumbers(BindContext* context) {
  Numbers n;
  n.beta1 = context->Attr<float>("beta1");
  n.beta2 = context->Attr<float>("beta2");
  n.epsilon = context->Attr<float>("epsilon");
  n.global_beta_pow = context->Attr<bool>("use_global_beta_pow");
  return n;
}

absl::StatusOr<Step> MakeStep(std::vector<Slot> slots, const Numbers& numbers) {
  if (slots.empty()) return InvalidArgument("'Param' is empty");
  const DType dtype = slots.front().param->dtype();
  for (const Slot& slot : slots)
    if (slot.param->dtype() != dtype)
      return InvalidArgument("'Param' holds both %s and %s", Name(dtype),
                             Name(slot.param->dtype()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([slots, numbers](const RunContext&) {
      const bool skip = numbers.skip != nullptr && *numbers.skip->data<bool>();
      for (const Slot& slot : slots) {
        if (skip)
          Skip(slot);
        else
          Update<T>(slot, numbers);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindAdam(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Slot slot, ReadSlot(context, 0));
  if (context->Attr<bool>("lazy_mode") && slot.param->size() > 0) {
    slot.touched = context->Kept(TouchedRowsName(context->op().In("Grad")));
    if (slot.touched != nullptr && slot.touched->size() != slot.param->dim(0))
      return InvalidArgument("the lookup of 'Grad' has %d rows; 'Param' has %s",
                             slot.touched->size(),
                             ToString(slot.param->shape()));
  }
  Numbers n = ReadNumbers(context);
  n.beta1_tensor = context->Input("Beta1Tensor");
  n.beta2_tensor = context->Input("Beta2Tensor");
  n.epsilon_tensor = context->Input("EpsilonTensor");
  n.skip = context->Input("SkipUpdate");
  for (const char* name : {"Beta1Tensor", "Beta2Tensor", "EpsilonTensor"})
    if (context->Input(name) != nullptr)
      PD_RETURN_IF_ERROR(CheckScalar(name, context->Input(name)));
  if (n.skip != nullptr &&
      (n.skip->dtype() != DType::kBool || n.skip->size() != 1))
    return InvalidArgument("'SkipUpdate' is %s %s; expected one bool",
                           Name(n.skip->dtype()), ToString(n.skip->shape()));
  if (context->op().type == "adamw" && context->Attr<bool>("with_decay")) {
    n.decay = double{context->Attr<float>("lr_ratio")} *
              context->Attr<float>("coeff");
  }
  return MakeStep({slot}, n);
}

absl::StatusOr<Step> BindMergedAdam(BindContext* context) {
  std::vector<Slot> slots;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(const Slot slot, ReadSlot(context, i));
    slots.push_back(slot);
  }
  return MakeStep(std::move(slots), ReadNumbers(context));
}

absl::Status InferAdam(InferContext* context) {
  return InferUpdate(context, {"Param", "Moment1", "Moment2", "Beta1Pow",
                               "Beta2Pow", "MasterParam"});
}

void AddAttrs(OpDef* def) {
  def->Attr("beta1", 0.9f)
      .Attr("beta2", 0.999f)
      .Attr("epsilon", 1e-8f)
      .Attr("multi_precision", false)
      .Attr("use_global_beta_pow", false);
}

OpDef SingleAdam(const char* type) {
  OpDef def(type);
  def.Input("Param").Input("Grad").Input("LearningRate");
  def.Input("Moment1").Input("Moment2").Input("Beta1Pow").Input("Beta2Pow");
  for (const char* slot : {"MasterParam", "SkipUpdate", "Beta1Tensor",
                           "Beta2Tensor", "EpsilonTensor"})
    def.OptionalInput(slot);
  def.Output("ParamOut").Output("Moment1Out").Output("Moment2Out");
  def.Output("Beta1PowOut").Output("Beta2PowOut");
  def.OptionalOutput("MasterParamOut");
  AddAttrs(&def);
  def.Attr("lazy_mode", false);
  def.Attr("min_row_size_to_use_multithread", int64_t{1000});
  def.Infer(InferAdam).NoGrad().Reference(BindAdam);
  return def;
}

}  // namespace

absl::Status RegisterAdam(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(registry->Add(SingleAdam("adam")));

  OpDef adamw = SingleAdam("adamw");
  adamw.Attr("lr_ratio", 1.0f).Attr("coeff", 0.01f).Attr("with_decay", false);
  PD_RETURN_IF_ERROR(registry->Add(std::move(adamw)));

  OpDef merged("merged_adam");
  for (const char* slot : {"Param", "Grad", "LearningRate", "Moment1",
                           "Moment2", "Beta1Pow", "Beta2Pow"})
    merged.Inputs(slot);
  merged.OptionalInputs("MasterParam");
  for (const char* slot :
       {"ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut"})
    merged.Outputs(slot);
  merged.OptionalOutputs("MasterParamOut");
  AddAttrs(&merged);
  merged.Infer(InferAdam).NoGrad().Reference(BindMergedAdam);
  return registry->Add(std::move(merged));
}

}  // namespace pd
