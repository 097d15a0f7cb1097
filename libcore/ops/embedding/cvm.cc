// SPDX-License-Identifier: Apache-2.0
// X's first two columns count shows and clicks. With use_cvm
//   Y[0] = log(X[0] + 1); Y[1] = log(X[1] + 1) - Y[0]; the rest as it is
// else Y is X without them. X@GRAD is no derivative in these columns: they get
// CVM's numbers, those of the row, or of its sequence when X has LoD.
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status CheckShape(const Shape& x) {
  if (x.size() == 2 && (x[1] < 0 || x[1] >= 2)) return absl::OkStatus();
  return InvalidArgument("'X' has shape %s; expected 2 columns or more",
                         ToString(x));
}

absl::StatusOr<Step> BindCvm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Output("Y");
  const bool use = context->Attr<bool>("use_cvm");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t columns = x->dim(1);
      T* to = y->data<T>();
      for (int64_t r = 0; r < x->dim(0); ++r) {
        const T* from = x->data<T>() + r * columns;
        if (use) {
          *to++ = std::log(from[0] + T(1));
          *to++ = std::log(from[1] + T(1)) - std::log(from[0] + T(1));
        }
        for (int64_t c = 2; c < columns; ++c) *to++ = from[c];
      }
      return absl::OkStatus();
    });
  });
}

// The row of CVM for every row of X.
absl::StatusOr<std::vector<int64_t>> RowsOf(const Tensor& x,
                                            const Tensor& cvm) {
  std::vector<int64_t> rows;
  if (x.lod().empty()) {
    for (int64_t r = 0; r < x.dim(0); ++r) rows.push_back(r);
  } else {
    const std::vector<uint64_t>& offsets = x.lod()[0];
    for (size_t n = 0; n + 1 < offsets.size(); ++n)
      rows.insert(rows.end(), offsets[n + 1] - offsets[n],
                  static_cast<int64_t>(n));
  }
  const int64_t needed = rows.empty() ? 0 : rows.back() + 1;
  if (static_cast<int64_t>(rows.size()) != x.dim(0) || cvm.rank() != 2 ||
      cvm.dim(1) != 2 || cvm.dim(0) < needed || cvm.dtype() != x.dtype())
    return InvalidArgument("'CVM' is %s %s; expected %d rows of 2",
                           Name(cvm.dtype()), ToString(cvm.shape()), needed);
  return rows;
}

absl::StatusOr<Step> BindCvmGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* cvm = context->Input("CVM");
  Tensor* dy = context->Input("Y@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const bool use = context->Attr<bool>("use_cvm");
  PD_RETURN_IF_ERROR(CheckShape(x->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", x->dtype(),
                                 {x->dim(0), x->dim(1) - (use ? 0 : 2)}));
  PD_ASSIGN_OR_RETURN(const auto rows, RowsOf(*x, *cvm));
  context->NoBuffer(x);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t columns = x->dim(1);
      const T* from = dy->data<T>();
      T* to = dx->data<T>();
      for (int64_t row : rows) {
        for (int64_t c = 0; c < 2; ++c) *to++ = cvm->data<T>()[row * 2 + c];
        if (use) from += 2;
        for (int64_t c = 2; c < columns; ++c) *to++ = *from++;
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferCvm(InferContext* context) {
  TensorMeta meta = context->Input("X");
  PD_RETURN_IF_ERROR(CheckShape(meta.shape));
  if (!context->Attr<bool>("use_cvm") && meta.shape[1] >= 0) meta.shape[1] -= 2;
  meta.value = nullptr;
  context->SetOutput("Y", std::move(meta));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterCvm(OpRegistry* registry) {
  OpDef op("cvm");
  op.Input("X").Input("CVM").Output("Y").Attr("use_cvm", true);
  op.Infer(InferCvm).Reference(BindCvm);
  op.Grad(GradSpec{"cvm_grad", {"X", "CVM"}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("cvm_grad");
  grad.Input("X").Input("CVM").Input("Y@GRAD").Output("X@GRAD");
  grad.Attr("use_cvm", true);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCvmGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
