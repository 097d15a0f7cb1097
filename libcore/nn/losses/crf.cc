// SPDX-License-Identifier: Apache-2.0
// linear_chain_crf: minus the log-likelihood of tags, normalised over all
// sequences of tags.
#include "libcore/base/status_macros.h"
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

absl::StatusOr<std::string> LinearChainCRF(LossContext* c) {
  const job::LinearChainCRF& p = c->loss().linear_chain_crf();
  if (!c->ExpectRank(3, 3, "scores [N, T, tags]")) return c->Give("");
  const Shape shape = c->prediction().shape;
  const std::string label = c->Label({shape[0], shape[1]}, DType::kInt64);
  std::string length = c->Field(p.sequence_length(), {shape[0]}, DType::kInt64);
  if (c->ok() && c->ShapeOf(length).size() == 2) length = c->Squeeze(length, 1);
  length = c->Cast(length, DType::kInt64);
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->parameters().Weight(p.param_attr(), {shape[2] + 2, shape[2]},
                             XavierUniformInitializer()));
  const std::string each =
      c->Op("linear_chain_crf",
            {{"Emission", c->x()},
             {"Transition", weight},
             {"Label", label},
             {"Length", length}},
            {"Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"}, {},
            /*result=*/3);
  return c->Give(c->Reduced(p.reduction(), each));
}

}  // namespace

void AddCRFLosses(LossTable* table) {
  (*table)[job::Loss::kLinearChainCrf] = LinearChainCRF;
}

}  // namespace pd
