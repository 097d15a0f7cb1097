// SPDX-License-Identifier: Apache-2.0
// Distillation of click models: Label tells whether there was a click (z) and
// what the teacher scored (q):
//   Label < -1: z = 0, no q     -1 <= Label < 0: z = 1, no q
//   0 <= Label < 1: z = 0, q = Label     1 <= Label: z = 1, q = Label - 1
// With ce(t) = max(X, 0) - X * t + log(1 + exp(-|X|)):
//   Y = ce(z) + (ce(q) where there is one)
//   X@GRAD = Y@GRAD * (s - z + (s - q)), s = sigmoid(X); 0 where X is not
//   inside (soft_max_lower_bound, soft_max_up_bound)
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

template <typename T>
struct Targets {
  explicit Targets(T label)
      : click(label < T(-1) || (label >= T(0) && label < T(1)) ? T(0) : T(1)),
        has_teacher(label >= T(0)),
        teacher(has_teacher ? label - click : T(0)) {}
  T click;
  bool has_teacher;
  T teacher;
};

absl::StatusOr<Step> BindTeacherStudentLoss(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* label = context->Input("Label");
  Tensor* y = context->Output("Y");
  const int64_t n = x->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Label", x->dtype(), n));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t i = 0; i < n; ++i) {
        const T v = x->data<T>()[i];
        const Targets<T> target(label->data<T>()[i]);
        const T rest = std::max(v, T(0)) + std::log1p(std::exp(-std::abs(v)));
        T loss = rest - v * target.click;
        if (target.has_teacher) loss += rest - v * target.teacher;
        y->data<T>()[i] = loss;
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindTeacherStudentLossGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* label = context->Input("Label");
  Tensor* dy = context->Input("Y@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const int64_t n = x->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Label", x->dtype(), n));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Y@GRAD", x->dtype(), n));
  const float low = context->Attr<float>("soft_max_lower_bound");
  const float high = context->Attr<float>("soft_max_up_bound");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t i = 0; i < n; ++i) {
        const T v = x->data<T>()[i];
        const Targets<T> target(label->data<T>()[i]);
        const T s = T(1) / (T(1) + std::exp(-v));
        T slope = s - target.click;
        if (target.has_teacher) slope += s - target.teacher;
        if (v <= static_cast<T>(low) || v >= static_cast<T>(high)) slope = T(0);
        dx->data<T>()[i] = dy->data<T>()[i] * slope;
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferTeacherStudentLoss(InferContext* context) {
  TensorMeta y = context->Input("X");
  if (y.shape.size() != 2 || context->Input("Label").shape.size() != 2)
    return InvalidArgument(
        "'X' has shape %s, 'Label' has %s; expected [N, 1] both",
        ToString(y.shape), ToString(context->Input("Label").shape));
  y.value = nullptr;
  y.shape[1] = 1;
  context->SetOutput("Y", std::move(y));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterTeacherStudentSigmoidLoss(OpRegistry* registry) {
  const std::string type = "teacher_student_sigmoid_loss";
  OpDef op(type);
  op.Input("X").Input("Label").Output("Y");
  op.Attr("soft_max_up_bound", 15.0f).Attr("soft_max_lower_bound", -15.0f);
  op.Infer(InferTeacherStudentLoss).Reference(BindTeacherStudentLoss);
  op.Grad(GradSpec{type + "_grad", {"X", "Label"}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Label").Input("Y@GRAD").Output("X@GRAD");
  grad.Attr("soft_max_up_bound", 15.0f).Attr("soft_max_lower_bound", -15.0f);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindTeacherStudentLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
