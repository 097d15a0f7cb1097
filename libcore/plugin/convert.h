// SPDX-License-Identifier: Apache-2.0
// Element types and errors of PaddlePaddle's interfaces, and ours.
#ifndef PD_LIBCORE_PLUGIN_CONVERT_H_
#define PD_LIBCORE_PLUGIN_CONVERT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/plugin/api/paddle_dtype.h"
#include "libcore/plugin/api/paddle_error.h"

namespace pd {

/// InvalidArgument for types that tensors do not have here (uint32).
absl::StatusOr<DType> DTypeOfPhi(phi::DataType type);
phi::DataType PhiTypeOf(DType type);

/// The Status of PaddlePaddle's kind of error.
absl::Status StatusOf(const phi::enforce::EnforceNotMet& error);
/// The reverse. DataLoss, which PaddlePaddle does not have, is an
/// InvalidArgumentError.
phi::enforce::EnforceNotMet ErrorOf(const absl::Status& status);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_CONVERT_H_
