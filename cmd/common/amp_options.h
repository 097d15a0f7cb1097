// SPDX-License-Identifier: Apache-2.0
// --amp and what belongs to it, of every tool that computes.
#ifndef PD_CMD_COMMON_AMP_OPTIONS_H_
#define PD_CMD_COMMON_AMP_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cmd/common/option_table.h"
#include "libcore/passes/amp.h"

namespace pd {

struct AmpFlags {
  std::string level;  ///< O0, O1, O2; "" where the job decides
  std::string dtype;  ///< float16, bfloat16; "": the job's, else float16
  std::vector<std::string> white_list, black_list;
};

/// Adds the options, under the title "Mixed precision".
void BindAmpOptions(OptionTable* table, AmpFlags* flags);

/// The others need --amp.
absl::Status ValidateAmp(const OptionTable& table);

/// The same as overrides of a job.
std::vector<std::string> AmpOverrides(const AmpFlags& flags);

/// The same for a program; nothing without --amp or at O0.
std::optional<AmpSpec> AmpSpecOf(const AmpFlags& flags);

}  // namespace pd

#endif  // PD_CMD_COMMON_AMP_OPTIONS_H_
