// SPDX-License-Identifier: Apache-2.0
// Names of PaddlePaddle 1.8's Python interface and those of 2.0 that took their
// place: the manual's table of both. pd-upgrade(7) prints it, UpgradeSource
// (upgrade_source.h) rewrites by it.
#ifndef PD_LIBCORE_CONVERT_API_NAMES_H_
#define PD_LIBCORE_CONVERT_API_NAMES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

/// A row of the table. Each name stands behind "paddle.".
struct ApiName {
  const char* old_name;  ///< "fluid.layers.fc"
  /// "static.nn.fc, nn.functional.linear"; the first is the one that takes the
  /// old one's place where `same` is true.
  const char* new_names;
  /// True where the new name, called with the arguments that api_arguments.h
  /// makes of the old ones, does and gives the same.
  bool same;
};

/// In name order, each old name once. Of the manual's 362 rows two repeat a
/// name. It calls some names the same that take or give something else, by the
/// two versions themselves; here they are not: `layers.argsort` gave the sorted
/// values too, `save_dygraph` added an ending, `metrics.Accuracy` was updated
/// with other values.
const std::vector<ApiName>& ApiNames();

/// The row of an old name without "paddle."; null when there is none.
const ApiName* FindApiName(absl::string_view old_name);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_API_NAMES_H_
