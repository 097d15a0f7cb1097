// SPDX-License-Identifier: Apache-2.0
// Code that sequence ops share. A sequence tensor is a matrix of rows; its
// LoD says which rows belong together: sequence i is rows [offsets[i],
// offsets[i + 1]). Most of these ops move rows: row r of the result is row
// map[r] of the input, and the gradient goes the same way back.
#ifndef PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_H_
#define PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"

namespace pd {

/// One level of a LoD: n + 1 row numbers for n sequences.
using Offsets = std::vector<int64_t>;

/// InvalidArgument unless each level starts at 0, never falls, and ends at the
/// number of sequences of the next one, the last at `rows` (-1: not known). No
/// levels at all are fine.
absl::Status CheckLoD(const LoD& lod, int64_t rows, absl::string_view slot);

/// The innermost level of an input; nothing when it is not known yet.
/// InvalidArgument when it is wrong or there are more than `max_levels`.
absl::StatusOr<std::optional<Offsets>> KnownSequences(const TensorMeta& meta,
                                                      absl::string_view slot,
                                                      size_t max_levels = 1);

/// The innermost level of a tensor that is bound; InvalidArgument when it is
/// wrong or there is none.
absl::StatusOr<Offsets> SequencesOf(const Tensor* tensor,
                                    absl::string_view slot);

/// A LoD of one level.
LoD OneLevel(const Offsets& offsets);

/// `meta` with another number of rows, no LoD and no value.
TensorMeta WithRows(const TensorMeta& meta, int64_t rows);

/// Elements of a row; 1 for a vector.
int64_t RowWidth(const Shape& shape);

/// Row r of a result is row map[r] of an input; -1: of none.
using RowMap = std::vector<int64_t>;

/// The number of rows in the map is that of `out`; rows of none are left alone.
/// Both have rows of the same bytes.
void GatherRows(const RowMap& map, const Tensor& in, Tensor* out);

/// to[map[r]] += from[r] for every r in turn; `to` is zeroed first. For
/// float32, float64, int32 and int64; Unimplemented for others.
absl::Status ScatterAddRows(const RowMap& map, const Tensor& from, Tensor* to);

/// The step of an op that gathers rows by a map known when it is bound.
Step GatherStep(RowMap map, const Tensor* in, Tensor* out);
/// The step of its gradient.
Step ScatterAddStep(RowMap map, const Tensor* from, Tensor* to);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_H_
