// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cmd/common/terminal.h"
#include "libcore/base/log.h"
#include "libcore/base/log_marks.h"

namespace pd {
namespace {

constexpr double kWindowSeconds = 3;
constexpr int kWidestBar = 30, kNarrowestBar = 8;

double SteadySeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::string Bar(double fraction, int width, bool colour) {
  const int cells = width - 2;
  const int full = std::clamp(static_cast<int>(fraction * cells), 0, cells);
  std::string filled(static_cast<size_t>(full), '=');
  std::string rest(static_cast<size_t>(cells - full), ' ');
  if (!rest.empty()) rest[0] = '>';
  if (!colour) return absl::StrCat("[", filled, rest, "]");
  return absl::StrCat("[\x1b[32m", filled, rest, "\x1b[0m]");
}

int Columns(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) {
        return (c & 0xC0u) != 0x80u;  // not the rest of a UTF-8 character
      }));
}

std::string Join(const std::vector<std::string>& parts) {
  std::string line;
  for (const std::string& part : parts)
    if (!part.empty()) absl::StrAppend(&line, line.empty() ? "" : "  ", part);
  return line;
}

}  // namespace

std::string Duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e8) return "--:--";
  const auto s = static_cast<int64_t>(seconds + 0.5);
  if (s < 3600) return absl::StrFormat("%d:%02d", s / 60, s % 60);
  return absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
}

std::string ShortNumber(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || (size != 0 && (size < 1e-4 || size >= 1e6)))
    return absl::StrFormat("%.3g", value);
  const int digits = size < 1 ? 4 : size < 10 ? 3 : size < 100 ? 2 : 1;
  return absl::StrFormat("%.*f", digits, value);
}

std::string LayOut(const ProgressLine& line, int columns, bool colour) {
  // Candidates from the fullest to the barest; the first that fits is taken.
  const std::vector<std::vector<std::string>> tails = {
      {line.count, line.values, line.rate, line.left},
      {line.count, line.values, line.left},
      {line.count, line.left},
      {line.count},
  };
  for (const auto& tail : tails) {
    std::vector<std::string> parts = {line.label, ""};
    parts.insert(parts.end(), tail.begin(), tail.end());
    const int used = Columns(Join(parts));
    const int room = std::min(columns - used - 2, kWidestBar);
    if (line.fraction >= 0 && room >= kNarrowestBar)
      parts[1] = Bar(line.fraction, room, colour);
    if (used <= columns) return Join(parts);
  }
  return line.count.substr(0, static_cast<size_t>(std::max(columns, 0)));
}

ProgressMode ProgressModeFor(std::FILE* stream) {
  if (GetLogLevel() < LogLevel::kInfo) return ProgressMode::kQuiet;
  return IsTerminal(stream) ? ProgressMode::kBar : ProgressMode::kLines;
}

ProgressOptions Progress::Standard() {
  ProgressOptions options;
  options.mode = ProgressModeFor(stderr);
  options.colour = WantsColour(stderr);
  return options;
}

Progress::Progress(ProgressOptions options)
    : options_([&] {
        if (!options.clock) options.clock = SteadySeconds;
        return std::move(options);
      }()) {
  if (options_.mode == ProgressMode::kBar)
    SetBeforeLogLine([this] { Clear(); });
}

Progress::~Progress() {
  if (options_.mode == ProgressMode::kBar) SetBeforeLogLine(nullptr);
  Clear();
}

void Progress::Begin(absl::string_view label, int64_t total, int64_t done,
                     absl::string_view unit) {
  std::lock_guard<std::mutex> lock(mutex_);
  label_ = std::string(label);
  unit_ = std::string(unit);
  total_ = total;
  drawn_at_ = options_.clock();
  samples_.assign(1, {drawn_at_, done, 0});
  active_ = true;
  // The bar is there from the start; a plain line waits its time.
  if (options_.mode == ProgressMode::kBar) Draw(drawn_at_, done, 0, {});
}

void Progress::Update(int64_t done, int64_t items,
                      absl::Span<const ProgressValue> values) {
  if (options_.mode == ProgressMode::kQuiet) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!active_) return;
  const double now = options_.clock();
  const double every = options_.mode == ProgressMode::kBar
                           ? options_.bar_seconds
                           : options_.line_seconds;
  if (now - drawn_at_ < every) return;
  Draw(now, done, items, values);
}

void Progress::Draw(double now, int64_t done, int64_t items,
                    absl::Span<const ProgressValue> values) {
  drawn_at_ = now;
  while (samples_.size() > 1 && now - samples_.front().time > kWindowSeconds)
    samples_.pop_front();
  const double since = now - samples_.front().time;
  double steps_rate = 0, items_rate = 0;
  if (since > 0) {
    steps_rate = static_cast<double>(done - samples_.front().done) / since;
    items_rate = static_cast<double>(items - samples_.front().items) / since;
  }
  samples_.push_back({now, done, items});

  std::FILE* stream = options_.stream;
  const bool bar = options_.mode == ProgressMode::kBar;
  if (bar && !InForeground(stream)) return;
  ProgressLine line;
  line.label = label_;
  line.count = total_ > 0 ? absl::StrCat(done, "/", total_)
                          : absl::StrCat(done, " steps");
  for (const ProgressValue& v : values)
    absl::StrAppend(&line.values, line.values.empty() ? "" : "  ", v.name, " ",
                    ShortNumber(v.value));
  if (items_rate > 0)
    line.rate = absl::StrFormat("%.*f %s/s", items_rate < 10 ? 2 : 0,
                                items_rate, unit_);
  if (total_ > 0 && steps_rate > 0)
    line.left = absl::StrCat(
        Duration(static_cast<double>(total_ - done) / steps_rate), " left");
  if (bar && total_ > 0)
    line.fraction = static_cast<double>(done) / static_cast<double>(total_);
  if (!bar) {
    std::fputs(absl::StrCat(LogMark(LogLevel::kInfo),
                            LayOut(line, 1 << 20, false), "\n")
                   .c_str(),
               stream);
  } else {
    const int columns =
        options_.columns > 0 ? options_.columns : TerminalColumns(stream);
    // One column stays free: a full line makes some terminals wrap.
    std::fputs(
        absl::StrCat("\r", LayOut(line, columns - 1, options_.colour), "\x1b[K")
            .c_str(),
        stream);
    on_screen_ = true;
  }
  std::fflush(stream);
}

void Progress::End() {
  std::lock_guard<std::mutex> lock(mutex_);
  ClearLocked();
  active_ = false;
}

void Progress::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  ClearLocked();
}

void Progress::ClearLocked() {
  if (!on_screen_) return;
  std::fputs("\r\x1b[K", options_.stream);
  std::fflush(options_.stream);
  on_screen_ = false;
}

}  // namespace pd
