// SPDX-License-Identifier: Apache-2.0
// hierarchical_sigmoid and its gradient; the kernels are in
// hierarchical_sigmoid.cu and linear_rows.cu.
#include "libcore/ops/loss/hierarchical_sigmoid.h"

#include "absl/strings/str_format.h"
#include "libcore/kernels/cuda/linear_rows.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

absl::StatusOr<HsigmoidArgs> HsigmoidArgsOf(const BindContext& context,
                                            DeviceBinding* binding,
                                            const HsigmoidTree& tree) {
  const Tensor *x = context.Input("X"), *bias = context.Input("Bias");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, bias}));
  HsigmoidArgs args{};
  args.samples = x->dim(0);
  args.width = x->dim(1);
  args.depth = tree.depth;
  args.classes = tree.classes;
  args.nodes = tree.nodes;
  if (args.samples * args.width * args.depth == 0)
    return Unimplemented("no elements");
  PD_ASSIGN_OR_RETURN(args.label_wide, IsWide(*tree.label));
  if (tree.table != nullptr) {
    PD_ASSIGN_OR_RETURN(args.table_wide, IsWide(*tree.table));
    PD_ASSIGN_OR_RETURN(args.code_wide, IsWide(*tree.code));
  }
  PD_ASSIGN_OR_RETURN(
      args.bad,
      binding->ErrorFlag(
          tree.table == nullptr
              ? absl::StrFormat("'Label' of %s holds a number outside [0, %d)",
                                context.op().type, args.classes)
              : absl::StrFormat("'PathTable' of %s holds %d or more",
                                context.op().type, args.nodes)));
  return args;
}

// With what is known when a step runs.
HsigmoidArgs HsigmoidArgsNow(HsigmoidArgs args, const HsigmoidTree& tree) {
  args.label = tree.label->raw();
  if (tree.table == nullptr) return args;
  args.table = tree.table->raw();
  args.code = tree.code->raw();
  return args;
}

absl::StatusOr<Step> BindHsigmoid(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *w = context->Input("W"),
         *bias = context->Input("Bias"), *out = context->Output("Out"),
         *pre_out = context->Output("PreOut"),
         *w_out = context->Output("W_Out");
  PD_ASSIGN_OR_RETURN(const HsigmoidTree tree, ReadHsigmoidTree(*context));
  PD_ASSIGN_OR_RETURN(const HsigmoidArgs args,
                      HsigmoidArgsOf(*context, binding, tree));
  const int64_t pairs = args.samples * args.depth;
  const size_t bytes = static_cast<size_t>(pairs) * sizeof(float);
  if (pre_out == nullptr) pre_out = context->Scratch(bytes);
  Tensor* const z = context->Scratch(bytes);
  using Start = Starter<HsigmoidArgs>;
  PD_ASSIGN_OR_RETURN(const auto nodes, Start::Find(binding, "hsigmoid_nodes"));
  PD_ASSIGN_OR_RETURN(const auto sum, Start::Find(binding, "hsigmoid_out"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    if (w_out != nullptr && w_out->raw() != w->raw())
      PD_RETURN_IF_ERROR(device->Copy(w_out->raw(), w->raw(), w->bytes()));
    HsigmoidArgs run = HsigmoidArgsNow(args, tree);
    run.x = At(x);
    run.w = At(w);
    run.bias = At(bias);
    run.pre_out = At(pre_out);
    run.z = At(z);
    run.out = At(out);
    PD_RETURN_IF_ERROR(nodes.Elements(pairs, run));
    return sum.Elements(run.samples, run);
  });
}

absl::StatusOr<Step> BindHsigmoidGrad(BindContext* context,
                                      DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *w = context->Input("W"),
         *bias = context->Input("Bias"), *pre_out = context->Input("PreOut"),
         *dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(const HsigmoidTree tree, ReadHsigmoidTree(*context));
  PD_ASSIGN_OR_RETURN(const HsigmoidArgs args,
                      HsigmoidArgsOf(*context, binding, tree));
  const int64_t pairs = args.samples * args.depth;
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "PreOut", DType::kFloat32, pairs));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", DType::kFloat32, args.samples));
  const LinearRowsGrad to{
      context->Output("X@GRAD"), context->Output("W@GRAD"),
      bias != nullptr ? context->Output("Bias@GRAD") : nullptr,
      context->Attr<bool>("is_sparse"), pairs};
  PD_ASSIGN_OR_RETURN(const LinearRows grads,
                      LinearRows::Make(context, binding, x, w, tree.depth, to));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<HsigmoidArgs>::Find(binding, "hsigmoid_slopes"));
  return Step([=](const RunContext&) {
    HsigmoidArgs run = HsigmoidArgsNow(args, tree);
    run.pre_out = At(pre_out);
    run.dout = At(dout);
    run.dz = grads.dz();
    run.rows = grads.rows();
    PD_RETURN_IF_ERROR(start.Elements(pairs, run));
    return grads.Run();
  });
}

}  // namespace

void AddHierarchicalSigmoid(KernelTable* kernels) {
  kernels->Add("hierarchical_sigmoid", {"cuda", BindHsigmoid});
  kernels->Add("hierarchical_sigmoid_grad",
               Implementation("cuda", BindHsigmoidGrad).TakesSelectedRows());
}

}  // namespace pd::cuda
