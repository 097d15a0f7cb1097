// SPDX-License-Identifier: Apache-2.0
// matmul_v2, matmul, bmm, mul and their gradients, by cuBLASLt. Batches that
// are broadcast other than as a whole stay with the CPU.
#include <memory>
#include <utility>

#include "libcore/base/flags.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/product.h"

namespace pd::cuda {
namespace {

// One batch of products of one size, with what it is computed from.
struct Work {
  MatrixProduct product;
  Tensor *a, *b, *c;
};

absl::StatusOr<Product> ReadProduct(BindContext* context, bool grad) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  if (x == nullptr || y == nullptr)
    return Unimplemented("an operand is missing");
  PD_RETURN_IF_ERROR(SameFloats({x, y}));
  PD_ASSIGN_OR_RETURN(Product p,
                      ProductOf(context->op(), x->shape(), y->shape()));
  const int64_t count = NumElements(p.batch);
  if (!p.trans_x && NumElements(p.y_batch) == 1 &&
      (!grad || NumElements(p.x_batch) == count)) {
    p.m *= count;  // one tall matrix
    p.batch = p.x_batch = p.y_batch = {};
  } else if (NumElements(p.x_batch) != count ||
             NumElements(p.y_batch) != count) {
    return Unimplemented("a batch that is broadcast");
  }
  return p;
}

absl::StatusOr<Step> BindWork(BindContext* context, DeviceBinding* binding,
                              Work work) {
  work.product.dtype = work.c->dtype();
  return BindProductStep(context, binding, work.product,
                         {work.a, work.b, work.c});
}

absl::StatusOr<Step> BindForward(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Product p, ReadProduct(context, false));
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameFloats({context->Input("X"), out}));
  return BindWork(
      context, binding,
      {{p.m, p.n, p.k, p.trans_x, p.trans_y, NumElements(p.batch), p.alpha},
       context->Input("X"),
       context->Input("Y"),
       out});
}

// dX = dOut op(Y)^T, or its transposed.
Work XGrad(const Product& p, Tensor* y, Tensor* dout, Tensor* dx) {
  const int64_t batch = NumElements(p.batch);
  if (p.trans_x)
    return {{p.k, p.m, p.n, p.trans_y, true, batch, p.alpha}, y, dout, dx};
  return {{p.m, p.k, p.n, false, !p.trans_y, batch, p.alpha}, dout, y, dx};
}

// dY = op(X)^T dOut, or its transposed.
Work YGrad(const Product& p, Tensor* x, Tensor* dout, Tensor* dy) {
  const int64_t batch = NumElements(p.batch);
  if (p.trans_y)
    return {{p.n, p.k, p.m, true, p.trans_x, batch, p.alpha}, dout, x, dy};
  return {{p.k, p.n, p.m, !p.trans_x, false, batch, p.alpha}, x, dout, dy};
}

absl::StatusOr<Step> BindBackward(BindContext* context,
                                  DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Product p, ReadProduct(context, true));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  if (dout == nullptr || dout->size() != NumElements(p.out))
    return Unimplemented("'Out@GRAD' is missing or has another size");
  PD_RETURN_IF_ERROR(SameFloats({context->Input("X"), dout, dx, dy}));
  Step first, second;
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(
        first,
        BindWork(context, binding, XGrad(p, context->Input("Y"), dout, dx)));
  }
  if (dy != nullptr) {
    PD_ASSIGN_OR_RETURN(
        second,
        BindWork(context, binding, YGrad(p, context->Input("X"), dout, dy)));
  }
  return Step([first = std::move(first),
               second = std::move(second)](const RunContext& run) {
    if (first != nullptr) PD_RETURN_IF_ERROR(first(run));
    return second != nullptr ? second(run) : absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Step> BindProductStep(BindContext* context,
                                     DeviceBinding* binding,
                                     MatrixProduct product,
                                     const ProductTensors& t) {
  product.tf32 = GetFlag<bool>("FLAGS_enable_cublas_tensor_op_math");
  PD_ASSIGN_OR_RETURN(auto bound, BindProduct(binding->device(), product));
  Tensor* workspace =
      bound->workspace() == 0 ? nullptr : context->Scratch(bound->workspace());
  return Step([t, bound = std::move(bound), workspace](const RunContext&) {
    return bound->Run(t.a->raw(), t.b->raw(), t.c->raw(),
                      workspace == nullptr ? nullptr : workspace->raw());
  });
}

void AddProducts(DeviceKernels* kernels) {
  for (const char* type : {"matmul_v2", "matmul", "bmm", "mul"}) {
    kernels->Add(type, {"cublaslt", BindForward});
    kernels->Add(absl::StrCat(type, "_grad"), {"cublaslt", BindBackward});
  }
}

}  // namespace pd::cuda
