// SPDX-License-Identifier: Apache-2.0
// A job layer's kind, name and message, and layers that stand in
// another's message ("cell" of rnn). Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYER_PART_H_
#define PD_LIBCORE_NN_LAYER_PART_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "libcore/nn/job_layer.pb.h"

namespace pd {

/// "conv2d": the field of a message's oneof `kind` that is given.
std::string KindOf(const google::protobuf::Message& message);
/// The name of the next layer of a list: its own, or "conv2d_1", where
/// `numbers` counts the layers of each kind before it, and then this one too.
std::string NumberedName(const job::Layer& layer,
                         std::map<std::string, int>* numbers);
/// The message in that field.
const google::protobuf::Message& MessageOf(
    const google::protobuf::Message& message);

/// The layer that a part stands for: its name, if it has one, and its kind.
/// `field` holds the part. InvalidArgument where the part names what it reads.
absl::Status MakePart(const google::protobuf::Message& part, const char* field,
                      job::Layer* layer);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYER_PART_H_
