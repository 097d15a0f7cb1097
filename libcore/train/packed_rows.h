// SPDX-License-Identifier: Apache-2.0
// A padded field of a batch as a sequence with LoD: the rows of its records one
// after the other, without what they were filled up with.
#ifndef PD_LIBCORE_TRAIN_PACKED_ROWS_H_
#define PD_LIBCORE_TRAIN_PACKED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/data/loader.h"
#include "libcore/exec/plan.h"
#include "libcore/ir/array.h"

namespace pd {

class PackedRows {
 public:
  PackedRows() = default;

  /// For a feed with one level of LoD and field number `field` of a loader,
  /// which MatchFields has found to fit. InvalidArgument where the feed leaves
  /// an extent of its rows open.
  static absl::StatusOr<PackedRows> Of(const FeedSpec& feed,
                                       const std::vector<BatchField>& fields,
                                       size_t field);

  /// Appends what the shape of the batch's rows hangs on: their number, and
  /// that of each record's.
  void AddLengths(const std::vector<BatchField>& fields,
                  std::vector<int64_t>* key) const;

  /// Copies the rows of a batch, which are there until the next call.
  absl::Status Pack(const std::vector<BatchField>& fields);

  const Shape& shape() const { return shape_; }  ///< [rows, ...]
  /// [0, rows of record 0, rows of records 0 and 1, ...].
  const std::vector<uint64_t>& offsets() const { return offsets_; }
  const std::byte* data() const { return rows_.bytes.get(); }

 private:
  // Rows of record `record`; all where the loader pads none.
  int64_t Length(const std::vector<BatchField>& fields, int64_t record) const;

  size_t field_ = 0;
  std::optional<size_t> lengths_;  // the number of the field that has them
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  size_t row_bytes_ = 0;
  std::vector<uint64_t> offsets_;
  Array rows_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PACKED_ROWS_H_
