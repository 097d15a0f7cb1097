// SPDX-License-Identifier: Apache-2.0
// gather_tree, sequence_mask, class_center_sample: integers that say which
// beams, which places and which classes count. Nothing is differentiable here.
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

absl::Status ExpectWholeNumbers(size_t i, LayerContext* c) {
  if (c->dtype(i) == DType::kInt64 || c->dtype(i) == DType::kInt32)
    return absl::OkStatus();
  return c->Misfit(
      absl::StrCat("integers (int64 or int32), not ", Name(c->dtype(i))), i);
}

absl::StatusOr<std::string> BuildGatherTree(LayerContext* c) {
  for (size_t i = 0; i < 2; ++i) {
    PD_RETURN_IF_ERROR(ExpectWholeNumbers(i, c));
    if (c->shape(i).size() != 3) return c->Misfit("[T, N, beam]", i);
  }
  if (c->dtype(0) != c->dtype(1))
    return c->Misfit(
        absl::StrCat("parents of the ids' type, ", Name(c->dtype(0)), ", not ",
                     Name(c->dtype(1))),
        1);
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t ids = c->shape(0)[axis], parents = c->shape(1)[axis];
    if (ids >= 0 && parents >= 0 && ids != parents)
      return c->Misfit(
          absl::StrCat("parents of the ids' shape, ", ToString(c->shape(0))),
          1);
  }
  OpDesc op;
  op.type = "gather_tree";
  op.SetInput("Ids", {c->input(0)});
  op.SetInput("Parents", {c->input(1)});
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildSequenceMask(LayerContext* c) {
  const job::SequenceMask& p = c->layer().sequence_mask();
  PD_RETURN_IF_ERROR(ExpectWholeNumbers(0, c));
  OpDesc op;
  op.type = "sequence_mask";
  op.SetInput("X", {c->input()});
  op.attrs = {{"maxlen", p.has_maxlen() ? int32_t{p.maxlen()} : int32_t{-1}},
              {"out_dtype", static_cast<int32_t>(p.dtype())}};
  return c->Append(std::move(op), {"Y"});
}

absl::StatusOr<std::string> BuildClassCenterSample(LayerContext* c) {
  const job::ClassCenterSample& p = c->layer().class_center_sample();
  PD_RETURN_IF_ERROR(ExpectWholeNumbers(0, c));
  PD_RETURN_IF_ERROR(c->ExpectRank(1, 1, "labels [N]"));
  if (p.num_samples() > p.num_classes())
    return InvalidArgument(
        "'num_samples' is %d; it must be at most 'num_classes', %d",
        p.num_samples(), p.num_classes());
  OpDesc op;
  op.type = "class_center_sample";
  op.SetInput("Label", {c->input()});
  op.attrs = {{"num_classes", int32_t{p.num_classes()}},
              {"num_samples", int32_t{p.num_samples()}}};
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> made,
                      c->AppendAll(std::move(op), {"RemappedLabel",
                                                   "SampledLocalClassCenter"}));
  c->AddOutput("sampled_class_center", made[1]);
  return made[0];
}

}  // namespace

void AddSequenceLayers(LayerTable* table) {
  (*table)[job::Layer::kGatherTree] = {BuildGatherTree, 2, 2};
  (*table)[job::Layer::kSequenceMask] = {BuildSequenceMask};
  (*table)[job::Layer::kClassCenterSample] = {BuildClassCenterSample};
}

}  // namespace pd
