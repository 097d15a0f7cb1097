// SPDX-License-Identifier: Apache-2.0
// Reviews of films. Words are what is left between blanks when ASCII's
// punctuation is taken out, in lower case; the dictionary is made of training
// and test texts, those without a label aside.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"
#include "libcore/data/table_dataset.h"
#include "libcore/data/word_count.h"

namespace pd {
namespace {

constexpr char kModes[][6] = {"train", "test"};
constexpr char kKinds[][4] = {"pos", "neg"};  // by label

using Text = std::vector<int32_t>;

// The label of the member and whether it is of `mode`; false when it is none of
// the texts.
bool Classify(absl::string_view name, const std::string& mode, bool* of_mode,
              size_t* label) {
  if (!absl::ConsumePrefix(&name, "aclImdb/") ||
      !absl::ConsumeSuffix(&name, ".txt"))
    return false;
  for (const char* which : kModes) {
    for (size_t kind = 0; kind < 2; ++kind) {
      if (!absl::StartsWith(name, absl::StrCat(which, "/", kKinds[kind], "/")))
        continue;
      *of_mode = mode == which;
      *label = kind;
      return true;
    }
  }
  return false;
}

Text Tokenize(absl::string_view bytes, WordCount* words) {
  std::string kept;
  kept.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_ispunct(byte)) kept += absl::ascii_tolower(byte);
  }
  Text text;
  for (const absl::string_view word :
       python::Split(kept, python::Blanks::kBytes))
    text.push_back(words->Add(word));
  return text;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenImdb(const ImdbOptions& options) {
  const std::string& path = options.data_file;
  WordCount words;
  std::vector<Text> texts[2];  // by label
  PD_RETURN_IF_ERROR(ForEachTarFile(
      path, [&](const TarMember& member, TarReader* reader) -> absl::Status {
        bool of_mode;
        size_t label;
        if (!Classify(member.name, options.mode, &of_mode, &label))
          return absl::OkStatus();
        PD_ASSIGN_OR_RETURN(const FileBytes bytes, reader->Read());
        Text text = Tokenize(bytes.view(), &words);
        if (of_mode) texts[label].push_back(std::move(text));
        return absl::OkStatus();
      }));
  if (texts[0].empty() && texts[1].empty())
    return NotFound("'%s' holds no member like 'aclImdb/%s/pos/0_9.txt'", path,
                    options.mode);
  int64_t known = 0;
  const std::vector<int64_t> ids = words.IdsByFrequency(options.cutoff, &known);
  if (known == 0)
    return InvalidArgument("'%s' holds no word more than %d times (cutoff)",
                           path, options.cutoff);
  auto dataset = std::make_shared<TableDataset>();
  dataset->AddField({"doc", DType::kInt64, {-1}});
  dataset->AddField({"label", DType::kInt64, {1}});
  dataset->BeginFile(path, "record");
  for (size_t label = 0; label < 2; ++label) {
    for (const Text& text : texts[label]) {
      for (const int32_t word : text)
        dataset->Push(0, ids[static_cast<size_t>(word)]);
      dataset->Push(1, static_cast<int64_t>(label));
      PD_RETURN_IF_ERROR(dataset->EndRecord(dataset->size()));
    }
  }
  PD_RETURN_IF_ERROR(dataset->Finish());
  dataset->set_classes(1, {kKinds[0], kKinds[1]});
  return dataset;
}

}  // namespace pd
