// SPDX-License-Identifier: Apache-2.0
// fused_gemm_epilogue and its gradient: cuBLASLt adds the bias, and the ReLU,
// before it stores a product; where it has no algorithm for that, a kernel does
// so behind the product.
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// op(X) is [m, k], op(Y) is [k, n].
struct GemmExtents {
  int64_t m, n, k;
  bool trans_x, trans_y;
};

absl::StatusOr<GemmExtents> ReadExtents(BindContext* context) {
  const Tensor *x = context->Input("X"), *y = context->Input("Y");
  if (x == nullptr || y == nullptr || y->rank() != 2 || x->rank() < 2)
    return Unimplemented("an operand is missing or no matrix");
  GemmExtents e{};
  e.trans_x = context->Attr<bool>("trans_x");
  e.trans_y = context->Attr<bool>("trans_y");
  e.k = y->dim(e.trans_y ? 1 : 0);
  e.n = y->dim(e.trans_y ? 0 : 1);
  if (e.k == 0 || e.n == 0 || x->size() == 0)
    return Unimplemented("a product of nothing");
  e.m = x->size() / e.k;
  return e;
}

absl::StatusOr<Step> BindFusedGemm(BindContext* context,
                                   DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GemmExtents e, ReadExtents(context));
  Tensor* const out = context->Output("Out");
  const ProductTensors t = {context->Input("X"), context->Input("Y"), out,
                            context->Input("Bias")};
  PD_RETURN_IF_ERROR(SameNumbers({t.a, t.b, t.bias, out}));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", out->dtype(), e.n));
  if (context->Output("ReserveSpace") != nullptr)
    return Unimplemented("an output 'ReserveSpace'");
  const auto activation = context->Attr<std::string>("activation");
  const bool relu = activation == "relu";
  if (!relu && activation != "none" && !activation.empty())
    return Unimplemented("the activation '%s'", activation);
  MatrixProduct product{e.m, e.n, e.k, e.trans_x, e.trans_y};
  product.dtype = out->dtype();
  product.epilogue = relu ? ProductEpilogue::kBiasRelu : ProductEpilogue::kBias;
  auto whole = BindProductStep(context, binding, product, t);
  if (whole.ok() || !absl::IsUnimplemented(whole.status())) return whole;
  product.epilogue = ProductEpilogue::kNone;
  PD_ASSIGN_OR_RETURN(Step multiply, BindProductStep(context, binding, product,
                                                     {t.a, t.b, out}));
  PD_ASSIGN_OR_RETURN(Step add, BindBiasStep(binding, t.bias, relu, out));
  return InOrder({std::move(multiply), std::move(add)});
}

// The sums of the columns of DOut.
absl::StatusOr<Step> BindBiasGrad(BindContext* context, DeviceBinding* binding,
                                  const GemmExtents& e, Tensor* dout,
                                  Tensor* dbias) {
  Reduction sums;
  sums.kernel = "reduce_sum";
  sums.shape.factor = 1;
  sums.shape.n = e.n;
  sums.shape.m = e.m;
  AddExtent<3>(e.n, {1, 0, 0}, &sums.shape.outer);
  AddExtent<3>(e.m, {e.n, 0, 0}, &sums.shape.inner);
  sums.x = dout;
  sums.out = dbias;
  return BindReduction(context, binding, sums);
}

absl::StatusOr<Step> BindFusedGemmGrad(BindContext* context,
                                       DeviceBinding* binding) {
  const auto activation = context->Attr<std::string>("activation_grad");
  if (activation != "none" && !activation.empty())
    return Unimplemented("the activation '%s'", activation);
  PD_ASSIGN_OR_RETURN(const GemmExtents e, ReadExtents(context));
  Tensor *const x = context->Input("X"), *const y = context->Input("Y"),
                *const dout = context->Input("DOut"),
                *const dx = context->Output("DX"),
                *const dy = context->Output("DY"),
                *const dbias = context->Output("DBias");
  PD_RETURN_IF_ERROR(SameNumbers({x, y, dout, dx, dy, dbias}));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "DOut", x->dtype(), e.m * e.n));
  if (dx == nullptr) context->NoBuffer(y);
  if (dy == nullptr) context->NoBuffer(x);
  std::vector<Step> steps;
  const MatrixProduct forward{e.m, e.n, e.k, e.trans_x, e.trans_y};
  const auto add = [&](GradProduct grad, Tensor* other, Tensor* result) {
    grad.product.dtype = x->dtype();
    const ProductTensors t = grad.of_c_first
                                 ? ProductTensors{dout, other, result}
                                 : ProductTensors{other, dout, result};
    auto step = BindProductStep(context, binding, grad.product, t);
    if (step.ok()) steps.push_back(*std::move(step));
    return step.status();
  };
  if (dx != nullptr) PD_RETURN_IF_ERROR(add(GradOfA(forward), y, dx));
  if (dy != nullptr) PD_RETURN_IF_ERROR(add(GradOfB(forward), x, dy));
  if (dbias != nullptr) {
    PD_ASSIGN_OR_RETURN(Step sum,
                        BindBiasGrad(context, binding, e, dout, dbias));
    steps.push_back(std::move(sum));
  }
  return InOrder(std::move(steps));
}

}  // namespace

void AddFusedGemmEpilogue(KernelTable* kernels) {
  kernels->Add("fused_gemm_epilogue", {"cublaslt", BindFusedGemm});
  kernels->Add("fused_gemm_epilogue_grad", {"cublaslt", BindFusedGemmGrad});
}

}  // namespace pd::cuda
