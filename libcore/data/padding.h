// SPDX-License-Identifier: Apache-2.0
// Records of one field whose extents differ, made to fit one array: cut,
// padded to the longest of the batch or to a given length.
#ifndef PD_LIBCORE_DATA_PADDING_H_
#define PD_LIBCORE_DATA_PADDING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"

namespace pd {

/// How one field is padded.
struct FieldPadding {
  enum class Truncate { kEnd, kStart, kNever };
  std::string field;
  std::optional<double> value;  ///< else FieldSpec::pad_value
  int64_t length = 0;           ///< of axis 0; 0: the longest of the batch
  int64_t multiple_of = 1;      ///< rounds that length up
  int64_t max_length = 0;       ///< longer records are cut; 0: none are
  bool left = false;            ///< padding stands in front
  Truncate truncate = Truncate::kEnd;  ///< which end is cut away
};

class Padder {
 public:
  /// For a field with an extent of -1. InvalidArgument when the options do not
  /// fit it.
  static absl::StatusOr<Padder> Create(const FieldSpec& spec,
                                       const FieldPadding& padding);

  /// Of a record in a batch; -1 where each batch decides.
  const Shape& shape() const { return shape_; }

  /// Cuts what is too long. OutOfRange where it must not be cut.
  absl::Status Cut(FieldView* view) const;

  using Extents = std::array<int64_t, kMostVaryingAxes>;
  /// The extents that an empty batch starts with.
  Extents Smallest() const;
  /// Makes them large enough for a record that Cut has seen.
  void Include(const FieldView& view, Extents* extents) const;
  /// Rounds up when every record is included.
  void Round(Extents* extents) const;
  /// Elements of a record with these extents. OutOfRange when too many.
  absl::StatusOr<int64_t> Elements(const Extents& extents) const;
  /// Writes a record and its padding.
  void Write(const FieldView& view, const Extents& extents,
             std::byte* out) const;

 private:
  Padder() = default;
  void Copy(const std::byte* in, const Extents& from, const Extents& to,
            size_t axis, std::byte* out) const;

  FieldPadding padding_;
  Shape shape_;
  size_t element_bytes_ = 0;
  std::array<std::byte, 8> pattern_ = {};  // one padding element
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_PADDING_H_
