// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's public names beside what a job can say. The job's side is read
// off the schema and the zoo, so the table cannot promise what is not there.
#ifndef PD_CMD_JOB_MAN_API_TABLE_H_
#define PD_CMD_JOB_MAN_API_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct ApiTable {
  std::string counts;  ///< Markdown: a row for each namespace
  std::string names;   ///< Markdown: every name, by namespace
};

/// `names` holds lines "NAMESPACE NAME [later]", `aliases` lines
/// "NAMESPACE.NAME = PATH..." and "NAMESPACE.NAME - REASON". A name without an
/// alias is looked for among the kinds of its namespace's messages, without
/// regard to case, underscores and a "loss" or "LR" at the end.
/// InvalidArgument for other lines and for aliases of unknown names.
absl::StatusOr<ApiTable> MakeApiTable(absl::string_view names,
                                      absl::string_view aliases);

}  // namespace pd

#endif  // PD_CMD_JOB_MAN_API_TABLE_H_
