// SPDX-License-Identifier: Apache-2.0
// One scalar value of a job: from a token to a field, with the messages for
// what does not fit. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_JOB_VALUE_H_
#define PD_LIBCORE_NN_JOB_VALUE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace pd {

struct ScalarToken {
  enum Kind { kString, kInteger, kFloat, kWord };
  Kind kind = kWord;
  std::string text;  ///< of a string its contents, of a number without sign
  bool negative = false;
  std::string shown;  ///< as written, for messages
};

/// Sets (or, where the field is a list, appends) the value. InvalidArgument
/// says what the field takes.
absl::Status SetScalar(const ScalarToken& token,
                       const google::protobuf::FieldDescriptor* field,
                       google::protobuf::Message* message);

/// "unknown field 'x', did you mean 'y'?", or a list of what there is.
/// `inside` is the path of the message, "" for the job itself.
std::string UnknownFieldMessage(const google::protobuf::Descriptor& type,
                                const std::string& name,
                                absl::string_view inside);

/// "mean, sum": the words that an enum field takes.
std::string WordsOf(const google::protobuf::EnumDescriptor& type);

}  // namespace pd

#endif  // PD_LIBCORE_NN_JOB_VALUE_H_
