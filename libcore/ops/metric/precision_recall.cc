// SPDX-License-Identifier: Apache-2.0
// Precision, recall and F1 of a classifier. For each class its weights of true
// positives, false positives, true negatives and false negatives:
//   AccumStatesInfo [classes, 4] = those of the batch + StatesInfo
//   BatchMetrics, AccumMetrics [6] float64: precision, recall, F1 of the means
//     over classes, then of the sums over classes
// A ratio with nothing below is 1, F1 of two zeros 0. MaxProbs is not read. No
// gradient.
#include <algorithm>
#include <array>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

enum State { kTruePositive = 0, kFalsePositive, kTrueNegative, kFalseNegative };
constexpr int64_t kStates = 4;

template <typename T>
T PrecisionRecallRatio(T hits, T misses) {
  return hits > T(0) || misses > T(0) ? hits / (hits + misses) : T(1);
}

template <typename T>
T F1(T precision, T recall) {
  return precision > T(0) || recall > T(0)
             ? T(2) * precision * recall / (precision + recall)
             : T(0);
}

template <typename T>
void Metrics(const T* states, int64_t classes, double* out) {
  std::array<T, kStates> total = {};
  T precision = T(0), recall = T(0);
  for (int64_t c = 0; c < classes; ++c) {
    const T* s = states + c * kStates;
    for (size_t k = 0; k < total.size(); ++k) total[k] += s[k];
    precision += PrecisionRecallRatio(s[kTruePositive], s[kFalsePositive]);
    recall += PrecisionRecallRatio(s[kTruePositive], s[kFalseNegative]);
  }
  precision /= static_cast<T>(classes);
  recall /= static_cast<T>(classes);
  const T all_precision =
      PrecisionRecallRatio(total[kTruePositive], total[kFalsePositive]);
  const T all_recall =
      PrecisionRecallRatio(total[kTruePositive], total[kFalseNegative]);
  out[0] = precision;
  out[1] = recall;
  out[2] = F1(precision, recall);
  out[3] = all_precision;
  out[4] = all_recall;
  out[5] = F1(all_precision, all_recall);
}

// Adds a sample of weight w.
template <typename T>
void AddSample(int64_t found, int64_t label, T w, int64_t classes, T* states) {
  for (int64_t c = 0; c < classes; ++c)
    if (c != found && c != label) states[c * kStates + kTrueNegative] += w;
  if (found == label) {
    states[found * kStates + kTruePositive] += w;
  } else {
    states[label * kStates + kFalseNegative] += w;
    states[found * kStates + kFalsePositive] += w;
  }
}

absl::StatusOr<Step> BindPrecisionRecall(BindContext* context) {
  Tensor* probabilities = context->Input("MaxProbs");
  Tensor* found = context->Input("Indices");
  Tensor* label = context->Input("Labels");
  Tensor* weights = context->Input("Weights");
  Tensor* before = context->Input("StatesInfo");
  Tensor* batch = context->Output("BatchMetrics");
  Tensor* metrics = context->Output("AccumMetrics");
  Tensor* states = context->Output("AccumStatesInfo");
  context->NoBuffer(probabilities);
  const DType dtype = probabilities->dtype();
  const int64_t classes = context->Attr<int32_t>("class_number");
  const int64_t n = found->size();
  PD_RETURN_IF_ERROR(CheckLabelType("Indices", found->dtype()));
  PD_RETURN_IF_ERROR(CheckLabelType("Labels", label->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Labels", label->dtype(), n));
  if (weights != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Weights", dtype, n));
  if (before != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "StatesInfo", dtype, classes * kStates));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      // Class 0 as `ignored`: none is.
      PD_RETURN_IF_ERROR(CheckLabels("Indices", *found, classes, 0));
      PD_RETURN_IF_ERROR(CheckLabels("Labels", *label, classes, 0));
      T* s = states->data<T>();
      std::fill_n(s, classes * kStates, T(0));
      for (int64_t i = 0; i < n; ++i)
        AddSample<T>(LabelAt(*found, i), LabelAt(*label, i),
                     weights != nullptr ? weights->data<T>()[i] : T(1), classes,
                     s);
      Metrics(s, classes, batch->data<double>());
      for (int64_t i = 0; i < classes * kStates && before != nullptr; ++i)
        s[i] += before->data<T>()[i];
      Metrics(s, classes, metrics->data<double>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferPrecisionRecall(InferContext* context) {
  const int64_t classes = context->Attr<int32_t>("class_number");
  if (classes < 1)
    return InvalidArgument("attr 'class_number' is %d; expected 1 or more",
                           classes);
  context->SetOutput("BatchMetrics", {6}, DType::kFloat64);
  context->SetOutput("AccumMetrics", {6}, DType::kFloat64);
  context->SetOutput("AccumStatesInfo", {classes, kStates},
                     context->Input("MaxProbs").dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterPrecisionRecall(OpRegistry* registry) {
  OpDef op("precision_recall");
  op.Input("MaxProbs").Input("Indices").Input("Labels");
  op.OptionalInput("Weights").OptionalInput("StatesInfo");
  op.Output("BatchMetrics").Output("AccumMetrics").Output("AccumStatesInfo");
  op.RequiredAttr("class_number", AttrType::kInt);
  op.Infer(InferPrecisionRecall).NoGrad().Reference(BindPrecisionRecall);
  return registry->Add(std::move(op));
}

}  // namespace pd
