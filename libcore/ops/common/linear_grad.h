// SPDX-License-Identifier: Apache-2.0
// Second gradients of ops that only move elements: the gradient of the gradient
// op with respect to Out@GRAD is the op itself, applied to X@GRAD@GRAD.
#ifndef PD_LIBCORE_OPS_COMMON_LINEAR_GRAD_H_
#define PD_LIBCORE_OPS_COMMON_LINEAR_GRAD_H_

#include <string>
#include <utility>
#include <vector>

#include "libcore/ops/registry.h"

namespace pd {

/// A maker for the gradient op of the linear op `forward`, which reads `in` and
/// writes `out`. The other inputs named in `keep` are handed on.
inline GradMaker ForwardAgain(std::string forward, std::string in,
                              std::string out,
                              std::vector<std::string> keep = {}) {
  return
      [=](const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        std::vector<OpDesc> ops;
        const std::string& dout = request.op.In(GradName(out));
        if (!request.needs_grad(dout)) return ops;
        OpDesc op;
        op.type = forward;
        op.attrs = request.op.attrs;
        op.SetInput(in, {GradName(request.op.Out(GradName(in)))});
        for (const std::string& slot : keep)
          if (!request.op.Input(slot).empty())
            op.SetInput(slot, request.op.Input(slot));
        op.SetOutput(out, {GradName(dout)});
        ops.push_back(std::move(op));
        return ops;
      };
}

/// The gradient by Out@GRAD of a gradient op X@GRAD = A Out@GRAD with a
/// symmetric A, such as a mask: the op itself, for the cotangent of X@GRAD.
inline OpDesc GradOpAgain(const OpDesc& grad) {
  OpDesc op = grad;
  op.SetInput("Out@GRAD", {GradName(grad.Out("X@GRAD"))});
  op.SetOutput("X@GRAD", {GradName(grad.In("Out@GRAD"))});
  return op;
}

/// A maker for such an op whose A does not depend on X.
inline GradMaker GradientAgain() {
  return [](const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
    std::vector<OpDesc> ops;
    if (request.needs_grad(request.op.In("Out@GRAD")))
      ops.push_back(GradOpAgain(request.op));
    return ops;
  };
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_LINEAR_GRAD_H_
