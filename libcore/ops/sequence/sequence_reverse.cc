// SPDX-License-Identifier: Apache-2.0
// Y: the rows of each sequence of X in the opposite order. The gradient is the
// same op over Y@GRAD, which has X's LoD.
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_maps.h"

namespace pd {
namespace {

absl::Status InferReverse(InferContext* context) {
  PD_RETURN_IF_ERROR(KnownSequences(context->Input("X"), "X").status());
  context->Share("X", "Y");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReverse(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  return GatherStep(ReversedMap(offsets), x, context->Output("Y"));
}

absl::StatusOr<std::vector<OpDesc>> ReverseGrad(const GradRequest& request) {
  if (!request.needs_grad(request.op.In("X"))) return std::vector<OpDesc>();
  OpDesc grad;
  grad.type = "sequence_reverse";
  grad.SetInput("X", {GradName(request.op.Out("Y"))});
  grad.SetOutput("Y", {GradName(request.op.In("X"))});
  return std::vector<OpDesc>{std::move(grad)};
}

}  // namespace

RowMap ReversedMap(const Offsets& offsets) {
  RowMap map;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    for (int64_t r = offsets[i + 1]; r-- > offsets[i];) map.push_back(r);
  return map;
}

absl::Status RegisterSequenceReverse(OpRegistry* registry) {
  OpDef op("sequence_reverse");
  op.Input("X").Output("Y").Infer(InferReverse).Reference(BindReverse);
  op.Grad(ReverseGrad);
  return registry->Add(std::move(op));
}

}  // namespace pd
