// SPDX-License-Identifier: Apache-2.0
// pd-profile --simulate: the step of a job in many processes, from what one
// measures and a link's figures.
#ifndef PD_CMD_PROFILE_SIMULATE_H_
#define PD_CMD_PROFILE_SIMULATE_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/profile_options.h"

namespace pd {

absl::Status RunSimulation(const ProfileOptions& options, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_PROFILE_SIMULATE_H_
