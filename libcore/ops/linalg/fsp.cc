// SPDX-License-Identifier: Apache-2.0
// The flow between two feature maps (distillation): for X [n, c, h, w] and
// Y [n, d, h, w]
//   Out[n] = X[n] Y[n]^T / (h w), of c x d, positions flattened
//   X@GRAD[n] = Out@GRAD[n] Y[n] / (h w), Y@GRAD[n] = Out@GRAD[n]^T X[n] / (h
//   w)
#include <cstdint>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Maps {
  int64_t images, c, d, positions;
};

absl::StatusOr<Maps> ReadMaps(const BindContext& context) {
  const Tensor* x = context.Input("X");
  const Tensor* y = context.Input("Y");
  if (x->rank() != 4 || y->rank() != 4 || x->dim(0) != y->dim(0) ||
      x->dim(2) != y->dim(2) || x->dim(3) != y->dim(3) ||
      x->dtype() != y->dtype())
    return InvalidArgument("'X' has shape %s and 'Y' %s", ToString(x->shape()),
                           ToString(y->shape()));
  return Maps{x->dim(0), x->dim(1), y->dim(1), x->dim(2) * x->dim(3)};
}

// Image by image: the sizes of the two factors.
GemmBatch BatchOf(int64_t images, int64_t a, int64_t b) {
  GemmBatch batch;
  for (int64_t n = 0; n < images; ++n) batch.push_back({{n * a, n * b}});
  return batch;
}

absl::StatusOr<Step> BindFsp(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Maps m, ReadMaps(*context));
  GemmShape shape{m.c, m.d, m.positions};
  shape.trans_b = true;
  const GemmBatch batch =
      BatchOf(m.images, m.c * m.positions, m.d * m.positions);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Gemm<T>(shape, batch, T(1) / static_cast<T>(m.positions), x->data<T>(),
              y->data<T>(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindFspGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  PD_ASSIGN_OR_RETURN(const Maps m, ReadMaps(*context));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), {m.images, m.c, m.d}));
  const GemmShape for_x{m.c, m.positions, m.d};
  GemmShape for_y{m.d, m.positions, m.c};
  for_y.trans_a = true;
  const GemmBatch batch_x = BatchOf(m.images, m.c * m.d, m.d * m.positions);
  const GemmBatch batch_y = BatchOf(m.images, m.c * m.d, m.c * m.positions);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T share = T(1) / static_cast<T>(m.positions);
      if (dx != nullptr)
        Gemm<T>(for_x, batch_x, share, dout->data<T>(), y->data<T>(),
                dx->data<T>());
      if (dy != nullptr)
        Gemm<T>(for_y, batch_y, share, dout->data<T>(), x->data<T>(),
                dy->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferFsp(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.shape.size() != 4 || y.shape.size() != 4)
    return InvalidArgument("'X' has shape %s and 'Y' %s; expected rank 4",
                           ToString(x.shape), ToString(y.shape));
  context->SetOutput("Out", {x.shape[0], x.shape[1], y.shape[1]}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterFsp(OpRegistry* registry) {
  OpDef op("fsp");
  op.Input("X").Input("Y").Output("Out").Infer(InferFsp).Reference(BindFsp);
  op.Grad(GradSpec{"fsp_grad", {"X", "Y"}, {}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("fsp_grad");
  grad.Input("X").Input("Y").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindFspGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
