// SPDX-License-Identifier: Apache-2.0
// The gradient of a table of which rows were looked up, as selected rows: a
// row for each id in the order of the ids, with its share of the gradient.
#ifndef PD_LIBCORE_OPS_EMBEDDING_SPARSE_LOOKUP_H_
#define PD_LIBCORE_OPS_EMBEDDING_SPARSE_LOOKUP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"

namespace pd {

/// W@GRAD[i] = Out@GRAD[i], of row Ids[i]; zeros where that is `padding`.
/// Ids outside [0, height), where height is W's, stop the run. The caller has
/// checked that Out@GRAD has Ids' elements times W's width.
absl::StatusOr<Step> SparseLookupGrad(Tensor* ids, int64_t height,
                                      int64_t padding, Tensor* dout,
                                      Tensor* dw);

/// "W@GRAD" of lookup_table_grad and lookup_table_v2_grad: like W, or selected
/// rows where the attribute is_sparse says so.
absl::Status InferLookupGrad(InferContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_EMBEDDING_SPARSE_LOOKUP_H_
