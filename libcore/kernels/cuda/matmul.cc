// SPDX-License-Identifier: Apache-2.0
// matmul_v2, matmul, bmm, mul and their gradients, by cuBLASLt. A matrix for
// the whole batch is read again and again, other broadcast ones are copied; the
// gradient of either is summed.
#include <memory>
#include <utility>
#include <vector>

#include "libcore/base/flags.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/linalg/product.h"

namespace pd::cuda {
namespace {

// An operand or a result with its own batch.
struct Matrices {
  Tensor* tensor;
  const Shape* batch;
};

// One batch of products of one size, with what it is computed from.
struct Work {
  MatrixProduct product;
  Matrices a, b, c;
};

absl::StatusOr<Product> ReadProduct(BindContext* context, bool grad) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  if (x == nullptr || y == nullptr)
    return Unimplemented("an operand is missing");
  PD_RETURN_IF_ERROR(SameNumbers({x, y}));
  PD_ASSIGN_OR_RETURN(Product p,
                      ProductOf(context->op(), x->shape(), y->shape()));
  const int64_t count = NumElements(p.batch);
  if (!p.trans_x && NumElements(p.y_batch) == 1 &&
      (!grad || NumElements(p.x_batch) == count)) {
    p.m *= count;  // one tall matrix
    p.batch = p.x_batch = p.y_batch = {};
  }
  return p;
}

// The batch's axes and, as the last one, a matrix: where an element of a tensor
// whose own batch this is lies.
std::vector<int64_t> StridesIn(const Shape& own, const Shape& batch,
                               int64_t matrix) {
  std::vector<int64_t> strides = BroadcastStrides(own, batch);
  for (int64_t& stride : strides) stride *= matrix;
  strides.push_back(1);
  return strides;
}

// The operand, or a copy with every matrix as often as the batch has it; one
// matrix for all is no copy.
absl::StatusOr<Tensor*> Spread(BindContext* context, DeviceBinding* binding,
                               const Matrices& m, const Shape& batch,
                               std::vector<Step>* steps) {
  const int64_t own = NumElements(*m.batch), count = NumElements(batch);
  if (own == count || own == 1) return m.tensor;
  const int64_t matrix = m.tensor->size() / own;
  StridedCopy copy{m.tensor, nullptr, count * matrix};
  copy.bytes = SizeOf(m.tensor->dtype());
  copy.to = context->Scratch(static_cast<size_t>(copy.n) * copy.bytes);
  const auto from = StridesIn(*m.batch, batch, matrix),
             to = StridesIn(batch, batch, matrix);
  for (size_t d = 0; d < from.size(); ++d)
    if (!AddExtent<2>(d < batch.size() ? batch[d] : matrix, {from[d], to[d]},
                      &copy.walk))
      return TooManyDims();
  PD_ASSIGN_OR_RETURN(Step step, BindCopy(binding, copy));
  steps->push_back(std::move(step));
  return copy.to;
}

// The sums of `wide` over the axes that the result's own batch does not have.
absl::StatusOr<Step> BindSumOver(BindContext* context, DeviceBinding* binding,
                                 Tensor* wide, const Matrices& m,
                                 const Shape& batch) {
  PD_RETURN_IF_ERROR(OnlyFloat32({m.tensor}));
  ReduceArgs args{};
  args.factor = 1;
  args.n = m.tensor->size();
  const int64_t own = NumElements(*m.batch), matrix = args.n / own;
  args.m = NumElements(batch) / own;
  const auto strides = StridesIn(batch, batch, matrix);
  for (size_t d = 0; d < strides.size(); ++d) {
    const bool summed = d < batch.size() && (*m.batch)[d] != batch[d];
    if (!AddExtent<3>(d < batch.size() ? batch[d] : matrix, {strides[d], 0, 0},
                      summed ? &args.inner : &args.outer))
      return TooManyDims();
  }
  return BindReduction(context, binding, {"reduce_sum", args, wide, m.tensor});
}

absl::StatusOr<Step> BindWork(BindContext* context, DeviceBinding* binding,
                              const Shape& batch, Work work) {
  MatrixProduct& product = work.product;
  product.dtype = work.c.tensor->dtype();
  product.batch = NumElements(batch);
  product.shared_a = product.batch > 1 && NumElements(*work.a.batch) == 1;
  product.shared_b = product.batch > 1 && NumElements(*work.b.batch) == 1;
  std::vector<Step> steps;
  PD_ASSIGN_OR_RETURN(Tensor* const a,
                      Spread(context, binding, work.a, batch, &steps));
  PD_ASSIGN_OR_RETURN(Tensor* const b,
                      Spread(context, binding, work.b, batch, &steps));
  Tensor* c = work.c.tensor;
  const bool sums = NumElements(*work.c.batch) != product.batch;
  if (sums)
    c = context->Scratch(
        static_cast<size_t>(product.batch * product.m * product.n) *
        SizeOf(product.dtype));
  PD_ASSIGN_OR_RETURN(Step step,
                      BindProductStep(context, binding, product, {a, b, c}));
  steps.push_back(std::move(step));
  if (sums) {
    PD_ASSIGN_OR_RETURN(Step sum,
                        BindSumOver(context, binding, c, work.c, batch));
    steps.push_back(std::move(sum));
  }
  return InOrder(std::move(steps));
}

MatrixProduct ForwardOf(const Product& p) {
  return {p.m, p.n, p.k, p.trans_x, p.trans_y, 1, p.alpha};
}

absl::StatusOr<Step> BindMatmulForward(BindContext* context,
                                       DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Product p, ReadProduct(context, false));
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({context->Input("X"), out}));
  return BindWork(context, binding, p.batch,
                  {ForwardOf(p),
                   {context->Input("X"), &p.x_batch},
                   {context->Input("Y"), &p.y_batch},
                   {out, &p.batch}});
}

Work GradWork(const GradProduct& grad, const Matrices& of_dout,
              const Matrices& other, const Matrices& result) {
  if (grad.of_c_first) return {grad.product, of_dout, other, result};
  return {grad.product, other, of_dout, result};
}

absl::StatusOr<Step> BindMatmulBackward(BindContext* context,
                                        DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Product p, ReadProduct(context, true));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  if (dout == nullptr || dout->size() != NumElements(p.out))
    return Unimplemented("'Out@GRAD' is missing or has another size");
  PD_RETURN_IF_ERROR(SameNumbers({context->Input("X"), dout, dx, dy}));
  const Matrices of_dout = {dout, &p.batch};
  Step first, second;
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(first,
                        BindWork(context, binding, p.batch,
                                 GradWork(GradOfA(ForwardOf(p)), of_dout,
                                          {context->Input("Y"), &p.y_batch},
                                          {dx, &p.x_batch})));
  }
  if (dy != nullptr) {
    PD_ASSIGN_OR_RETURN(second,
                        BindWork(context, binding, p.batch,
                                 GradWork(GradOfB(ForwardOf(p)), of_dout,
                                          {context->Input("X"), &p.x_batch},
                                          {dy, &p.y_batch})));
  }
  return Step([first = std::move(first),
               second = std::move(second)](const RunContext& run) {
    if (first != nullptr) PD_RETURN_IF_ERROR(first(run));
    return second != nullptr ? second(run) : absl::OkStatus();
  });
}

}  // namespace

// dA = dC op(B)^T, or its transposed.
GradProduct GradOfA(const MatrixProduct& p) {
  if (p.trans_a) return {{p.k, p.m, p.n, p.trans_b, true, 1, p.alpha}, false};
  return {{p.m, p.k, p.n, false, !p.trans_b, 1, p.alpha}, true};
}

// dB = op(A)^T dC, or its transposed.
GradProduct GradOfB(const MatrixProduct& p) {
  if (p.trans_b) return {{p.n, p.k, p.m, true, p.trans_a, 1, p.alpha}, true};
  return {{p.k, p.n, p.m, !p.trans_a, false, 1, p.alpha}, false};
}

absl::StatusOr<Step> BindProductStep(BindContext* context,
                                     DeviceBinding* binding,
                                     MatrixProduct product,
                                     const ProductTensors& t) {
  product.tf32 = GetFlag<bool>("FLAGS_enable_cublas_tensor_op_math");
  PD_ASSIGN_OR_RETURN(auto bound, BindProduct(CudaOf(binding), product));
  Tensor* workspace =
      bound->workspace() == 0 ? nullptr : context->Scratch(bound->workspace());
  return Step([t, bound = std::move(bound), workspace](const RunContext&) {
    return bound->Run(t.a->raw(), t.b->raw(), t.c->raw(), RawOrNull(workspace),
                      RawOrNull(t.bias));
  });
}

void AddMatmul(KernelTable* kernels) {
  for (const char* type : {"matmul_v2", "matmul", "bmm", "mul"}) {
    kernels->Add(type, {"cublaslt", BindMatmulForward});
    kernels->Add(absl::StrCat(type, "_grad"), {"cublaslt", BindMatmulBackward});
  }
}

}  // namespace pd::cuda
