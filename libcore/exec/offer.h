// SPDX-License-Identifier: Apache-2.0
// The choice of the implementation that computes an op: those of a place are
// asked in one order, the first that accepts is taken, and the reasons of the
// others are kept. The rule is the same for ops of a plan and for late ops, on
// the host and on a GPU. Internal to libcore/exec.
#ifndef PD_LIBCORE_EXEC_OFFER_H_
#define PD_LIBCORE_EXEC_OFFER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/op_def.h"

namespace pd {

using TensorMap = std::map<std::string, Tensor*>;

/// The facts about an op's tensors that decide which implementations are asked.
struct OfferTerms {
  Place place = Place::kHost;
  bool low_precision = false;  ///< one of them is fp16 or bf16
  bool selected_rows = false;  ///< one of them is
  bool other_kinds = false;    ///< one is neither dense nor selected rows
  bool input_there = false;    ///< Place::kDevice: an input lies there

  /// Counts a tensor of this dtype and kind.
  void Add(DType dtype, VarKind kind);
};
OfferTerms TermsOf(Place place, const TensorMap& inputs,
                   const TensorMap& outputs);

/// Binds one implementation; with `upcast` its fp16 and bf16 tensors are
/// float32 between casts. kUnimplemented is a refusal with its reason.
using AskFn =
    std::function<absl::Status(const Implementation&, bool /*upcast*/)>;

/// Asks until one accepts: the fast ones as the tensors are, then upcast, then
/// the reference likewise; before or after all of them those whose `turn` says
/// so. False: none accepted. Each refusal
/// is appended as "label: reason"; another error than a refusal ends it.
absl::StatusOr<bool> Offer(const OpDef& def, const OfferTerms& terms,
                           const AskFn& ask,
                           std::vector<std::string>* refusals);

/// Unimplemented with all the reasons.
absl::Status NoneAccepted(const std::vector<std::string>& refusals);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_OFFER_H_
