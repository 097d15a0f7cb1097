// SPDX-License-Identifier: Apache-2.0
// Losses element by element, nll_loss, squared_l2_norm and clip_by_norm; the
// kernels are in losses.cu.
#include <algorithm>
#include <string>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/axis_view.h"
#include "libcore/ops/check.h"
#include "libcore/ops/kldiv_loss.h"

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

absl::StatusOr<LossArgs> ReadLoss(const BindContext& context, const Loss& loss,
                                  int64_t n) {
  const OpDesc& op = context.op();
  if (op.AttrOr("normalize", false) || context.Input("pos_weight") != nullptr)
    return Unimplemented("a loss with weights, or that is normalized");
  LossArgs args{};
  args.n = n;
  if (loss.attr == absl::string_view("ignore_index"))
    args.a = static_cast<float>(op.AttrOr<int32_t>(loss.attr, -100));
  else if (loss.attr != nullptr)
    args.a = op.AttrOr<float>(loss.attr, 0.0f);
  return args;
}

absl::StatusOr<Step> BindLoss(BindContext* context, DeviceBinding* binding) {
  const Loss& loss = FindLoss(context->op().type);
  Tensor *x = context->Input(loss.prediction), *y = context->Input(loss.label),
         *out = context->Output(loss.loss),
         *residual = context->Output("Residual");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, y, out, residual}));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, loss.label, x->dtype(), x->size()));
  PD_ASSIGN_OR_RETURN(LossArgs args, ReadLoss(*context, loss, x->size()));
  if (loss.probability) {
    PD_ASSIGN_OR_RETURN(args.bad,
                        binding->Complaint(absl::StrFormat(
                            "'%s' of %s holds a number outside [0, 1]",
                            loss.prediction, loss.type)));
  }
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LossArgs>::Find(binding, loss.type));
  return Step([=](const RunContext&) {
    LossArgs run = args;
    run.x = x->data<float>();
    run.y = y->data<float>();
    run.out = out->data<float>();
    run.second = residual == nullptr ? nullptr : residual->data<float>();
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> GradStep(DeviceBinding* binding, const Loss& loss,
                              const LossArgs& args,
                              std::initializer_list<Tensor*> tensors) {
  Tensor *x = tensors.begin()[0], *y = tensors.begin()[1],
         *dout = tensors.begin()[2], *to = tensors.begin()[3];
  PD_RETURN_IF_ERROR(OnlyFloat32({x, y, dout, to}));
  if (x->size() != args.n || dout->size() != args.n || to->size() != args.n)
    return Unimplemented("tensors of other sizes");
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<LossArgs>::Find(binding, absl::StrCat(loss.type, "_grad")));
  return Step([=](const RunContext&) {
    LossArgs run = args;
    run.x = x->data<float>();
    run.y = y == nullptr ? nullptr : y->data<float>();
    run.dout = dout->data<float>();
    run.out = to->data<float>();
    return start.Elements(run.n, run);
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
  PD_ASSIGN_OR_RETURN(LossArgs args, ReadLoss(*context, loss, x->size()));
  if (!huber)
    return GradStep(binding, loss, args,
                    {x, context->Input(loss.label), dout,
                     context->Output(absl::StrCat(loss.prediction, "@GRAD"))});
  std::vector<Step> steps;
  for (const auto& [slot, sign] :
       {std::pair("X@GRAD", -1.0f), std::pair("Y@GRAD", 1.0f)}) {
    Tensor* to = context->Output(slot);
    if (to == nullptr) continue;
    args.b = sign;
    PD_ASSIGN_OR_RETURN(Step step,
                        GradStep(binding, loss, args, {x, nullptr, dout, to}));
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
  PD_RETURN_IF_ERROR(OnlyFloat32({x, y, weight, dout, out}));
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
    run.y = At(y);
    run.out = At(divisor);
    if (normalizes) PD_RETURN_IF_ERROR(count.Blocks(1, run));
    run.x = At(x);
    run.weight = At(weight);
    run.divisor = At(divisor);
    run.dout = At(dout);
    run.out = At(out);
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
  const auto how = context->op().AttrOr<std::string>("reduction", "mean");
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
      args.bad, binding->Complaint(absl::StrFormat(
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

// The step that makes one float32 of x: in parts, then of those.
absl::StatusOr<Step> SquaresStep(BindContext* context, DeviceBinding* binding,
                                 Tensor* x, Tensor* out) {
  const int64_t parts = std::clamp<int64_t>(x->size() / 4096, 1, 1024);
  Tensor* const room =
      context->Scratch(static_cast<size_t>(parts) * sizeof(float));
  PD_ASSIGN_OR_RETURN(const auto squares,
                      Starter<LossArgs>::Find(binding, "squares"));
  ReduceArgs sum{};
  sum.factor = 1;
  sum.n = 1;
  sum.m = parts;
  AddExtent<3>(parts, {1, 0, 0}, &sum.inner);
  PD_ASSIGN_OR_RETURN(Step join,
                      BindReduceStep(binding, "reduce_sum", sum, room, out));
  return Step([=, join = std::move(join)](const RunContext& context_of_run) {
    LossArgs run{};
    run.x = x->data<float>();
    run.out = room->data<float>();
    run.n = x->size();
    PD_RETURN_IF_ERROR(squares.Blocks(parts, run));
    return join(context_of_run);
  });
}

absl::StatusOr<Step> BindSquaredNorm(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  return SquaresStep(context, binding, x, out);
}

absl::StatusOr<Step> BindClipByNorm(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  Tensor* const sum = context->Scratch(sizeof(float));
  PD_ASSIGN_OR_RETURN(Step squares, SquaresStep(context, binding, x, sum));
  PD_ASSIGN_OR_RETURN(const auto scale,
                      Starter<LossArgs>::Find(binding, "scale_to_norm"));
  return Step([=, most = context->Attr<float>("max_norm"),
               squares = std::move(squares)](const RunContext& run) {
    PD_RETURN_IF_ERROR(squares(run));
    LossArgs args{};
    args.x = x->data<float>();
    args.y = sum->data<float>();
    args.out = out->data<float>();
    args.n = x->size();
    args.a = most;
    return scale.Elements(args.n, args);
  });
}

// Loss by element, or its sum in part.
absl::StatusOr<Step> BindKldiv(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *target = context->Input("Target"),
         *loss = context->Output("Loss");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, target, loss}));
  const int64_t n = x->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Target", x->dtype(), n));
  PD_ASSIGN_OR_RETURN(const double divisor,
                      KldivDivisor(context->op(), x->shape()));
  if (n == 0) return Unimplemented("no elements");
  Tensor* const each = divisor == 0 ? loss : context->Scratch(x->bytes());
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LossArgs>::Find(binding, "kldiv_loss"));
  Step join;
  if (divisor != 0) {
    ReduceArgs sum{};
    sum.factor = static_cast<float>(1 / divisor);
    sum.n = 1;
    sum.m = n;
    AddExtent<3>(n, {1, 0, 0}, &sum.inner);
    PD_ASSIGN_OR_RETURN(join,
                        BindReduceStep(binding, "reduce_sum", sum, each, loss));
  }
  return Step([=, join = std::move(join)](const RunContext& context_of_run) {
    LossArgs run{};
    run.x = x->data<float>();
    run.y = target->data<float>();
    run.out = each->data<float>();
    run.n = n;
    PD_RETURN_IF_ERROR(start.Elements(n, run));
    return join != nullptr ? join(context_of_run) : absl::OkStatus();
  });
}

// Its slope does not depend on X.
absl::StatusOr<Step> BindKldivGrad(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *target = context->Input("Target"),
         *dloss = context->Input("Loss@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({target, dloss, dx}));
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  const int64_t n = dx->size();
  PD_ASSIGN_OR_RETURN(const double divisor,
                      KldivDivisor(context->op(), dx->shape()));
  if (target->size() != n || dloss->size() != (divisor == 0 ? n : 1))
    return Unimplemented("tensors of other sizes");
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LossArgs>::Find(binding, "kldiv_loss_grad"));
  LossArgs args{};
  args.n = n;
  args.b = divisor == 0 ? 1.0f : static_cast<float>(1 / divisor);
  args.a = divisor == 0 ? 0.0f : 1.0f;
  return Step([=](const RunContext&) {
    LossArgs run = args;
    run.y = target->data<float>();
    run.dout = dloss->data<float>();
    run.out = dx->data<float>();
    return start.Elements(n, run);
  });
}

}  // namespace

void AddLosses(DeviceKernels* kernels) {
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
