// SPDX-License-Identifier: Apache-2.0
// The one place that turns a Status into what a person reads, in the layout of
// PaddlePaddle's manual with the tool's name before it:
//
//   pd-train: error: InvalidArgumentError: job.pbtxt:12:9: unknown field ...
//     [Hint: Expected rank == 4, but received rank:3 != 4.]
//     [operator < softmax > error]
//
// A wrong command line names no kind but the way to --help; an answer of no and
// a stop by a signal are no errors and are printed without that word.
#ifndef PD_CMD_COMMON_PRINT_ERROR_H_
#define PD_CMD_COMMON_PRINT_ERROR_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pd {

/// Payloads that whoever makes a Status may attach: the type of the operator
/// that failed, and a hint.
inline constexpr char kOperatorPayload[] = "pdkit/operator";
inline constexpr char kHintPayload[] = "pdkit/hint";

/// The lines for a Status that is not OK, with a line break at the end.
/// Control characters, which a hostile file's names may hold, are
/// escaped.
std::string FormatError(absl::string_view tool, const absl::Status& status,
                        bool colour = false);

/// Writes FormatError to `stream`, in colour where it is a terminal that wants
/// it. Nothing for OK.
void PrintError(absl::string_view tool, const absl::Status& status,
                std::FILE* stream = stderr);

}  // namespace pd

#endif  // PD_CMD_COMMON_PRINT_ERROR_H_
