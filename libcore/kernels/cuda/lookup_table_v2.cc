// SPDX-License-Identifier: Apache-2.0
// Embedding lookups; the kernel is in lookup_table_v2.cu, those of gradients in
// row_sums.cu, or selected_rows.cu where they are selected rows.
#include <string>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/row_sums.h"
#include "libcore/kernels/cuda/selected_rows.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

template <typename T>
absl::StatusOr<LookupArgsOf<T>> ReadLookup(BindContext* context,
                                           DeviceBinding* binding,
                                           const Tensor& w, const Tensor& ids) {
  if (w.rank() != 2 ||
      (ids.dtype() != DType::kInt64 && ids.dtype() != DType::kInt32))
    return Unimplemented("W has shape %s, Ids are %s", ToString(w.shape()),
                         Name(ids.dtype()));
  LookupArgsOf<T> args{};
  args.count = ids.size();
  args.rows = w.dim(0);
  args.width = w.dim(1);
  args.padding = context->Attr<int64_t>("padding_idx");
  // -1 means none: no id may be it.
  if (args.padding == -1) args.padding = INT64_MIN;
  args.ids64 = ids.dtype() == DType::kInt64;
  PD_ASSIGN_OR_RETURN(
      args.bad, binding->ErrorFlag(absl::StrFormat(
                    "'Ids' of %s over '%s' holds a number outside [0, %d)",
                    context->op().type, context->op().In("W"), args.rows)));
  return args;
}

absl::StatusOr<Step> BindLookup(BindContext* context, DeviceBinding* binding) {
  Tensor *w = context->Input("W"), *ids = context->Input("Ids"),
         *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({w, out}));
  return ForReal(*w, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const LookupArgsOf<T> args,
                        ReadLookup<T>(context, binding, *w, *ids));
    PD_ASSIGN_OR_RETURN(const auto start, Starter<LookupArgsOf<T>>::Find(
                                              binding, KernelFor<T>("lookup")));
    return Step([=](const RunContext&) {
      LookupArgsOf<T> run = args;
      run.from = Read<T>(w);
      run.to = Write<T>(out);
      run.ids = ids->raw();
      return start.Elements(run.count * run.width, run);
    });
  });
}

absl::StatusOr<Step> BindLookupGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *w = context->Input("W"), *ids = context->Input("Ids"),
         *dout = context->Input("Out@GRAD"), *dw = context->Output("W@GRAD");
  if (IsSelectedRows(dw)) return BindLookupRows(context, binding);
  PD_RETURN_IF_ERROR(SameNumbers({w, dout, dw}));
  context->NoBuffer(w);
  return ForReal(*dw, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const LookupArgsOf<T> args,
                        ReadLookup<T>(context, binding, *w, *ids));
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", w->dtype(),
                                      args.count * args.width));
    return BindRowSums(context, binding, args, ids, dout, dw);
  });
}

}  // namespace

void AddLookupTableV2(KernelTable* kernels) {
  for (const std::string type : {"lookup_table", "lookup_table_v2"}) {
    kernels->Add(type, {"cuda", BindLookup});
    kernels->Add(type + "_grad",
                 Implementation("cuda", BindLookupGrad).TakesSelectedRows());
  }
}

}  // namespace pd::cuda
