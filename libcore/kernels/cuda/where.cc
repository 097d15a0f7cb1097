// SPDX-License-Identifier: Apache-2.0
// where and tril_triu; the kernels are in where.cu.
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/where_arguments.h"

namespace pd::cuda {
namespace {

// The kernel for elements of this size.
template <typename Args>
absl::StatusOr<Starter<Args>> FindForSize(DeviceBinding* binding,
                                          const char* name, DType dtype) {
  const size_t size = SizeOf(dtype);
  if (size != 1 && size != 2 && size != 4 && size != 8)
    return Unimplemented("elements of %d bytes", size);
  return Starter<Args>::Find(binding, absl::StrCat(name, "_", size));
}

absl::StatusOr<Step> SelectStep(DeviceBinding* binding, Tensor* condition,
                                Tensor* x, Tensor* y, Tensor* out) {
  if (condition == nullptr || condition->dtype() != DType::kBool ||
      condition->size() != out->size())
    return Unimplemented("a condition of another shape");
  PD_ASSIGN_OR_RETURN(const auto start,
                      FindForSize<SelectArgs>(binding, "select", out->dtype()));
  return Step([=](const RunContext&) {
    return start.Elements(
        out->size(),
        {condition->data<uint8_t>(), x == nullptr ? nullptr : x->raw(),
         y == nullptr ? nullptr : y->raw(), out->raw(), out->size()});
  });
}

absl::StatusOr<Step> BindWhere(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Input("Y"),
         *out = context->Output("Out");
  if (x == nullptr || y == nullptr || x->bytes() != out->bytes() ||
      y->bytes() != out->bytes())
    return Unimplemented("a variable is missing or has another size");
  context->MayShare(x, out);
  context->MayShare(y, out);
  return SelectStep(binding, context->Input("Condition"), x, y, out);
}

absl::StatusOr<Step> BindWhereGrad(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *condition = context->Input("Condition"),
         *dout = context->Input("Out@GRAD");
  for (const char* slot : {"X", "Y"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  std::vector<Step> steps;
  for (const bool of_x : {true, false}) {
    Tensor* to = context->Output(of_x ? "X@GRAD" : "Y@GRAD");
    if (to == nullptr) continue;
    if (to->bytes() != dout->bytes())
      return Unimplemented("a gradient of another size");
    PD_ASSIGN_OR_RETURN(Step step,
                        SelectStep(binding, condition, of_x ? dout : nullptr,
                                   of_x ? nullptr : dout, to));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

absl::StatusOr<Step> BindTriangle(BindContext* context,
                                  DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* to = context->Output(grad ? "X@GRAD" : "Out");
  if (from->rank() < 2 || from->size() == 0 || from->size() != to->size())
    return Unimplemented("X has shape %s", ToString(from->shape()));
  TriangleArgs args{};
  args.n = from->size();
  args.columns = from->shape().back();
  args.rows = from->dim(from->rank() - 2);
  args.diagonal = context->Attr<int32_t>("diagonal");
  args.lower = context->Attr<bool>("lower");
  context->MayShare(from, to);
  PD_ASSIGN_OR_RETURN(
      const auto start,
      FindForSize<TriangleArgs>(binding, "triangle", from->dtype()));
  return Step([=](const RunContext&) {
    TriangleArgs run = args;
    run.from = from->raw();
    run.to = to->raw();
    return start.Elements(run.n, run);
  });
}

}  // namespace

void AddWhere(KernelTable* kernels) {
  AddMove<BindWhere>("where", kernels);
  AddMove<BindWhereGrad>("where_grad", kernels);
  AddMove<BindTriangle>("tril_triu", kernels);
  AddMove<BindTriangle>("tril_triu_grad", kernels);
}

}  // namespace pd::cuda
