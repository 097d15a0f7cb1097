// SPDX-License-Identifier: Apache-2.0
// The logarithm that the cross entropies take.
#ifndef PD_LIBCORE_OPS_LOSS_LOG_PROBABILITY_H_
#define PD_LIBCORE_OPS_LOSS_LOG_PROBABILITY_H_

#include <cmath>
#include <limits>

namespace pd {

/// log(p); -1e20 where p is 0, as PaddlePaddle has it (TolerableValue).
template <typename T>
T LogProbability(T p) {
  const T log = std::log(p);
  return log == -std::numeric_limits<T>::infinity() ? T(-1e20) : log;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_LOG_PROBABILITY_H_
