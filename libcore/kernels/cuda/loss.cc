// SPDX-License-Identifier: Apache-2.0
// Losses element by element, nll_loss, squared_l2_norm and clip_by_norm; the
// kernels are in loss.cu.
#include <algorithm>
#include <string>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/loss/kldiv_loss.h"

namespace pd::cuda {
namespace {

// Slots, and the attribute that the formula reads.
struct Loss {
  const char *type, *prediction, *label, *loss, *attr;
  bool probability;  // predictions outside [0, 1] are an error
};
constexpr Loss kLosses[] = {
    {"sigmoid_cross_entropy_with_logits", "X", "Label", "Out", "ignore_index",
     false},
    {"bce_loss", "X", "Label", "Out", nullptr, true},
    {"log_loss", "Predicted", "Labels", "Loss", "epsilon", false},
    {"hinge_loss", "Logits", "Labels", "Loss", nullptr, false},
    {"huber_loss", "X", "Y", "Out", "delta", false},
};

const Loss& FindLoss(const std::string& type) {
  const Loss* loss = kLosses;
  while (type.rfind(loss->type, 0) != 0) ++loss;
  return *loss;
}

// Its attribute.
absl::StatusOr<double> ReadLoss(const BindContext& context, const Loss& loss) {
  const OpDesc& op = context.op();
  if (op.AttrOr("normalize", false) || context.Input("pos_weight") != nullptr)
    return Unimplemented("a loss with weights, or that is normalized");
  if (loss.attr == nullptr) return 0.0;
  return loss.attr == absl::string_view("ignore_index")
             ? static_cast<double>(op.Attr<int32_t>(loss.attr))
             : double{op.Attr<float>(loss.attr)};
}

absl::StatusOr<Step> BindLoss(BindContext* context, DeviceBinding* binding) {
  const Loss& loss = FindLoss(context->op().type);
  Tensor *x = context->Input(loss.prediction), *y = context->Input(loss.label),
         *out = context->Output(loss.loss),
         *residual = context->Output("Residual");
  PD_RETURN_IF_ERROR(SameNumbers({x, y, out, residual}));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, loss.label, x->dtype(), x->size()));
  PD_ASSIGN_OR_RETURN(const double attr, ReadLoss(*context, loss));
  int32_t* bad = nullptr;
  if (loss.probability) {
    PD_ASSIGN_OR_RETURN(bad, binding->ErrorFlag(absl::StrFormat(
                                 "'%s' of %s holds a number outside [0, 1]",
                                 loss.prediction, loss.type)));
  }
  return ForReal(*x, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<LossArgsOf<T>>::Find(binding, KernelFor<T>(loss.type)));
    return Step([=](const RunContext&) {
      LossArgsOf<T> run{};
      run.x = Read<T>(x);
      run.y = Read<T>(y);
      run.out = Write<T>(out);
      run.second = Write<T>(residual);
      run.n = x->size();
      run.a = static_cast<T>(attr);
      run.bad = bad;
      return start.Elements(run.n, run);
    });
  });
}

// `b` is the label where there is no tensor of labels.
absl::StatusOr<Step> GradStep(DeviceBinding* binding, const Loss& loss,
                              double a, double b,
                              std::initializer_list<Tensor*> tensors) {
  Tensor *x = tensors.begin()[0], *y = tensors.begin()[1],
         *dout = tensors.begin()[2], *to = tensors.begin()[3];
  PD_RETURN_IF_ERROR(SameNumbers({x, y, dout, to}));
  if (dout->size() != x->size() || to->size() != x->size())
    return Unimplemented("tensors of other sizes");
  return ForReal(*x, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<LossArgsOf<T>>::Find(
            binding, KernelFor<T>(absl::StrCat(loss.type, "_grad"))));
    return Step([=](const RunContext&) {
      LossArgsOf<T> run{};
      run.x = Read<T>(x);
      run.y = Read<T>(y);
      run.dout = Read<T>(dout);
      run.out = Write<T>(to);
      run.n = x->size();
      run.a = static_cast<T>(a);
      run.b = static_cast<T>(b);
      return start.Elements(run.n, run);
    });
  });
}

absl::StatusOr<Step> BindLossGrad(BindContext* context,
                                  DeviceBinding* binding) {
  const Loss& loss = FindLoss(context->op().type);
  const bool huber = context->Input("Residual") != nullptr;
  Tensor *x = context->Input(huber ? "Residual" : loss.prediction),
         *dout = context->Input(absl::StrCat(loss.loss, "@GRAD"));
  if (x == nullptr || dout == nullptr)
    return Unimplemented("a variable is missing");
  PD_ASSIGN_OR_RETURN(const double attr, ReadLoss(*context, loss));
  if (!huber)
    return GradStep(binding, loss, attr, 0,
                    {x, context->Input(loss.label), dout,
                     context->Output(absl::StrCat(loss.prediction, "@GRAD"))});
  std::vector<Step> steps;
  for (const auto& [slot, sign] :
       {std::pair("X@GRAD", -1.0), std::pair("Y@GRAD", 1.0)}) {
    Tensor* to = context->Output(slot);
    if (to == nullptr) continue;
    PD_ASSIGN_OR_RETURN(
        Step step, GradStep(binding, loss, attr, sign, {x, nullptr, dout, to}));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

// sigmoid_cross_entropy_with_logits with weights or normalized, and its
// gradient.
absl::StatusOr<Step> BindWeighted(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Input("Label"),
         *weight = context->Input("pos_weight"),
         *dout = context->Input("Out@GRAD"),
         *out = context->Output(dout != nullptr ? "X@GRAD" : "Out");
  PD_RETURN_IF_ERROR(SameFloats({x, y, weight, dout, out}));
  for (const Tensor* t : {y, weight, dout, out})
    if (t != nullptr && t->size() != x->size())
      return Unimplemented("tensors of other sizes");
  const bool normalizes = context->Attr<bool>("normalize");
  WeightedArgs args{};
  args.n = x->size();
  args.ignore = static_cast<float>(context->Attr<int32_t>("ignore_index"));
  using Start = Starter<WeightedArgs>;
  PD_ASSIGN_OR_RETURN(const auto start,
                      Start::Find(binding, "weighted_sigmoid"));
  PD_ASSIGN_OR_RETURN(const auto count, Start::Find(binding, "count_labels"));
  Tensor* const divisor =
      normalizes ? context->Scratch(sizeof(float)) : nullptr;
  return Step([=](const RunContext&) {
    WeightedArgs run = args;
    run.y = Read<float>(y);
    run.divisor = At(divisor);
    if (normalizes) PD_RETURN_IF_ERROR(count.Blocks(1, run));
    run.x = Read<float>(x);
    run.weight = Read<float>(weight);
    run.dout = Read<float>(dout);
    run.out = Write<float>(out);
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindNll(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *label = context->Input("Label"),
         *weight = context->Input("Weight"), *dx = context->Output("X@GRAD"),
         *dout = context->Input("Out@GRAD");
  const bool grad = dx != nullptr;
  Tensor* out = grad ? dx : context->Output("Out");
  Tensor* total =
      grad ? context->Input("Total_weight") : context->Output("Total_weight");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, weight, total, dout, out}));
  if (x->rank() < 2 || x->size() == 0 || (grad && total == nullptr) ||
      (label->dtype() != DType::kInt64 && label->dtype() != DType::kInt32))
    return Unimplemented("X has shape %s, labels are %s", ToString(x->shape()),
                         Name(label->dtype()));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), 1));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Label", label->dtype(), view.lines()));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "Weight", x->dtype(), {view.n}));
  const auto how = context->op().Attr<std::string>("reduction");
  NllArgs args{};
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  args.ignore = context->Attr<int64_t>("ignore_index");
  args.label64 = label->dtype() == DType::kInt64;
  args.each = how == "none";
  args.mean = how == "mean";
  if (grad) {
    context->NoBuffer(x);
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(),
                                      args.each != 0 ? args.lines : 1));
  }
  PD_ASSIGN_OR_RETURN(
      args.bad, binding->ErrorFlag(absl::StrFormat(
                    "'Label' of nll_loss holds a number outside [0, %d) that "
                    "is not ignore_index %d",
                    args.n, args.ignore)));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<NllArgs>::Find(binding, grad ? "nll_loss_grad" : "nll_loss"));
  return Step([=](const RunContext&) {
    NllArgs run = args;
    run.x = grad ? nullptr : At(x);
    run.weight = At(weight);
    run.dout = At(dout);
    run.label = label->raw();
    run.out = At(out);
    run.total = At(total);
    return grad ? start.Elements(run.lines * run.n, run) : start.Blocks(1, run);
  });
}

// The step that makes one number of x: in parts, then of those.
template <typename T>
absl::StatusOr<Step> SquaresStep(BindContext* context, DeviceBinding* binding,
                                 Tensor* x, Tensor* out) {
  const int64_t parts = std::clamp<int64_t>(x->size() / 4096, 1, 1024);
  Tensor* const room = context->Scratch(static_cast<size_t>(parts) * sizeof(T));
  PD_ASSIGN_OR_RETURN(
      const auto squares,
      Starter<LossArgsOf<T>>::Find(binding, KernelFor<T>("squares")));
  ReduceShape sum{};
  sum.factor = 1;
  sum.n = 1;
  sum.m = parts;
  AddExtent<3>(parts, {1, 0, 0}, &sum.inner);
  PD_ASSIGN_OR_RETURN(Step join, BindReduction(context, binding,
                                               {"reduce_sum", sum, room, out}));
  return Step([=, join = std::move(join)](const RunContext& context_of_run) {
    LossArgsOf<T> run{};
    run.x = Read<T>(x);
    run.out = Write<T>(room);
    run.n = x->size();
    PD_RETURN_IF_ERROR(squares.Blocks(parts, run));
    return join(context_of_run);
  });
}

absl::StatusOr<Step> BindSquaredNorm(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  return ForReal(*x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return SquaresStep<T>(context, binding, x, out);
  });
}

absl::StatusOr<Step> BindClipByNorm(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameFloats({x, out}));
  Tensor* const sum = context->Scratch(sizeof(float));
  PD_ASSIGN_OR_RETURN(Step squares,
                      SquaresStep<float>(context, binding, x, sum));
  PD_ASSIGN_OR_RETURN(const auto scale,
                      Starter<LossArgs>::Find(binding, "scale_to_norm"));
  return Step([=, most = context->Attr<float>("max_norm"),
               squares = std::move(squares)](const RunContext& run) {
    PD_RETURN_IF_ERROR(squares(run));
    LossArgs args{};
    args.x = Read<float>(x);
    args.y = Read<float>(sum);
    args.out = Write<float>(out);
    args.n = x->size();
    args.a = most;
    return scale.Elements(args.n, args);
  });
}

// Loss by element, or its sum in part.
template <typename T>
absl::StatusOr<Step> BindKldivOf(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *target = context->Input("Target"),
         *loss = context->Output("Loss");
  PD_RETURN_IF_ERROR(SameNumbers({x, target, loss}));
  const int64_t n = x->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Target", x->dtype(), n));
  PD_ASSIGN_OR_RETURN(const double divisor,
                      KldivDivisor(context->op(), x->shape()));
  if (n == 0) return Unimplemented("no elements");
  Tensor* const each =
      divisor == 0 ? loss
                   : context->Scratch(static_cast<size_t>(n) * sizeof(T));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<LossArgsOf<T>>::Find(binding, KernelFor<T>("kldiv_loss")));
  Step join;
  if (divisor != 0) {
    ReduceShape sum{};
    sum.factor = 1 / divisor;
    sum.n = 1;
    sum.m = n;
    AddExtent<3>(n, {1, 0, 0}, &sum.inner);
    PD_ASSIGN_OR_RETURN(
        join, BindReduction(context, binding, {"reduce_sum", sum, each, loss}));
  }
  return Step([=, join = std::move(join)](const RunContext& context_of_run) {
    LossArgsOf<T> run{};
    run.x = Read<T>(x);
    run.y = Read<T>(target);
    run.out = Write<T>(each);
    run.n = n;
    PD_RETURN_IF_ERROR(start.Elements(n, run));
    return join != nullptr ? join(context_of_run) : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindKldiv(BindContext* context, DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindKldivOf<typename decltype(tag)::type>(context, binding);
  });
}

// Its slope does not depend on X.
absl::StatusOr<Step> BindKldivGrad(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *target = context->Input("Target"),
         *dloss = context->Input("Loss@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({target, dloss, dx}));
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  const int64_t n = dx->size();
  PD_ASSIGN_OR_RETURN(const double divisor,
                      KldivDivisor(context->op(), dx->shape()));
  if (target->size() != n || dloss->size() != (divisor == 0 ? n : 1))
    return Unimplemented("tensors of other sizes");
  return ForReal(*dx, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<LossArgsOf<T>>::Find(binding, KernelFor<T>("kldiv_loss_grad")));
    return Step([=](const RunContext&) {
      LossArgsOf<T> run{};
      run.y = Read<T>(target);
      run.dout = Read<T>(dloss);
      run.out = Write<T>(dx);
      run.n = n;
      run.b = divisor == 0 ? T(1) : static_cast<T>(1 / divisor);
      run.a = divisor == 0 ? T(0) : T(1);
      return start.Elements(n, run);
    });
  });
}

}  // namespace

void AddLoss(KernelTable* kernels) {
  for (const Loss& loss : kLosses) {
    kernels->Add(loss.type, {"cuda", BindLoss});
    kernels->Add(absl::StrCat(loss.type, "_grad"), {"cuda", BindLossGrad});
  }
  for (const char* type : {"sigmoid_cross_entropy_with_logits",
                           "sigmoid_cross_entropy_with_logits_grad"})
    kernels->Add(type, {"cuda", BindWeighted});
  kernels->Add("nll_loss", {"cuda", BindNll});
  kernels->Add("nll_loss_grad", {"cuda", BindNll});
  kernels->Add("kldiv_loss", {"cuda", BindKldiv});
  kernels->Add("kldiv_loss_grad", {"cuda", BindKldivGrad});
  kernels->Add("squared_l2_norm", {"cuda", BindSquaredNorm});
  kernels->Add("clip_by_norm", {"cuda", BindClipByNorm});
}

}  // namespace pd::cuda
