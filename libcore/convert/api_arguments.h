// SPDX-License-Identifier: Apache-2.0
// The parameters of PaddlePaddle 1.8's functions and classes, and the way each
// of them goes in 2.0: renamed, at another place, dropped, or with another
// default. UpgradeSource (upgrade_source.h) rewrites calls by this table,
// pd-upgrade(7) prints it.
#ifndef PD_LIBCORE_CONVERT_API_ARGUMENTS_H_
#define PD_LIBCORE_CONVERT_API_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

struct ApiParameter {
  enum class Kind {
    kKept,      ///< 2.0 has it, perhaps under another name
    kDropped,   ///< 2.0 has no such parameter; where `value` is not empty, a
                ///< call may leave it out only when it says this value
    kRequired,  ///< 2.0 does what 1.8 did with `value`, and nothing else; the
                ///< default of 1.8 is another one
    kAdded,     ///< 1.8 had none; 2.0 wants `value` to do the same
  };
  Kind kind = Kind::kKept;
  std::string old_name;  ///< "" for kAdded
  std::string new_name;  ///< "" for kDropped and kRequired
  /// Python. For kKept: the default of 1.8 where that of 2.0 is another one, so
  /// that a call without the argument has to say it; else empty.
  std::string value;
  /// False where 2.0 has it at another position, so that a call passes it by
  /// name.
  bool positional = true;
};

/// The parameters of 1.8 in their order, added ones behind, of a name of
/// api_names.h without "paddle.". Empty where all parameters have stayed.
const std::vector<ApiParameter>& ApiParameters(absl::string_view old_name);

/// "dim is axis, keep_dim is keepdim; without act": a sentence for people;
/// empty where all parameters have stayed.
std::string DescribeParameters(absl::string_view old_name);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_API_ARGUMENTS_H_
