// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: one line redrawn on a terminal,
//
//   epoch 2/5  [=====>    ]  420/938  loss 0.0712  38012 samples/s  0:12 left
//
// plain lines now and then elsewhere, nothing when quiet. Update may be called
// after every step: it looks at the clock and returns unless a line is due,
// and allocates nothing then.
#ifndef PD_CMD_COMMON_PROGRESS_H_
#define PD_CMD_COMMON_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pd {

/// A number to show, for example {"loss", 0.0712}.
struct ProgressValue {
  absl::string_view name;
  double value = 0;
};

enum class ProgressMode { kQuiet, kLines, kBar };

/// kBar on a terminal, kLines elsewhere, kQuiet below the log's info level.
ProgressMode ProgressModeFor(std::FILE* stream);

struct ProgressOptions {
  std::FILE* stream = stderr;
  ProgressMode mode = ProgressMode::kLines;
  bool colour = false;
  double bar_seconds = 0.1;   ///< between redraws of the bar
  double line_seconds = 5.0;  ///< between plain lines
  int columns = 0;            ///< width of the bar's line; 0 asks the terminal
  /// Seconds from some start; the steady clock when not set.
  std::function<double()> clock;
};

/// One bar, used for one stretch of work after another (the epochs). Log lines
/// of any thread clear it first while it lives; only one may live at a time.
class Progress {
 public:
  /// Options as ProgressModeFor and the terminal of stderr want them.
  static ProgressOptions Standard();

  explicit Progress(ProgressOptions options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Starts a stretch of `total` steps, `done` of which are done already. A
  /// `total` of 0 is not known. `unit` is what the rate counts: "samples".
  void Begin(absl::string_view label, int64_t total, int64_t done = 0,
             absl::string_view unit = "samples");

  /// `done` steps are done; `items` (samples) went through since Begin.
  void Update(int64_t done, int64_t items,
              absl::Span<const ProgressValue> values = {});

  /// Ends the stretch: the bar is cleared, plain lines stay.
  void End();

  /// Clears the bar until the next Update, for output of another kind.
  void Clear();

 private:
  void Draw(double now, int64_t done, int64_t items,
            absl::Span<const ProgressValue> values);
  void ClearLocked();

  const ProgressOptions options_;
  std::mutex mutex_;
  std::string label_, unit_;
  int64_t total_ = 0;
  double drawn_at_ = 0;
  // The redraws of the last seconds: the rate is measured over them.
  struct Sample {
    double time;
    int64_t done, items;
  };
  std::deque<Sample> samples_;
  bool active_ = false, on_screen_ = false;
};

/// The parts of a progress line; empty ones are left out.
struct ProgressLine {
  std::string label, count, values, rate, left;
  double fraction = -1;  ///< of the bar; below 0 there is none
};

/// The line in at most `columns` columns: the bar gives way first, then the
/// rate, the values and the time left.
std::string LayOut(const ProgressLine& line, int columns, bool colour);

/// "0:12", "3:07", "1:02:03"; "--:--" when it is not known.
std::string Duration(double seconds);

/// Four significant digits that keep their width: "0.0712", "2.303", "1.2e-07".
std::string ShortNumber(double value);

}  // namespace pd

#endif  // PD_CMD_COMMON_PROGRESS_H_
