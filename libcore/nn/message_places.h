// SPDX-License-Identifier: Apache-2.0
// Where the parts of a message that was read from text were written. Internal
// to libcore/nn.
#ifndef PD_LIBCORE_NN_MESSAGE_PLACES_H_
#define PD_LIBCORE_NN_MESSAGE_PLACES_H_

#include <string>
#include <unordered_map>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "libcore/nn/job_text.h"

namespace pd {

class MessagePlaces {
 public:
  Places written;  ///< filled by ReadTextMessage and ApplyOverride

  /// Notes the path of every message inside `root`, which outlives this and
  /// does not change from now on.
  void Note(const google::protobuf::Message& root) { NoteAt("", root); }

  bool Holds(const google::protobuf::Message& part) const {
    return paths_.count(&part) > 0;
  }
  /// "model.layer[3].conv2d"; "" for the root and for what it does not hold.
  std::string PathOf(const google::protobuf::Message& part) const;

  /// "job.pbtxt:31:3" for a part, or for a field of it. A field that was not
  /// written is placed at what holds it; "" when nothing around it was.
  std::string Where(const google::protobuf::Message& part,
                    absl::string_view field = "") const;

 private:
  void NoteAt(const std::string& path,
              const google::protobuf::Message& message);

  std::unordered_map<const google::protobuf::Message*, std::string> paths_;
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_MESSAGE_PLACES_H_
