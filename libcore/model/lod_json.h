// SPDX-License-Identifier: Apache-2.0
// Sequence lengths beside arrays of a npz file, as JSON:
//   {"word": [[2, 3, 1]]}                levels of lengths of one feed
//   [{"word": [[2, 3, 1]]}, ...]         the same, one a step
//   {"word": [[[2, 3, 1]], ...]}         by feed, then by step
#ifndef PD_LIBCORE_MODEL_LOD_JSON_H_
#define PD_LIBCORE_MODEL_LOD_JSON_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/shape.h"

namespace pd {

/// Feed -> offsets by level.
using LoDs = std::map<std::string, LoD>;

/// The first form. InvalidArgument says what is not as it should be.
absl::StatusOr<LoDs> ParseLoDs(absl::string_view json);
/// The first form of these; what ParseLoDs reads.
std::string LoDText(const LoDs& lods);
/// The second or third form; an entry for each step.
absl::StatusOr<std::vector<LoDs>> ParseLoDsBySteps(absl::string_view json);

/// The same of a file; messages name it.
absl::StatusOr<LoDs> ReadLoDs(const std::string& path);
absl::StatusOr<std::vector<LoDs>> ReadLoDsBySteps(const std::string& path);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_LOD_JSON_H_
