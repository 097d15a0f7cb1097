// SPDX-License-Identifier: Apache-2.0
// A run's past in environments: the returns of episodes, and where the network
// learns from what it has kept, the steps in memory. It outlives epochs, and
// checkpoints hold it.
#ifndef PD_LIBCORE_DATA_EXPERIENCE_H_
#define PD_LIBCORE_DATA_EXPERIENCE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"
#include "libcore/ir/array.h"

namespace pd {

/// Rows of the fields of a data set, column by column.
class FieldTable {
 public:
  /// At most `capacity` rows; the fields have fixed shapes.
  FieldTable(const std::vector<FieldSpec>& fields, int64_t capacity);

  int64_t rows() const { return rows_; }
  int64_t capacity() const { return capacity_; }
  const std::byte* Row(size_t field, int64_t row) const;
  size_t row_bytes(size_t field) const { return columns_[field].row_bytes; }

  /// Adds a row, of one pointer for each field; when it is full, in place of
  /// the oldest one.
  void Add(const std::vector<const std::byte*>& row);
  void Clear() { rows_ = next_ = 0; }

  /// "memory.FIELD" for each field and "memory_next"; empty where there are no
  /// rows.
  NamedArrays ToArrays() const;
  /// Takes an answer of ToArrays. DataLoss for anything else.
  absl::Status FromArrays(const NamedArrays& arrays);

 private:
  struct Column {
    FieldSpec spec;
    size_t row_bytes = 0;
    std::vector<std::byte> bytes;  // grows with the rows
  };
  std::vector<Column> columns_;
  int64_t capacity_, rows_ = 0, next_ = 0;
};

/// The undiscounted returns of the episodes that have ended.
class EpisodeReturns {
 public:
  /// The mean is over the last `window` of them; 0: over all.
  explicit EpisodeReturns(size_t window) : window_(window) {}

  void Add(double value);
  void Clear();
  int64_t episodes() const { return episodes_; }
  /// Nothing before the first episode has ended.
  std::optional<double> Mean() const;

  NamedArrays ToArrays() const;
  absl::Status FromArrays(const NamedArrays& arrays);

 private:
  size_t window_;
  int64_t episodes_ = 0;
  std::deque<double> last_;
};

class Experience {
 public:
  Experience(const std::vector<FieldSpec>& fields, int64_t capacity,
             size_t window)
      : memory(fields, capacity), returns(window) {}

  FieldTable memory;
  EpisodeReturns returns;

  NamedArrays ToArrays() const;
  absl::Status FromArrays(const NamedArrays& arrays);
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_EXPERIENCE_H_
