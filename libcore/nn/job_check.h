// SPDX-License-Identifier: Apache-2.0
// Checks of a job beyond its grammar: the rules written beside the
// fields, and those that tie several fields together. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_JOB_CHECK_H_
#define PD_LIBCORE_NN_JOB_CHECK_H_

#include "absl/status/status.h"
#include "libcore/nn/job.h"

namespace pd {

/// The first broken rule, with its place.
absl::Status CheckJob(const LoadedJob& job);

/// CheckJob's rules beside fields for a part that no file holds (a block with
/// its arguments set); the message names the field, not a place.
absl::Status CheckRules(const google::protobuf::Message& part,
                        absl::string_view name);

/// CheckJob's part: names of results and what follows them.
absl::Status CheckResults(const LoadedJob& job);

/// "at least 1", "in [0, 1)": a rule's bounds in words; "" without bounds.
std::string BoundsInWords(const google::protobuf::Message& rule);

/// "1, 2 or 4": how many values a rule's `counts` allow; "" for any.
std::string CountsInWords(const google::protobuf::Message& rule);

}  // namespace pd

#endif  // PD_LIBCORE_NN_JOB_CHECK_H_
