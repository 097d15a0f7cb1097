// SPDX-License-Identifier: Apache-2.0
// Kronecker's product of any ranks; the shorter shape gets ones before it.
// With y the extents of Y:
//   Out[i * y + j] = X[i] * Y[j], axis by axis
//   X@GRAD[i] = sum over j of Out@GRAD[i * y + j] * conj(Y[j]), and so Y@GRAD
#include <algorithm>
#include <complex>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/common/unary.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Both shapes with one rank.
std::pair<Shape, Shape> Aligned(Shape x, Shape y) {
  const size_t rank = std::max(x.size(), y.size());
  x.insert(x.begin(), rank - x.size(), 1);
  y.insert(y.begin(), rank - y.size(), 1);
  return {std::move(x), std::move(y)};
}

Shape OutShape(const Shape& x, const Shape& y) {
  auto [a, b] = Aligned(x, y);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = a[i] < 0 || b[i] < 0 ? -1 : a[i] * b[i];
  return a;
}

// Every pair of elements of X and Y, and where their product lies.
StridedLoop<3> PairLoop(const Shape& x, const Shape& y) {
  const auto [a, b] = Aligned(x, y);
  const auto of_a = RowMajorStrides(a), of_b = RowMajorStrides(b);
  const auto of_out = RowMajorStrides(OutShape(x, y));
  StridedLoop<3> loop;
  for (size_t i = 0; i < a.size(); ++i) {
    loop.Add(a[i], {of_a[i], 0, of_out[i] * b[i]});
    loop.Add(b[i], {0, of_b[i], of_out[i]});
  }
  return loop;
}

// Calls body(at_x, at_y, at_out) for every pair.
template <typename Body>
void ForPairs(const StridedLoop<3>& loop, const Body& body) {
  const auto s = loop.row_strides();
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j)
      body(at[0] + j * s[0], at[1] + j * s[1], at[2] + j * s[2]);
  });
}

absl::StatusOr<Step> BindKron(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  const auto loop = PairLoop(x->shape(), y->shape());
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *a = x->data<T>(), *b = y->data<T>();
      T* result = out->data<T>();
      ForPairs(loop, [&](int64_t i, int64_t j, int64_t k) {
        result[k] = a[i] * b[j];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindKronGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->size() * y->size()));
  const auto loop = PairLoop(x->shape(), y->shape());
  return DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *a = x->data<T>(), *b = y->data<T>(), *g = dout->data<T>();
      if (dx != nullptr) {
        std::fill_n(dx->data<T>(), dx->size(), T(0));
        ForPairs(loop, [&](int64_t i, int64_t j, int64_t k) {
          dx->data<T>()[i] += g[k] * unary_internal::Conj(b[j]);
        });
      }
      if (dy != nullptr) {
        std::fill_n(dy->data<T>(), dy->size(), T(0));
        ForPairs(loop, [&](int64_t i, int64_t j, int64_t k) {
          dy->data<T>()[j] += g[k] * unary_internal::Conj(a[i]);
        });
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferKron(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  context->SetOutput("Out", OutShape(x.shape, context->Input("Y").shape),
                     x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterKron(OpRegistry* registry) {
  OpDef op("kron");
  op.Input("X").Input("Y").Output("Out").Infer(InferKron).Reference(BindKron);
  op.Grad(GradSpec{"kron_grad", {"X", "Y"}, {}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("kron_grad");
  grad.Input("X").Input("Y").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindKronGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
