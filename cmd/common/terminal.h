// SPDX-License-Identifier: Apache-2.0
// The capabilities of the terminal behind a stream.
#ifndef PD_CMD_COMMON_TERMINAL_H_
#define PD_CMD_COMMON_TERMINAL_H_

#include <cstdio>

namespace pd {

/// True when `stream` is a terminal on which a line can be redrawn.
bool IsTerminal(std::FILE* stream);

/// IsTerminal, and the user did not set NO_COLOR.
bool WantsColour(std::FILE* stream);

/// True when this process may draw now: it is in the terminal's foreground.
bool InForeground(std::FILE* stream);

/// Columns now: the smaller of the terminal's width and $COLUMNS, 80 when
/// neither is known. Asked for at each redraw, so a resize needs no handler.
int TerminalColumns(std::FILE* stream);

}  // namespace pd

#endif  // PD_CMD_COMMON_TERMINAL_H_
