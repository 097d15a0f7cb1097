// SPDX-License-Identifier: Apache-2.0
// Which ops PaddlePaddle's quantizer knows, and their slots with numbers.
#ifndef PD_LIBCORE_QUANT_OP_TABLE_H_
#define PD_LIBCORE_QUANT_OP_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"

namespace pd {

struct QuantSlots {
  std::vector<std::string> inputs, outputs;
};

/// Null for an op that the quantizer leaves alone.
const QuantSlots* FindQuantSlots(absl::string_view op_type);

/// Ops that multiply by a weight: convolutions and matrix products, of which
/// those of two activations are quantized too.
bool MayHoldWeight(absl::string_view op_type);

/// The variables in the slots of the table, without empty ones.
std::vector<std::string> QuantInputs(const OpDesc& op);
std::vector<std::string> QuantOutputs(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_OP_TABLE_H_
