// SPDX-License-Identifier: Apache-2.0
// Ops that move the rows of sequences, or sum them, by the maps of
// libcore/ops/sequence/sequence_maps.h.
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/device_tables.h"
#include "libcore/kernels/cuda/row_maps.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/sequence/sequence_maps.h"

namespace pd::cuda {
namespace {

absl::StatusOr<Step> GatherStepOf(DeviceBinding* binding, const RowMap& map,
                                  Tensor* from, Tensor* to) {
  PD_ASSIGN_OR_RETURN(
      const RowGather gather,
      RowGather::Make(binding, map, RowWidth(to->shape()), to->dtype()));
  return Step(
      [=](const RunContext&) { return gather.Run(from->raw(), to->raw()); });
}

absl::StatusOr<Step> BindReverse(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Output("Y");
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  return GatherStepOf(binding, ReversedMap(offsets), x, y);
}

absl::StatusOr<Step> BindExpand(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const RowMap map, ExpansionMap(context));
  return GatherStepOf(binding, map, context->Input("X"),
                      context->Output("Out"));
}

absl::StatusOr<Step> BindExpandGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_RETURN_IF_ERROR(OnlyFloat32({dout, dx}));
  PD_ASSIGN_OR_RETURN(const RowMap map, ExpansionMap(context));
  const int64_t width = RowWidth(x->shape());
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", DType::kFloat32,
                                    static_cast<int64_t>(map.size()) * width));
  PD_ASSIGN_OR_RETURN(const RowSums sums,
                      RowSums::Make(binding, map, x->dim(0), width));
  return Step([=](const RunContext&) { return sums.Run(At(dout), At(dx)); });
}

absl::StatusOr<Step> BindConcat(BindContext* context, DeviceBinding* binding) {
  Tensor* const out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const auto places, ConcatMaps(context));
  std::vector<Step> steps;
  for (size_t i = 0; i < places.size(); ++i) {
    RowMap map(static_cast<size_t>(out->dim(0)), -1);
    for (size_t r = 0; r < places[i].size(); ++r)
      map[static_cast<size_t>(places[i][r])] = static_cast<int64_t>(r);
    PD_ASSIGN_OR_RETURN(
        Step step, GatherStepOf(binding, map, context->Input("X", i), out));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

absl::StatusOr<Step> BindConcatGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor* const dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(const auto places, ConcatMaps(context));
  int64_t rows = 0;
  for (const RowMap& place : places) rows += static_cast<int64_t>(place.size());
  std::vector<Step> steps;
  for (size_t i = 0; i < places.size(); ++i) {
    Tensor *x = context->Input("X", i), *dx = context->Output("X@GRAD", i);
    context->NoBuffer(x);
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(),
                                      rows * RowWidth(x->shape())));
    if (dx == nullptr) continue;
    PD_ASSIGN_OR_RETURN(Step step, GatherStepOf(binding, places[i], dout, dx));
    steps.push_back(std::move(step));
  }
  return InOrder(std::move(steps));
}

absl::StatusOr<Step> BindSequenceRowsPad(BindContext* context,
                                         DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *value = context->Input("PadValue"),
         *out = context->Output("Out"), *length = context->Output("Length");
  PD_RETURN_IF_ERROR(SameFloats({x, out}));
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  PD_ASSIGN_OR_RETURN(const RowMap map, PaddedMap(offsets, out->dim(1)));
  if (value->size() == 0 || value->dtype() != x->dtype())
    return Unimplemented("'PadValue' is %s %s", Name(value->dtype()),
                         ToString(value->shape()));
  PD_ASSIGN_OR_RETURN(
      const RowGather gather,
      RowGather::Make(binding, map, RowWidth(x->shape()), x->dtype()));
  std::vector<int64_t> lengths;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    lengths.push_back(offsets[i + 1] - offsets[i]);
  PD_ASSIGN_OR_RETURN(const int64_t* const known, KeepTable(binding, lengths));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PD_RETURN_IF_ERROR(gather.Run(x->raw(), out->raw(), *value));
    return length == nullptr
               ? absl::OkStatus()
               : device->Copy(length->raw(), known, length->bytes());
  });
}

absl::StatusOr<Step> BindPadGrad(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  Shape want = x->shape();
  want[0] = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t length = dout->rank() < 2 ? 0 : dout->dim(1);
  want.insert(want.begin() + 1, length);
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), want));
  PD_ASSIGN_OR_RETURN(const RowMap map, PackedMap(offsets, length));
  return GatherStepOf(binding, map, dout, dx);
}

}  // namespace

void AddSequenceRows(KernelTable* kernels) {
  AddMove<BindReverse>("sequence_reverse", kernels);
  AddMove<BindExpand>("sequence_expand", kernels);
  AddMove<BindExpand>("sequence_expand_as", kernels);
  AddMove<BindConcat>("sequence_concat", kernels);
  AddMove<BindConcatGrad>("sequence_concat_grad", kernels);
  kernels->Add("sequence_pad", {"cuda", BindSequenceRowsPad});
  AddMove<BindPadGrad>("sequence_pad_grad", kernels);
  kernels->Add("sequence_expand_grad", {"cuda", BindExpandGrad});
  kernels->Add("sequence_expand_as_grad", {"cuda", BindExpandGrad});
}

}  // namespace pd::cuda
