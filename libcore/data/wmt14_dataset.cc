// SPDX-License-Identifier: Apache-2.0
// WMT14's English and French with the dictionaries that come along. The archive
// is read twice: for the dictionaries, then member by member.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"
#include "libcore/data/translation.h"

namespace pd {
namespace {

constexpr int64_t kUnknownId = 2;
constexpr size_t kMostWords = 80;

// The first `size` lines of the one member that ends in `ending`.
absl::StatusOr<WordIds> ReadDict(const std::string& path,
                                 const std::vector<TarFile>& files,
                                 const std::string& ending, int64_t size) {
  const TarFile* dict = nullptr;
  for (const TarFile& file : files) {
    if (!absl::EndsWith(file.name, ending)) continue;
    if (dict != nullptr)
      return InvalidArgument("'%s' holds two members '%s', '%s' and '%s'", path,
                             ending, dict->name, file.name);
    dict = &file;
  }
  if (dict == nullptr)
    return NotFound("'%s' holds no member '%s'", path, ending);
  WordIds ids;
  const absl::Status status = python::ForEachLine(
      dict->content.view(),
      [&](absl::string_view line, int64_t number) -> absl::Status {
        if (number > size) return absl::OkStatus();
        const absl::string_view word =
            python::Strip(line, python::Blanks::kBytes);
        PD_RETURN_IF_ERROR(python::CheckUtf8(word));
        ids[std::string(word)] = number - 1;
        return absl::OkStatus();
      });
  if (!status.ok())
    return Annotate(status,
                    absl::StrCat("'", path, "': member '", dict->name, "'"));
  return ids;
}

class Wmt14 {
 public:
  Wmt14(WordIds source, WordIds target)
      : source_ids_(std::move(source)),
        target_ids_(std::move(target)),
        dataset_(std::make_shared<TableDataset>()) {
    AddTranslationFields(dataset_.get());
  }

  absl::Status Init(const std::string& path) {
    source_ = {&source_ids_, FindWord(source_ids_, kSentenceStart, kUnknownId),
               FindWord(source_ids_, kSentenceEnd, kUnknownId), kUnknownId};
    target_ = {&target_ids_, FindWord(target_ids_, kSentenceStart, -1),
               FindWord(target_ids_, kSentenceEnd, -1), kUnknownId};
    if (target_.start < 0 || target_.end < 0)
      return NotFound("'%s': the first words of 'trg.dict' are without '%s'",
                      path, target_.start < 0 ? kSentenceStart : kSentenceEnd);
    return absl::OkStatus();
  }

  absl::Status AddLines(const std::string& path, const std::string& member,
                        absl::string_view text) {
    dataset_->BeginFile(path, absl::StrCat("member '", member, "' line"));
    return python::ForEachLine(
        text, [this](absl::string_view line, int64_t number) -> absl::Status {
          absl::string_view source, target;
          PD_ASSIGN_OR_RETURN(const bool pair,
                              SplitPair(line, &source, &target));
          // With its marks, a source is as long as 80 words; a target without.
          if (!pair ||
              python::Split(source, python::Blanks::kText).size() + 2 >
                  kMostWords ||
              python::Split(target, python::Blanks::kText).size() > kMostWords)
            return absl::OkStatus();
          return AddTranslation(source, target, source_, target_, number,
                                dataset_.get());
        });
  }

  std::shared_ptr<TableDataset> dataset() const { return dataset_; }

 private:
  WordIds source_ids_, target_ids_;
  TranslationWords source_, target_;
  std::shared_ptr<TableDataset> dataset_;
};

}  // namespace

absl::StatusOr<DatasetPtr> OpenWmt14(const Wmt14Options& options) {
  const std::string& path = options.data_file;
  PD_ASSIGN_OR_RETURN(const std::vector<TarFile> dicts,
                      ReadTarFiles(path, [](absl::string_view name) {
                        return absl::EndsWith(name, "src.dict") ||
                               absl::EndsWith(name, "trg.dict");
                      }));
  PD_ASSIGN_OR_RETURN(WordIds source,
                      ReadDict(path, dicts, "src.dict", options.dict_size));
  PD_ASSIGN_OR_RETURN(WordIds target,
                      ReadDict(path, dicts, "trg.dict", options.dict_size));
  Wmt14 wmt(std::move(source), std::move(target));
  PD_RETURN_IF_ERROR(wmt.Init(path));
  const std::string ending = absl::StrCat(options.mode, "/", options.mode);
  bool found = false;
  PD_RETURN_IF_ERROR(ForEachTarFile(
      path, [&](const TarMember& member, TarReader* reader) -> absl::Status {
        if (!absl::EndsWith(member.name, ending)) return absl::OkStatus();
        found = true;
        PD_ASSIGN_OR_RETURN(const FileBytes text, reader->Read());
        return wmt.AddLines(path, member.name, text.view());
      }));
  if (!found) return NotFound("'%s' holds no member '%s'", path, ending);
  if (wmt.dataset()->size() == 0)
    return DataLoss("'%s': members '%s' hold no pairs of sentences", path,
                    ending);
  PD_RETURN_IF_ERROR(wmt.dataset()->Finish());
  return wmt.dataset();
}

}  // namespace pd
