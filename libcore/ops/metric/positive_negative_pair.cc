// SPDX-License-Identifier: Apache-2.0
// How many pairs of documents of one query (QueryID) with different labels are
// ordered by Score[:, column] as their labels say (PositivePair) or not
// (NegativePair; those of equal scores are in it and NeutralPair too). A pair
// counts the mean of both Weights. The Accumulate inputs, if all are there, are
// added. Outputs [1]. No gradient.
#include <map>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr const char* kAccumulate[] = {"AccumulatePositivePair",
                                       "AccumulateNegativePair",
                                       "AccumulateNeutralPair"};

template <typename T>
struct Document {
  T score, label, weight;
};

template <typename T>
struct Pairs {
  T positive = T(0), negative = T(0), neutral = T(0);

  void Add(const Document<T>& a, const Document<T>& b) {
    if (a.label == b.label) return;
    const T w = (a.weight + b.weight) * T(0.5);
    if (a.score == b.score) neutral += w;
    const bool agrees = (a.score - b.score) * (a.label - b.label) > T(0);
    (agrees ? positive : negative) += w;
  }
};

absl::StatusOr<Step> BindPairs(BindContext* context) {
  Tensor* score = context->Input("Score");
  Tensor* label = context->Input("Label");
  Tensor* query = context->Input("QueryID");
  Tensor* weight = context->Input("Weight");
  Tensor* positive = context->Output("PositivePair");
  Tensor* negative = context->Output("NegativePair");
  Tensor* neutral = context->Output("NeutralPair");
  const DType dtype = score->dtype();
  if (score->rank() != 2)
    return InvalidArgument("'Score' has shape %s; expected [N, columns]",
                           ToString(score->shape()));
  PD_ASSIGN_OR_RETURN(
      const int column,
      NormalizeAxis(context->Attr<int32_t>("column"),
                    static_cast<size_t>(score->dim(1)), "column"));
  const int64_t n = score->dim(0), width = score->dim(1);
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Label", dtype, n));
  PD_RETURN_IF_ERROR(CheckLabelType("QueryID", query->dtype()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "QueryID", query->dtype(), n));
  if (weight != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Weight", dtype, n));
  const Tensor* before[3];
  bool accumulate = true;
  for (size_t i = 0; i < 3; ++i) {
    before[i] = context->Input(kAccumulate[i]);
    accumulate = accumulate && before[i] != nullptr;
    if (before[i] != nullptr)
      PD_RETURN_IF_ERROR(ExpectElements(*context, kAccumulate[i], dtype, 1));
  }
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step(
        [=, p0 = before[0], p1 = before[1], p2 = before[2]](const RunContext&) {
          std::map<int64_t, std::vector<Document<T>>> queries;
          for (int64_t i = 0; i < n; ++i)
            queries[LabelAt(*query, i)].push_back(
                {score->data<T>()[i * width + column], label->data<T>()[i],
                 weight != nullptr ? weight->data<T>()[i] : T(1)});
          Pairs<T> pairs;
          if (accumulate)
            pairs = {p0->data<T>()[0], p1->data<T>()[0], p2->data<T>()[0]};
          for (const auto& [id, documents] : queries)
            for (size_t i = 0; i < documents.size(); ++i)
              for (size_t j = i + 1; j < documents.size(); ++j)
                pairs.Add(documents[i], documents[j]);
          positive->data<T>()[0] = pairs.positive;
          negative->data<T>()[0] = pairs.negative;
          if (neutral != nullptr) neutral->data<T>()[0] = pairs.neutral;
          return absl::OkStatus();
        });
  });
}

absl::Status InferPairs(InferContext* context) {
  const DType dtype = context->Input("Score").dtype;
  for (const char* slot : {"PositivePair", "NegativePair", "NeutralPair"})
    context->SetOutput(slot, {1}, dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterPositiveNegativePair(OpRegistry* registry) {
  OpDef op("positive_negative_pair");
  op.Input("Score").Input("Label").Input("QueryID");
  for (const char* slot : kAccumulate) op.OptionalInput(slot);
  op.OptionalInput("Weight").Output("PositivePair").Output("NegativePair");
  op.OptionalOutput("NeutralPair").Attr("column", int32_t{0});
  op.Infer(InferPairs).NoGrad().Reference(BindPairs);
  return registry->Add(std::move(op));
}

}  // namespace pd
