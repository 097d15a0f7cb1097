// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/translation.h"

#include "absl/strings/str_split.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/python_text.h"

namespace pd {

using python::Blanks;

int64_t FindWord(const WordIds& ids, absl::string_view word,
                 int64_t otherwise) {
  const auto found = ids.find(std::string(word));
  return found == ids.end() ? otherwise : found->second;
}

absl::StatusOr<bool> SplitPair(absl::string_view line, absl::string_view* first,
                               absl::string_view* second) {
  PD_RETURN_IF_ERROR(python::CheckUtf8(line));
  const std::vector<absl::string_view> sides =
      absl::StrSplit(python::Strip(line, Blanks::kText), '\t');
  if (sides.size() != 2) return false;
  *first = sides[0];
  *second = sides[1];
  return true;
}

void AddTranslationFields(TableDataset* dataset) {
  for (const char* name : {"src_ids", "trg_ids", "trg_ids_next"})
    dataset->AddField({name, DType::kInt64, {-1}});
}

absl::Status AddTranslation(absl::string_view source, absl::string_view target,
                            const TranslationWords& source_words,
                            const TranslationWords& target_words, int64_t line,
                            TableDataset* dataset) {
  dataset->Push(0, source_words.start);
  for (const absl::string_view word : python::Split(source, Blanks::kText))
    dataset->Push(0, FindWord(*source_words.ids, word, source_words.unknown));
  dataset->Push(0, source_words.end);
  dataset->Push(1, target_words.start);
  for (const absl::string_view word : python::Split(target, Blanks::kText)) {
    const int64_t id = FindWord(*target_words.ids, word, target_words.unknown);
    dataset->Push(1, id);
    dataset->Push(2, id);
  }
  dataset->Push(2, target_words.end);
  return dataset->EndRecord(line);
}

}  // namespace pd
