// SPDX-License-Identifier: Apache-2.0
// Records in memory, put in one at a time: what readers of rows and texts
// make. Fields are of one shape or differ in their first extent; each field's
// values lie one record after the other.
#ifndef PD_LIBCORE_DATA_TABLE_DATASET_H_
#define PD_LIBCORE_DATA_TABLE_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/image.h"
#include "libcore/base/error.h"
#include "libcore/data/dataset.h"

namespace pd {

class TableDataset : public Dataset {
 public:
  TableDataset() = default;

  /// Adds a field before the first record; -1 may stand for its first extent
  /// only. Gives its number.
  size_t AddField(FieldSpec spec);

  /// The same for a picture or mask, whose path PushPath gives and which is
  /// decoded when its record is read. `classes` bounds a mask's; 0: nothing
  /// does.
  size_t AddPicture(FieldSpec spec, const ImageOptions& options,
                    int64_t classes);

  /// The records that follow are of this file; `unit` is what places count in:
  /// "'path':7" for lines ("" as unit), "'path' record 7" for "record".
  void BeginFile(const std::string& path, const std::string& unit = "");

  /// Puts elements behind those that the record under way has in `field`.
  template <typename T>
  void Push(size_t field, T value) {
    Extend(field, &value, 1);
  }
  /// T is the field's element type; its size is asserted.
  template <typename T>
  void Extend(size_t field, const T* values, size_t count) {
    Column& column = columns_[field];
    PD_INVARIANT(sizeof(T) == column.element_bytes);
    const auto* bytes = reinterpret_cast<const std::byte*>(values);
    column.bytes.insert(column.bytes.end(), bytes, bytes + count * sizeof(T));
  }
  /// The path of the picture that the record under way has in `field`.
  void PushPath(size_t field, absl::string_view path) {
    Extend(field, path.data(), path.size());
  }
  /// The file that records are put in of; "" before BeginFile.
  std::string file() const { return files_.empty() ? "" : files_.back().path; }
  /// Elements of the record under way in `field`.
  int64_t Pushed(size_t field) const;
  /// Closes the record, which stands at `place` (a line from 1, a number) of
  /// the file. InvalidArgument, and nothing is added, when a field of one shape
  /// got another number of elements.
  absl::Status EndRecord(int64_t place);
  /// Forgets what was pushed since the last EndRecord.
  void DropRecord();
  /// Forgets the record, and counts it as left out.
  void LeaveOut(const absl::Status& why);
  /// After the last record. DataLoss when there is none, or none could be read.
  /// With `may_be_empty`, a table without records is none.
  absl::Status Finish(bool may_be_empty = false);

  /// Replaces each number of an int64 field by `renumber[number]`.
  void Renumber(size_t field, const std::vector<int64_t>& renumber);
  void set_pad_value(size_t field, double value) {
    fields_[field].pad_value = value;
  }
  /// The words that the numbers of a field stand for.
  void set_vocabulary(size_t field, std::shared_ptr<const Vocabulary> words) {
    vocabularies_[fields_[field].name] = std::move(words);
  }
  /// The names of the classes of a field, by number.
  void set_classes(size_t field, std::vector<std::string> names) {
    fields_[field].classes = std::move(names);
  }
  /// The names of a field's columns, in the order of its values.
  void set_columns(size_t field, std::vector<std::string> names) {
    fields_[field].columns = std::move(names);
  }

  absl::Status Read(int64_t index, Record* record) const override;
  void Prefetch(int64_t index) const override;
  std::string Describe(int64_t index) const override;
  RecordPlace Place(int64_t index) const override;
  absl::StatusOr<std::vector<int64_t>> Lengths(size_t field) const override;

 private:
  struct Pictures {
    ImageOptions options;
    int64_t classes = 0;
  };
  struct Column {
    std::optional<Pictures> pictures;  // the bytes are paths
    std::vector<std::byte> bytes;
    size_t element_bytes = 0;
    size_t row_bytes = 0;  // of one element of axis 0, or of a fixed record
    bool varying = false;
    size_t begin = 0;          // of the record under way
    std::vector<size_t> ends;  // of records, where they vary
  };
  struct File {
    std::string path, unit;
    int64_t first = 0;  // record
  };
  // The bytes of a record in a column.
  std::pair<size_t, size_t> RangeOf(const Column& column, int64_t index) const;

  absl::Status ReadPictures(int64_t index, Record* record) const;

  std::vector<Column> columns_;
  bool has_pictures_ = false;
  std::vector<File> files_;
  std::vector<int64_t> places_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_TABLE_DATASET_H_
