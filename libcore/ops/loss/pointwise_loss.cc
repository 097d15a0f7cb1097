// SPDX-License-Identifier: Apache-2.0
// Losses of one prediction p and one label y, element by element; the
// prediction's gradient is the loss's gradient times the slope:
//   bce_loss:   -(y * max(log(p), -100) + (1 - y) * max(log(1 - p), -100))
//               slope (p - y) / max(p * (1 - p), 1e-12); p must be in [0, 1]
//   log_loss:   -y * log(p + epsilon) - (1 - y) * log(1 - p + epsilon)
//               slope (1 - y) / (1 - p + epsilon) - y / (p + epsilon)
//   hinge_loss: max(0, 1 - s * p) with s = 2 * y - 1, y in {0, 1}
//               slope -s where the loss is above 0, else 0
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kPointwiseLossGrain = 4096;

struct Bce {
  static constexpr const char *kType = "bce_loss", *kPrediction = "X",
                              *kLabel = "Label", *kLoss = "Out";
  template <typename T>
  static T Loss(T p, T y, T) {
    return (y - T(1)) * std::max(std::log1p(-p), T(-100)) -
           y * std::max(std::log(p), T(-100));
  }
  template <typename T>
  static T Slope(T p, T y, T) {
    return (p - y) / std::max((T(1) - p) * p, T(1e-12));
  }
  template <typename T>
  static bool Accepts(T p) {
    return p >= T(0) && p <= T(1);
  }
};

struct Log {
  static constexpr const char *kType = "log_loss", *kPrediction = "Predicted",
                              *kLabel = "Labels", *kLoss = "Loss";
  template <typename T>
  static T Loss(T p, T y, T epsilon) {
    return -y * std::log(p + epsilon) -
           (T(1) - y) * std::log(T(1) - p + epsilon);
  }
  template <typename T>
  static T Slope(T p, T y, T epsilon) {
    return (T(1) - y) / (T(1) - p + epsilon) - y / (p + epsilon);
  }
  template <typename T>
  static bool Accepts(T) {
    return true;
  }
};

struct Hinge {
  static constexpr const char *kType = "hinge_loss", *kPrediction = "Logits",
                              *kLabel = "Labels", *kLoss = "Loss";
  template <typename T>
  static T Loss(T p, T y, T) {
    return std::max(T(1) - (T(2) * y - T(1)) * p, T(0));
  }
  template <typename T>
  static T Slope(T p, T y, T) {
    const T s = T(2) * y - T(1);
    return T(1) - s * p > T(0) ? -s : T(0);
  }
  template <typename T>
  static bool Accepts(T) {
    return true;
  }
};

template <typename Rule>
absl::StatusOr<Step> BindPointwiseLoss(BindContext* context) {
  Tensor* prediction = context->Input(Rule::kPrediction);
  Tensor* label = context->Input(Rule::kLabel);
  Tensor* loss = context->Output(Rule::kLoss);
  const double epsilon = context->op().template AttrOr<float>("epsilon", 0);
  const DType dtype = prediction->dtype();
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, Rule::kLabel, dtype, prediction->size()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = prediction->size()](const RunContext&) -> absl::Status {
      const T* p = prediction->data<T>();
      const T* y = label->data<T>();
      T* out = loss->data<T>();
      for (int64_t i = 0; i < n; ++i)
        if (!Rule::Accepts(p[i]))
          return InvalidArgument("'%s' holds %g at element %d; expected 0 to 1",
                                 Rule::kPrediction, p[i], i);
      ParallelFor(n, kPointwiseLossGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          out[i] = Rule::Loss(p[i], y[i], static_cast<T>(epsilon));
      });
      return absl::OkStatus();
    });
  });
}

template <typename Rule>
absl::StatusOr<Step> BindPointwiseLossGrad(BindContext* context) {
  Tensor* prediction = context->Input(Rule::kPrediction);
  Tensor* label = context->Input(Rule::kLabel);
  Tensor* dloss = context->Input(GradName(Rule::kLoss));
  Tensor* dx = context->Output(GradName(Rule::kPrediction));
  const double epsilon = context->op().template AttrOr<float>("epsilon", 0);
  const DType dtype = prediction->dtype();
  const int64_t n = prediction->size();
  PD_RETURN_IF_ERROR(ExpectElements(*context, Rule::kLabel, dtype, n));
  PD_RETURN_IF_ERROR(ExpectElements(*context, GradName(Rule::kLoss), dtype, n));
  context->MayShare(dloss, dx);
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* p = prediction->data<T>();
      const T* y = label->data<T>();
      const T* g = dloss->data<T>();
      T* result = dx->data<T>();
      ParallelFor(n, kPointwiseLossGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = g[i] * Rule::Slope(p[i], y[i], static_cast<T>(epsilon));
      });
      return absl::OkStatus();
    });
  });
}

template <typename Rule>
absl::Status InferPointwiseLoss(InferContext* context) {
  const TensorMeta& prediction = context->Input(Rule::kPrediction);
  const TensorMeta& label = context->Input(Rule::kLabel);
  if (label.shape.size() != prediction.shape.size())
    return InvalidArgument("'%s' has shape %s; '%s' has %s", Rule::kPrediction,
                           ToString(prediction.shape), Rule::kLabel,
                           ToString(label.shape));
  context->Share(Rule::kPrediction, Rule::kLoss);
  return absl::OkStatus();
}

template <typename Rule>
absl::Status AddPointwiseLoss(OpRegistry* registry) {
  const std::string grad_type = std::string(Rule::kType) + "_grad";
  const bool has_epsilon = std::is_same_v<Rule, Log>;
  OpDef def(Rule::kType);
  def.Input(Rule::kPrediction).Input(Rule::kLabel).Output(Rule::kLoss);
  if (has_epsilon) def.RequiredAttr("epsilon", AttrType::kFloat);
  def.Infer(InferPointwiseLoss<Rule>).Reference(BindPointwiseLoss<Rule>);
  def.Grad(GradSpec{grad_type,
                    {Rule::kPrediction, Rule::kLabel},
                    {},
                    {Rule::kLoss},
                    {Rule::kPrediction}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(def)));

  OpDef grad(grad_type);
  grad.Input(Rule::kPrediction).Input(Rule::kLabel);
  grad.Input(GradName(Rule::kLoss)).Output(GradName(Rule::kPrediction));
  if (has_epsilon) grad.RequiredAttr("epsilon", AttrType::kFloat);
  grad.Infer(InferGradLikeInput)
      .NoGrad()
      .Reference(BindPointwiseLossGrad<Rule>);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterPointwiseLoss(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddPointwiseLoss<Bce>(registry));
  PD_RETURN_IF_ERROR(AddPointwiseLoss<Log>(registry));
  return AddPointwiseLoss<Hinge>(registry);
}

}  // namespace pd
