// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/pipe_dataset.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/child_process.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/array_stream.h"

namespace pd {
namespace {

// Whether an array's extents are a record's.
bool FitsRecord(const Shape& declared, const int64_t* extents) {
  for (size_t i = 0; i < declared.size(); ++i)
    if (declared[i] >= 0 && declared[i] != extents[i]) return false;
  return true;
}

// One field of the records that were read last.
struct FieldBlock {
  StreamedArray array;
  Shape shape;  // of one record
  int64_t records = 0;
  size_t record_bytes = 0;
};

template <typename T>
absl::Status CheckFieldClasses(const std::byte* data, size_t bytes,
                               int64_t classes, const std::string& field) {
  const T* values = reinterpret_cast<const T*>(data);
  for (size_t i = 0; i < bytes / sizeof(T); ++i) {
    const auto value = static_cast<int64_t>(values[i]);
    if (value < 0 || value >= classes)
      return OutOfRange("field '%s' is %d; expected 0 to %d", field, value,
                        classes - 1);
  }
  return absl::OkStatus();
}

absl::Status CheckFieldClasses(const PipeField& field, const std::byte* data,
                               size_t bytes) {
  switch (field.dtype) {
    case DType::kInt64:
      return CheckFieldClasses<int64_t>(data, bytes, field.classes, field.name);
    case DType::kInt32:
      return CheckFieldClasses<int32_t>(data, bytes, field.classes, field.name);
    default:
      return CheckFieldClasses<uint8_t>(data, bytes, field.classes, field.name);
  }
}

// Reads the arrays of a stream, one for each field at a time.
class PipeStream : public RecordStream {
 public:
  PipeStream(const PipeDatasetOptions& options, const Dataset& dataset,
             std::unique_ptr<ChildProcess> child)
      : options_(options),
        specs_(dataset.fields()),
        child_(std::move(child)),
        arrays_(child_.get()),
        blocks_(options.fields.size()) {}

  absl::StatusOr<bool> Next(Record* record) override {
    if (options_.records > 0 && record_ == options_.records) return false;
    while (next_ == count_) {
      absl::StatusOr<bool> more = ReadBlocks();
      if (!more.ok()) return AtEnd(more.status());
      if (*more) continue;
      if (options_.records == 0) return false;
      return At(DataLoss("the stream ended before it; an epoch has %d records",
                         options_.records));
    }
    const absl::Status status = Give(next_++, record);
    const absl::Status placed = status.ok() ? status : At(status);
    ++record_;
    if (!placed.ok()) return placed;
    return true;
  }

  void Stop() override { child_->Stop(); }

 private:
  absl::Status At(const absl::Status& status) const {
    return Annotate(status, absl::StrCat(ProgramName(options_.command),
                                         " record ", record_));
  }
  // An error after which the stream cannot be read on.
  absl::Status AtEnd(const absl::Status& status) const {
    return At(absl::IsOutOfRange(status) ? absl::DataLossError(status.message())
                                         : status);
  }
  absl::StatusOr<bool> ReadBlocks();
  absl::StatusOr<int64_t> RecordsIn(size_t field, const Shape& shape) const;
  absl::Status Give(int64_t index, Record* record);

  const PipeDatasetOptions& options_;
  const std::vector<FieldSpec>& specs_;
  std::unique_ptr<ChildProcess> child_;
  ArrayStream arrays_;
  std::vector<FieldBlock> blocks_;
  int64_t count_ = 0, next_ = 0;  // records of the blocks
  int64_t record_ = 0;            // of the pass
};

// Sets nothing; 1 where the array is a record's own.
absl::StatusOr<int64_t> PipeStream::RecordsIn(size_t field,
                                              const Shape& shape) const {
  const PipeField& wanted = options_.fields[field];
  const Shape& declared = wanted.shape;
  if (shape.size() == declared.size() && FitsRecord(declared, shape.data()))
    return 1;
  if (shape.size() == declared.size() + 1 &&
      FitsRecord(declared, shape.data() + 1))
    return shape[0];
  if (declared == Shape{1} && shape.empty()) return 1;
  if (declared == Shape{1} && shape.size() == 1) return shape[0];
  return InvalidArgument(
      "field '%s' has the shape %s; the job says %s, for several records with "
      "their number in front",
      wanted.name, ToString(shape), ToString(declared));
}

// False at the end of the stream.
absl::StatusOr<bool> PipeStream::ReadBlocks() {
  next_ = count_ = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const PipeField& field = options_.fields[i];
    FieldBlock& block = blocks_[i];
    const auto check = [&](const Shape& shape) -> absl::Status {
      PD_ASSIGN_OR_RETURN(block.records, RecordsIn(i, shape));
      if (block.records == blocks_[0].records) return absl::OkStatus();
      return InvalidArgument("field '%s' has %d records; field '%s' has %d",
                             field.name, block.records, options_.fields[0].name,
                             blocks_[0].records);
    };
    PD_ASSIGN_OR_RETURN(
        const bool more,
        arrays_.Read({field.name, field.dtype}, i == 0, check, &block.array));
    if (!more) return false;
    const Shape& shape = block.array.shape;
    // A number stands for an array of one.
    const size_t rank = field.shape.size();
    block.shape = field.shape;
    if (shape.size() >= rank && IsDynamic(field.shape))
      block.shape.assign(shape.end() - static_cast<std::ptrdiff_t>(rank),
                         shape.end());
    block.record_bytes =
        block.records > 0
            ? block.array.bytes / static_cast<size_t>(block.records)
            : 0;
  }
  count_ = blocks_[0].records;
  return true;
}

absl::Status PipeStream::Give(int64_t index, Record* record) {
  record->fields.resize(blocks_.size());
  record->bytes.resize(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const FieldBlock& block = blocks_[i];
    const std::byte* const from =
        block.array.data + static_cast<size_t>(index) * block.record_bytes;
    std::vector<uint8_t>& room = record->bytes[i];
    room.resize(block.record_bytes);
    if (!room.empty()) std::memcpy(room.data(), from, room.size());
    FieldView& view = record->fields[i];
    view.data = reinterpret_cast<const std::byte*>(room.data());
    if (IsDynamic(specs_[i].shape))
      std::copy(block.shape.begin(), block.shape.end(), view.extents.begin());
    if (specs_[i].is_image) {
      view.height = block.shape[0];
      view.width = block.shape[1];
      view.channels = block.shape[2];
    }
  }
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (options_.fields[i].classes > 0)
      PD_RETURN_IF_ERROR(CheckFieldClasses(
          options_.fields[i], record->fields[i].data, record->bytes[i].size()));
  return absl::OkStatus();
}

class PipeDataset : public Dataset {
 public:
  explicit PipeDataset(const PipeDatasetOptions& options) : options_(options) {
    size_ = options.records;
  }

  absl::Status Add(const PipeField& field) {
    if (FindField(field.name) != nullptr)
      return AlreadyExists("two fields are named '%s'", field.name);
    FieldSpec spec;
    spec.name = field.name;
    spec.dtype = field.dtype;
    spec.shape = field.shape;
    Shape least = field.shape;
    for (int64_t& extent : least) {
      if (extent == 0)
        return InvalidArgument("field '%s' has the shape %s, without elements",
                               field.name, ToString(field.shape));
      extent = std::max<int64_t>(extent, 1);
    }
    if (IsDynamic(spec.shape) && spec.shape.size() > kMostVaryingAxes)
      return InvalidArgument(
          "field '%s' has the shape %s; one with -1 has at most %d axes",
          field.name, ToString(field.shape), kMostVaryingAxes);
    PD_ASSIGN_OR_RETURN(const int64_t bytes,
                        CheckedBytes(least, SizeOf(field.dtype)));
    if (bytes > kMostArrayBytes)
      return ResourceExhausted(
          "field '%s' takes %d bytes a record; expected at most %d", field.name,
          bytes, kMostArrayBytes);
    if (field.classes > 0 && field.dtype != DType::kInt64 &&
        field.dtype != DType::kInt32 && field.dtype != DType::kUInt8)
      return InvalidArgument("field '%s' is %s; classes are integers",
                             field.name, Name(field.dtype));
    spec.is_image = field.dtype == DType::kUInt8 && spec.shape.size() == 3 &&
                    (spec.shape[2] == 1 || spec.shape[2] == 3);
    fields_.push_back(std::move(spec));
    return absl::OkStatus();
  }

  bool is_stream() const override { return true; }

  absl::StatusOr<std::unique_ptr<RecordStream>> Start(
      const StreamPass& pass) const override {
    ChildProcessOptions child;
    child.command = options_.command;
    child.folder = options_.folder;
    child.timeout = options_.timeout;
    child.environment = {{"PD_EPOCH", absl::StrCat(pass.epoch)},
                         {"PD_SEED", absl::StrCat(pass.seed)},
                         {"PD_SET", options_.set}};
    auto started = ChildProcess::Start(child);
    if (!started.ok())
      return Annotate(started.status(), ProgramName(options_.command));
    return std::make_unique<PipeStream>(options_, *this, *std::move(started));
  }

  absl::Status Read(int64_t index, Record*) const override {
    return FailedPrecondition("%s: records come one after the other",
                              Describe(index));
  }
  std::string Describe(int64_t index) const override {
    return absl::StrCat(ProgramName(options_.command), " record ", index);
  }

 private:
  const PipeDatasetOptions options_;
};

}  // namespace

absl::StatusOr<DatasetPtr> OpenPipe(const PipeDatasetOptions& options) {
  if (options.fields.empty()) return InvalidArgument("a pipe has no fields");
  auto dataset = std::make_shared<PipeDataset>(options);
  for (const PipeField& field : options.fields)
    PD_RETURN_IF_ERROR(dataset->Add(field));
  return dataset;
}

}  // namespace pd
