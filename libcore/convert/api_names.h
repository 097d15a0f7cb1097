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
  /// True where a call stays right, up to the names of its arguments, when the
  /// name alone changes.
  bool same;
};

/// In name order, each old name once. Of the manual's 362 rows two repeat a
/// name; `layers.embedding`, which it has with both answers, counts as one that
/// changes. `dygraph.BatchNorm` is a row of three names, between which the rank
/// of the input decides, so it counts so too.
const std::vector<ApiName>& ApiNames();

/// The row of an old name without "paddle."; null when there is none.
const ApiName* FindApiName(absl::string_view old_name);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_API_NAMES_H_
