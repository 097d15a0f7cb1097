// SPDX-License-Identifier: Apache-2.0
// Man pages in mdoc(7) from the same manual and option table as `--help`.
#ifndef PD_CMD_COMMON_MDOC_H_
#define PD_CMD_COMMON_MDOC_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cmd/common/manual.h"

namespace pd {

/// The page of section 1 for one tool; passes `mandoc -Tlint -Wwarning`.
std::string MdocPage(const Manual& manual,
                     const std::vector<OptionGroup>& groups);

/// A page's head, up to and with NAME.
std::string MdocHead(absl::string_view name, int section,
                     absl::string_view summary);

/// Running text: each sentence on its own line, `back quotes` as literals.
std::string MdocText(absl::string_view text);

/// A form of use such as "-c JOB [--out RUN]..." as mdoc macros.
std::string MdocSynopsis(absl::string_view form);

/// `text` with what mdoc would take as markup escaped.
std::string MdocEscape(absl::string_view text);

}  // namespace pd

#endif  // PD_CMD_COMMON_MDOC_H_
