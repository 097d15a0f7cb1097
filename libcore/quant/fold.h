// SPDX-License-Identifier: Apache-2.0
// Batch norms out of a model whose integers are known already.
#ifndef PD_LIBCORE_QUANT_FOLD_H_
#define PD_LIBCORE_QUANT_FOLD_H_

#include "absl/status/statusor.h"
#include "libcore/quant/quantized_model.h"

namespace pd {

/// FoldBatchNorms, with scales for each channel of a filter: what a channel is
/// multiplied by becomes part of its scale, a sign that of its integers, so
/// what was calibrated and rounded stays as it is. Results of convolutions
/// that only a batch norm read lose their threshold, for they change. Where
/// weights have one scale nothing is folded. Gives the number folded;
/// InvalidArgument where a batch norm's numbers are NaN or Inf.
absl::StatusOr<int> FoldQuantized(InferenceModel* model, Quantization* q);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_FOLD_H_
