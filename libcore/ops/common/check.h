// SPDX-License-Identifier: Apache-2.0
// Checks when an op is bound. Inference has seen the forward ops; a gradient op
// out of a file may name any tensors, and its loops trust their extents.
#ifndef PD_LIBCORE_OPS_COMMON_CHECK_H_
#define PD_LIBCORE_OPS_COMMON_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// InvalidArgument unless the input is there, of this dtype and shape.
absl::Status ExpectInput(const BindContext& context, absl::string_view slot,
                         DType dtype, const Shape& shape);

/// The same for an input that may be absent.
absl::Status ExpectOptionalInput(const BindContext& context,
                                 absl::string_view slot, DType dtype,
                                 const Shape& shape);

/// InvalidArgument unless the input is there, of this dtype, and has this many
/// elements in any shape.
absl::Status ExpectElements(const BindContext& context, absl::string_view slot,
                            DType dtype, int64_t elements);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_CHECK_H_
