// SPDX-License-Identifier: Apache-2.0
// The layers that a layer reads beside its `input`: how many it takes, and the
// fields of its message that name them. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYER_READS_H_
#define PD_LIBCORE_NN_LAYER_READS_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "libcore/nn/layer_names.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {

/// "one input", "1 to 3 inputs", "at least 2 inputs".
std::string InputsInWords(const LayerSpec& spec);

/// Whether `layer`, where it names no input, reads the layer before it.
bool TakesLast(const LayerSpec& spec, const job::Layer& layer,
               const OpRegistry& registry);

/// Finds the inputs that those fields of a layer's message name that have the
/// rule `reads`, in the elements of its lists of messages too: "std_of",
/// "input[0].from". InvalidArgument names the field, the layer and the nearest
/// name.
absl::Status FindFields(const google::protobuf::Message& part,
                        const std::string& full_name, const LayerNames& names,
                        LayerReads* reads);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYER_READS_H_
