// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace pd {

bool IsTerminal(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && term != nullptr &&
         absl::string_view(term) != "dumb";
}

bool WantsColour(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  return IsTerminal(stream) && (no_color == nullptr || *no_color == '\0');
}

bool InForeground(std::FILE* stream) {
  const pid_t foreground = tcgetpgrp(fileno(stream));
  // -1: not our controlling terminal, where nobody else draws either.
  return foreground == -1 || foreground == getpgrp();
}

int TerminalColumns(std::FILE* stream) {
  winsize size{};
  int columns = 0;
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  int wanted = 0;
  const char* text = std::getenv("COLUMNS");
  if (text != nullptr && absl::SimpleAtoi(text, &wanted) && wanted > 0)
    columns = columns > 0 ? std::min(columns, wanted) : wanted;
  return columns > 0 ? columns : 80;
}

}  // namespace pd
