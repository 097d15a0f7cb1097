// SPDX-License-Identifier: Apache-2.0
// paddle.nn.initializer: first values of a parameter as an op of the startup
// program. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_INITIALIZER_H_
#define PD_LIBCORE_NN_INITIALIZER_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/nn/job_param.pb.h"
#include "libcore/program/block_builder.h"

namespace pd {

/// Inputs and outputs of one unit of a parameter, as PaddlePaddle counts them:
/// the two extents of a matrix; for filters [out, in, ...] the extents times
/// the size of a window.
struct Fans {
  double in = 1;
  double out = 1;
};
Fans FansOf(const Shape& shape);

/// Appends the op that fills variable `name` (declared in startup already).
/// InvalidArgument when `assign` holds another number of values.
absl::Status AppendInitializer(const job::Initializer& initializer,
                               const std::string& name, const Shape& shape,
                               DType dtype, BlockBuilder* startup);

// Initializers that layers use where the job says nothing.
job::Initializer ConstantInitializer(double value);
job::Initializer NormalInitializer(double std);
job::Initializer XavierUniformInitializer();

}  // namespace pd

#endif  // PD_LIBCORE_NN_INITIALIZER_H_
