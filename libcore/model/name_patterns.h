// SPDX-License-Identifier: Apache-2.0
// Patterns of parameters' names: `*` stands for any characters, a dot and none
// included; everything else stands for itself.
#ifndef PD_LIBCORE_MODEL_NAME_PATTERNS_H_
#define PD_LIBCORE_MODEL_NAME_PATTERNS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// For every `*` of `pattern` what it stands for in `name`, as little as
/// possible from the left on; nullopt where the whole name does not match.
std::optional<std::vector<std::string>> MatchStars(absl::string_view pattern,
                                                   absl::string_view name);

/// "backbone.*=>*": names of the left pattern become the right one, whose stars
/// stand for the same characters.
struct NameChange {
  std::string text, from, to;

  /// InvalidArgument where `text` is no A=>B, or B has another number of stars.
  static absl::StatusOr<NameChange> Parse(absl::string_view text);
  /// The new name; nullopt where `name` does not match.
  std::optional<std::string> Apply(absl::string_view name) const;
};

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_NAME_PATTERNS_H_
