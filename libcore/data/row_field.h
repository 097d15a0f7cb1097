// SPDX-License-Identifier: Apache-2.0
// The conversion of a value of a row, whatever the row's format: a number
// is scaled, a text is hashed, looked up or cut into tokens.
#ifndef PD_LIBCORE_DATA_ROW_FIELD_H_
#define PD_LIBCORE_DATA_ROW_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/dtype.h"
#include "libcore/data/table_dataset.h"
#include "libcore/data/tokenizer.h"

namespace pd {

/// Texts that name classes.
struct CategoryOptions {
  /// Null: built from what is read, sorted.
  std::shared_ptr<const Vocabulary> names;
  /// 0 stands for other texts, and names count from 1.
  bool unknown = false;
};

/// Texts that are paths of pictures.
struct PictureFileOptions {
  std::string folder = {};  ///< of relative paths; "": the row's file's
  bool grey = false;        ///< one channel
  bool mask = false;        ///< classes of pixels; ValueOptions::classes bounds
};

struct ValueOptions {
  /// float16, float32, float64, int32, int64, uint8 or bool.
  DType dtype = DType::kFloat32;
  int64_t classes = 0;  ///< a label's range check; 0: none
  /// (value - mean) / std of floats: none, one number, or one a place.
  std::vector<double> mean = {}, std = {};
  std::optional<double> missing = {};  ///< for values that are not there
  bool log1p = false;                  ///< log(1 + max(value, 0)) first
  int64_t hash_buckets = 0;            ///< above 0: of texts, numbers below it
  std::optional<CategoryOptions> categories = {};
  std::optional<TextOptions> text = {};
  std::optional<PictureFileOptions> picture = {};
};

class RowField {
 public:
  /// Adds a field to `table`, which outlives it. `shape` is of numbers, hashes
  /// and categories; a text's is [-1], a picture's [-1, -1, channels].
  /// InvalidArgument when options contradict.
  static absl::StatusOr<RowField> Create(const std::string& name,
                                         const ValueOptions& options,
                                         const Shape& shape,
                                         TableDataset* table);

  const std::string& name() const { return name_; }
  /// Values are given to Text; else to Number.
  bool takes_text() const { return kind_ != Kind::kNumber; }

  /// `place` counts the values of a record's field. Errors have no place yet.
  absl::Status Number(double value, size_t place);
  absl::Status Text(absl::string_view text, size_t place);
  /// The value is not there; `what` is the error where that is none.
  absl::Status Missing(size_t place, const absl::Status& what);

  /// After the last record: numbers become final.
  absl::Status Finish();

 private:
  enum class Kind { kNumber, kHash, kCategory, kText, kPicture };
  RowField() = default;
  absl::Status Check(size_t width) const;
  FieldSpec Spec(const Shape& shape) const;
  absl::Status Category(absl::string_view text);
  absl::Status Picture(absl::string_view text);
  absl::Status FinishCategories();
  void NameClasses();
  template <typename T>
  absl::Status Push(double value);

  std::string name_;
  ValueOptions options_;
  Kind kind_ = Kind::kNumber;
  TableDataset* table_ = nullptr;
  size_t field_ = 0;
  std::unique_ptr<TextEncoder> encoder_;
  std::optional<VocabularyBuilder> names_;  // where categories are built
  std::vector<int64_t> ids_;                // reused
};

/// The bucket of a text at `place`: FNV-1a, mixed.
int64_t HashBucket(absl::string_view text, size_t place, int64_t buckets);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_ROW_FIELD_H_
