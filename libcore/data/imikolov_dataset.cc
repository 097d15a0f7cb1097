// SPDX-License-Identifier: Apache-2.0
// The Penn Treebank as Mikolov packed it. The dictionary counts training and
// validation texts. A word '<unk>', '<s>' or '<e>' of the texts is one like
// others, told apart from the marks: PaddlePaddle reads the texts as bytes and
// writes its marks as str.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"
#include "libcore/data/table_dataset.h"
#include "libcore/data/word_count.h"

namespace pd {
namespace {

// No word of a text holds a blank; marks are counted under names that do.
constexpr char kStart[] = " <s>", kEnd[] = " <e>";

std::string MemberOf(absl::string_view which) {
  return absl::StrCat("simple-examples/data/ptb.", which, ".txt");
}

class Imikolov {
 public:
  explicit Imikolov(const ImikolovOptions& options)
      : options_(options), dataset_(std::make_shared<TableDataset>()) {}

  absl::StatusOr<DatasetPtr> Open();

 private:
  absl::Status Count(absl::string_view text);
  absl::Status AddWindows(const std::vector<int64_t>& line, int64_t number);
  absl::Status AddSequence(const std::vector<int64_t>& line, int64_t number);
  absl::Status AddLines(absl::string_view text);
  int64_t IdOf(int32_t number) const {
    // Words that only the test text has were counted after the ids were made.
    const auto i = static_cast<size_t>(number);
    return i < ids_.size() ? ids_[i] : unknown_;
  }

  ImikolovOptions options_;
  WordCount words_;
  std::vector<int64_t> ids_;
  int64_t unknown_ = 0, start_ = 0, end_ = 0;
  std::shared_ptr<TableDataset> dataset_;
};

absl::Status Imikolov::Count(absl::string_view text) {
  return python::ForEachLine(text, [this](absl::string_view line, int64_t) {
    for (const absl::string_view word :
         python::Split(line, python::Blanks::kBytes))
      words_.Add(word);
    words_.Add(kStart);
    words_.Add(kEnd);
    return absl::OkStatus();
  });
}

absl::Status Imikolov::AddWindows(const std::vector<int64_t>& line,
                                  int64_t number) {
  std::vector<int64_t> marked = {start_};
  marked.insert(marked.end(), line.begin(), line.end());
  marked.push_back(end_);
  const auto window = static_cast<size_t>(options_.window_size);
  for (size_t i = window; i <= marked.size(); ++i) {
    dataset_->Extend(0, marked.data() + i - window, window - 1);
    dataset_->Push(1, marked[i - 1]);
    PD_RETURN_IF_ERROR(dataset_->EndRecord(number));
  }
  return absl::OkStatus();
}

absl::Status Imikolov::AddSequence(const std::vector<int64_t>& line,
                                   int64_t number) {
  const auto length = static_cast<int64_t>(line.size()) + 1;
  if (options_.window_size > 0 && length > options_.window_size)
    return absl::OkStatus();
  dataset_->Push(0, start_);
  dataset_->Extend(0, line.data(), line.size());
  dataset_->Extend(1, line.data(), line.size());
  dataset_->Push(1, end_);
  return dataset_->EndRecord(number);
}

absl::Status Imikolov::AddLines(absl::string_view text) {
  const bool windows = options_.data_type == "NGRAM";
  std::vector<int64_t> ids;
  return python::ForEachLine(text, [&](absl::string_view line, int64_t number) {
    ids.clear();
    for (const absl::string_view word :
         python::Split(line, python::Blanks::kBytes))
      ids.push_back(IdOf(words_.Add(word)));
    return windows ? AddWindows(ids, number) : AddSequence(ids, number);
  });
}

absl::StatusOr<DatasetPtr> Imikolov::Open() {
  const std::string& path = options_.data_file;
  const std::string train = MemberOf("train"), valid = MemberOf("valid");
  const std::string member = MemberOf(options_.mode);
  PD_ASSIGN_OR_RETURN(const std::vector<TarFile> files,
                      ReadTarFiles(path, [&](absl::string_view name) {
                        return name == train || name == valid || name == member;
                      }));
  for (const std::string& counted : {train, valid}) {
    PD_ASSIGN_OR_RETURN(const FileBytes text,
                        FindTarFile(files, counted, path));
    PD_RETURN_IF_ERROR(Count(text.view()));
  }
  ids_ = words_.IdsByFrequency(options_.min_word_freq, &unknown_);
  if (unknown_ == 0)
    return InvalidArgument(
        "'%s' holds no word more than %d times (min_word_freq)", path,
        options_.min_word_freq);
  start_ = IdOf(words_.Add(kStart));
  end_ = IdOf(words_.Add(kEnd));
  if (options_.data_type == "NGRAM") {
    dataset_->AddField({"words", DType::kInt64, {options_.window_size - 1}});
    dataset_->AddField({"label", DType::kInt64, {1}});
  } else {
    dataset_->AddField({"src", DType::kInt64, {-1}});
    dataset_->AddField({"trg", DType::kInt64, {-1}});
  }
  dataset_->BeginFile(path, absl::StrCat("member '", member, "' line"));
  PD_ASSIGN_OR_RETURN(const FileBytes text, FindTarFile(files, member, path));
  PD_RETURN_IF_ERROR(AddLines(text.view()));
  if (dataset_->size() == 0)
    return DataLoss("'%s': member '%s' makes no records", path, member);
  PD_RETURN_IF_ERROR(dataset_->Finish());
  return std::move(dataset_);
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenImikolov(const ImikolovOptions& options) {
  if (options.data_type == "NGRAM" && options.window_size < 2)
    return InvalidArgument("window_size is %d; expected 2 or more for NGRAM",
                           options.window_size);
  return Imikolov(options).Open();
}

}  // namespace pd
