// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/losses/loss.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

const LossTable& Losses() {
  static const LossTable* const kTable = [] {
    auto* table = new LossTable;
    AddBinaryLosses(table);
    AddCRFLosses(table);
    AddClassLosses(table);
    AddDetectionLosses(table);
    AddDifferenceLosses(table);
    AddProposalLosses(table);
    AddRankingLosses(table);
    AddSampledLosses(table);
    AddSequenceLosses(table);
    return table;
  }();
  return *kTable;
}

std::string KindOf(const job::Loss& loss) {
  return loss.GetReflection()
      ->GetOneofFieldDescriptor(loss,
                                loss.GetDescriptor()->FindOneofByName("kind"))
      ->name();
}

}  // namespace

absl::StatusOr<std::string> BuildLoss(const job::Loss& loss, int number,
                                      const std::string& prediction,
                                      FindField find, const ModelParts& parts) {
  const std::string kind = KindOf(loss);
  const auto build = Losses().find(loss.kind_case());
  PD_INVARIANT(build != Losses().end());
  LayerContext parameters(
      kind,
      {loss.has_name() ? loss.name() : absl::StrCat("loss ", number),
       loss.name()},
      parts);
  LossContext context(loss, prediction, std::move(find), &parameters,
                      parts.main);
  auto value = build->second(&context);
  if (!value.ok()) return value;
  if (loss.has_label() && !context.used_label())
    return InvalidArgument("%s has no use for a 'label'", kind);
  if ((loss.has_mask() || loss.has_length()) && !context.used_mask())
    return InvalidArgument("%s has no use for '%s'", kind,
                           loss.has_mask() ? "mask" : "length");
  if (loss.has_sample_weight() && !context.used_sample_weight())
    return InvalidArgument("%s has no use for a 'sample_weight'", kind);
  return loss.weight() == 1
             ? value
             : context.Give(context.Scale(*value, loss.weight()));
}

}  // namespace pd
