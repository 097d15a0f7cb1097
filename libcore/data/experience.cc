// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/experience.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr char kNextRow[] = "memory_next";
constexpr char kEpisodes[] = "episodes";
constexpr char kReturns[] = "returns";

std::string ColumnName(const FieldSpec& spec) {
  return absl::StrCat("memory.", spec.name);
}

// The array of this name, dtype and shape behind its first extent.
absl::StatusOr<Array> Find(const NamedArrays& arrays, const std::string& name,
                           DType dtype, const Shape& row) {
  const auto found = arrays.find(name);
  if (found == arrays.end())
    return DataLoss("there is no array '%s' of the run's environments", name);
  const Array& array = found->second;
  if (array.dtype != dtype || array.shape.size() != row.size() + 1 ||
      !std::equal(row.begin(), row.end(), array.shape.begin() + 1))
    return DataLoss("array '%s' is %s%s; expected %s rows of %s", name,
                    Name(array.dtype), ToString(array.shape), Name(dtype),
                    ToString(row));
  return array;
}

}  // namespace

FieldTable::FieldTable(const std::vector<FieldSpec>& fields, int64_t capacity)
    : capacity_(capacity) {
  for (const FieldSpec& spec : fields)
    columns_.push_back(
        {spec,
         static_cast<size_t>(NumElements(spec.shape)) * SizeOf(spec.dtype),
         {}});
}

const std::byte* FieldTable::Row(size_t field, int64_t row) const {
  const Column& column = columns_[field];
  return column.bytes.data() + static_cast<size_t>(row) * column.row_bytes;
}

void FieldTable::Add(const std::vector<const std::byte*>& row) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    const size_t at = static_cast<size_t>(next_) * column.row_bytes;
    if (column.bytes.size() < at + column.row_bytes)
      column.bytes.resize(at + column.row_bytes);
    std::memcpy(column.bytes.data() + at, row[i], column.row_bytes);
  }
  next_ = (next_ + 1) % capacity_;
  rows_ = std::min(rows_ + 1, capacity_);
}

NamedArrays FieldTable::ToArrays() const {
  NamedArrays arrays;
  if (rows_ == 0) return arrays;
  for (const Column& column : columns_) {
    Shape shape = column.spec.shape;
    shape.insert(shape.begin(), rows_);
    std::byte* bytes = nullptr;
    Array array = NewCopy(column.spec.dtype, std::move(shape), &bytes);
    std::memcpy(bytes, column.bytes.data(), array.size_bytes());
    arrays[ColumnName(column.spec)] = std::move(array);
  }
  arrays[kNextRow] = MakeArray<int64_t>({1}, {next_});
  return arrays;
}

absl::Status FieldTable::FromArrays(const NamedArrays& arrays) {
  Clear();
  if (arrays.count(kNextRow) == 0) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const Array next,
                      Find(arrays, kNextRow, DType::kInt64, {}));
  int64_t rows = -1;
  for (Column& column : columns_) {
    PD_ASSIGN_OR_RETURN(const Array array,
                        Find(arrays, ColumnName(column.spec), column.spec.dtype,
                             column.spec.shape));
    if (rows < 0) rows = array.shape[0];
    if (array.shape[0] != rows || rows < 1 || rows > capacity_)
      return DataLoss("array '%s' has %d rows; expected %d, 1 to %d",
                      ColumnName(column.spec), array.shape[0], rows, capacity_);
    const auto* bytes = array.data<std::byte>();
    column.bytes.assign(bytes, bytes + array.size_bytes());
  }
  // Rows follow each other without gaps until the memory is full.
  const int64_t row = next.size() == 1 ? *next.data<int64_t>() : -1;
  if (row < 0 || row >= capacity_ || (rows < capacity_ && row != rows))
    return DataLoss("array '%s' is %d, no place behind the newest of %d rows",
                    kNextRow, row, rows);
  rows_ = rows;
  next_ = row;
  return absl::OkStatus();
}

void EpisodeReturns::Add(double value) {
  ++episodes_;
  last_.push_back(value);
  if (window_ > 0 && last_.size() > window_) last_.pop_front();
}

void EpisodeReturns::Clear() {
  episodes_ = 0;
  last_.clear();
}

std::optional<double> EpisodeReturns::Mean() const {
  if (last_.empty()) return std::nullopt;
  return std::accumulate(last_.begin(), last_.end(), 0.0) /
         static_cast<double>(last_.size());
}

NamedArrays EpisodeReturns::ToArrays() const {
  const std::vector<double> values(last_.begin(), last_.end());
  return {{kEpisodes, MakeArray<int64_t>({1}, {episodes_})},
          {kReturns,
           MakeArray<double>({static_cast<int64_t>(values.size())}, values)}};
}

absl::Status EpisodeReturns::FromArrays(const NamedArrays& arrays) {
  PD_ASSIGN_OR_RETURN(const Array episodes,
                      Find(arrays, kEpisodes, DType::kInt64, {}));
  PD_ASSIGN_OR_RETURN(const Array values,
                      Find(arrays, kReturns, DType::kFloat64, {}));
  if (episodes.size() != 1 || *episodes.data<int64_t>() < values.size())
    return DataLoss("array '%s' is no count of %d episodes", kEpisodes,
                    values.size());
  Clear();
  for (int64_t i = 0; i < values.size(); ++i) Add(values.data<double>()[i]);
  episodes_ = *episodes.data<int64_t>();
  return absl::OkStatus();
}

NamedArrays Experience::ToArrays() const {
  NamedArrays arrays = memory.ToArrays();
  arrays.merge(returns.ToArrays());
  return arrays;
}

absl::Status Experience::FromArrays(const NamedArrays& arrays) {
  PD_RETURN_IF_ERROR(memory.FromArrays(arrays));
  return returns.FromArrays(arrays);
}

}  // namespace pd
