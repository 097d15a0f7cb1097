// SPDX-License-Identifier: Apache-2.0
// The page of a report and Chart.js; the build makes the table. Internal to
// libcore/report.
#ifndef PD_LIBCORE_REPORT_REPORT_FILES_H_
#define PD_LIBCORE_REPORT_REPORT_FILES_H_

#include <vector>

namespace pd {

struct ReportText {
  const char* name;  ///< "report_page.html"
  const char* text;
};

const std::vector<ReportText>& ReportFiles();

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_REPORT_FILES_H_
