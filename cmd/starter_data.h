// SPDX-License-Identifier: Apache-2.0
// `pd-train --new KIND DIR --data PATH --target COLUMN`: reads the data, and
// makes of a kind's text the job for them.
#ifndef PD_CMD_STARTER_DATA_H_
#define PD_CMD_STARTER_DATA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pd {

struct StarterData {
  std::string path;    ///< a table, a text, or a folder with one for each class
  std::string target;  ///< the column that is predicted; "" where none is
};

/// A job that runs as it stands, and what its author should know.
struct StarterJob {
  std::string text;
  std::vector<std::string> notes;
};

/// Whether a job of `kind` can be made from data, and whether it takes a
/// target.
bool TakesData(const std::string& kind);
bool TakesTarget(const std::string& kind);

/// The job of `kind` for `data`, made of `text`, which stands for made-up ones.
/// It will lie in `folder`. A fifth of the records are kept to judge by. Errors
/// name the file and what in it does not fit the kind.
absl::StatusOr<StarterJob> MakeStarter(const std::string& kind,
                                       const std::string& text,
                                       const StarterData& data,
                                       const std::string& folder);

}  // namespace pd

#endif  // PD_CMD_STARTER_DATA_H_
