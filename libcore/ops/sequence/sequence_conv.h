// SPDX-License-Identifier: Apache-2.0
// Inputs of sequence_conv and its gradient (sequence_conv.cc), read for every
// kernel.
#ifndef PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_CONV_H_
#define PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_CONV_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/sequence/sequence_window.h"

namespace pd {

struct SequenceConv {
  SequenceWindow window;
  Tensor *x = nullptr, *filter = nullptr;
  Tensor* padding = nullptr;  ///< null: zeros
  int64_t n = 0;              ///< columns of Filter
};

/// InvalidArgument for inputs and attributes that do not fit.
absl::StatusOr<SequenceConv> ReadSequenceConv(BindContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_CONV_H_
