// SPDX-License-Identifier: Apache-2.0
// The zoo: networks that every job may use by name. They are written as blocks
// in the job's own language, in the *.pbtxt files of this folder, which are
// built into the library. Internal to libcore/nn and the tools' lists.
#ifndef PD_LIBCORE_NN_ZOO_ZOO_H_
#define PD_LIBCORE_NN_ZOO_ZOO_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}

namespace pd {
namespace job {
class Block;  // libcore/nn/job_model.pb.h
}

/// The zoo's block of this name; null when there is none. An error is a
/// mistake in the zoo's own files.
absl::StatusOr<const job::Block*> FindZooBlock(absl::string_view name);

/// The networks, which are the blocks with an `about` line, sorted by name:
/// (name, about).
std::vector<std::pair<std::string, std::string>> ZooNetworks();

/// "zoo/resnet.pbtxt:12:3" for a message inside the zoo's blocks, "" for
/// others.
std::string ZooPlace(const google::protobuf::Message& part);

}  // namespace pd

#endif  // PD_LIBCORE_NN_ZOO_ZOO_H_
