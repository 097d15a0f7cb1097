// SPDX-License-Identifier: Apache-2.0
// The ops that make float32 of an integer weight while the model runs.
#ifndef PD_LIBCORE_DEPLOY_WEIGHT_OPS_H_
#define PD_LIBCORE_DEPLOY_WEIGHT_OPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// "x" -> "x@scale".
std::string ScaleName(const std::string& variable);

struct WeightOps {
  std::vector<OpDesc> ops;
  std::vector<std::string> made;  ///< float32, of the weight's shape
  NamedArrays params;             ///< NAME@scale, zero points

  /// The weight in float32.
  const std::string& back() const { return made.back(); }
};

/// For the parameter `name`, int8 or int16; `scales`, along `axis` or one (-1),
/// are what the greatest integer stands for. Of 16 bits there is a cast in
/// between: PaddlePaddle has no dequantize_linear of int16.
WeightOps DequantizeWeight(const std::string& name,
                           const std::vector<float>& scales, int axis,
                           int bits);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_WEIGHT_OPS_H_
