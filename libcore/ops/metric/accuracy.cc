// SPDX-License-Identifier: Apache-2.0
// How many rows have their label among the classes that top_k picked:
//   Correct = rows where a column of Indices [N, k] equals Label [N, 1]
//   Total = N, Accuracy = Correct / Total (0 for no rows)
// Out, the values that were picked, is not read. No gradient.
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferAccuracy(InferContext* context) {
  const Shape& picked = context->Input("Indices").shape;
  const Shape& label = context->Input("Label").shape;
  if (picked.size() != 2 || label.empty() ||
      (label[0] >= 0 && picked[0] >= 0 && label[0] != picked[0]))
    return InvalidArgument(
        "Indices has shape %s, Label has shape %s; expected [N, k] and [N, 1]",
        ToString(picked), ToString(label));
  context->SetOutput("Accuracy", {}, DType::kFloat32);
  context->SetOutput("Correct", {}, DType::kInt32);
  context->SetOutput("Total", {}, DType::kInt32);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAccuracy(BindContext* context) {
  Tensor* picked = context->Input("Indices");
  Tensor* label = context->Input("Label");
  context->NoBuffer(context->Input("Out"));
  Tensor* accuracy = context->Output("Accuracy");
  Tensor* correct = context->Output("Correct");
  Tensor* total = context->Output("Total");
  if (label->size() != picked->dim(0))
    return InvalidArgument("Label has shape %s; Indices has %d rows",
                           ToString(label->shape()), picked->dim(0));
  if (picked->dtype() != DType::kInt64)
    return Unimplemented("Indices is %s; expected int64",
                         Name(picked->dtype()));
  return DispatchTypes<int64_t, int32_t>(
      label->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=, rows = picked->dim(0),
                     k = picked->dim(1)](const RunContext&) {
          const int64_t* classes = picked->data<int64_t>();
          const T* wanted = label->data<T>();
          int32_t hits = 0;
          for (int64_t i = 0; i < rows; ++i) {
            bool hit = false;
            for (int64_t j = 0; j < k; ++j)
              hit = hit || classes[i * k + j] == wanted[i];
            hits += hit ? 1 : 0;
          }
          if (correct != nullptr) correct->data<int32_t>()[0] = hits;
          if (total != nullptr)
            total->data<int32_t>()[0] = static_cast<int32_t>(rows);
          if (accuracy != nullptr)
            accuracy->data<float>()[0] =
                rows == 0 ? 0.0f
                          : static_cast<float>(hits) / static_cast<float>(rows);
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterAccuracy(OpRegistry* registry) {
  OpDef op("accuracy");
  op.Input("Out").Input("Indices").Input("Label");
  op.Output("Accuracy").Output("Correct").Output("Total");
  op.Infer(InferAccuracy).NoGrad().Reference(BindAccuracy);
  return registry->Add(std::move(op));
}

}  // namespace pd
