// SPDX-License-Identifier: Apache-2.0
// Python sources that call PaddlePaddle 1.8, with the names and arguments of
// 2.0, by the tables of api_names.h and api_arguments.h.
#ifndef PD_LIBCORE_CONVERT_UPGRADE_SOURCE_H_
#define PD_LIBCORE_CONVERT_UPGRADE_SOURCE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// A name that stays, at its place in the source as it was; both count from 1,
/// columns in bytes.
struct SourceNote {
  int64_t line = 0, column = 0;
  std::string text;  ///< "paddle.fluid.layers.pool2d: ..."
};

struct UpgradedSource {
  std::string text;
  std::map<std::string, int64_t> replaced;  ///< old name -> uses
  std::vector<SourceNote> notes;            ///< in the source's order
};

/// Rewrites the uses of names below paddle.fluid, under whatever names the
/// source has imported them, the arguments of their calls
/// (api_arguments.h), and the imports that nothing needs any more. A call that
/// 2.0 cannot be told stays, with a note. Strings, comments and layout stay.
/// InvalidArgument for a string or a bracket without an end, with its line.
absl::StatusOr<UpgradedSource> UpgradeSource(absl::string_view text);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_UPGRADE_SOURCE_H_
