// SPDX-License-Identifier: Apache-2.0
// `pd-train --new KIND DIR`: a commented job to begin with, and a Makefile. The
// texts are the files in cmd/starters; the first line of each job is
// "# KIND: what it is for".
#ifndef PD_CMD_STARTER_H_
#define PD_CMD_STARTER_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cmd/starter_data.h"

namespace pd {

struct StarterText {
  const char* name;  ///< "tabular-regression.pbtxt", "Makefile"
  const char* text;
};

/// The files of cmd/starters; the build makes the table.
const std::vector<StarterText>& StarterFiles();

/// The kinds of jobs, sorted.
std::vector<std::string> StarterKinds();

/// Prints the kinds and what they are for: a line each, or one JSON object.
void ListStarters(bool json, std::ostream& out);

/// Writes `folder`/job.pbtxt, for `data` where they are given (a path that is
/// not ""), and `folder`/Makefile. AlreadyExists when one of them is there.
absl::Status WriteStarter(const std::string& kind, const std::string& folder,
                          const StarterData& data, bool json,
                          std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_STARTER_H_
