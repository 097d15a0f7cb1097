// SPDX-License-Identifier: Apache-2.0
// bilinear_tensor_product and its gradient: with Weight as a matrix [k a, b],
//   part = Y Weight^T, Out = X part (bilinear_tensor_product.cu)
//   spread = Out@GRAD X (bilinear_tensor_product.cu), Y@GRAD = spread Weight,
//   Weight@GRAD = spread^T Y
// and cuBLASLt's products for these three.
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

struct Bilinear {
  Tensor *x, *y, *weight;
  BilinearArgs args{};
  int64_t b = 0;

  int64_t columns() const { return args.k * args.a; }
  size_t bytes() const {
    return static_cast<size_t>(args.n * columns()) * sizeof(float);
  }
};

absl::StatusOr<Bilinear> ReadBilinear(BindContext* context) {
  Bilinear t{context->Input("X"), context->Input("Y"),
             context->Input("Weight")};
  PD_RETURN_IF_ERROR(OnlyFloat32({t.x, t.y, t.weight}));
  if (t.x->rank() != 2 || t.weight->rank() != 3)
    return Unimplemented("X has shape %s and Weight %s", ToString(t.x->shape()),
                         ToString(t.weight->shape()));
  t.args.n = t.x->dim(0);
  t.args.a = t.x->dim(1);
  t.args.k = t.weight->dim(0);
  t.b = t.weight->dim(2);
  if (t.weight->dim(1) != t.args.a || t.y->shape() != Shape{t.args.n, t.b})
    return Unimplemented("X has shape %s, Y %s and Weight %s",
                         ToString(t.x->shape()), ToString(t.y->shape()),
                         ToString(t.weight->shape()));
  return t;
}

// The step that makes `part`.
absl::StatusOr<Step> BindBilinearPart(BindContext* context,
                                      DeviceBinding* binding, const Bilinear& t,
                                      Tensor* part) {
  return BindProductStep(context, binding,
                         {t.args.n, t.columns(), t.b, false, true},
                         {t.y, t.weight, part});
}

absl::StatusOr<Step> BindBilinearForward(BindContext* context,
                                         DeviceBinding* binding) {
  Tensor *bias = context->Input("Bias"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({bias, out}));
  PD_ASSIGN_OR_RETURN(const Bilinear t, ReadBilinear(context));
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Bias", DType::kFloat32, t.args.k));
  Tensor* const part = context->Scratch(t.bytes());
  PD_ASSIGN_OR_RETURN(Step product,
                      BindBilinearPart(context, binding, t, part));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<BilinearArgs>::Find(binding, "bilinear_out"));
  return Step([=, product = std::move(product)](const RunContext& of_run) {
    PD_RETURN_IF_ERROR(product(of_run));
    BilinearArgs run = t.args;
    run.x = At(t.x);
    run.part = At(part);
    run.bias = At(bias);
    run.to = At(out);
    return start.Elements(out->size(), run);
  });
}

absl::Status AddGradX(BindContext* context, DeviceBinding* binding,
                      const Bilinear& t, std::vector<Step>* steps) {
  Tensor *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD");
  Tensor* const part = context->Scratch(t.bytes());
  PD_ASSIGN_OR_RETURN(Step product,
                      BindBilinearPart(context, binding, t, part));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<BilinearArgs>::Find(binding, "bilinear_grad_x"));
  steps->push_back(std::move(product));
  steps->emplace_back([=](const RunContext&) {
    BilinearArgs run = t.args;
    run.part = At(part);
    run.dout = At(dout);
    run.to = At(dx);
    return start.Elements(dx->size(), run);
  });
  return absl::OkStatus();
}

absl::Status AddGradWeight(BindContext* context, DeviceBinding* binding,
                           const Bilinear& t, std::vector<Step>* steps) {
  Tensor *dout = context->Input("Out@GRAD"), *dy = context->Output("Y@GRAD"),
         *dweight = context->Output("Weight@GRAD");
  Tensor* const spread = context->Scratch(t.bytes());
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<BilinearArgs>::Find(binding, "bilinear_spread"));
  steps->emplace_back([=](const RunContext&) {
    BilinearArgs run = t.args;
    run.x = At(t.x);
    run.dout = At(dout);
    run.to = At(spread);
    return start.Elements(run.n * run.k * run.a, run);
  });
  if (dy != nullptr) {
    PD_ASSIGN_OR_RETURN(Step step, BindProductStep(context, binding,
                                                   {t.args.n, t.b, t.columns()},
                                                   {spread, t.weight, dy}));
    steps->push_back(std::move(step));
  }
  if (dweight != nullptr) {
    PD_ASSIGN_OR_RETURN(
        Step step,
        BindProductStep(context, binding, {t.columns(), t.b, t.args.n, true},
                        {spread, t.y, dweight}));
    steps->push_back(std::move(step));
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBilinearBackward(BindContext* context,
                                          DeviceBinding* binding) {
  Tensor *dx = context->Output("X@GRAD"), *dy = context->Output("Y@GRAD"),
         *dweight = context->Output("Weight@GRAD"),
         *dbias = context->Output("Bias@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({dx, dy, dweight, dbias}));
  PD_ASSIGN_OR_RETURN(const Bilinear t, ReadBilinear(context));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", DType::kFloat32, {t.args.n, t.args.k}));
  if (Tensor* bias = context->Input("Bias")) context->NoBuffer(bias);
  std::vector<Step> steps;
  if (dx != nullptr) PD_RETURN_IF_ERROR(AddGradX(context, binding, t, &steps));
  if (dy != nullptr || dweight != nullptr)
    PD_RETURN_IF_ERROR(AddGradWeight(context, binding, t, &steps));
  if (dbias != nullptr) {
    ReduceArgs sum{};
    sum.factor = 1;
    sum.n = t.args.k;
    sum.m = t.args.n;
    AddExtent<3>(t.args.k, {1, 0, 0}, &sum.outer);
    AddExtent<3>(t.args.n, {t.args.k, 0, 0}, &sum.inner);
    PD_ASSIGN_OR_RETURN(
        Step step,
        BindReduction(context, binding,
                      {"reduce_sum", sum, context->Input("Out@GRAD"), dbias}));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

}  // namespace

void AddBilinearTensorProduct(KernelTable* kernels) {
  kernels->Add("bilinear_tensor_product", {"cublaslt", BindBilinearForward});
  kernels->Add("bilinear_tensor_product_grad",
               {"cublaslt", BindBilinearBackward});
}

}  // namespace pd::cuda
