// SPDX-License-Identifier: Apache-2.0
// int8_dynamic_matmul: rows become bytes by a kernel of ours, their products
// with the weights are cuBLASLt's; the kernels are in int8_dynamic.cu.
#include <utility>

#include "libcore/kernels/cuda/int8_bindings.h"

namespace pd::cuda {
namespace {

// The weights, their scales and their sums, which the plan keeps.
absl::Status UploadWeights(DeviceBinding* binding, const Int8Weights& w,
                           Int8DynamicArgs* args, const int8_t** packed) {
  PD_ASSIGN_OR_RETURN(
      *packed, Upload(binding, PackWeights(w, 1, args->width, args->depth)));
  PD_ASSIGN_OR_RETURN(args->weight_scales, Upload(binding, w.scales));
  PD_ASSIGN_OR_RETURN(args->weight_sums, Upload(binding, SumsOfWeights(w, 1)));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDynamic(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("Input"), *out = context->Output("Output");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  if (x->size() == 0 || out->size() == 0)
    return Unimplemented("a product of nothing");
  PD_ASSIGN_OR_RETURN(const Int8Product p,
                      ReadInt8Product(context->op(), x->shape(),
                                      context->Input("Filter")->shape()));
  PD_ASSIGN_OR_RETURN(const Int8Constants c, ReadConstants(context, binding));
  Int8DynamicArgs args{};
  args.rows = p.rows;
  args.size = p.depth;
  args.depth = RoundUp(p.depth, kInt8Depth);
  args.columns = p.columns;
  args.width = RoundUp(p.columns, kInt8Width);
  const int8_t* packed = nullptr;
  PD_RETURN_IF_ERROR(UploadWeights(binding, c.weights, &args, &packed));
  PD_ASSIGN_OR_RETURN(auto bound, BindBytes(CudaOf(binding), args.rows,
                                            args.width, args.depth, 1));
  PD_ASSIGN_OR_RETURN(const auto gather, Starter<Int8DynamicArgs>::Find(
                                             binding, "int8_dynamic_rows"));
  PD_ASSIGN_OR_RETURN(const auto finish, Starter<Int8DynamicArgs>::Find(
                                             binding, "int8_dynamic_sums"));
  const auto scratch = [&](int64_t n, size_t size) {
    return context->Scratch(static_cast<size_t>(n) * size);
  };
  Tensor *bytes = scratch(args.rows * args.depth, 1),
         *scales = scratch(args.rows, sizeof(float)),
         *zeros = scratch(args.rows, sizeof(int32_t)),
         *sums = scratch(args.rows * args.width, sizeof(int32_t));
  Tensor* workspace =
      bound->workspace() == 0 ? nullptr : context->Scratch(bound->workspace());
  return Step([=, bound = std::move(bound)](const RunContext&) {
    Int8DynamicArgs run = args;
    run.x = At(x);
    run.bytes = static_cast<int8_t*>(bytes->raw());
    run.scales = static_cast<float*>(scales->raw());
    run.zeros = static_cast<int32_t*>(zeros->raw());
    run.sums = static_cast<const int32_t*>(sums->raw());
    run.out = At(out);
    PD_RETURN_IF_ERROR(gather.Items(run.rows, run));
    PD_RETURN_IF_ERROR(
        bound->Run(bytes->raw(), packed, sums->raw(),
                   workspace == nullptr ? nullptr : workspace->raw()));
    return finish.Elements(run.rows * run.columns, run);
  });
}

}  // namespace

void AddInt8Dynamic(KernelTable* kernels) {
  kernels->Add("int8_dynamic_matmul", {"cublaslt:int8", BindDynamic});
}

}  // namespace pd::cuda
