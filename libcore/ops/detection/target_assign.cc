// SPDX-License-Identifier: Apache-2.0
// target_assign: what each prior box is to predict (SSD). X [rows of all
// images, P, K] with LoD; MatchIndices [N, M] int32, the row of X in the image
// that each of M boxes stands for, -1 for none. Out [N, M, K] is that row (of P
// numbers, the one of the box modulo P) with OutWeight [N, M, 1] 1;
// mismatch_value with weight 0 where there is none; mismatch_value with weight
// 1 for the boxes that NegIndices [n, 1] int32 with LoD names. No gradients.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct TargetAssigner {
  Tensor *x, *match, *negative, *out, *weight;
  std::vector<int64_t> rows, negatives;  // where each image's begin
  int32_t mismatch = 0;
};

template <typename T>
absl::Status AssignTargets(const TargetAssigner& a) {
  const int64_t boxes = a.match->dim(1);
  const int64_t p = a.x->dim(1), k = a.x->dim(2);
  T* out = a.out->data<T>();
  float* weight = a.weight->data<float>();
  for (int64_t i = 0; i < a.match->size(); ++i, out += k) {
    const auto image = static_cast<size_t>(i / boxes);
    const int64_t row = a.match->data<int32_t>()[i];
    weight[i] = row >= 0 ? 1.0f : 0.0f;
    if (row < 0) {
      std::fill_n(out, k, static_cast<T>(a.mismatch));
      continue;
    }
    const int64_t at = a.rows[image] + row;
    if (at >= a.rows[image + 1])
      return OutOfRange("'MatchIndices' has row %d of image %d; it has %d", row,
                        image, a.rows[image + 1] - a.rows[image]);
    std::copy_n(a.x->data<T>() + (at * p + i % boxes % p) * k, k, out);
  }
  for (size_t image = 0; image + 1 < a.negatives.size(); ++image)
    for (int64_t n = a.negatives[image]; n < a.negatives[image + 1]; ++n) {
      const int64_t box = a.negative->data<int32_t>()[n];
      if (box < 0 || box >= boxes)
        return OutOfRange("'NegIndices' has box %d; there are %d", box, boxes);
      const int64_t at = static_cast<int64_t>(image) * boxes + box;
      std::fill_n(a.out->data<T>() + at * k, k, static_cast<T>(a.mismatch));
      weight[at] = 1.0f;
    }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTargetAssign(BindContext* context) {
  TargetAssigner a;
  a.x = context->Input("X");
  a.match = context->Input("MatchIndices");
  a.negative = context->Input("NegIndices");
  a.out = context->Output("Out");
  a.weight = context->Output("OutWeight");
  a.mismatch = context->Attr<int32_t>("mismatch_value");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "MatchIndices", DType::kInt32, a.match->shape()));
  const auto images = static_cast<size_t>(a.match->dim(0));
  PD_ASSIGN_OR_RETURN(a.rows, RowOffsets("X", *a.x, nullptr));
  if (a.negative != nullptr) {
    PD_RETURN_IF_ERROR(ExpectInput(*context, "NegIndices", DType::kInt32,
                                   a.negative->shape()));
    PD_ASSIGN_OR_RETURN(a.negatives,
                        RowOffsets("NegIndices", *a.negative, nullptr));
  }
  if (a.rows.size() != images + 1 ||
      (a.negative != nullptr && a.negatives.size() != images + 1))
    return InvalidArgument(
        "'MatchIndices' has %d images; the LoD of 'X' %d%s", images,
        a.rows.size() - 1,
        a.negative == nullptr
            ? ""
            : absl::StrCat(", that of 'NegIndices' ", a.negatives.size() - 1));
  if (a.x->dim(1) < 1)
    return InvalidArgument("'X' has shape %s; expected [rows, P, K]",
                           ToString(a.x->shape()));
  switch (a.x->dtype()) {
    case DType::kInt32:
      return Step([a](const RunContext&) { return AssignTargets<int32_t>(a); });
    case DType::kInt64:
      return Step([a](const RunContext&) { return AssignTargets<int64_t>(a); });
    default:
      return DispatchFloat(a.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([a](const RunContext&) { return AssignTargets<T>(a); });
      });
  }
}

absl::Status InferTargetAssign(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const Shape& match = context->Input("MatchIndices").shape;
  if (x.shape.size() != 3 || match.size() != 2)
    return InvalidArgument(
        "'X' has shape %s and 'MatchIndices' %s; expected ranks 3 and 2",
        ToString(x.shape), ToString(match));
  context->SetOutput("Out", {match[0], match[1], x.shape[2]}, x.dtype);
  context->SetOutput("OutWeight", {match[0], match[1], 1}, DType::kFloat32);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterTargetAssign(OpRegistry* registry) {
  OpDef op("target_assign");
  op.Input("X").Input("MatchIndices").OptionalInput("NegIndices");
  op.Output("Out").Output("OutWeight");
  op.Attr("mismatch_value", int32_t{0});
  op.Infer(InferTargetAssign).NoGrad().Reference(BindTargetAssign);
  return registry->Add(std::move(op));
}

}  // namespace pd
