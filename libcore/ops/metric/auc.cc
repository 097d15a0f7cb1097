// SPDX-License-Identifier: Apache-2.0
// The area under the ROC curve of all batches so far. StatPos and StatNeg count
// samples by predicted probability, the last column of Predict, in
// num_thresholds + 1 buckets, of Label > 0 and of Label = 0. Their layout:
//   slide_steps 0: the counts
//   slide_steps n: the counts of each of the last n batches in turn, their sum,
//     and the number of batches so far
// StatPosOut and StatNegOut are mostly the same variables. AUC float64 is the
// sum of trapezes between buckets, from the highest, whatever attr 'curve' is;
// not divided by the numbers of both kinds while one of them is 0. A batch
// whose InsTagWeight is 0 does not count. No gradient.
#include "libcore/ops/metric/auc.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Counts a batch.
template <typename T>
absl::Status Count(const Tensor& predict, const Tensor& label,
                   const AucLayout& layout, int64_t* positive,
                   int64_t* negative) {
  const int64_t rows = predict.dim(0), width = predict.dim(1);
  for (int64_t i = 0; i < rows; ++i) {
    const T p = predict.data<T>()[i * width + width - 1];
    if (!(p >= T(0) && p <= T(1)))
      return InvalidArgument("'Predict' holds %g in row %d; expected 0 to 1", p,
                             i);
    const auto bucket =
        static_cast<int64_t>(p * static_cast<T>(layout.buckets - 1));
    const int64_t kind = LabelAt(label, i);
    if (kind > 0)
      ++positive[bucket];
    else if (kind == 0)
      ++negative[bucket];
  }
  return absl::OkStatus();
}

// The batch into the statistics.
template <typename T>
absl::Status Update(const Tensor& predict, const Tensor& label,
                    const AucLayout& layout, bool counts, int64_t* positive,
                    int64_t* negative) {
  if (layout.slide == 0)
    return counts ? Count<T>(predict, label, layout, positive, negative)
                  : absl::OkStatus();
  const int64_t end = layout.Elements() - 1;
  if (positive[end] < 0)
    return InvalidArgument("'StatPos' ends in %d batches", positive[end]);
  const int64_t at = positive[end] % layout.slide * layout.buckets;
  for (int64_t* stat : {positive, negative}) {
    for (int64_t i = 0; i < layout.buckets; ++i)
      stat[layout.Sum() + i] -= stat[at + i];
    std::fill_n(stat + at, layout.buckets, int64_t{0});
  }
  PD_RETURN_IF_ERROR(
      Count<T>(predict, label, layout, positive + at, negative + at));
  for (int64_t* stat : {positive, negative}) {
    for (int64_t i = 0; i < layout.buckets && counts; ++i)
      stat[layout.Sum() + i] += stat[at + i];
    ++stat[end];
  }
  return absl::OkStatus();
}

double Area(const int64_t* positive, const int64_t* negative, int64_t buckets) {
  double area = 0, positives = 0, negatives = 0;
  for (int64_t i = buckets; i-- > 0;) {
    const double before = positives;
    const auto step = static_cast<double>(negative[i]);
    positives += static_cast<double>(positive[i]);
    negatives += step;
    area += std::abs(step) * (positives + before) / 2.0;
  }
  return positives > 0 && negatives > 0 ? area / positives / negatives : area;
}

}  // namespace

absl::StatusOr<AucLayout> AucLayoutOf(const OpDesc& op) {
  const int64_t thresholds = op.Attr<int32_t>("num_thresholds");
  const int64_t slide = op.Attr<int32_t>("slide_steps");
  if (thresholds < 0 || slide < 0)
    return InvalidArgument(
        "attrs 'num_thresholds' and 'slide_steps' are %d "
        "and %d; expected 0 or more",
        thresholds, slide);
  return AucLayout{thresholds + 1, slide};
}

namespace {

absl::StatusOr<Step> BindAuc(BindContext* context) {
  Tensor* predict = context->Input("Predict");
  Tensor* label = context->Input("Label");
  Tensor* weight = context->Input("InsTagWeight");
  Tensor* auc = context->Output("AUC");
  Tensor *in[2], *out[2];
  PD_ASSIGN_OR_RETURN(const AucLayout layout, AucLayoutOf(context->op()));
  for (size_t i = 0; i < 2; ++i) {
    const std::string slot = i == 0 ? "StatPos" : "StatNeg";
    in[i] = context->Input(slot);
    out[i] = context->Output(slot + "Out");
    if (in[i]->dtype() != DType::kInt64 || in[i]->size() < layout.Elements())
      return InvalidArgument("'%s' is %s %s; expected int64 of %d elements",
                             slot, Name(in[i]->dtype()),
                             ToString(in[i]->shape()), layout.Elements());
  }
  if (predict->rank() != 2 || predict->dim(1) < 1)
    return InvalidArgument("'Predict' has shape %s; expected [N, 1] or [N, 2]",
                           ToString(predict->shape()));
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Label", label->dtype(), predict->dim(0)));
  if (weight != nullptr &&
      (weight->dtype() != DType::kFloat32 || weight->size() == 0))
    return InvalidArgument("'InsTagWeight' is %s %s; expected float32",
                           Name(weight->dtype()), ToString(weight->shape()));
  return DispatchFloat(predict->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, from_pos = in[0], from_neg = in[1], to_pos = out[0],
                 to_neg = out[1]](const RunContext&) -> absl::Status {
      if (to_pos->raw() != from_pos->raw())
        std::memcpy(to_pos->raw(), from_pos->raw(), to_pos->bytes());
      if (to_neg->raw() != from_neg->raw())
        std::memcpy(to_neg->raw(), from_neg->raw(), to_neg->bytes());
      int64_t* positive = to_pos->data<int64_t>();
      int64_t* negative = to_neg->data<int64_t>();
      const bool counts = weight == nullptr || weight->data<float>()[0] != 0.0f;
      PD_RETURN_IF_ERROR(
          Update<T>(*predict, *label, layout, counts, positive, negative));
      auc->data<double>()[0] = Area(positive + layout.Sum(),
                                    negative + layout.Sum(), layout.buckets);
      return absl::OkStatus();
    });
  });
}

absl::Status InferAuc(InferContext* context) {
  context->SetOutput("AUC", {}, DType::kFloat64);
  PD_ASSIGN_OR_RETURN(const AucLayout layout, AucLayoutOf(context->op()));
  const Shape shape =
      layout.slide == 0 ? Shape{1, layout.buckets} : Shape{layout.Elements()};
  for (const char* slot : {"StatPosOut", "StatNegOut"})
    context->SetOutput(slot, shape, DType::kInt64);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterAuc(OpRegistry* registry) {
  OpDef op("auc");
  op.Input("Predict").Input("Label").Input("StatPos").Input("StatNeg");
  op.OptionalInput("InsTagWeight");
  op.Output("AUC").Output("StatPosOut").Output("StatNegOut");
  op.Attr("curve", std::string("ROC")).Attr("num_thresholds", int32_t{8191});
  op.Attr("slide_steps", int32_t{1});
  op.Infer(InferAuc).NoGrad().Reference(BindAuc);
  return registry->Add(std::move(op));
}

}  // namespace pd
