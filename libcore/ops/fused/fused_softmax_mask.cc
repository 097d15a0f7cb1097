// SPDX-License-Identifier: Apache-2.0
// Softmax along the last axis of X [n, heads, rows, columns]:
//   fused_softmax_mask: of X + Mask, Mask [n, 1, rows, columns]
//   fused_softmax_mask_upper_triangle: of the columns up to the row's number;
//     the others are 0
// X@GRAD = Softmax * (Out@GRAD - sum(Softmax * Out@GRAD)) along the row.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct SoftmaxMaskRows {
  int64_t count, columns, rows, heads;
};

absl::StatusOr<SoftmaxMaskRows> ReadSoftmaxMaskRows(const Shape& x) {
  if (x.size() != 4)
    return InvalidArgument("'X' has shape %s; expected rank 4", ToString(x));
  return SoftmaxMaskRows{x[0] * x[1] * x[2], x[3], x[2], x[1]};
}

template <typename Body>
void ForEachRow(const SoftmaxMaskRows& rows, const Body& body) {
  ParallelFor(rows.count, 4096 / (rows.columns + 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) body(r);
              });
}

// `n` of the row's columns take part; mask may be null.
template <typename T>
void SoftmaxRow(const T* x, const T* mask, int64_t n, int64_t columns, T* out) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = mask != nullptr ? x[i] + mask[i] : x[i];
  const T most = n > 0 ? *std::max_element(out, out + n) : T(0);
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += out[i] = std::exp(out[i] - most);
  for (int64_t i = 0; i < n; ++i) out[i] /= sum;
  std::fill(out + n, out + columns, T(0));
}

absl::StatusOr<Step> BindSoftmax(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* mask = context->Input("Mask");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const SoftmaxMaskRows rows,
                      ReadSoftmaxMaskRows(x->shape()));
  if (mask != nullptr)
    PD_RETURN_IF_ERROR(ExpectInput(*context, "Mask", x->dtype(),
                                   {x->dim(0), 1, x->dim(2), x->dim(3)}));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachRow(rows, [&](int64_t r) {
        const int64_t row = r % rows.rows;
        const int64_t image = r / rows.rows / rows.heads;
        const T* m =
            mask != nullptr
                ? mask->data<T>() + (image * rows.rows + row) * rows.columns
                : nullptr;
        const int64_t n =
            mask != nullptr ? rows.columns : std::min(row + 1, rows.columns);
        SoftmaxRow(x->data<T>() + r * rows.columns, m, n, rows.columns,
                   out->data<T>() + r * rows.columns);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSoftmaxGrad(BindContext* context) {
  Tensor* softmax = context->Input("Softmax");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const SoftmaxMaskRows rows,
                      ReadSoftmaxMaskRows(softmax->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", softmax->dtype(), softmax->shape()));
  return DispatchFloat(softmax->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachRow(rows, [&](int64_t r) {
        const T* s = softmax->data<T>() + r * rows.columns;
        const T* d = dout->data<T>() + r * rows.columns;
        T* to = dx->data<T>() + r * rows.columns;
        T dot = T(0);
        for (int64_t i = 0; i < rows.columns; ++i) dot += s[i] * d[i];
        for (int64_t i = 0; i < rows.columns; ++i) to[i] = s[i] * (d[i] - dot);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSoftmaxMask(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  if (x.size() != 4)
    return InvalidArgument("'X' has shape %s; expected rank 4", ToString(x));
  return InferUnary(context);
}

absl::Status InferSoftmaxMaskGrad(InferContext* context) {
  context->Share("Softmax", "X@GRAD");
  return absl::OkStatus();
}

// The gradient op calls Out "Softmax".
absl::StatusOr<std::vector<OpDesc>> MakeSoftmaxMaskGrad(
    const GradRequest& request) {
  const OpDesc& op = request.op;
  std::vector<OpDesc> ops;
  if (!request.needs_grad(op.Input("X")[0])) return ops;
  OpDesc grad;
  grad.type = op.type + "_grad";
  grad.SetInput("Softmax", op.Output("Out"));
  grad.SetInput("Out@GRAD", {GradName(op.Output("Out")[0])});
  grad.SetOutput("X@GRAD", {GradName(op.Input("X")[0])});
  ops.push_back(std::move(grad));
  return ops;
}

absl::Status Add(OpRegistry* registry, const std::string& type, bool mask) {
  OpDef op(type);
  op.Input("X");
  if (mask) op.Input("Mask");
  op.Output("Out").Infer(InferSoftmaxMask).Reference(BindSoftmax);
  op.Grad(GradMaker(MakeSoftmaxMaskGrad));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("Softmax").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferSoftmaxMaskGrad).NoGrad().Reference(BindSoftmaxGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterFusedSoftmaxMask(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(Add(registry, "fused_softmax_mask", true));
  return Add(registry, "fused_softmax_mask_upper_triangle", false);
}

}  // namespace pd
