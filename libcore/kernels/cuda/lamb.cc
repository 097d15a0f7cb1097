// SPDX-License-Identifier: Apache-2.0
// lamb and lars_momentum; the kernels are in lamb.cu. A parameter has
// kernels of its own: its step waits for its norms.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/update_arguments.h"

namespace pd::cuda {
namespace {

// The tensors of one parameter: float32, but a half that has a master, which is
// then `param`, and its gradient, of which the kernels read a wide copy.
struct Trusted {
  Tensor *param = nullptr, *grad = nullptr, *rate = nullptr;
  Tensor *half = nullptr, *wide = nullptr;
  Tensor *first = nullptr, *second = nullptr;  // moments, or a velocity
  Tensor *power1 = nullptr, *power2 = nullptr;
  Tensor *step = nullptr, *parts = nullptr;
  Copies copies;  // of what is not updated in place
  TrustArgs args{};

  TrustArgs Now() const {
    TrustArgs now = args;
    now.param = At(param);
    now.half = half == nullptr ? nullptr : half->raw();
    now.grad = At(wide != nullptr ? wide : grad);
    now.rate = At(rate);
    now.first = At(first);
    now.second = At(second);
    now.power1 = At(power1);
    now.power2 = At(power2);
    now.step = At(step);
    now.parts = At(parts);
    return now;
  }
};

// The step that widens a gradient of halves; none where it is float32.
absl::StatusOr<Step> BindUpcast(DeviceBinding* binding, const Trusted& t) {
  if (t.wide == nullptr) return Step();
  CastArgs args{};
  PD_ASSIGN_OR_RETURN(args.from_type, NumberTypeOf(t.grad->dtype()));
  args.to_type = NumberType::kFloat32;
  args.n = t.args.n;
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<CastArgs>::Find(binding, "cast_floats"));
  return Step([=, from = t.grad, to = t.wide](const RunContext&) {
    CastArgs run = args;
    run.from = from->raw();
    run.to = to->raw();
    return start.Elements(run.n, run);
  });
}

// Parameter, gradient and rate of the update i.
absl::StatusOr<Trusted> ReadTrusted(BindContext* context, size_t i) {
  if (context->Input("SkipUpdate") != nullptr)
    return Unimplemented("an update that is skipped");
  Trusted t;
  PD_ASSIGN_OR_RETURN(t.param,
                      InPlace(context, "Param", "ParamOut", i, &t.copies));
  if (context->op().Attr<bool>("multi_precision") &&
      context->Input("MasterParam", i) != nullptr) {
    t.half = t.param;
    PD_ASSIGN_OR_RETURN(t.param, InPlace(context, "MasterParam",
                                         "MasterParamOut", i, &t.copies));
    if (t.half->size() != t.param->size())
      return Unimplemented("a master of another size");
    PD_ASSIGN_OR_RETURN(t.args.half_type, NumberTypeOf(t.half->dtype()));
    PD_RETURN_IF_ERROR(SameFloats({t.half}));
  }
  t.grad = context->Input("Grad", i);
  t.rate = context->Input(
      "LearningRate", context->InputCount("LearningRate") > 1 ? i : size_t{0});
  if (t.grad == nullptr || t.rate == nullptr || t.rate->size() != 1 ||
      t.grad->size() != t.param->size() || t.param->size() == 0)
    return Unimplemented("an update without its gradient or its rate");
  PD_RETURN_IF_ERROR(OnlyFloat32({t.param, t.rate}));
  PD_RETURN_IF_ERROR(SameFloats({t.grad}));
  if (t.grad->dtype() != DType::kFloat32)
    t.wide =
        context->Scratch(static_cast<size_t>(t.param->size()) * sizeof(float));
  t.args.n = t.param->size();
  t.args.blocks =
      std::min<int64_t>((t.args.n + kThreads - 1) / kThreads, kTrustParts);
  t.parts = context->Scratch(2 * kTrustParts * sizeof(float));
  return t;
}

// A moment of the parameter, or a power of beta.
absl::StatusOr<Tensor*> ReadState(BindContext* context, const char* slot,
                                  int64_t elements, Copies* copies,
                                  size_t i = 0) {
  PD_ASSIGN_OR_RETURN(
      Tensor * state,
      InPlace(context, slot, absl::StrCat(slot, "Out"), i, copies));
  PD_RETURN_IF_ERROR(OnlyFloat32({state}));
  if (state->size() != elements)
    return Unimplemented("'%s' has another size", slot);
  return state;
}

absl::StatusOr<Step> BindLamb(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(Trusted t, ReadTrusted(context, 0));
  PD_ASSIGN_OR_RETURN(t.first,
                      ReadState(context, "Moment1", t.args.n, &t.copies));
  PD_ASSIGN_OR_RETURN(t.second,
                      ReadState(context, "Moment2", t.args.n, &t.copies));
  PD_ASSIGN_OR_RETURN(t.power1, ReadState(context, "Beta1Pow", 1, &t.copies));
  PD_ASSIGN_OR_RETURN(t.power2, ReadState(context, "Beta2Pow", 1, &t.copies));
  t.args.beta1 = context->Attr<float>("beta1");
  t.args.beta2 = context->Attr<float>("beta2");
  t.args.epsilon = context->Attr<float>("epsilon");
  t.args.decay = context->Attr<float>("weight_decay");
  t.args.adapts = t.args.decay > 0 || context->Attr<bool>("always_adapt");
  t.step = context->Scratch(static_cast<size_t>(t.args.n) * sizeof(float));
  using Start = Starter<TrustArgs>;
  PD_ASSIGN_OR_RETURN(const auto moments, Start::Find(binding, "lamb_moments"));
  PD_ASSIGN_OR_RETURN(const auto squares,
                      Start::Find(binding, "trust_squares"));
  PD_ASSIGN_OR_RETURN(const auto update, Start::Find(binding, "update_lamb"));
  PD_ASSIGN_OR_RETURN(const auto powers, Start::Find(binding, "lamb_powers"));
  PD_ASSIGN_OR_RETURN(const Step widen, BindUpcast(binding, t));
  return Step([=, device = CudaOf(binding)](const RunContext& run) {
    PD_RETURN_IF_ERROR(CopyAll(device, t.copies));
    if (widen != nullptr) PD_RETURN_IF_ERROR(widen(run));
    const TrustArgs args = t.Now();
    PD_RETURN_IF_ERROR(moments.Elements(args.n, args));
    PD_RETURN_IF_ERROR(squares.Blocks(args.blocks, args));
    PD_RETURN_IF_ERROR(update.Elements(args.n, args));
    return powers.Blocks(1, args);
  });
}

// lars_weight_decay of parameter i: a number in old programs.
absl::StatusOr<float> LarsDecay(const OpDesc& op, size_t i) {
  const Attribute* attr = op.FindAttr("lars_weight_decay");
  if (attr == nullptr) return 0.0005f;
  if (const auto* one = std::get_if<float>(attr)) return *one;
  const auto* list = std::get_if<std::vector<float>>(attr);
  if (list == nullptr || list->empty() ||
      (list->size() > 1 && i >= list->size()))
    return Unimplemented("decays that do not fit");
  return list->size() == 1 ? list->front() : (*list)[i];
}

absl::StatusOr<Step> BindLars(BindContext* context, DeviceBinding* binding) {
  using Start = Starter<TrustArgs>;
  PD_ASSIGN_OR_RETURN(const auto squares,
                      Start::Find(binding, "trust_squares"));
  PD_ASSIGN_OR_RETURN(const auto update, Start::Find(binding, "update_lars"));
  std::vector<Step> steps;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(Trusted t, ReadTrusted(context, i));
    PD_ASSIGN_OR_RETURN(t.first,
                        ReadState(context, "Velocity", t.args.n, &t.copies, i));
    PD_ASSIGN_OR_RETURN(t.args.decay, LarsDecay(context->op(), i));
    t.args.mu = context->Attr<float>("mu");
    t.args.coeff = context->Attr<float>("lars_coeff");
    t.args.epsilon = context->Attr<float>("epsilon");
    t.args.rescale = context->Attr<float>("rescale_grad");
    t.step = t.wide != nullptr ? t.wide : t.grad;
    PD_ASSIGN_OR_RETURN(Step widen, BindUpcast(binding, t));
    if (widen != nullptr) steps.push_back(std::move(widen));
    steps.push_back([=, device = CudaOf(binding)](const RunContext&) {
      PD_RETURN_IF_ERROR(CopyAll(device, t.copies));
      const TrustArgs args = t.Now();
      PD_RETURN_IF_ERROR(squares.Blocks(args.blocks, args));
      return update.Elements(args.n, args);
    });
  }
  if (steps.empty()) return Unimplemented("no parameter");
  return InOrder(std::move(steps));
}

}  // namespace

void AddLamb(KernelTable* kernels) {
  kernels->Add("lamb", {"cuda", BindLamb});
  kernels->Add("lars_momentum", {"cuda", BindLars});
}

}  // namespace pd::cuda
