// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling of mixed precision.
// check_finite_and_unscale: Out[i] = X[i] / Scale; FoundInfinite is whether any
//   X has a NaN or an infinity. Once one was found, what follows it in the list
//   (itself too) is multiplied by 0 instead, as in PaddlePaddle.
// update_loss_scaling: where FoundInfinite, Out[i] = 0 and the bad steps are
//   counted: after decr_every_n_nan_or_inf of them LossScaling =
//   max(1, PrevLossScaling * decr_ratio). Else Out, which is X, stays and the
//   good ones are: after incr_every_n_steps of them PrevLossScaling *
//   incr_ratio, if that is finite. One count starts again when the other goes
//   on. With stop_update (or StopUpdate) only Out is made.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/half.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kGrain = 16384;

struct Tensors {
  std::vector<Tensor*> in, out;
};

absl::StatusOr<Tensors> ReadLists(BindContext* context) {
  Tensors t;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    Tensor* out =
        i < context->OutputCount("Out") ? context->Output("Out", i) : nullptr;
    if (x == nullptr || out == nullptr)
      return InvalidArgument("'X' or 'Out' %d is missing", i);
    context->MayShare(x, out);
    t.in.push_back(x);
    t.out.push_back(out);
  }
  return t;
}

absl::Status InferLists(InferContext* context) {
  const size_t n = context->OutputCount("Out");
  if (n != context->InputCount("X"))
    return InvalidArgument("'X' holds %d variables; 'Out' holds %d",
                           context->InputCount("X"), n);
  for (size_t i = 0; i < n; ++i) context->Share("X", "Out", i);
  return absl::OkStatus();
}

template <typename Body>
absl::Status DispatchAny(DType dtype, const Body& body) {
  return DispatchTypes<float, double, Float16, BFloat16>(dtype, body);
}

// The first is copied to the second, times `factor`.
absl::Status Multiply(const Tensor* x, Tensor* out, double factor) {
  return DispatchAny(x->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using M = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const T* in = x->data<T>();
    T* result = out->data<T>();
    const M f = static_cast<M>(factor);
    ParallelFor(x->size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        result[i] = static_cast<T>(static_cast<M>(in[i]) * f);
    });
    return absl::OkStatus();
  });
}

absl::Status FindInfinite(const Tensor* x, bool* found) {
  return DispatchAny(x->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x->data<T>();
    for (int64_t i = 0, n = x->size(); i < n && !*found; ++i)
      *found = !std::isfinite(static_cast<double>(in[i]));
    return absl::OkStatus();
  });
}

void CopyRows(const Tensor* from, Tensor* to) {
  if (!IsSelectedRows(from) || from == to) return;
  to->rows() = from->rows();
  to->set_height(from->height());
}

absl::StatusOr<Step> BindUnscale(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Tensors t, ReadLists(context));
  Tensor* scale = context->Input("Scale");
  Tensor* found = context->Output("FoundInfinite");
  PD_RETURN_IF_ERROR(CheckScalar("Scale", scale));
  return Step([=, t = std::move(t)](const RunContext&) -> absl::Status {
    // In the precision of the scale, as it is divided by.
    const double inverse =
        scale->dtype() == DType::kFloat64
            ? 1 / ScalarOf(*scale)
            : double{1 / static_cast<float>(ScalarOf(*scale))};
    bool bad = false;
    for (size_t i = 0; i < t.in.size(); ++i) {
      CopyRows(t.in[i], t.out[i]);
      PD_RETURN_IF_ERROR(FindInfinite(t.in[i], &bad));
      PD_RETURN_IF_ERROR(Multiply(t.in[i], t.out[i], bad ? 0 : inverse));
    }
    *found->data<bool>() = bad;
    return absl::OkStatus();
  });
}

absl::Status InferUnscale(InferContext* context) {
  PD_RETURN_IF_ERROR(InferLists(context));
  context->SetOutput("FoundInfinite", {1}, DType::kBool);
  return absl::OkStatus();
}

struct Scaling {
  Tensor *found, *scale, *good, *bad, *stop;
  Tensor *scale_out, *good_out, *bad_out;
  int32_t grow_after, shrink_after;
  float grow, shrink;
  bool stops;
};

void CopyNumbers(const Scaling& s) {
  CopyUnlessSame(s.scale, s.scale_out);
  CopyUnlessSame(s.good, s.good_out);
  CopyUnlessSame(s.bad, s.bad_out);
}

void UpdateNumbers(const Scaling& s) {
  const bool found = *s.found->data<bool>();
  const double before = ScalarOf(*s.scale);
  int32_t good = found ? 0 : *s.good->data<int32_t>() + 1;
  int32_t bad = found ? *s.bad->data<int32_t>() + 1 : 0;
  double scale = before;
  if (found && bad == s.shrink_after) {
    scale = std::max(1.0, before * s.shrink);
    bad = 0;
  } else if (!found && good == s.grow_after) {
    scale = before * s.grow;
    if (s.scale->dtype() != DType::kFloat64)
      scale = double{static_cast<float>(scale)};
    if (!std::isfinite(scale)) scale = before;
    good = 0;
  }
  SetScalar(s.scale_out, scale);
  *s.good_out->data<int32_t>() = good;
  *s.bad_out->data<int32_t>() = bad;
}

absl::Status CheckOne(const BindContext& context, const char* slot,
                      DType dtype) {
  const Tensor* t = context.Input(slot);
  if (t == nullptr) return InvalidArgument("'%s' is missing", slot);
  if (t->dtype() == dtype && t->size() == 1) return absl::OkStatus();
  return InvalidArgument("'%s' is %s %s; expected one %s", slot,
                         Name(t->dtype()), ToString(t->shape()), Name(dtype));
}

absl::StatusOr<Step> BindUpdate(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Tensors t, ReadLists(context));
  Scaling s;
  s.found = context->Input("FoundInfinite");
  s.scale = context->Input("PrevLossScaling");
  s.good = context->Input("InGoodSteps");
  s.bad = context->Input("InBadSteps");
  s.stop = context->Input("StopUpdate");
  PD_RETURN_IF_ERROR(CheckOne(*context, "FoundInfinite", DType::kBool));
  PD_RETURN_IF_ERROR(CheckOne(*context, "InGoodSteps", DType::kInt32));
  PD_RETURN_IF_ERROR(CheckOne(*context, "InBadSteps", DType::kInt32));
  PD_RETURN_IF_ERROR(CheckScalar("PrevLossScaling", s.scale));
  if (StateType(s.scale->dtype()) != s.scale->dtype())
    return InvalidArgument("'PrevLossScaling' is %s; expected float32",
                           Name(s.scale->dtype()));
  if (s.stop != nullptr)
    PD_RETURN_IF_ERROR(CheckOne(*context, "StopUpdate", DType::kBool));
  s.scale_out = context->Output("LossScaling");
  s.good_out = context->Output("OutGoodSteps");
  s.bad_out = context->Output("OutBadSteps");
  s.grow_after = context->Attr<int32_t>("incr_every_n_steps");
  s.shrink_after = context->Attr<int32_t>("decr_every_n_nan_or_inf");
  s.grow = context->Attr<float>("incr_ratio");
  s.shrink = context->Attr<float>("decr_ratio");
  s.stops = context->Attr<bool>("stop_update");
  return Step([=, t = std::move(t)](const RunContext&) {
    const bool found = *s.found->data<bool>();
    for (size_t i = 0; i < t.in.size(); ++i) {
      CopyRows(t.in[i], t.out[i]);
      if (found && t.out[i]->bytes() > 0)
        std::memset(t.out[i]->raw(), 0, t.out[i]->bytes());
      else
        CopyUnlessSame(t.in[i], t.out[i]);
    }
    if (s.stop != nullptr ? *s.stop->data<bool>() : s.stops)
      CopyNumbers(s);
    else
      UpdateNumbers(s);
    return absl::OkStatus();
  });
}

absl::Status InferScaling(InferContext* context) {
  PD_RETURN_IF_ERROR(InferLists(context));
  context->Share("PrevLossScaling", "LossScaling");
  context->Share("InGoodSteps", "OutGoodSteps");
  context->Share("InBadSteps", "OutBadSteps");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterLossScaling(OpRegistry* registry) {
  OpDef check("check_finite_and_unscale");
  check.Inputs("X").Input("Scale").Outputs("Out").Output("FoundInfinite");
  check.Infer(InferUnscale).NoGrad().Reference(BindUnscale);
  PD_RETURN_IF_ERROR(registry->Add(std::move(check)));

  OpDef update("update_loss_scaling");
  update.Inputs("X").Input("FoundInfinite").Input("PrevLossScaling");
  update.Input("InGoodSteps").Input("InBadSteps").OptionalInput("StopUpdate");
  update.Outputs("Out").Output("LossScaling");
  update.Output("OutGoodSteps").Output("OutBadSteps");
  update.RequiredAttr("incr_every_n_steps", AttrType::kInt);
  update.RequiredAttr("decr_every_n_nan_or_inf", AttrType::kInt);
  update.RequiredAttr("incr_ratio", AttrType::kFloat);
  update.RequiredAttr("decr_ratio", AttrType::kFloat);
  update.Attr("stop_update", false);
  update.Infer(InferScaling).NoGrad().Reference(BindUpdate);
  return registry->Add(std::move(update));
}

}  // namespace pd
