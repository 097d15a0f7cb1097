// SPDX-License-Identifier: Apache-2.0
// Gradients of the gradient of Out = B(X, Y), linear in X and in Y: products of
// matrices, convolutions. With the cotangents p of X@GRAD and q of Y@GRAD
//   Out@GRAD@GRAD = B(p, Y) + B(X, q)
//   X@GRAD        = the gradient of B(., q) for Out@GRAD
//   Y@GRAD        = the gradient of B(p, .) for Out@GRAD
// which are B and its gradient op again: so any order follows.
#ifndef PD_LIBCORE_OPS_COMMON_BILINEAR_GRAD_H_
#define PD_LIBCORE_OPS_COMMON_BILINEAR_GRAD_H_

#include <string>

#include "libcore/ops/registry.h"

namespace pd {

struct BilinearSlots {
  std::string x = "X", y = "Y", out = "Out";
};

/// The maker for the gradient op of `forward`, by these two ops.
GradMaker BilinearSecond(std::string forward, BilinearSlots slots = {});

/// The slots of an op of PaddlePaddle's that computes all three at once.
struct BilinearSecondSlots {
  std::string dout, ddx, ddy;  ///< inputs beside X and Y
  std::string ddout, dx, dy;   ///< outputs
};

/// The maker for such an op, by itself and the gradient op `first` of B.
GradMaker BilinearThird(std::string first, BilinearSecondSlots second,
                        BilinearSlots slots = {});

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_BILINEAR_GRAD_H_
