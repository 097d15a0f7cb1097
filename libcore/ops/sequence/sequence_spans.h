// SPDX-License-Identifier: Apache-2.0
// The sequences of a batch as rows of a matrix. PaddlePaddle has two forms: one
// after the other, with offsets in a LoD, or padded to one width, with their
// lengths in a tensor of its own.
#ifndef PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_SPANS_H_
#define PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_SPANS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Rows [start, start + length).
struct Span {
  int64_t start = 0, length = 0;
};

class SequenceSpans {
 public:
  /// The outermost level of `offsets`, LoD of the tensor in `slot`, which has
  /// `rows` rows. InvalidArgument when there is none or it does not fit.
  static absl::StatusOr<SequenceSpans> FromLoD(absl::string_view slot,
                                               const LoD& offsets,
                                               int64_t rows) {
    if (offsets.size() != 1 || offsets[0].empty())
      return InvalidArgument("'%s' has %d levels of LoD; expected 1", slot,
                             offsets.size());
    SequenceSpans spans;
    spans.offsets_.assign(offsets[0].begin(), offsets[0].end());
    for (size_t i = 0; i + 1 < spans.offsets_.size(); ++i)
      if (spans.offsets_[i] > spans.offsets_[i + 1])
        return InvalidArgument("the LoD of '%s' falls from %d to %d", slot,
                               spans.offsets_[i], spans.offsets_[i + 1]);
    if (spans.offsets_.front() != 0 || spans.offsets_.back() != rows)
      return InvalidArgument(
          "the LoD of '%s' goes from %d to %d; expected 0, "
          "and its %d rows",
          slot, spans.offsets_.front(), spans.offsets_.back(), rows);
    spans.count_ = static_cast<int64_t>(spans.offsets_.size()) - 1;
    return spans;
  }

  /// `count` sequences of `width` rows, of which the first lengths[i] count.
  /// The lengths are read by At.
  static absl::StatusOr<SequenceSpans> FromLengths(absl::string_view slot,
                                                   const Tensor* lengths,
                                                   int64_t count,
                                                   int64_t width) {
    PD_RETURN_IF_ERROR(CheckLabelType(slot, lengths->dtype()));
    if (lengths->size() != count)
      return InvalidArgument("'%s' has %d elements; there are %d sequences",
                             slot, lengths->size(), count);
    SequenceSpans spans;
    spans.lengths_ = lengths;
    spans.count_ = count;
    spans.width_ = width;
    return spans;
  }

  int64_t count() const { return count_; }
  /// Where the lengths are read from; null: the sequences follow one another,
  /// by offsets().
  const Tensor* lengths() const { return lengths_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }
  /// The rows of each sequence where there are lengths.
  int64_t width() const { return width_; }

  /// InvalidArgument for a length outside [0, width].
  absl::StatusOr<Span> At(int64_t i) const {
    if (lengths_ == nullptr) {
      const int64_t start = offsets_[static_cast<size_t>(i)];
      return Span{start, offsets_[static_cast<size_t>(i) + 1] - start};
    }
    const int64_t length = LabelAt(*lengths_, i);
    if (length < 0 || length > width_)
      return InvalidArgument("sequence %d has length %d; expected 0 to %d", i,
                             length, width_);
    return Span{i * width_, length};
  }

 private:
  std::vector<int64_t> offsets_;
  const Tensor* lengths_ = nullptr;
  int64_t count_ = 0, width_ = 0;
};

/// The integers of a span.
inline std::vector<int64_t> LabelsOf(const Tensor& labels, const Span& span) {
  std::vector<int64_t> values(static_cast<size_t>(span.length));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = LabelAt(labels, span.start + static_cast<int64_t>(i));
  return values;
}

/// The number of sequences that a LoD tells; -1 when it is not known.
inline int64_t SequenceCount(const LoD& offsets) {
  return offsets.empty() ? -1 : static_cast<int64_t>(offsets[0].size()) - 1;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_SPANS_H_
