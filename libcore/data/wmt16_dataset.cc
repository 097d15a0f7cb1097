// SPDX-License-Identifier: Apache-2.0
// WMT16's English and German. A dictionary is three marks and the words of the
// training set by falling count, equals in the order in which they first occur.
// PaddlePaddle counts the source's words for the target's dictionary too.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"
#include "libcore/data/translation.h"
#include "libcore/data/word_count.h"

namespace pd {
namespace {

// Calls `take` with both sides of each line that has two.
absl::Status ForEachPair(
    absl::string_view text,
    const std::function<absl::Status(const absl::string_view* sides,
                                     int64_t line)>& take) {
  return python::ForEachLine(
      text, [&take](absl::string_view line, int64_t number) -> absl::Status {
        absl::string_view sides[2];
        PD_ASSIGN_OR_RETURN(const bool pair,
                            SplitPair(line, &sides[0], &sides[1]));
        return pair ? take(sides, number) : absl::OkStatus();
      });
}

WordIds MakeDict(const WordCount& words, int64_t size) {
  WordIds ids;
  int64_t next = 0;
  for (const char* mark : {kSentenceStart, kSentenceEnd, kUnknownWord})
    ids[mark] = next++;
  for (const int32_t number : words.Ranked(std::less<int32_t>())) {
    if (next == size) break;
    ids[words.word(static_cast<size_t>(number))] = next++;
  }
  return ids;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenWmt16(const Wmt16Options& options) {
  const std::string& path = options.data_file;
  const std::string train = "wmt16/train";
  const std::string member = absl::StrCat("wmt16/", options.mode);
  PD_ASSIGN_OR_RETURN(const std::vector<TarFile> files,
                      ReadTarFiles(path, [&](absl::string_view name) {
                        return name == train || name == member;
                      }));
  const auto place = [&path](const std::string& name) {
    return absl::StrCat("'", path, "': member '", name, "'");
  };
  const size_t from = options.lang == "en" ? 0 : 1, to = 1 - from;
  WordCount words[2];
  PD_ASSIGN_OR_RETURN(const FileBytes counted, FindTarFile(files, train, path));
  PD_RETURN_IF_ERROR(Annotate(
      ForEachPair(counted.view(),
                  [&words](const absl::string_view* sides, int64_t) {
                    for (size_t i = 0; i < 2; ++i)
                      for (const absl::string_view word :
                           python::Split(sides[i], python::Blanks::kText))
                        words[i].Add(word);
                    return absl::OkStatus();
                  }),
      place(train)));
  const WordIds source = MakeDict(words[from], options.src_dict_size);
  const WordIds target = MakeDict(words[options.own_dictionaries ? to : from],
                                  options.trg_dict_size);
  auto dataset = std::make_shared<TableDataset>();
  AddTranslationFields(dataset.get());
  dataset->BeginFile(path, absl::StrCat("member '", member, "' line"));
  PD_ASSIGN_OR_RETURN(const FileBytes text, FindTarFile(files, member, path));
  PD_RETURN_IF_ERROR(
      Annotate(ForEachPair(text.view(),
                           [&](const absl::string_view* sides, int64_t line) {
                             return AddTranslation(
                                 sides[from], sides[to], {&source, 0, 1, 2},
                                 {&target, 0, 1, 2}, line, dataset.get());
                           }),
               place(member)));
  if (dataset->size() == 0)
    return DataLoss("%s holds no pairs of sentences", place(member));
  PD_RETURN_IF_ERROR(dataset->Finish());
  return dataset;
}

}  // namespace pd
