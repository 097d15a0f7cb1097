// SPDX-License-Identifier: Apache-2.0
// The maps by which the ops over sequences move rows, for every kernel. Each is
// in the file of its op.
#ifndef PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_MAPS_H_
#define PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_MAPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {

/// sequence_reverse: the rows of each sequence in the opposite order.
RowMap ReversedMap(const Offsets& offsets);

/// sequence_expand, sequence_expand_as and their gradients: which row of X each
/// row of Out is. InvalidArgument for LoDs that do not fit; Y's bytes are not
/// needed.
absl::StatusOr<RowMap> ExpansionMap(BindContext* context);

/// sequence_concat and its gradient: [i][r] is the row of Out that row r of
/// X[i] goes to.
absl::StatusOr<std::vector<RowMap>> ConcatMaps(BindContext* context);

/// sequence_pad: for each row of a padded tensor [sequences * length, ...] the
/// packed row, -1 where there is none. InvalidArgument for a longer sequence.
absl::StatusOr<RowMap> PaddedMap(const Offsets& offsets, int64_t length);
/// For each packed row the row of the padded tensor.
absl::StatusOr<RowMap> PackedMap(const Offsets& offsets, int64_t length);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_MAPS_H_
