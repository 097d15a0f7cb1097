// SPDX-License-Identifier: Apache-2.0
// The arguments of a call of PaddlePaddle 1.8, as 2.0 takes them.
#ifndef PD_LIBCORE_CONVERT_UPGRADE_CALL_H_
#define PD_LIBCORE_CONVERT_UPGRADE_CALL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/convert/api_arguments.h"
#include "libcore/convert/python_tokens.h"

namespace pd {

/// Bytes of a source and the text that takes their place.
struct TextEdit {
  size_t begin, end;
  std::string text;
};

struct UpgradedCall {
  std::vector<TextEdit> edits;  ///< in the order of their bytes
  /// Where 2.0 cannot be told the same: the reason, a clause that follows the
  /// new name. There are no edits then.
  std::string refusal;
};

/// Rewrites the arguments of the call whose bracket is tokens[open]: names of
/// arguments, names before values that have changed their place, values that
/// were defaults; arguments that 2.0 has no more go.
UpgradedCall UpgradeCall(absl::string_view text,
                         const std::vector<PythonToken>& tokens, size_t open,
                         const std::vector<ApiParameter>& parameters);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_UPGRADE_CALL_H_
