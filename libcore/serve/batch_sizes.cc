// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/batch_sizes.h"

#include <algorithm>

namespace pd {
namespace serve {
namespace {

constexpr size_t kMostJudged = 256;  // clients choose them
constexpr int kRuns = 3;             // the first ones compile
constexpr double kSaves = 0.95;
constexpr double kForget = 1.02;  // a lucky run does not count for ever
constexpr uint64_t kTryAgain = 64;

size_t PowerOf(int64_t rows) {
  size_t power = 0;
  while (power < 16 && (rows >> (power + 1)) > 0) ++power;
  return power;
}

}  // namespace

int64_t BatchSizes::Most(const std::string& key, int64_t rows, int64_t max) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (keys_.size() >= kMostJudged && keys_.count(key) == 0) return rows;
  Sizes& sizes = keys_[key];
  const auto& by_power = sizes.by_power;
  size_t power = PowerOf(rows);
  int64_t most = int64_t{1} << power;
  if (by_power[power].runs < kRuns) return rows;
  const bool try_again = ++sizes.asked % kTryAgain == 0;
  while (++power < by_power.size() && 2 * most <= max) {
    const Size& now = by_power[power - 1];
    const Size& twice = by_power[power];
    if (twice.runs < kRuns) return 2 * most;
    if (twice.row_seconds > kSaves * now.row_seconds)
      return try_again ? 2 * most : most;
    most *= 2;
  }
  return most;
}

void BatchSizes::Note(const std::string& key, int64_t rows, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = keys_.find(key);
  if (found == keys_.end() || rows < 1) return;
  Size& size = found->second.by_power[PowerOf(rows)];
  const double row_seconds = seconds / static_cast<double>(rows);
  size.row_seconds = size.runs == 0
                         ? row_seconds
                         : std::min(row_seconds, size.row_seconds * kForget);
  ++size.runs;
}

}  // namespace serve
}  // namespace pd
