// SPDX-License-Identifier: Apache-2.0
// Lines of text as token numbers; with a second text, what a decoder is fed and
// what it shall answer.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"
#include "libcore/data/table_dataset.h"

namespace pd {
namespace {

// The lines of several files, one after the other.
class Lines {
 public:
  static absl::StatusOr<Lines> Open(const std::vector<std::string>& paths,
                                    const TextPiece* piece = nullptr) {
    Lines lines;
    if (piece != nullptr) {
      lines.paths_ = paths;
      lines.files_ = {piece->bytes};
      lines.first_ = piece->first_line;
      return lines;
    }
    for (const std::string& path : paths) {
      PD_ASSIGN_OR_RETURN(FileBytes file, ReadInput(path));
      lines.paths_.push_back(path);
      lines.files_.push_back(std::move(file));
    }
    return lines;
  }

  // False behind the last line of the last file.
  bool Next(absl::string_view* line) {
    for (;;) {
      if (reader_ != nullptr && reader_->Next(line)) return true;
      if (next_ == files_.size()) return false;
      reader_ = std::make_unique<LineReader>(files_[next_++].view(), first_);
      began_ = true;
    }
  }
  // True once for each file that a line was the first of.
  bool TakeBegan() { return std::exchange(began_, false); }
  const std::string& path() const { return paths_[next_ - 1]; }
  int64_t number() const { return reader_->number(); }

 private:
  std::vector<std::string> paths_;
  std::vector<FileBytes> files_;
  std::unique_ptr<LineReader> reader_;
  size_t next_ = 0;
  int64_t first_ = 1;  // line
  bool began_ = false;
};

// One side: its encoder and the fields it fills.
struct Side {
  std::unique_ptr<TextEncoder> encoder;
  std::vector<size_t> fields;
  std::vector<int64_t> ids;
};

absl::StatusOr<Side> MakeSide(const TextOptions& options,
                              const std::vector<std::string>& names,
                              TableDataset* table) {
  Side side;
  auto encoder = TextEncoder::Create(options);
  if (!encoder.ok())
    return Annotate(encoder.status(), absl::StrCat("field '", names[0], "'"));
  side.encoder = *std::move(encoder);
  for (const std::string& name : names) {
    FieldSpec spec{name, DType::kInt64, {-1}};
    spec.pad_value = static_cast<double>(side.encoder->pad());
    side.fields.push_back(table->AddField(std::move(spec)));
  }
  return side;
}

absl::Status FinishSide(Side* side, TableDataset* table) {
  const bool building = side->encoder->building();
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> renumber,
                      side->encoder->Finish());
  for (size_t field : side->fields) {
    if (building) table->Renumber(field, renumber);
    if (side->encoder->vocabulary() != nullptr)
      table->set_vocabulary(field, side->encoder->vocabulary());
  }
  return absl::OkStatus();
}

// [bos, a, b] is what the decoder is fed, [a, b, eos] what it shall answer.
absl::Status PushTarget(absl::string_view line, Side* side,
                        TableDataset* table) {
  side->ids.clear();
  PD_RETURN_IF_ERROR(side->encoder->Encode(line, &side->ids));
  table->Extend(side->fields[0], side->ids.data(), side->ids.size() - 1);
  table->Extend(side->fields[1], side->ids.data() + 1, side->ids.size() - 1);
  return absl::OkStatus();
}

absl::Status PushSource(absl::string_view line, Side* side,
                        TableDataset* table) {
  side->ids.clear();
  PD_RETURN_IF_ERROR(side->encoder->Encode(line, &side->ids));
  table->Extend(side->fields[0], side->ids.data(), side->ids.size());
  return absl::OkStatus();
}

std::string Place(const Lines& lines) {
  return absl::StrFormat("'%s':%d", lines.path(), lines.number());
}

// A decoder's text begins with bos and ends with eos, whatever is asked for.
TextOptions TargetOptions(TextOptions options) {
  options.add_bos = options.add_eos = true;
  if (options.max_len > 0) ++options.max_len;  // of each of the two fields
  return options;
}

class PairReader {
 public:
  PairReader(const ParallelTextOptions& options, TableDataset* table)
      : options_(options), table_(table) {}

  absl::Status Read() {
    const bool pairs = !options_.target_paths.empty();
    PD_ASSIGN_OR_RETURN(
        source_, MakeSide(options_.source, {options_.source_name}, table_));
    if (pairs) {
      PD_ASSIGN_OR_RETURN(
          target_,
          MakeSide(TargetOptions(options_.target),
                   {options_.target_name, options_.label_name}, table_));
    }
    PD_ASSIGN_OR_RETURN(Lines sources,
                        Lines::Open(options_.source_paths, options_.piece));
    PD_ASSIGN_OR_RETURN(Lines targets, Lines::Open(options_.target_paths));
    absl::string_view line, target;
    int64_t count = 0;
    while (sources.Next(&line)) {
      if (pairs && !targets.Next(&target)) return Uneven(count, "fewer");
      ++count;
      if (sources.TakeBegan()) table_->BeginFile(sources.path());
      absl::Status status =
          Annotate(PushSource(line, &source_, table_), Place(sources));
      if (status.ok() && pairs)
        status = Annotate(PushTarget(target, &target_, table_), Place(targets));
      if (status.ok()) status = table_->EndRecord(sources.number());
      if (status.ok()) continue;
      if (!options_.skip_bad) return status;
      table_->LeaveOut(status);
    }
    if (pairs && targets.Next(&target)) return Uneven(count, "more");
    PD_RETURN_IF_ERROR(FinishSide(&source_, table_));
    if (pairs) PD_RETURN_IF_ERROR(FinishSide(&target_, table_));
    return table_->Finish(options_.piece != nullptr);
  }

 private:
  absl::Status Uneven(int64_t count, const char* how) const {
    return FailedPrecondition("'%s' has %s lines than '%s', after %d pairs",
                              absl::StrJoin(options_.target_paths, "', '"), how,
                              absl::StrJoin(options_.source_paths, "', '"),
                              count);
  }

  const ParallelTextOptions& options_;
  TableDataset* table_;
  Side source_, target_;
};

}  // namespace

absl::StatusOr<DatasetPtr> OpenParallelText(
    const ParallelTextOptions& options) {
  auto table = std::make_shared<TableDataset>();
  PD_RETURN_IF_ERROR(PairReader(options, table.get()).Read());
  return table;
}

}  // namespace pd
