// SPDX-License-Identifier: Apache-2.0
// pd-convert --upgrade: models and Python sources of PaddlePaddle 1.x.
#ifndef PD_CMD_CONVERT_UPGRADE_H_
#define PD_CMD_CONVERT_UPGRADE_H_

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cmd/convert_options.h"
#include "libcore/model/content.h"

namespace pd {

/// True where IN is a Python source by its name: a conversion of its own.
bool IsSource(const ConvertOptions& options);

/// Writes IN, a Python source, with new names to OUT; a warning for each name
/// that stays.
absl::Status UpgradeSourceFile(const ConvertOptions& options,
                               std::ostream& out);

/// Upgrades the program of `content`; a warning for each op that stays. Gives
/// the ops replaced by old type. InvalidArgument where there is no program.
absl::StatusOr<std::map<std::string, int64_t>> UpgradeModel(Content* content);

/// "replaced 3: 2 matmul, 1 top_k".
std::string ReplacedText(const std::map<std::string, int64_t>& replaced);

}  // namespace pd

#endif  // PD_CMD_CONVERT_UPGRADE_H_
