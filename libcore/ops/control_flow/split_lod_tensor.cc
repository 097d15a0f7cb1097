// SPDX-License-Identifier: Apache-2.0
// The two branches of an if over a batch. Mask [n, 1] has a bool for each
// sequence of level `level` of X (each row where X has no LoD).
//   split_lod_tensor: OutTrue and OutFalse, the sequences where it is true and
//     where it is false
//   merge_lod_tensor (merge_lod_tensor_infer): the reverse; X gives the levels
//     outside `level`
// Each is the gradient of the other.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/control_flow/sub_lod.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

absl::Status CheckMask(DType dtype, const Shape& shape) {
  if (dtype == DType::kBool && shape.size() == 2 &&
      (shape[1] == 1 || shape[1] == -1))
    return absl::OkStatus();
  return InvalidArgument("'Mask' is %s %s; expected bool [n, 1]", Name(dtype),
                         ToString(shape));
}

absl::StatusOr<size_t> LevelOf(const OpDesc& op) {
  const int32_t level = op.Attr<int32_t>("level");
  if (level < 0)
    return InvalidArgument("attr 'level' is %d; expected 0 or more", level);
  return static_cast<size_t>(level);
}

// The rows of X in one branch.
struct Branch {
  RowMap rows;
  LoD lod;
};

absl::StatusOr<Branch> SplitBranchOf(const LoD& lod, int64_t rows, size_t level,
                                     const Tensor& mask, bool which) {
  Branch branch;
  for (int64_t i = 0; i < mask.dim(0); ++i) {
    if (mask.data<bool>()[i] != which) continue;
    PD_ASSIGN_OR_RETURN(const SubLoD sub, SubLoDOf(lod, level, i, i + 1, rows));
    for (int64_t r = sub.begin; r < sub.end; ++r) branch.rows.push_back(r);
    PD_RETURN_IF_ERROR(AppendSubLoD(sub, &branch.lod));
  }
  return branch;
}

absl::Status InferSplit(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& mask = context->Input("Mask");
  PD_RETURN_IF_ERROR(CheckMask(mask.dtype, mask.shape));
  PD_RETURN_IF_ERROR(KnownSequences(x, "X", SIZE_MAX).status());
  PD_ASSIGN_OR_RETURN(const size_t level, LevelOf(context->op()));
  for (const bool which : {true, false}) {
    TensorMeta out = WithRows(x, -1);
    out.lod_level = x.lod_level;
    if (mask.value != nullptr && x.shape[0] >= 0) {
      PD_ASSIGN_OR_RETURN(Branch branch, SplitBranchOf(x.lod, x.shape[0], level,
                                                       *mask.value, which));
      out.shape[0] = static_cast<int64_t>(branch.rows.size());
      out.SetLoD(std::move(branch.lod));
    }
    context->SetOutput(which ? "OutTrue" : "OutFalse", std::move(out));
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSplit(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* mask = context->Input("Mask");
  PD_ASSIGN_OR_RETURN(const size_t level, LevelOf(context->op()));
  Tensor* branches[2] = {context->Output("OutFalse"),
                         context->Output("OutTrue")};
  PD_RETURN_IF_ERROR(CheckLoD(x->lod(), x->dim(0), "X"));
  return Step([=, no = branches[0],
               yes = branches[1]](const RunContext&) -> absl::Status {
    for (Tensor* out : {no, yes}) {
      if (out == nullptr) continue;
      PD_ASSIGN_OR_RETURN(
          const Branch branch,
          SplitBranchOf(x->lod(), x->dim(0), level, *mask, out == yes));
      if (static_cast<int64_t>(branch.rows.size()) != out->dim(0))
        return InvalidArgument("'Mask' leaves %d rows; the output has %d",
                               branch.rows.size(), out->dim(0));
      GatherRows(branch.rows, *x, out);
    }
    return absl::OkStatus();
  });
}

// For each row of Out the row of its branch; -1 in the other one's map.
struct Merged {
  RowMap from_true, from_false;
  LoD lod;
};

// The metadata of a branch that merging reads.
struct Part {
  const LoD& lod;
  int64_t rows;
};

absl::StatusOr<Merged> Merge(const Part& yes, const Part& no,
                             const Tensor& mask) {
  Merged merged;
  int64_t next[2] = {0, 0};
  for (int64_t i = 0; i < mask.dim(0); ++i) {
    const bool which = mask.data<bool>()[i];
    const Part& part = which ? yes : no;
    const int64_t at = next[which ? 1 : 0]++;
    PD_ASSIGN_OR_RETURN(const SubLoD sub,
                        SubLoDOf(part.lod, 0, at, at + 1, part.rows));
    for (int64_t r = sub.begin; r < sub.end; ++r) {
      merged.from_true.push_back(which ? r : -1);
      merged.from_false.push_back(which ? -1 : r);
    }
    PD_RETURN_IF_ERROR(AppendSubLoD(sub, &merged.lod));
  }
  return merged;
}

absl::Status InferMerge(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& mask = context->Input("Mask");
  const TensorMeta& yes = context->Input("InTrue");
  const TensorMeta& no = context->Input("InFalse");
  PD_RETURN_IF_ERROR(CheckMask(mask.dtype, mask.shape));
  PD_RETURN_IF_ERROR(KnownSequences(yes, "InTrue", SIZE_MAX).status());
  PD_RETURN_IF_ERROR(KnownSequences(no, "InFalse", SIZE_MAX).status());
  PD_ASSIGN_OR_RETURN(const size_t level, LevelOf(context->op()));
  if (yes.dtype != no.dtype || yes.shape.size() != no.shape.size())
    return InvalidArgument("'InTrue' is %s %s, 'InFalse' is %s %s",
                           Name(yes.dtype), ToString(yes.shape), Name(no.dtype),
                           ToString(no.shape));
  TensorMeta out = WithRows(yes, -1);
  out.lod_level = yes.lod_level;
  if (mask.value != nullptr && !IsDynamic(yes.shape) && !IsDynamic(no.shape)) {
    if (RowWidth(yes.shape) != RowWidth(no.shape))
      return InvalidArgument("'InTrue' has shape %s, 'InFalse' %s",
                             ToString(yes.shape), ToString(no.shape));
    PD_ASSIGN_OR_RETURN(
        Merged merged,
        Merge({yes.lod, yes.shape[0]}, {no.lod, no.shape[0]}, *mask.value));
    if (level > x.lod.size())
      return InvalidArgument("attr 'level' is %d; the LoD of 'X' has %d levels",
                             level, x.lod.size());
    out.shape[0] = static_cast<int64_t>(merged.from_true.size());
    merged.lod.insert(merged.lod.begin(), x.lod.begin(),
                      x.lod.begin() + static_cast<int64_t>(level));
    out.SetLoD(std::move(merged.lod));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMerge(BindContext* context) {
  Tensor* mask = context->Input("Mask");
  Tensor* yes = context->Input("InTrue");
  Tensor* no = context->Input("InFalse");
  Tensor* out = context->Output("Out");
  context->NoBuffer(context->Input("X"));
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(
        const Merged merged,
        Merge({yes->lod(), yes->dim(0)}, {no->lod(), no->dim(0)}, *mask));
    if (static_cast<int64_t>(merged.from_true.size()) != out->dim(0))
      return InvalidArgument("the branches have %d rows; 'Out' has %d",
                             merged.from_true.size(), out->dim(0));
    GatherRows(merged.from_true, *yes, out);
    GatherRows(merged.from_false, *no, out);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<OpDesc>> SplitGrad(const GradRequest& request) {
  const OpDesc& op = request.op;
  if (!request.needs_grad(op.In("X"))) return std::vector<OpDesc>();
  OpDesc grad;
  grad.type = "merge_lod_tensor";
  grad.attrs = op.attrs;
  grad.SetInput("X", op.Input("X"));
  grad.SetInput("Mask", op.Input("Mask"));
  grad.SetInput("InTrue", {GradName(op.Out("OutTrue"))});
  grad.SetInput("InFalse", {GradName(op.Out("OutFalse"))});
  grad.SetOutput("Out", {GradName(op.In("X"))});
  return std::vector<OpDesc>{std::move(grad)};
}

absl::StatusOr<std::vector<OpDesc>> MergeGrad(const GradRequest& request) {
  const OpDesc& op = request.op;
  const bool yes = request.needs_grad(op.In("InTrue"));
  const bool no = request.needs_grad(op.In("InFalse"));
  if (!yes && !no) return std::vector<OpDesc>();
  const std::string empty(kEmptyVar);
  OpDesc grad;
  grad.type = "split_lod_tensor";
  grad.attrs = op.attrs;
  grad.SetInput("X", {GradName(op.Out("Out"))});
  grad.SetInput("Mask", op.Input("Mask"));
  grad.SetOutput("OutTrue", {yes ? GradName(op.In("InTrue")) : empty});
  grad.SetOutput("OutFalse", {no ? GradName(op.In("InFalse")) : empty});
  return std::vector<OpDesc>{std::move(grad)};
}

}  // namespace

absl::Status RegisterSplitLodTensor(OpRegistry* registry) {
  OpDef split("split_lod_tensor");
  split.Input("X").Input("Mask").OptionalOutput("OutTrue");
  split.OptionalOutput("OutFalse").Attr("level", int32_t{0});
  split.Infer(InferSplit).Reference(BindSplit).Grad(SplitGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(split)));

  for (const char* type : {"merge_lod_tensor", "merge_lod_tensor_infer"}) {
    OpDef merge(type);
    merge.Input("X").Input("Mask").Input("InTrue").Input("InFalse");
    merge.Output("Out").Attr("level", int32_t{0});
    merge.Infer(InferMerge).Reference(BindMerge).Grad(MergeGrad);
    PD_RETURN_IF_ERROR(registry->Add(std::move(merge)));
  }
  return absl::OkStatus();
}

}  // namespace pd
