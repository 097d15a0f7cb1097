// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_CHECK_NANINF_JOB_H_
#define PD_CMD_CHECK_NANINF_JOB_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/check_naninf_options.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Trains the job, or with --bisect goes on from a run's newest good
/// checkpoint, until something is bad. Writes nothing but what is asked for.
absl::Status CheckJob(const CheckNaninfOptions& options,
                      const OpRegistry& registry, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_CHECK_NANINF_JOB_H_
