// SPDX-License-Identifier: Apache-2.0
// Helpers of WMT14 and WMT16: lines "source \t target" as ids between marks.
#ifndef PD_LIBCORE_DATA_TRANSLATION_H_
#define PD_LIBCORE_DATA_TRANSLATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/data/table_dataset.h"

namespace pd {

using WordIds = std::unordered_map<std::string, int64_t>;

constexpr char kSentenceStart[] = "<s>", kSentenceEnd[] = "<e>",
               kUnknownWord[] = "<unk>";

/// The id of `word`, or `otherwise`.
int64_t FindWord(const WordIds& ids, absl::string_view word, int64_t otherwise);

/// The two sides of a line, stripped; false when a tab does not part it in two.
/// DataLoss when it is not UTF-8.
absl::StatusOr<bool> SplitPair(absl::string_view line, absl::string_view* first,
                               absl::string_view* second);

/// Adds the fields "src_ids", "trg_ids" and "trg_ids_next".
void AddTranslationFields(TableDataset* dataset);

/// Adds a record: start, the source's words, end; start and the target's words;
/// the target's words and end.
struct TranslationWords {
  const WordIds* ids = nullptr;
  int64_t start = 0, end = 0, unknown = 0;
};
absl::Status AddTranslation(absl::string_view source, absl::string_view target,
                            const TranslationWords& source_words,
                            const TranslationWords& target_words, int64_t line,
                            TableDataset* dataset);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_TRANSLATION_H_
