// SPDX-License-Identifier: Apache-2.0
// Every word of a sequence of X against every word of the same sequence of Y
// by dim_t matrices W [dim_x, dim_t, dim_y]: with Tmp = X W, [rows, dim_t,
// dim_y], for each sequence, matrix t, row i of X and row j of Y
//   Out[t, i, j] = sum over d of Tmp[i, t, d] * Y[j, d]
// Out is [numbers, 1], its LoD the numbers of each sequence.
//   Y@GRAD[j] += Out@GRAD * Tmp[i, t]; Tmp' = its gradient, Out@GRAD * Y[j]
//   X@GRAD = Tmp' W^T; W@GRAD = X^T Tmp'
#include <algorithm>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

using LengthOffsets = std::vector<uint64_t>;

// InvalidArgument unless the shapes and the attribute fit.
absl::Status CheckShapes(const OpDesc& op, const Shape& x, const Shape& y,
                         const Shape& w) {
  const int64_t t = op.Attr<int32_t>("dim_t");
  const auto differ = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  if (x.size() == 2 && y.size() == 2 && w.size() == 3 && !differ(w[0], x[1]) &&
      !differ(w[1], t) && !differ(w[2], y[1]))
    return absl::OkStatus();
  return InvalidArgument("'X' has shape %s, 'Y' %s, 'W' %s, attr 'dim_t' is %d",
                         ToString(x), ToString(y), ToString(w), t);
}

// The offsets of Out's sequences.
absl::StatusOr<LengthOffsets> OutOffsets(const LoD& x, const LoD& y,
                                         int64_t dim_t) {
  if (x.empty() || y.empty() || x[0].size() != y[0].size())
    return InvalidArgument("'X' and 'Y' have not the same number of sequences");
  LengthOffsets offsets = {0};
  for (size_t i = 0; i + 1 < x[0].size(); ++i)
    offsets.push_back(offsets.back() + static_cast<uint64_t>(dim_t) *
                                           (x[0][i + 1] - x[0][i]) *
                                           (y[0][i + 1] - y[0][i]));
  return offsets;
}

struct Match {
  LengthOffsets x, y, out;
  int64_t rows, dim_x, dim_y, dim_t;

  int64_t width() const { return dim_t * dim_y; }
};

absl::StatusOr<Match> ReadMatch(const BindContext& context) {
  const Tensor* x = context.Input("X");
  const Tensor* y = context.Input("Y");
  const Tensor* w = context.Input("W");
  PD_RETURN_IF_ERROR(
      CheckShapes(context.op(), x->shape(), y->shape(), w->shape()));
  Match m;
  m.rows = x->dim(0);
  m.dim_x = x->dim(1);
  m.dim_y = y->dim(1);
  m.dim_t = w->dim(1);
  PD_ASSIGN_OR_RETURN(m.out, OutOffsets(x->lod(), y->lod(), m.dim_t));
  m.x = x->lod()[0];
  m.y = y->lod()[0];
  if (static_cast<int64_t>(m.x.back()) != m.rows ||
      static_cast<int64_t>(m.y.back()) != y->dim(0) ||
      x->dtype() != y->dtype() || x->dtype() != w->dtype())
    return InvalidArgument("'X' %s and 'Y' %s end before their sequences",
                           ToString(x->shape()), ToString(y->shape()));
  return m;
}

// Calls body(out, row of Tmp, row of Y) with the first elements of each pair.
template <typename Body>
void ForEachMatchMatrixPair(const Match& m, const Body& body) {
  for (size_t n = 0; n + 1 < m.x.size(); ++n) {
    int64_t out = static_cast<int64_t>(m.out[n]);
    for (int64_t t = 0; t < m.dim_t; ++t)
      for (uint64_t i = m.x[n]; i < m.x[n + 1]; ++i)
        for (uint64_t j = m.y[n]; j < m.y[n + 1]; ++j)
          body(out++, (static_cast<int64_t>(i) * m.dim_t + t) * m.dim_y,
               static_cast<int64_t>(j) * m.dim_y);
  }
}

absl::StatusOr<Step> BindMatch(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* w = context->Input("W");
  Tensor* out = context->Output("Out");
  Tensor* tmp = context->Output("Tmp");
  PD_ASSIGN_OR_RETURN(const Match m, ReadMatch(*context));
  if (tmp == nullptr)
    tmp = context->Scratch(static_cast<size_t>(m.rows * m.width()) *
                           SizeOf(x->dtype()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Gemm<T>({m.rows, m.width(), m.dim_x}, {{{0, 0}}}, T(1), x->data<T>(),
              w->data<T>(), tmp->data<T>());
      ForEachMatchMatrixPair(m, [&](int64_t to, int64_t i, int64_t j) {
        T sum = T(0);
        for (int64_t d = 0; d < m.dim_y; ++d)
          sum += tmp->data<T>()[i + d] * y->data<T>()[j + d];
        out->data<T>()[to] = sum;
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindMatchGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* w = context->Input("W");
  Tensor* tmp = context->Input("Tmp");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  Tensor* dw = context->Output("W@GRAD");
  PD_ASSIGN_OR_RETURN(const Match m, ReadMatch(*context));
  const DType dtype = x->dtype();
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Tmp", dtype, m.rows * m.width()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", dtype,
                                    static_cast<int64_t>(m.out.back())));
  Tensor* dtmp =
      context->Scratch(static_cast<size_t>(m.rows * m.width()) * SizeOf(dtype));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dtmp->data<T>(), m.rows * m.width(), T(0));
      if (dy != nullptr) std::fill_n(dy->data<T>(), dy->size(), T(0));
      ForEachMatchMatrixPair(m, [&](int64_t from, int64_t i, int64_t j) {
        const T g = dout->data<T>()[from];
        for (int64_t d = 0; d < m.dim_y; ++d) {
          dtmp->data<T>()[i + d] += g * y->data<T>()[j + d];
          if (dy != nullptr) dy->data<T>()[j + d] += g * tmp->data<T>()[i + d];
        }
      });
      GemmShape for_x{m.rows, m.dim_x, m.width()};
      for_x.trans_b = true;
      GemmShape for_w{m.dim_x, m.width(), m.rows};
      for_w.trans_a = true;
      if (dx != nullptr)
        Gemm<T>(for_x, {{{0, 0}}}, T(1), dtmp->data<T>(), w->data<T>(),
                dx->data<T>());
      if (dw != nullptr)
        Gemm<T>(for_w, {{{0, 0}}}, T(1), x->data<T>(), dtmp->data<T>(),
                dw->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferMatch(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  const Shape& w = context->Input("W").shape;
  PD_RETURN_IF_ERROR(CheckShapes(context->op(), x.shape, y.shape, w));
  const int64_t dim_t = context->Attr<int32_t>("dim_t");
  TensorMeta out;
  out.dtype = x.dtype;
  out.lod_level = 1;
  out.shape = {-1, 1};
  if (!x.lod.empty() && !y.lod.empty()) {
    PD_ASSIGN_OR_RETURN(LengthOffsets offsets, OutOffsets(x.lod, y.lod, dim_t));
    out.shape[0] = static_cast<int64_t>(offsets.back());
    out.SetLoD({std::move(offsets)});
  }
  context->SetOutput("Out", std::move(out));
  const bool known = x.shape[0] >= 0 && y.shape[1] >= 0;
  context->SetOutput("Tmp", {known ? x.shape[0] * dim_t * y.shape[1] : -1, 1},
                     x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMatchMatrixTensor(OpRegistry* registry) {
  OpDef op("match_matrix_tensor");
  op.Input("X").Input("Y").Input("W").Output("Out").IntermediateOutput("Tmp");
  op.Attr("dim_t", int32_t{1}).Infer(InferMatch).Reference(BindMatch);
  op.Grad(GradSpec{"match_matrix_tensor_grad",
                   {"X", "Y", "W"},
                   {"Tmp"},
                   {"Out"},
                   {"X", "Y", "W"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("match_matrix_tensor_grad");
  grad.Input("X").Input("Y").Input("W").Input("Tmp").Input("Out@GRAD");
  for (const char* slot : {"X@GRAD", "Y@GRAD", "W@GRAD"})
    grad.OptionalOutput(slot);
  grad.Attr("dim_t", int32_t{1});
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindMatchGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
