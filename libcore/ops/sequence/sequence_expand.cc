// SPDX-License-Identifier: Apache-2.0
// Sequences repeated as often as another tensor's LoD says.
//   sequence_expand: sequence i of X (row i where X has no LoD) as often as
//     sequence i of Y is long at level `ref_level` (-1: the innermost); Out has
//     a LoD where X has one
//   sequence_expand_as: row i of X, as often; Out has Y's LoD
// X@GRAD sums what was repeated. Y gives its LoD alone.
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_maps.h"

namespace pd {
namespace {

// How Out follows from the two LoDs.
struct SequenceExpansion {
  RowMap map;
  LoD lod;
};

// `rows` is X's number of rows, -1 while it is not known.
absl::StatusOr<SequenceExpansion> Expand(const LoD& x, int64_t rows,
                                         const std::vector<uint64_t>& times) {
  SequenceExpansion e;
  if (times.size() <= 1) {  // nothing to repeat by: a copy
    for (int64_t r = 0; r < rows; ++r) e.map.push_back(r);
    e.lod = x;
    return e;
  }
  const size_t count = times.size() - 1;
  const int64_t have =
      x.empty() ? rows : static_cast<int64_t>(x.back().size()) - 1;
  if (have >= 0 && have != static_cast<int64_t>(count))
    return InvalidArgument("'X' has %d sequences; 'Y' has %d", have, count);
  std::vector<uint64_t> level = {0};
  for (size_t i = 0; i < count; ++i) {
    const uint64_t begin = x.empty() ? i : x.back()[i];
    const uint64_t end = x.empty() ? i + 1 : x.back()[i + 1];
    for (uint64_t k = times[i]; k < times[i + 1]; ++k) {
      for (uint64_t r = begin; r < end; ++r)
        e.map.push_back(static_cast<int64_t>(r));
      level.push_back(e.map.size());
    }
  }
  if (!x.empty()) e.lod = {std::move(level)};
  return e;
}

absl::StatusOr<size_t> Level(int32_t ref_level, size_t levels) {
  const int64_t level =
      ref_level == -1 ? static_cast<int64_t>(levels) - 1 : ref_level;
  if (level < 0 || level >= static_cast<int64_t>(levels))
    return InvalidArgument(
        "attr 'ref_level' is %d; the LoD of 'Y' has %d levels", ref_level,
        levels);
  return static_cast<size_t>(level);
}

absl::Status InferExpand(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  PD_RETURN_IF_ERROR(KnownSequences(x, "X").status());
  TensorMeta out = WithRows(x, -1);
  out.lod_level = x.lod_level;
  const bool x_known = !x.lod.empty() || (x.lod_level == 0 && x.shape[0] >= 0);
  if (!y.lod.empty() && x_known) {
    PD_RETURN_IF_ERROR(CheckLoD(y.lod, y.shape.empty() ? -1 : y.shape[0], "Y"));
    PD_ASSIGN_OR_RETURN(
        const size_t level,
        Level(context->Attr<int32_t>("ref_level"), y.lod.size()));
    PD_ASSIGN_OR_RETURN(SequenceExpansion e,
                        Expand(x.lod, x.shape[0], y.lod[level]));
    out.shape[0] = y.lod[level].size() <= 1
                       ? x.shape[0]
                       : static_cast<int64_t>(e.map.size());
    out.SetLoD(std::move(e.lod));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RowMap> ExpansionMap(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  context->NoBuffer(y);
  PD_RETURN_IF_ERROR(SequencesOf(y, "Y").status());
  if (x->rank() == 0) return InvalidArgument("'X' is a scalar; expected rows");
  PD_RETURN_IF_ERROR(CheckLoD(x->lod(), x->dim(0), "X"));
  const bool as = context->op().type.find("expand_as") != std::string::npos;
  PD_ASSIGN_OR_RETURN(
      const size_t level,
      Level(as ? -1 : context->Attr<int32_t>("ref_level"), y->lod().size()));
  PD_ASSIGN_OR_RETURN(SequenceExpansion e, Expand(as ? LoD() : x->lod(),
                                                  x->dim(0), y->lod()[level]));
  return std::move(e.map);
}

namespace {

absl::StatusOr<Step> BindExpand(BindContext* context) {
  PD_ASSIGN_OR_RETURN(RowMap map, ExpansionMap(context));
  return GatherStep(std::move(map), context->Input("X"),
                    context->Output("Out"));
}

absl::StatusOr<Step> BindExpandGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(RowMap map, ExpansionMap(context));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(),
                     static_cast<int64_t>(map.size()) * RowWidth(x->shape())));
  return ScatterAddStep(std::move(map), context->Input("Out@GRAD"),
                        context->Output("X@GRAD"));
}

absl::Status InferExpandAs(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.shape.empty()) return InvalidArgument("'X' is a scalar; expected rows");
  PD_ASSIGN_OR_RETURN(const auto offsets, KnownSequences(y, "Y"));
  TensorMeta out = WithRows(x, -1);
  out.lod_level = y.lod_level;
  if (offsets.has_value()) {
    PD_RETURN_IF_ERROR(Expand({}, x.shape[0], y.lod.back()).status());
    out.shape[0] = offsets->back();
    out.SetLoD(y.lod);
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status AddOp(OpRegistry* registry, const std::string& type,
                   InferFn infer) {
  const bool has_level = type == "sequence_expand";
  OpDef op(type);
  op.Input("X").Input("Y").Output("Out");
  OpDef grad(type + "_grad");
  grad.Input("X").Input("Y").Input("Out@GRAD").Output("X@GRAD");
  if (has_level) {
    op.Attr("ref_level", int32_t{-1});
    grad.Attr("ref_level", int32_t{-1});
  }
  op.Infer(infer).Reference(BindExpand);
  op.Grad(GradSpec{type + "_grad", {"X", "Y"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindExpandGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterSequenceExpand(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddOp(registry, "sequence_expand", InferExpand));
  return AddOp(registry, "sequence_expand_as", InferExpandAs);
}

}  // namespace pd
