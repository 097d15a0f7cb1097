// SPDX-License-Identifier: Apache-2.0
// A running text as one row of tokens, of which records are windows. A window's
// labels are its tokens moved by one: inputs and labels share the same bytes.
// The length of the inputs is a field, as it is one where lines of text are
// predicted.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"

namespace pd {
namespace {

class LanguageModelDataset : public Dataset {
 public:
  explicit LanguageModelDataset(const LanguageModelOptions& options)
      : stride_(options.stride), path_(absl::StrJoin(options.paths, "', '")) {
    fields_.push_back({options.input_name, DType::kInt64, {options.seq_len}});
    fields_.push_back({options.label_name, DType::kInt64, {options.seq_len}});
    fields_.push_back(
        {absl::StrCat(options.input_name, "_length"), DType::kInt64, {}});
  }

  absl::Status Load(const LanguageModelOptions& options);

  absl::Status Read(int64_t index, Record* record) const override {
    record->fields.resize(3);
    const int64_t* input = tokens_.data() + index * stride_;
    record->fields[0].data = reinterpret_cast<const std::byte*>(input);
    record->fields[1].data = reinterpret_cast<const std::byte*>(input + 1);
    record->fields[2].data =
        reinterpret_cast<const std::byte*>(fields_[0].shape.data());
    return absl::OkStatus();
  }

  void Prefetch(int64_t index) const override {
    PrefetchBytes(
        reinterpret_cast<const std::byte*>(tokens_.data() + index * stride_),
        fields_[0].shape[0] * 8);
  }

  std::string Describe(int64_t index) const override {
    return absl::StrFormat("'%s' token %d", path_, index * stride_);
  }

 private:
  absl::Status AddFile(const std::string& path, TextEncoder* encoder,
                       bool whole);

  int64_t stride_;
  std::string path_;
  std::vector<int64_t> tokens_;
};

// Characters and bytes are taken as they come, line breaks among them; other
// tokenizers see line by line.
absl::Status LanguageModelDataset::AddFile(const std::string& path,
                                           TextEncoder* encoder, bool whole) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadInput(path));
  if (whole)
    return Annotate(encoder->Encode(file.view(), &tokens_),
                    absl::StrCat("'", path, "'"));
  LineReader lines(file.view());
  absl::string_view line;
  while (lines.Next(&line)) {
    const absl::Status status = encoder->Encode(line, &tokens_);
    if (!status.ok())
      return Annotate(status, absl::StrFormat("'%s':%d", path, lines.number()));
  }
  return absl::OkStatus();
}

absl::Status LanguageModelDataset::Load(const LanguageModelOptions& options) {
  PD_ASSIGN_OR_RETURN(auto encoder, TextEncoder::Create(options.text));
  const bool whole = (options.text.kind == TokenizerKind::kCharacter ||
                      options.text.kind == TokenizerKind::kByte) &&
                     !options.text.add_bos && !options.text.add_eos;
  for (const std::string& path : options.paths)
    PD_RETURN_IF_ERROR(AddFile(path, encoder.get(), whole));
  const bool building = encoder->building();
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> renumber, encoder->Finish());
  if (building)
    for (int64_t& token : tokens_) token = renumber[static_cast<size_t>(token)];
  if (encoder->vocabulary() != nullptr) {
    for (size_t i = 0; i < 2; ++i)
      vocabularies_[fields_[i].name] = encoder->vocabulary();
  }
  const auto tokens = static_cast<int64_t>(tokens_.size());
  const int64_t needed = fields_[0].shape[0] + 1;
  if (tokens < needed)
    return InvalidArgument(
        "'%s' holds %d tokens; a window and its labels take %d", path_, tokens,
        needed);
  size_ = (tokens - needed) / stride_ + 1;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenLanguageModel(
    const LanguageModelOptions& options) {
  if (options.seq_len < 1 || options.stride < 1)
    return InvalidArgument("seq_len is %d and stride %d; expected 1 or more",
                           options.seq_len, options.stride);
  if (options.text.max_len > 0)
    return InvalidArgument("max_len cuts records; windows have seq_len tokens");
  auto dataset = std::make_shared<LanguageModelDataset>(options);
  PD_RETURN_IF_ERROR(dataset->Load(options));
  return dataset;
}

}  // namespace pd
