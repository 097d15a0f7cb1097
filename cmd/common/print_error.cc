// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/print_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/terminal.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

std::string Printable(absl::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\n') {
      absl::StrAppendFormat(&safe, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      safe.push_back(c);
    }
  }
  return safe;
}

}  // namespace

std::string FormatError(absl::string_view tool, const absl::Status& status,
                        bool colour) {
  if (status.ok()) return "";
  const std::string message = Printable(status.message());
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
    absl::StrAppend(&text, "  [Hint: ", Printable(std::string(*hint)), "]\n");
  if (const auto op = status.GetPayload(kOperatorPayload))
    absl::StrAppend(&text, "  [operator < ", Printable(std::string(*op)),
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
