// SPDX-License-Identifier: Apache-2.0
// Inputs of linear_chain_crf, its gradient and crf_decoding
// (linear_chain_crf.cc), read for every kernel.
#ifndef PD_LIBCORE_OPS_LOSS_LINEAR_CHAIN_CRF_H_
#define PD_LIBCORE_OPS_LOSS_LINEAR_CHAIN_CRF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd {

/// The rows of Emission, and which of them are sequences.
struct CrfRows {
  SequenceSpans spans;
  int64_t rows = 0, tags = 0;
};

/// `lod_slot`: whose LoD there is without Length. InvalidArgument for shapes
/// that do not fit.
absl::StatusOr<CrfRows> ReadCrfRows(const BindContext& context,
                                    const Shape& emission,
                                    const char* lod_slot);

/// InvalidArgument unless Label has an integer for each row.
absl::Status CheckCrfTags(const BindContext& context, int64_t rows);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_LINEAR_CHAIN_CRF_H_
