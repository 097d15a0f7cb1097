// SPDX-License-Identifier: Apache-2.0
// The numbers of a run by step, as RUN/log.jsonl holds them: what curves are
// drawn of, and what goes to viewers as scalars.
#ifndef PD_LIBCORE_REPORT_RUN_HISTORY_H_
#define PD_LIBCORE_REPORT_RUN_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pd {

/// A number of a line: its tag and value. NaN where the line says null.
struct TaggedValue {
  std::string tag;  ///< "train/loss", "train/lr", "eval/acc"
  double value = 0;
};

/// A line of log.jsonl taken apart.
struct LogLinePoints {
  int64_t step = 0;
  std::vector<TaggedValue> values;
};

/// The numbers of one line: those beside the step are "train/NAME", those of a
/// group "GROUP/NAME", the mean loss of an epoch "train/epoch_loss"; numbers of
/// records are left out. No values for a line that is none of ours.
LogLinePoints PointsOf(const std::string& line);

class RunHistory {
 public:
  struct Point {
    int64_t step = 0;
    double value = 0;
  };

  void Add(int64_t step, const std::string& tag, double value);
  void AddLine(const std::string& line);
  /// Adds the lines of RUN/log.jsonl. NotFound when there is no such file.
  absl::Status Read(const std::string& run);

  /// By tag; each rising by step.
  const std::map<std::string, std::vector<Point>>& series() const {
    return series_;
  }

 private:
  std::map<std::string, std::vector<Point>> series_;
};

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_RUN_HISTORY_H_
