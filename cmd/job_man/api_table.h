// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's public names beside what a job can say. The job's side is read
// off the schema, the zoo and the operators, so the table cannot promise what
// is not there.
#ifndef PD_CMD_JOB_MAN_API_TABLE_H_
#define PD_CMD_JOB_MAN_API_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/registry.h"

namespace pd {

struct ApiTable {
  std::string counts;  ///< Markdown: a row for each namespace
  std::string names;   ///< Markdown: every name, by namespace
};

/// The texts of the files in testdata/api.
struct ApiFiles {
  absl::string_view names;      ///< lines "NAMESPACE NAME [later]"
  absl::string_view functions;  ///< lines "NAMESPACE.NAME OPERATOR_TYPE..."
  /// Lines "NAMESPACE.NAME = PATH...", "... @ TEXT" and "... - REASON", which
  /// come before the lines of `functions`.
  absl::string_view aliases;
};

/// A name of neither `functions` nor `aliases` is looked for among the kinds of
/// its namespace's messages, without regard to case, underscores and a "loss"
/// or "LR" at the end. InvalidArgument for other lines and for unknown names.
absl::StatusOr<ApiTable> MakeApiTable(const ApiFiles& files,
                                      const OpRegistry& operators);

}  // namespace pd

#endif  // PD_CMD_JOB_MAN_API_TABLE_H_
