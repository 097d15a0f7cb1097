// SPDX-License-Identifier: Apache-2.0
// CoNLL 2005's semantic roles: a record for each predicate of each sentence,
// with the words around the predicate beside every word.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/gzip.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"
#include "libcore/data/translation.h"

namespace pd {
namespace {

using python::Blanks;
using Strings = std::vector<std::string>;

constexpr char kWords[] = "conll05st-release/test.wsj/words/test.wsj.words.gz";
constexpr char kProps[] = "conll05st-release/test.wsj/props/test.wsj.props.gz";
constexpr int64_t kUnknown = 0;

// The text's lines, stripped.
Strings LinesOf(absl::string_view text) {
  Strings lines;
  python::ForEachLine(text, [&lines](absl::string_view line, int64_t) {
    lines.emplace_back(python::Strip(line, Blanks::kText));
    return absl::OkStatus();
  }).IgnoreError();
  return lines;
}

absl::StatusOr<WordIds> ReadDict(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  WordIds ids;
  const Strings lines = LinesOf(file.view());
  for (size_t i = 0; i < lines.size(); ++i)
    ids[lines[i]] = static_cast<int64_t>(i);
  if (ids.empty()) return DataLoss("'%s' holds no words", path);
  return ids;
}

// "B-" and "I-" of each tag, in the order in which the file first has it, "O".
absl::StatusOr<WordIds> ReadLabels(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  WordIds ids;
  int64_t next = 0;
  for (const std::string& line : LinesOf(file.view())) {
    if (!absl::StartsWith(line, "B-") && !absl::StartsWith(line, "I-"))
      continue;
    const std::string tag = line.substr(2);
    if (ids.count("B-" + tag) != 0) continue;
    ids["B-" + tag] = next++;
    ids["I-" + tag] = next++;
  }
  ids["O"] = next;
  return ids;
}

// The labels of one predicate's column: "(A0*", "*", "*)", "(V*)".
absl::StatusOr<Strings> DecodeColumn(const Strings& column) {
  Strings labels;
  std::string tag = "O";
  bool inside = false;
  for (const std::string& mark : column) {
    const bool opens = mark.find('(') != std::string::npos;
    const bool closes = mark.find(')') != std::string::npos;
    if (mark == "*") {
      labels.push_back(inside ? "I-" + tag : "O");
    } else if (mark == "*)") {
      labels.push_back("I-" + tag);
      inside = false;
    } else if (opens && mark.find('*') != std::string::npos) {
      tag = mark.substr(1, mark.find('*') - 1);
      labels.push_back("B-" + tag);
      inside = !closes;
    } else {
      return DataLoss("unexpected label '%s'", mark.substr(0, 32));
    }
  }
  return labels;
}

class Conll05 {
 public:
  explicit Conll05(const Conll05Options& options)
      : options_(options), dataset_(std::make_shared<TableDataset>()) {}

  absl::StatusOr<DatasetPtr> Open();

 private:
  struct Sentence {
    Strings words;
    std::vector<Strings> rows;  // of props
    int64_t line = 1;           // where it begins
  };
  absl::StatusOr<Strings> ReadMember(const std::vector<TarFile>& files,
                                     const std::string& name) const;
  absl::Status AddAll(const Strings& words, const Strings& props);
  absl::Status AddSentence(const Sentence& sentence);
  absl::Status AddPredicate(const Sentence& sentence, const std::string& verb,
                            const Strings& labels);

  Conll05Options options_;
  WordIds words_, verbs_, labels_;
  std::shared_ptr<TableDataset> dataset_;
};

absl::StatusOr<Strings> Conll05::ReadMember(const std::vector<TarFile>& files,
                                            const std::string& name) const {
  PD_ASSIGN_OR_RETURN(const FileBytes packed,
                      FindTarFile(files, name, options_.data_file));
  const auto text = Gunzip(packed.view());
  if (!text.ok())
    return Annotate(text.status(), absl::StrCat("'", options_.data_file,
                                                "': member '", name, "'"));
  return LinesOf(text->view());
}

absl::Status Conll05::AddPredicate(const Sentence& sentence,
                                   const std::string& verb,
                                   const Strings& labels) {
  const auto at = static_cast<int64_t>(
      std::find(labels.begin(), labels.end(), "B-V") - labels.begin());
  const auto size = static_cast<int64_t>(labels.size());
  if (at == size) return DataLoss("predicate '%s' has no label '(V*)'", verb);
  const auto verb_id = verbs_.find(verb);
  if (verb_id == verbs_.end())
    return NotFound("predicate '%s' is not in '%s'", verb,
                    options_.verb_dict_file);
  const auto word_id = [this](const std::string& word) {
    return FindWord(words_, word, kUnknown);
  };
  // Words two before the predicate to two behind it.
  int64_t context[5];
  for (int64_t i = 0; i < 5; ++i) {
    const int64_t place = at + i - 2;
    context[i] =
        word_id(place < 0       ? "bos"
                : place >= size ? "eos"
                                : sentence.words[static_cast<size_t>(place)]);
  }
  for (int64_t i = 0; i < size; ++i) {
    const std::string& label = labels[static_cast<size_t>(i)];
    const auto label_id = labels_.find(label);
    if (label_id == labels_.end())
      return NotFound("label '%s' is not in '%s'", label,
                      options_.target_dict_file);
    dataset_->Push(0, word_id(sentence.words[static_cast<size_t>(i)]));
    for (size_t c = 0; c < 5; ++c) dataset_->Push(1 + c, context[c]);
    dataset_->Push(6, verb_id->second);
    dataset_->Push(7, static_cast<int64_t>(i >= at - 2 && i <= at + 2));
    dataset_->Push(8, label_id->second);
  }
  return dataset_->EndRecord(sentence.line);
}

absl::Status Conll05::AddSentence(const Sentence& sentence) {
  if (sentence.rows.empty()) return absl::OkStatus();
  const size_t columns = sentence.rows[0].size();
  std::vector<Strings> by_column(columns);
  for (const Strings& row : sentence.rows) {
    if (row.size() != columns)
      return DataLoss("a row has %d columns; the sentence's first has %d",
                      row.size(), columns);
    for (size_t i = 0; i < columns; ++i) by_column[i].push_back(row[i]);
  }
  Strings verbs;
  for (const std::string& verb : by_column[0])
    if (verb != "-") verbs.push_back(verb);
  for (size_t i = 1; i < columns; ++i) {
    if (i > verbs.size())
      return DataLoss("%d predicates have %d columns of labels", verbs.size(),
                      columns - 1);
    PD_ASSIGN_OR_RETURN(const Strings labels, DecodeColumn(by_column[i]));
    PD_RETURN_IF_ERROR(AddPredicate(sentence, verbs[i - 1], labels));
  }
  return absl::OkStatus();
}

absl::Status Conll05::AddAll(const Strings& words, const Strings& props) {
  if (words.size() != props.size())
    return DataLoss("'%s': member '%s' has %d lines; '%s' has %d",
                    options_.data_file, kWords, words.size(), kProps,
                    props.size());
  Sentence sentence;
  for (size_t i = 0; i < props.size(); ++i) {
    Strings row;
    for (const absl::string_view column :
         python::Split(props[i], Blanks::kText))
      row.emplace_back(column);
    if (!row.empty()) {
      sentence.words.push_back(words[i]);
      sentence.rows.push_back(std::move(row));
      continue;
    }
    const absl::Status status = AddSentence(sentence);
    if (!status.ok())
      return Annotate(
          status, absl::StrCat("'", options_.data_file, "': member '", kProps,
                               "': the sentence from line ", sentence.line));
    sentence = Sentence();
    sentence.line = static_cast<int64_t>(i) + 2;
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetPtr> Conll05::Open() {
  const std::string& path = options_.data_file;
  PD_ASSIGN_OR_RETURN(words_, ReadDict(options_.word_dict_file));
  PD_ASSIGN_OR_RETURN(verbs_, ReadDict(options_.verb_dict_file));
  PD_ASSIGN_OR_RETURN(labels_, ReadLabels(options_.target_dict_file));
  PD_ASSIGN_OR_RETURN(const std::vector<TarFile> files,
                      ReadTarFiles(path, [](absl::string_view name) {
                        return name == kWords || name == kProps;
                      }));
  PD_ASSIGN_OR_RETURN(const Strings words, ReadMember(files, kWords));
  PD_ASSIGN_OR_RETURN(const Strings props, ReadMember(files, kProps));
  for (const char* name :
       {"word_idx", "ctx_n2_idx", "ctx_n1_idx", "ctx_0_idx", "ctx_p1_idx",
        "ctx_p2_idx", "pred_idx", "mark", "label"})
    dataset_->AddField({name, DType::kInt64, {-1}});
  dataset_->BeginFile(path,
                      absl::StrCat("member '", kProps, "' sentence from line"));
  PD_RETURN_IF_ERROR(AddAll(words, props));
  if (dataset_->size() == 0)
    return DataLoss("'%s': member '%s' has no predicates", path, kProps);
  PD_RETURN_IF_ERROR(dataset_->Finish());
  Strings classes(labels_.size());
  for (const auto& [label, number] : labels_)
    classes[static_cast<size_t>(number)] = label;
  dataset_->set_classes(8, std::move(classes));
  return std::move(dataset_);
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenConll05(const Conll05Options& options) {
  return Conll05(options).Open();
}

}  // namespace pd
