// SPDX-License-Identifier: Apache-2.0
// The page of a report and Chart.js; the build makes the table. Internal to
// libcore/report.
#ifndef PD_LIBCORE_REPORT_REPORT_FILES_H_
#define PD_LIBCORE_REPORT_REPORT_FILES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

struct ReportText {
  const char* name;  ///< "report_page.html"
  const char* text;
};

const std::vector<ReportText>& ReportFiles();

/// The text of one of them; "" when there is none of that name.
inline const char* ReportFile(absl::string_view name) {
  for (const ReportText& file : ReportFiles())
    if (file.name == name) return file.text;
  return "";
}

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_REPORT_FILES_H_
