// SPDX-License-Identifier: Apache-2.0
// sequence_pool, sequence_softmax, sequence_mask and sequence_scatter; the
// kernels are in sequence.cu. Where sequences begin is part of the plan, so a
// table of that is made with it.
#include "libcore/ops/sequence/sequence.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/device_tables.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/sequence/sequence_pool.h"
#include "libcore/ops/sequence/sequence_scatter.h"

namespace pd::cuda {
namespace {

absl::StatusOr<SequenceArgs> ReadSequences(const BindContext& context,
                                           DeviceBinding* binding,
                                           const Tensor* x) {
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  PD_ASSIGN_OR_RETURN(const SequencePool pool, SequencePoolOf(context.op()));
  SequenceArgs args{};
  args.count = static_cast<int64_t>(offsets.size()) - 1;
  args.width = RowWidth(x->shape());
  args.pad = context.Attr<float>("pad_value");
  args.kind = static_cast<int32_t>(pool);
  PD_ASSIGN_OR_RETURN(args.offsets, KeepTable(binding, offsets));
  return args;
}

absl::StatusOr<Step> BindSequencePool(BindContext* context,
                                      DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out"),
         *index = context->Output("MaxIndex");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  PD_ASSIGN_OR_RETURN(const SequenceArgs args,
                      ReadSequences(*context, binding, x));
  const bool indexed = args.kind == kSequenceMax && index != nullptr;
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<SequenceArgs>::Find(binding, "pool_sequences"));
  return Step([=](const RunContext&) {
    SequenceArgs run = args;
    run.from = At(x);
    run.to = At(out);
    run.index = indexed ? index->data<int32_t>() : nullptr;
    return start.Elements(run.count * run.width, run);
  });
}

absl::StatusOr<Step> BindSequencePoolGrad(BindContext* context,
                                          DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *index = context->Input("MaxIndex"),
         *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({dout, dx}));
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const SequenceArgs args,
                      ReadSequences(*context, binding, x));
  const int64_t count = args.count * args.width;
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", dout->dtype(), count));
  const bool indexed = args.kind == kSequenceMax;
  if (indexed)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "MaxIndex", DType::kInt32, count));
  PD_ASSIGN_OR_RETURN(const auto start, Starter<SequenceArgs>::Find(
                                            binding, "pool_sequences_grad"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PD_RETURN_IF_ERROR(device->Clear(dx->raw(), dx->bytes()));
    SequenceArgs run = args;
    run.from = At(dout);
    run.to = At(dx);
    run.index = indexed ? index->data<int32_t>() : nullptr;
    return start.Elements(count, run);
  });
}

absl::StatusOr<Step> BindSequenceSoftmax(BindContext* context,
                                         DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor *x = context->Input("X"), *y = grad ? context->Input("Out") : nullptr,
         *dy = grad ? context->Input("Out@GRAD") : nullptr,
         *to = context->Output(grad ? "X@GRAD" : "Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, y, dy, to}));
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  if (x->size() != x->dim(0)) return Unimplemented("rows of several elements");
  if (grad) {
    context->NoBuffer(x);
    for (const char* slot : {"Out", "Out@GRAD"})
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), x->size()));
  }
  SequenceSoftmaxArgs args{};
  args.count = static_cast<int64_t>(offsets.size()) - 1;
  PD_ASSIGN_OR_RETURN(args.offsets, KeepTable(binding, offsets));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<SequenceSoftmaxArgs>::Find(
          binding, grad ? "sequence_softmax_grad" : "sequence_softmax"));
  return Step([=](const RunContext&) {
    SequenceSoftmaxArgs run = args;
    run.x = grad ? nullptr : At(x);
    run.y = At(y);
    run.dy = At(dy);
    run.to = At(to);
    return start.Items(run.count, run);
  });
}

absl::StatusOr<Step> BindSequenceMask(BindContext* context,
                                      DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Output("Y");
  PD_RETURN_IF_ERROR(OnlyFloat32({y}));
  if (Tensor* most = context->Input("MaxLenTensor")) context->NoBuffer(most);
  SequenceMaskArgs args{};
  args.n = x->size();
  args.width = y->shape().back();
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*x));
  PD_ASSIGN_OR_RETURN(const auto start, Starter<SequenceMaskArgs>::Find(
                                            binding, "sequence_mask"));
  return Step([=](const RunContext&) {
    SequenceMaskArgs run = args;
    run.lengths = x->raw();
    run.to = At(y);
    return start.Elements(run.n * run.width, run);
  });
}

absl::StatusOr<Step> BindScatter(BindContext* context, DeviceBinding* binding) {
  const bool grad = context->Input("Out@GRAD") != nullptr;
  Tensor *from = context->Input(grad ? "Out@GRAD" : "X"),
         *updates = context->Input("Updates"), *out = context->Output("Out"),
         *dx = context->Output("X@GRAD"),
         *dupdates = context->Output("Updates@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({from, updates, out, dx, dupdates}));
  PD_ASSIGN_OR_RETURN(const ScatterPlaces places,
                      ReadScatterPlaces(context, from->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Updates", from->dtype(), places.ids->size()));
  if (grad) context->NoBuffer(updates);
  SequenceScatterArgs args{};
  args.rows = from->dim(0);
  args.count = static_cast<int64_t>(places.offsets.size()) - 1;
  args.width = places.width;
  PD_ASSIGN_OR_RETURN(args.offsets, KeepTable(binding, places.offsets));
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*places.ids));
  PD_ASSIGN_OR_RETURN(args.bad,
                      binding->ErrorFlag(absl::StrFormat(
                          "'Ids' of %s holds a number outside [0, %d)",
                          context->op().type, args.width)));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<SequenceScatterArgs>::Find(
          binding, grad ? "sequence_scatter_grad" : "sequence_scatter"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    SequenceScatterArgs run = args;
    run.ids = places.ids->raw();
    if (!grad) {
      run.x = At(from);
      run.updates = At(updates);
      run.out = At(out);
      return start.Elements(from->size(), run);
    }
    if (dx != nullptr)
      PD_RETURN_IF_ERROR(device->Copy(dx->raw(), from->raw(), dx->bytes()));
    run.dout = At(from);
    run.dupdates = At(dupdates);
    return dupdates == nullptr ? absl::OkStatus()
                               : start.Elements(run.count, run);
  });
}

}  // namespace

void AddSequence(KernelTable* kernels) {
  kernels->Add("sequence_pool", {"cuda", BindSequencePool});
  kernels->Add("sequence_pool_grad", {"cuda", BindSequencePoolGrad});
  kernels->Add("sequence_mask", {"cuda", BindSequenceMask});
  kernels->Add("sequence_scatter", {"cuda", BindScatter});
  kernels->Add("sequence_scatter_grad", {"cuda", BindScatter});
  kernels->Add("sequence_softmax", {"cuda", BindSequenceSoftmax});
  kernels->Add("sequence_softmax_grad", {"cuda", BindSequenceSoftmax});
}

}  // namespace pd::cuda
