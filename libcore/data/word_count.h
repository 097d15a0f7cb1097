// SPDX-License-Identifier: Apache-2.0
// Words and how often they occur, numbered as they come, and the dictionary
// that paddle.text's data sets make of them.
#ifndef PD_LIBCORE_DATA_WORD_COUNT_H_
#define PD_LIBCORE_DATA_WORD_COUNT_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

class WordCount {
 public:
  WordCount() = default;
  WordCount(const WordCount&) = delete;
  WordCount& operator=(const WordCount&) = delete;

  /// Counts the word; its number for now.
  int32_t Add(absl::string_view word, int64_t times = 1) {
    const auto [found, added] = numbers_.emplace(
        std::string(word), static_cast<int32_t>(words_.size()));
    if (added) {
      words_.push_back(&found->first);
      counts_.push_back(0);
    }
    counts_[static_cast<size_t>(found->second)] += times;
    return found->second;
  }

  size_t size() const { return words_.size(); }
  const std::string& word(size_t number) const { return *words_[number]; }
  int64_t count(size_t number) const { return counts_[number]; }

  /// Numbers by falling count; among equals `before` decides.
  template <typename Before>
  std::vector<int32_t> Ranked(const Before& before) const {
    std::vector<int32_t> ranked(words_.size());
    std::iota(ranked.begin(), ranked.end(), 0);
    std::sort(ranked.begin(), ranked.end(), [&](int32_t a, int32_t b) {
      const int64_t count_a = counts_[static_cast<size_t>(a)];
      const int64_t count_b = counts_[static_cast<size_t>(b)];
      return count_a != count_b ? count_a > count_b : before(a, b);
    });
    return ranked;
  }

  /// The dictionary's id for each number: words that occur more than `cutoff`
  /// times, the more frequent first, equals in the order of their bytes; the
  /// others get the id behind them, that of '<unk>', which is `*known`.
  std::vector<int64_t> IdsByFrequency(int64_t cutoff, int64_t* known) const {
    const std::vector<int32_t> ranked = Ranked([this](int32_t a, int32_t b) {
      return word(static_cast<size_t>(a)) < word(static_cast<size_t>(b));
    });
    *known = std::count_if(counts_.begin(), counts_.end(),
                           [cutoff](int64_t n) { return n > cutoff; });
    std::vector<int64_t> ids(words_.size());
    for (size_t rank = 0; rank < ranked.size(); ++rank)
      ids[static_cast<size_t>(ranked[rank])] =
          std::min(static_cast<int64_t>(rank), *known);
    return ids;
  }

 private:
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<const std::string*> words_;
  std::vector<int64_t> counts_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_WORD_COUNT_H_
