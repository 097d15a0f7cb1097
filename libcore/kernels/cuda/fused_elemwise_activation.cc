// SPDX-License-Identifier: Apache-2.0
// fused_elemwise_activation of the one kind that passes make: the ReLU of a sum
// of two tensors of one shape. sum_relu_grad, which is for the other direction.
#include <string>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/fused_elemwise_activation_arguments.h"
#include "libcore/kernels/cuda/layouts.h"

namespace pd::cuda {
namespace {

struct AddReluTensors {
  Tensor *x, *y;
  Tensor* relu;  // null, or of the gradient
  Tensor* out;
};
absl::StatusOr<Step> AddReluStep(DeviceBinding* binding,
                                 const std::string& name,
                                 const AddReluTensors& t) {
  return ForReal(*t.out, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start, Starter<AddReluArgsOf<T>>::Find(
                                              binding, KernelFor<T>(name)));
    return Step([=](const RunContext&) {
      AddReluArgsOf<T> run{};
      run.x = Read<T>(t.x);
      run.y = Read<T>(t.y);
      run.relu = Read<T>(t.relu);
      run.out = Write<T>(t.out);
      run.n = t.out->size();
      return start.Elements(Packs(run.n), run);
    });
  });
}

absl::StatusOr<Step> BindAddRelu(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Input("Y");
  Tensor* out = context->Output("Out");
  const auto& functors =
      context->Attr<std::vector<std::string>>("functor_list");
  if (functors != std::vector<std::string>{"relu", "elementwise_add"})
    return Unimplemented("functions other than the ReLU of a sum");
  if (context->Output("IntermediateOut") != nullptr)
    return Unimplemented("an output 'IntermediateOut'");
  if (x->shape() != y->shape())
    return Unimplemented("operands of the shapes %s and %s",
                         ToString(x->shape()), ToString(y->shape()));
  PD_RETURN_IF_ERROR(SameNumbers({x, y, out}));
  PD_RETURN_IF_ERROR(InOneLayout(context, {&x, &y}, {&out}));
  context->MayShare(x, out);
  context->MayShare(y, out);
  return AddReluStep(binding, "add_relu", {x, y, nullptr, out});
}

// As a ReLU's gradient, of the sum of two gradients.
absl::StatusOr<Step> BindSumReluGrad(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor *x = context->Input("X", 0), *y = context->Input("X", 1);
  Tensor* relu = context->Input("Out");
  Tensor* out = context->Output("X@GRAD");
  for (const Tensor* t : {x, y})
    if (t->shape() != relu->shape())
      return InvalidArgument("'X' has shape %s; 'Out' has %s",
                             ToString(t->shape()), ToString(relu->shape()));
  PD_RETURN_IF_ERROR(SameNumbers({relu, x, y, out}));
  PD_RETURN_IF_ERROR(InOneLayout(context, {&relu, &x, &y}, {&out}));
  context->MayShare(x, out);
  context->MayShare(y, out);
  return AddReluStep(binding, "sum_relu_grad", {x, y, relu, out});
}

}  // namespace

void AddFusedElemwiseActivation(KernelTable* kernels) {
  kernels->Add("fused_elemwise_activation", AnyLayout("cuda", BindAddRelu));
  kernels->Add("sum_relu_grad", AnyLayout("cuda", BindSumReluGrad));
}

}  // namespace pd::cuda
