// SPDX-License-Identifier: Apache-2.0
// adam, adamw, sgd, momentum, adagrad and what is merged of them, in the layout
// that the parameter has; its states are kept in the same one for good.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/update_kernels.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/optimizer/update.h"

namespace pd {
namespace cpu {
namespace {

// The tensors of one state of one parameter.
struct Pair {
  Tensor *in = nullptr, *out = nullptr;
};

absl::StatusOr<Pair> ReadPair(BindContext* context, const char* slot, size_t i,
                              const LayoutPtr& layout) {
  PD_RETURN_IF_ERROR(CheckAlike(*context, "Param", slot, i));
  const std::string out_slot = std::string(slot) + "Out";
  Pair pair;
  pair.in = context->Input(slot, i);
  pair.out = context->Output(out_slot, i);
  if (pair.out == nullptr)
    return InvalidArgument("output %d of '%s' is missing", i, out_slot);
  PD_ASSIGN_OR_RETURN(pair.in, context->In(pair.in, layout));
  PD_ASSIGN_OR_RETURN(pair.out, context->Out(pair.out, layout));
  context->MayShare(pair.in, pair.out);
  return pair;
}

absl::StatusOr<Tensor*> ReadGrad(BindContext* context, size_t i,
                                 const LayoutPtr& layout) {
  const Tensor* param = context->Input("Param", i);
  if (param == nullptr) return InvalidArgument("'Param' %d is missing", i);
  if (param->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (context->Input("MasterParam", i) != nullptr)
    return Unimplemented("it updates no master parameters");
  if (IsSelectedRows(context->Input("Grad", i)))
    return Unimplemented("it has no sparse form");
  PD_RETURN_IF_ERROR(CheckAlike(*context, "Param", "Grad", i));
  return context->In(context->Input("Grad", i), layout);
}

absl::StatusOr<Tensor*> ReadRate(BindContext* context, size_t i) {
  // One rate for all, or one each.
  Tensor* rate = context->Input(
      "LearningRate", context->InputCount("LearningRate") == 1 ? 0 : i);
  PD_RETURN_IF_ERROR(CheckScalar("LearningRate", rate));
  return rate;
}

struct Adam {
  Pair param, moment1, moment2;
  Tensor *grad = nullptr, *rate = nullptr;
  Pair beta1_pow, beta2_pow;
  double decay = 0;  // of adamw, per learning rate
};

absl::StatusOr<Pair> ReadPower(BindContext* context, const char* slot,
                               size_t i) {
  Pair pair;
  pair.in = context->Input(slot, i);
  PD_RETURN_IF_ERROR(CheckScalar(slot, pair.in));
  pair.out = context->Output(std::string(slot) + "Out", i);
  if (pair.out == nullptr)
    return InvalidArgument("output %d of '%sOut' is missing", i, slot);
  context->MayShare(pair.in, pair.out);
  return pair;
}

absl::StatusOr<Adam> ReadAdam(BindContext* context, size_t i) {
  Adam a;
  const Tensor* param = context->Input("Param", i);
  const LayoutPtr layout = param != nullptr ? param->layout() : nullptr;
  PD_ASSIGN_OR_RETURN(a.grad, ReadGrad(context, i, layout));
  PD_ASSIGN_OR_RETURN(a.param, ReadPair(context, "Param", i, layout));
  PD_ASSIGN_OR_RETURN(a.moment1, ReadPair(context, "Moment1", i, layout));
  PD_ASSIGN_OR_RETURN(a.moment2, ReadPair(context, "Moment2", i, layout));
  PD_ASSIGN_OR_RETURN(a.rate, ReadRate(context, i));
  PD_ASSIGN_OR_RETURN(a.beta1_pow, ReadPower(context, "Beta1Pow", i));
  PD_ASSIGN_OR_RETURN(a.beta2_pow, ReadPower(context, "Beta2Pow", i));
  return a;
}

struct AdamNumbers {
  float beta1, beta2, epsilon;
  bool move_powers;
};

AdamPart PartOf(const Adam& a, const AdamNumbers& n) {
  const double beta1_pow = ScalarOf(*a.beta1_pow.in);
  const double beta2_pow = ScalarOf(*a.beta2_pow.in);
  const double correction = std::sqrt(1 - beta2_pow);
  const double rate = ScalarOf(*a.rate);
  AdamPart part;
  part.size = a.param.in->physical_size();
  part.param = a.param.in->data<float>();
  part.grad = a.grad->data<float>();
  part.moment1 = a.moment1.in->data<float>();
  part.moment2 = a.moment2.in->data<float>();
  part.param_out = a.param.out->data<float>();
  part.moment1_out = a.moment1.out->data<float>();
  part.moment2_out = a.moment2.out->data<float>();
  part.beta1 = n.beta1;
  part.beta2 = n.beta2;
  part.rate = static_cast<float>(rate * correction / (1 - beta1_pow));
  part.epsilon = static_cast<float>(n.epsilon * correction);
  part.decay = static_cast<float>(rate * a.decay);
  return part;
}

Step AdamStep(std::vector<Adam> adams, const AdamNumbers& n) {
  auto parts = std::make_shared<std::vector<AdamPart>>(adams.size());
  return [parts, adams = std::move(adams), n](const RunContext&) {
    for (size_t i = 0; i < adams.size(); ++i) (*parts)[i] = PartOf(adams[i], n);
    UpdateAdam(*parts);
    for (const Adam& a : adams) {
      const double beta1 = ScalarOf(*a.beta1_pow.in);
      const double beta2 = ScalarOf(*a.beta2_pow.in);
      SetScalar(a.beta1_pow.out, n.move_powers ? beta1 * n.beta1 : beta1);
      SetScalar(a.beta2_pow.out, n.move_powers ? beta2 * n.beta2 : beta2);
    }
    return absl::OkStatus();
  };
}

AdamNumbers ReadNumbers(BindContext* context) {
  AdamNumbers n;
  n.beta1 = context->Attr<float>("beta1");
  n.beta2 = context->Attr<float>("beta2");
  n.epsilon = context->Attr<float>("epsilon");
  n.move_powers = !context->Attr<bool>("use_global_beta_pow");
  return n;
}

// The i-th of a merged op's list, or the only one of a single op.
template <typename T>
T AttrAt(const OpDesc& op, const char* name, size_t i, T otherwise) {
  if (const Attribute* a = op.FindAttr(name)) {
    if (const auto* list = std::get_if<std::vector<T>>(a))
      return i < list->size() ? (*list)[i] : otherwise;
    if (const auto* one = std::get_if<T>(a)) return *one;
  }
  return otherwise;
}

// Of adamw; merged ones hold lists.
absl::StatusOr<double> DecayOf(const OpDesc& op, size_t i) {
  if (op.type == "merged_adamw") {
    for (const char* name : {"coeff", "lr_ratio"})
      if (op.Attr<std::vector<float>>(name).size() <= i)
        return Unimplemented("'%s' is too short", name);
  } else if (!op.AttrOr("with_decay", false)) {
    return 0;
  }
  return double{AttrAt(op, "lr_ratio", i, 1.0f)} * AttrAt(op, "coeff", i, 0.0f);
}

}  // namespace

absl::StatusOr<Step> BindAdam(BindContext* context) {
  for (const char* slot :
       {"Beta1Tensor", "Beta2Tensor", "EpsilonTensor", "SkipUpdate"})
    if (context->Input(slot) != nullptr)
      return Unimplemented("it does not read '%s'", slot);
  if (context->op().AttrOr("lazy_mode", false))
    return Unimplemented("it has no lazy mode");
  std::vector<Adam> adams;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(Adam adam, ReadAdam(context, i));
    PD_ASSIGN_OR_RETURN(adam.decay, DecayOf(context->op(), i));
    adams.push_back(adam);
  }
  return AdamStep(std::move(adams), ReadNumbers(context));
}

namespace {

struct Momentum {
  Pair param, velocity;  // sgd: no velocity
  Tensor *grad = nullptr, *rate = nullptr;
  float mu = 0, rescale = 1, decay = 0;
  bool nesterov = false;
};

Step MomentumStep(std::vector<Momentum> all) {
  auto parts = std::make_shared<std::vector<MomentumPart>>(all.size());
  return [parts, all = std::move(all)](const RunContext&) {
    for (size_t i = 0; i < all.size(); ++i) {
      const Momentum& m = all[i];
      MomentumPart& part = (*parts)[i];
      part.size = m.param.in->physical_size();
      part.param = m.param.in->data<float>();
      part.grad = m.grad->data<float>();
      part.param_out = m.param.out->data<float>();
      const bool has_velocity = m.velocity.in != nullptr;
      part.velocity = has_velocity ? m.velocity.in->data<float>() : nullptr;
      part.velocity_out =
          has_velocity ? m.velocity.out->data<float>() : nullptr;
      part.mu = m.mu;
      part.rate = static_cast<float>(ScalarOf(*m.rate));
      part.rescale = m.rescale;
      part.decay = m.decay;
      part.nesterov = m.nesterov;
    }
    UpdateMomentum(*parts);
    return absl::OkStatus();
  };
}

absl::StatusOr<Momentum> ReadParam(BindContext* context, size_t i) {
  Momentum m;
  const Tensor* param = context->Input("Param", i);
  const LayoutPtr layout = param != nullptr ? param->layout() : nullptr;
  PD_ASSIGN_OR_RETURN(m.grad, ReadGrad(context, i, layout));
  PD_ASSIGN_OR_RETURN(m.param, ReadPair(context, "Param", i, layout));
  PD_ASSIGN_OR_RETURN(m.rate, ReadRate(context, i));
  return m;
}

}  // namespace

absl::StatusOr<Step> BindSgd(BindContext* context) {
  std::vector<Momentum> all;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(const Momentum m, ReadParam(context, i));
    all.push_back(m);
  }
  return MomentumStep(std::move(all));
}

absl::StatusOr<Step> BindMomentum(BindContext* context) {
  const OpDesc& op = context->op();
  std::vector<Momentum> all;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(Momentum m, ReadParam(context, i));
    PD_ASSIGN_OR_RETURN(m.velocity,
                        ReadPair(context, "Velocity", i, m.param.in->layout()));
    const std::string method =
        AttrAt(op, "regularization_method", i, std::string());
    if (method == "l2_decay")
      m.decay = AttrAt(op, "regularization_coeff", i, 0.0f);
    else if (!method.empty())
      return Unimplemented("it does not know regularization '%s'", method);
    m.mu = context->Attr<float>("mu");
    m.nesterov = context->Attr<bool>("use_nesterov");
    if (op.type == "merged_momentum")
      m.rescale = context->Attr<float>("rescale_grad");
    all.push_back(m);
  }
  return MomentumStep(std::move(all));
}

namespace {

struct Adagrad {
  Pair param, moment;
  Tensor *grad = nullptr, *rate = nullptr;
  float epsilon = 0;

  AdagradPart Part() const {
    AdagradPart part;
    part.size = param.in->physical_size();
    part.param = param.in->data<float>();
    part.grad = grad->data<float>();
    part.moment = moment.in->data<float>();
    part.param_out = param.out->data<float>();
    part.moment_out = moment.out->data<float>();
    part.rate = static_cast<float>(ScalarOf(*rate));
    part.epsilon = epsilon;
    return part;
  }
};

// Of selected rows: those that are there, summed.
absl::StatusOr<Step> BindAdagradRows(BindContext* context) {
  const Tensor* param = context->Input("Param");
  if (param == nullptr || param->dtype() != DType::kFloat32 ||
      context->Input("MasterParam") != nullptr)
    return Unimplemented("it is for float32 only");
  Adagrad a;
  a.grad = context->Input("Grad");
  if (a.grad->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  a.epsilon = context->Attr<float>("epsilon");
  PD_ASSIGN_OR_RETURN(a.param, ReadPair(context, "Param", 0, nullptr));
  PD_ASSIGN_OR_RETURN(a.moment, ReadPair(context, "Moment", 0, nullptr));
  PD_ASSIGN_OR_RETURN(a.rate, ReadRate(context, 0));
  Tensor* sums =
      context->Scratch(static_cast<size_t>(a.grad->size() + 1) * sizeof(float));
  auto order = std::make_shared<RowOrder>();
  return Step([a, sums, order,
               width = RowWidth(*a.grad)](const RunContext&) -> absl::Status {
    PD_RETURN_IF_ERROR(CheckRows("Grad", *a.grad, a.param.in->dim(0)));
    CopyUnlessSame(a.param.in, a.param.out);
    CopyUnlessSame(a.moment.in, a.moment.out);
    order->Sort(a.grad->rows());
    SumRows<float>(*a.grad, *order, sums->data<float>());
    AdagradPart part = a.Part();
    part.grad = sums->data<float>();
    UpdateAdagradRows(part, order->rows().data(),
                      static_cast<int64_t>(order->size()), width);
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Step> BindAdagrad(BindContext* context) {
  if (context->op().type == "adagrad" && IsSelectedRows(context->Input("Grad")))
    return BindAdagradRows(context);
  std::vector<Adagrad> all;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(const Momentum m, ReadParam(context, i));
    PD_ASSIGN_OR_RETURN(const Pair moment,
                        ReadPair(context, "Moment", i, m.param.in->layout()));
    all.push_back(
        {m.param, moment, m.grad, m.rate, context->Attr<float>("epsilon")});
  }
  auto parts = std::make_shared<std::vector<AdagradPart>>(all.size());
  return Step([parts, all = std::move(all)](const RunContext&) {
    for (size_t i = 0; i < all.size(); ++i) (*parts)[i] = all[i].Part();
    UpdateAdagrad(*parts);
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
