// SPDX-License-Identifier: Apache-2.0
// Reads protobuf text format with messages that a job's author understands, and
// keeps where every field was written. Protobuf's own TextFormat::Parser places
// errors at the token after the one that is wrong and words them for
// programmers; its tokenizer is used here. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_JOB_TEXT_H_
#define PD_LIBCORE_NN_JOB_TEXT_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace pd {

/// Field path ("model.layer[3].conv2d") -> where it was written
/// ("job.pbtxt:12:9", "-o model.layer[3].conv2d").
using Places = std::map<std::string, std::string>;

/// "a" and "b" -> "a.b"; "" and "b" -> "b".
std::string JoinPath(absl::string_view parent, absl::string_view field);
/// "a" and 3 -> "a[3]".
std::string ElementPath(absl::string_view field, int index);

/// Takes a path and everything inside it out of `places`.
void ErasePlaces(absl::string_view path, Places* places);

/// Gives what lies at the path `from` the path `to`.
void MovePlaces(absl::string_view from, absl::string_view to, Places* places);

/// Reads `text` into `message`. InvalidArgument "FILE:LINE:COLUMN: ..." for the
/// first thing wrong.
absl::Status ReadTextMessage(absl::string_view text, const std::string& file,
                             google::protobuf::Message* message,
                             Places* places);

/// Reads the value of one field (what may stand after its name and colon).
/// Every error is placed at `place`.
absl::Status ReadTextValue(absl::string_view text,
                           const google::protobuf::FieldDescriptor* field,
                           const std::string& path, const std::string& place,
                           google::protobuf::Message* message, Places* places);

/// Sets the field at `path` ("layer[conv1].conv2d.groups") to what `value`
/// says; its place is `place`.
absl::Status SetByPath(absl::string_view path, absl::string_view value,
                       const std::string& place,
                       google::protobuf::Message* message, Places* places);

/// Applies "path=value" to `message`; InvalidArgument "-o PATH: ...".
absl::Status ApplyOverride(absl::string_view override_text,
                           google::protobuf::Message* message, Places* places);

/// The name of element `i` of a repeated message: its `name`, or for a layer
/// without one its kind and number ("conv2d_1"); "" when it has none.
std::string ElementName(const google::protobuf::Message& holder,
                        const google::protobuf::FieldDescriptor* field, int i);

/// Position of the first byte that is not UTF-8 or is NUL; npos when none is.
size_t FindBadByte(absl::string_view text);

}  // namespace pd

#endif  // PD_LIBCORE_NN_JOB_TEXT_H_
