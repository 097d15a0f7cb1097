// SPDX-License-Identifier: Apache-2.0
// The slots of `gru` and `lstm` and of `fusion_gru` and `fusion_lstm`, which
// multiply their input too and name the same tensors differently.
#ifndef PD_LIBCORE_OPS_RECURRENT_FUSION_SLOTS_H_
#define PD_LIBCORE_OPS_RECURRENT_FUSION_SLOTS_H_

#include "absl/strings/match.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Whether `op` is a fusion_ op.
inline bool IsFusion(const OpDesc& op) {
  return absl::StartsWith(op.type, "fusion_");
}
/// The slot of the sequence's rows.
inline const char* FusedInputSlot(const OpDesc& op) {
  return IsFusion(op) ? "X" : "Input";
}
/// The slot of the weight of the hidden state.
inline const char* FusedWeightSlot(const OpDesc& op) {
  return IsFusion(op) ? "WeightH" : "Weight";
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_FUSION_SLOTS_H_
