// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/offer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

// An implementation, and whether it is asked with upcast tensors.
using Attempt = std::pair<const Implementation*, bool>;

// Implementations of a lower number are asked before those of a higher one.
int TurnOf(const Implementation& i) {
  if (i.turn == Implementation::Turn::kFirst) return 0;
  if (i.turn == Implementation::Turn::kLast) return 3;
  return i.is_reference ? 2 : 1;
}

std::vector<Attempt> AttemptsOf(const OpDef& def, const OfferTerms& terms) {
  const bool upcasts = terms.low_precision && !def.Has(Trait::kConvertsDtype);
  std::vector<Attempt> attempts;
  for (const int turn : {0, 1, 2, 3})
    for (const bool upcast : {false, true}) {
      if (upcast && !upcasts) continue;
      for (const Implementation& i : def.implementations())
        if (i.place == terms.place && TurnOf(i) == turn)
          attempts.emplace_back(&i, upcast);
    }
  return attempts;
}

bool TakesKinds(const Implementation& i, const OfferTerms& terms) {
  return i.is_reference || (!terms.other_kinds &&
                            (!terms.selected_rows || i.takes_selected_rows));
}

}  // namespace

void OfferTerms::Add(DType dtype, VarKind kind) {
  low_precision |= dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  selected_rows |= kind == VarKind::kSelectedRows;
  other_kinds |= kind != VarKind::kLodTensor && kind != VarKind::kSelectedRows;
}

OfferTerms TermsOf(Place place, const TensorMap& inputs,
                   const TensorMap& outputs) {
  OfferTerms terms;
  terms.place = place;
  for (const auto* tensors : {&inputs, &outputs})
    for (const auto& [name, tensor] : *tensors)
      terms.Add(tensor->dtype(), tensor->kind());
  return terms;
}

absl::StatusOr<bool> Offer(const OpDef& def, const OfferTerms& terms,
                           const AskFn& ask,
                           std::vector<std::string>* refusals) {
  for (const auto& [implementation, upcast] : AttemptsOf(def, terms)) {
    if (implementation->follows_inputs && (upcast || !terms.input_there))
      continue;
    if (!TakesKinds(*implementation, terms)) {
      if (!upcast)
        refusals->push_back(
            absl::StrCat(implementation->label, ": it takes dense tensors"));
      continue;
    }
    const absl::Status asked = ask(*implementation, upcast);
    if (asked.ok()) return true;
    if (asked.code() != absl::StatusCode::kUnimplemented) return asked;
    refusals->push_back(absl::StrCat(implementation->label,
                                     upcast ? " in float32: " : ": ",
                                     asked.message()));
  }
  return false;
}

absl::Status NoneAccepted(const std::vector<std::string>& refusals) {
  return Unimplemented("no implementation takes it (%s)",
                       absl::StrJoin(refusals, "; "));
}

}  // namespace pd
