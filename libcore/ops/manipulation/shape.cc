// SPDX-License-Identifier: Apache-2.0
// shape: Out [rank] = the extents of Input, int32
// size: Out [] = the number of its elements, int64
// Both are known when a plan is made. No gradients.
#include <cstdint>

#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferShape(InferContext* context) {
  const int64_t rank =
      static_cast<int64_t>(context->Input("Input").shape.size());
  context->SetOutput("Out", {rank}, DType::kInt32);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindShape(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* out = context->Output("Out");
  context->NoBuffer(input);
  return Step([out, shape = input->shape()](const RunContext&) {
    for (size_t i = 0; i < shape.size(); ++i)
      out->data<int32_t>()[i] = static_cast<int32_t>(shape[i]);
    return absl::OkStatus();
  });
}

absl::Status InferSize(InferContext* context) {
  context->SetOutput("Out", {}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSize(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* out = context->Output("Out");
  context->NoBuffer(input);
  return Step([out, size = input->size()](const RunContext&) {
    out->data<int64_t>()[0] = size;
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterShape(OpRegistry* registry) {
  OpDef shape("shape");
  shape.Input("Input").Output("Out");
  shape.With(Trait::kShapeArithmetic).With(Trait::kReadsShapesOnly);
  shape.Infer(InferShape).NoGrad().Reference(BindShape);
  PD_RETURN_IF_ERROR(registry->Add(std::move(shape)));

  OpDef size("size");
  size.Input("Input").Output("Out");
  size.With(Trait::kShapeArithmetic).With(Trait::kReadsShapesOnly);
  size.Infer(InferSize).NoGrad().Reference(BindSize);
  return registry->Add(std::move(size));
}

}  // namespace pd
