// SPDX-License-Identifier: Apache-2.0
// Looks ahead in sequences, column by column: within a sequence of t steps
//   Out[k] = sum over w < context, k + w < t of Filter[w] * X[k + w]
//   X@GRAD[k + w] += Filter[w] * Out@GRAD[k]
//   Filter@GRAD[w] += X[k + w] * Out@GRAD[k]
// X is [all steps, columns] with LoD, or [sequences, steps, columns].
#include "libcore/ops/sequence/row_conv.h"

#include <algorithm>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {

absl::StatusOr<RowConv> ReadRowConv(const Tensor& x, const Tensor& filter) {
  RowConv s;
  if (filter.rank() != 2 || x.rank() < 2 || x.rank() > 3 ||
      x.dim(x.rank() - 1) != filter.dim(1) || x.dtype() != filter.dtype())
    return InvalidArgument("'X' is %s and 'Filter' %s", ToString(x.shape()),
                           ToString(filter.shape()));
  s.columns = filter.dim(1);
  s.context = filter.dim(0);
  if (x.rank() == 3) {
    for (int64_t n = 0; n <= x.dim(0); ++n) s.offsets.push_back(n * x.dim(1));
  } else if (!x.lod().empty()) {
    PD_RETURN_IF_ERROR(CheckLoD(x.lod(), x.dim(0), "X"));
    s.offsets.assign(x.lod()[0].begin(), x.lod()[0].end());
  }
  if (s.offsets.empty() || (x.rank() == 2 && s.offsets.back() != x.dim(0)))
    return InvalidArgument("'X' of shape %s has no sequences that fit",
                           ToString(x.shape()));
  return s;
}

namespace {

// Calls body(step, w) for every step and w that reach into one sequence.
template <typename Body>
void ForEachRowConvPair(const RowConv& s, const Body& body) {
  for (size_t n = 0; n + 1 < s.offsets.size(); ++n)
    for (int64_t k = s.offsets[n]; k < s.offsets[n + 1]; ++k)
      for (int64_t w = 0; w < std::min(s.context, s.offsets[n + 1] - k); ++w)
        body(k, w);
}

// to[a] += x[b] * y[c], row by row.
template <typename T>
void AddRows(int64_t columns, T* to, int64_t a, const T* x, int64_t b,
             const T* y, int64_t c) {
  for (int64_t i = 0; i < columns; ++i)
    to[a * columns + i] += x[b * columns + i] * y[c * columns + i];
}

absl::StatusOr<Step> BindRowConv(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* filter = context->Input("Filter");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const RowConv s, ReadRowConv(*x, *filter));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(out->data<T>(), out->size(), T(0));
      ForEachRowConvPair(s, [&](int64_t k, int64_t w) {
        AddRows(s.columns, out->data<T>(), k, filter->data<T>(), w,
                x->data<T>(), k + w);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindRowConvGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* filter = context->Input("Filter");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dfilter = context->Output("Filter@GRAD");
  PD_ASSIGN_OR_RETURN(const RowConv s, ReadRowConv(*x, *filter));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (dx != nullptr) {
        std::fill_n(dx->data<T>(), dx->size(), T(0));
        ForEachRowConvPair(s, [&](int64_t k, int64_t w) {
          AddRows(s.columns, dx->data<T>(), k + w, filter->data<T>(), w,
                  dout->data<T>(), k);
        });
      }
      if (dfilter != nullptr) {
        std::fill_n(dfilter->data<T>(), dfilter->size(), T(0));
        ForEachRowConvPair(s, [&](int64_t k, int64_t w) {
          AddRows(s.columns, dfilter->data<T>(), w, x->data<T>(), k + w,
                  dout->data<T>(), k);
        });
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterRowConv(OpRegistry* registry) {
  OpDef op("row_conv");
  op.Input("X").Input("Filter").Output("Out");
  op.Infer(InferUnary).Reference(BindRowConv);
  op.Grad(
      GradSpec{"row_conv_grad", {"X", "Filter"}, {}, {"Out"}, {"X", "Filter"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("row_conv_grad");
  grad.Input("X").Input("Filter").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Filter@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRowConvGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
