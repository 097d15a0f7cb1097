// SPDX-License-Identifier: Apache-2.0
// row_conv and its gradient; the kernels are in row_conv.cu.
#include "libcore/ops/sequence/row_conv.h"

#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/device_tables.h"
#include "libcore/kernels/cuda/row_conv_arguments.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

absl::StatusOr<RowConvArgs> ReadArgs(DeviceBinding* binding, const Tensor& x,
                                     const Tensor& filter) {
  PD_RETURN_IF_ERROR(OnlyFloat32({&x, &filter}));
  PD_ASSIGN_OR_RETURN(const RowConv conv, ReadRowConv(x, filter));
  std::vector<int64_t> begins, ends;
  for (size_t i = 0; i + 1 < conv.offsets.size(); ++i)
    for (int64_t r = conv.offsets[i]; r < conv.offsets[i + 1]; ++r) {
      begins.push_back(conv.offsets[i]);
      ends.push_back(conv.offsets[i + 1]);
    }
  RowConvArgs args{};
  args.rows = static_cast<int64_t>(begins.size());
  args.columns = conv.columns;
  args.context = conv.context;
  PD_ASSIGN_OR_RETURN(args.begins, KeepTable(binding, begins));
  PD_ASSIGN_OR_RETURN(args.ends, KeepTable(binding, ends));
  return args;
}

absl::StatusOr<Step> BindRowConv(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *filter = context->Input("Filter"),
         *out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const RowConvArgs args, ReadArgs(binding, *x, *filter));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<RowConvArgs>::Find(binding, "row_conv"));
  return Step([=](const RunContext&) {
    RowConvArgs run = args;
    run.x = At(x);
    run.filter = At(filter);
    run.to = At(out);
    return start.Elements(out->size(), run);
  });
}

absl::StatusOr<Step> BindRowConvGrad(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *filter = context->Input("Filter"),
         *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD"),
         *dfilter = context->Output("Filter@GRAD");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  PD_ASSIGN_OR_RETURN(const RowConvArgs args, ReadArgs(binding, *x, *filter));
  using Start = Starter<RowConvArgs>;
  PD_ASSIGN_OR_RETURN(const auto to_x, Start::Find(binding, "row_conv_grad_x"));
  PD_ASSIGN_OR_RETURN(const auto to_filter,
                      Start::Find(binding, "row_conv_grad_filter"));
  return Step([=](const RunContext&) {
    RowConvArgs run = args;
    run.x = At(x);
    run.filter = At(filter);
    run.dout = At(dout);
    run.to = At(dx);
    if (dx != nullptr) PD_RETURN_IF_ERROR(to_x.Elements(dx->size(), run));
    run.to = At(dfilter);
    return dfilter == nullptr ? absl::OkStatus()
                              : to_filter.Elements(dfilter->size(), run);
  });
}

}  // namespace

void AddRowConv(KernelTable* kernels) {
  kernels->Add("row_conv", {"cuda", BindRowConv});
  kernels->Add("row_conv_grad", {"cuda", BindRowConvGrad});
}

}  // namespace pd::cuda
