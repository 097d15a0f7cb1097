// SPDX-License-Identifier: Apache-2.0
// Sequence i of Out: the sequences i of X[0], X[1], ... one after the other.
// X[k]@GRAD: its rows of Out@GRAD.
#include <cstdint>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_maps.h"

namespace pd {
namespace {

absl::Status InferConcat(InferContext* context) {
  const TensorMeta& first = context->Input("X");
  TensorMeta out = WithRows(first, 0);
  out.lod_level = first.lod_level;
  Offsets sums;
  bool known = true;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    PD_ASSIGN_OR_RETURN(const auto offsets, KnownSequences(x, "X"));
    const bool fits =
        x.dtype == out.dtype && x.shape.size() == out.shape.size();
    bool equal = fits;
    for (size_t d = 1; equal && d < x.shape.size(); ++d) {
      equal = x.shape[d] == out.shape[d] || x.shape[d] < 0 || out.shape[d] < 0;
      out.shape[d] = std::max(out.shape[d], x.shape[d]);
    }
    if (!equal)
      return InvalidArgument(
          "X[0] is %s %s, X[%d] is %s %s; expected rows "
          "alike",
          Name(first.dtype), ToString(first.shape), i, Name(x.dtype),
          ToString(x.shape));
    known = known && offsets.has_value();
    if (!known) continue;
    if (sums.empty()) sums.resize(offsets->size(), 0);
    if (sums.size() != offsets->size())
      return InvalidArgument("X[0] has %d sequences, X[%d] has %d",
                             sums.size() - 1, i, offsets->size() - 1);
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += (*offsets)[k];
  }
  out.shape[0] = known ? sums.back() : -1;
  if (known) out.SetLoD(OneLevel(sums));
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<RowMap>> ConcatMaps(BindContext* context) {
  std::vector<Offsets> offsets;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    PD_ASSIGN_OR_RETURN(offsets.emplace_back(),
                        SequencesOf(context->Input("X", i), "X"));
    if (offsets[i].size() != offsets[0].size())
      return InvalidArgument("X[0] has %d sequences, X[%d] has %d",
                             offsets[0].size() - 1, i, offsets[i].size() - 1);
  }
  std::vector<RowMap> places(offsets.size());
  int64_t next = 0;
  for (size_t k = 0; k + 1 < offsets[0].size(); ++k)
    for (size_t i = 0; i < offsets.size(); ++i)
      for (int64_t r = offsets[i][k]; r < offsets[i][k + 1]; ++r)
        places[i].push_back(next++);
  return places;
}

namespace {

absl::StatusOr<Step> BindConcat(BindContext* context) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const auto places, ConcatMaps(context));
  std::vector<const Tensor*> parts;
  std::vector<RowMap> maps;  // by row of Out; -1 where it is another part's
  for (size_t i = 0; i < places.size(); ++i) {
    parts.push_back(context->Input("X", i));
    RowMap map(static_cast<size_t>(out->dim(0)), -1);
    for (size_t r = 0; r < places[i].size(); ++r)
      map[static_cast<size_t>(places[i][r])] = static_cast<int64_t>(r);
    maps.push_back(std::move(map));
  }
  return Step([parts, maps, out](const RunContext&) {
    for (size_t i = 0; i < parts.size(); ++i)
      GatherRows(maps[i], *parts[i], out);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindConcatGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(const auto places, ConcatMaps(context));
  int64_t rows = 0;
  for (const RowMap& place : places) rows += static_cast<int64_t>(place.size());
  std::vector<Tensor*> grads;
  for (size_t i = 0; i < places.size(); ++i) {
    Tensor* x = context->Input("X", i);
    context->NoBuffer(x);
    grads.push_back(context->Output("X@GRAD", i));
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(),
                                      rows * RowWidth(x->shape())));
  }
  return Step([grads, places, dout](const RunContext&) {
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i] != nullptr) GatherRows(places[i], *dout, grads[i]);
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterSequenceConcat(OpRegistry* registry) {
  OpDef op("sequence_concat");
  op.Inputs("X").Output("Out").Infer(InferConcat).Reference(BindConcat);
  op.Grad(GradSpec{"sequence_concat_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sequence_concat_grad");
  grad.Inputs("X").Input("Out@GRAD").Outputs("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindConcatGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
