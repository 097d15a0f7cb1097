// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's FLAGS_*: typed, named, listed in one table (flag_table.cc),
// set from the environment or `--flags name=value[,...]`. Every flag of its
// manual is in the table, also where there is nothing to switch here.
#ifndef PD_LIBCORE_BASE_FLAGS_H_
#define PD_LIBCORE_BASE_FLAGS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"

namespace pd {

using FlagValue = std::variant<bool, int64_t, double, std::string>;

enum class FlagUse {
  kWorks,  ///< something reads it
  kFixed   ///< nothing to switch: `help` says why
};

struct FlagInfo {
  absl::string_view name;  ///< with "FLAGS_"
  FlagValue initial;       ///< PaddlePaddle's default
  absl::string_view help;  ///< no full stop at its end
  FlagUse use = FlagUse::kWorks;
  /// The range of a number.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  /// Values that a string may have, separated by spaces; "" for any.
  absl::string_view choices = "";
  bool number_list = false;  ///< the string is "0,1,2"
  FlagValue value = initial;
  bool given = false;  ///< somebody has set it
};

/// Every flag with its value now, in name order.
const std::vector<FlagInfo>& AllFlags();

/// "bool", "integer", "number" or "string".
absl::string_view FlagType(const FlagInfo& flag);

/// "true", "0.5": as it is set.
std::string FlagText(const FlagValue& value);

/// Sets a flag, with or without "FLAGS_" before its name. NotFound names the
/// nearest flag; InvalidArgument says what the value should be.
absl::Status SetFlag(absl::string_view name, absl::string_view value);

/// Sets flags from the environment variables FLAGS_*; InvalidArgument says what
/// a value should be. Variables that are no flags of the table are left alone.
absl::Status SetFlagsFromEnvironment();

/// A sentence, in name order, for each flag that was given another value than
/// its default and has nothing to switch, and for each environment variable
/// FLAGS_* that is no flag, with the nearest name.
std::vector<std::string> FlagsWithoutEffect();

/// The value of a flag in the table; T must be its type.
template <typename T>
const T& GetFlag(absl::string_view name);

/// Whether somebody has set the flag.
bool FlagGiven(absl::string_view name);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FLAGS_H_
