// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_PROFILE_RUN_H_
#define PD_CMD_PROFILE_RUN_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/profile_options.h"

namespace pd {

/// Profiles a job or a model, or reads traces, as the options say.
absl::Status RunProfile(const ProfileOptions& options, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_PROFILE_RUN_H_
