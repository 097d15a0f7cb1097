// SPDX-License-Identifier: Apache-2.0
// Inside of ParseTorchSource: the words of TorchScript's source.
#ifndef PD_LIBCORE_DEPLOY_TORCH_SCRIPT_LEX_H_
#define PD_LIBCORE_DEPLOY_TORCH_SCRIPT_LEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct ScriptToken {
  enum class Kind { kName, kNumber, kText, kSign, kLine, kIndent, kDedent };
  Kind kind = Kind::kLine;
  std::string text;  ///< of kText without quotes
  int64_t line = 0;
};

/// A kLine token stands behind each statement; lines within brackets are one.
/// The last token is a kLine. DataLoss for text that is no source.
absl::StatusOr<std::vector<ScriptToken>> LexTorchSource(
    absl::string_view source);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_SCRIPT_LEX_H_
