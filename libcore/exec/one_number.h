// SPDX-License-Identifier: Apache-2.0
// One number may be [] in one program and [1] in another, over one scope.
// Internal to libcore/exec.
#ifndef PD_LIBCORE_EXEC_ONE_NUMBER_H_
#define PD_LIBCORE_EXEC_ONE_NUMBER_H_

#include "libcore/base/shape.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Whether `tensor` has one element and `shape` is its shape with or without an
/// axis of 1.
inline bool IsOneNumber(const Tensor& tensor, const Shape& shape) {
  return tensor.size() == 1 && NumElements(shape) == 1 &&
         tensor.shape().size() + shape.size() == 1;
}

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_ONE_NUMBER_H_
