// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/print_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/terminal.h"
#include "libcore/base/error.h"
#include "libcore/base/printable.h"

namespace pd {

std::string FormatError(absl::string_view tool, const absl::Status& status,
                        bool colour) {
  if (status.ok()) return "";
  const std::string message = PrintableLines(status.message());
  const int code = ExitCode(status);
  if (code != kExitUsage && code != kExitFailed)
    return absl::StrCat(tool, ": ", message, "\n");
  std::string text =
      absl::StrCat(tool, ": ", colour ? "\x1b[1;31merror:\x1b[0m " : "error: ");
  if (IsCommandLineError(status)) {
    absl::StrAppend(&text, message, " (see '", tool, " --help')\n");
    return text;
  }
  absl::StrAppend(&text, ErrorKindName(status.code()), ": ", message, "\n");
  if (const auto hint = status.GetPayload(kHintPayload))
    absl::StrAppend(&text, "  [Hint: ", PrintableLines(std::string(*hint)),
                    "]\n");
  if (const auto op = status.GetPayload(kOperatorPayload))
    absl::StrAppend(&text, "  [operator < ", PrintableLines(std::string(*op)),
                    " > error]\n");
  return text;
}

void PrintError(absl::string_view tool, const absl::Status& status,
                std::FILE* stream) {
  const std::string text = FormatError(tool, status, WantsColour(stream));
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace pd
