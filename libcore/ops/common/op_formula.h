// SPDX-License-Identifier: Apache-2.0
// A formula as ops, for makers of gradients that no op of PaddlePaddle's
// computes: gradients of gradient ops. The ops have gradients themselves, so
// derivatives of any order follow.
#ifndef PD_LIBCORE_OPS_COMMON_OP_FORMULA_H_
#define PD_LIBCORE_OPS_COMMON_OP_FORMULA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/ops/op_def.h"

namespace pd {

/// The attribute of ops in a gradient that is right for real numbers alone:
/// append_backward refuses complex ones and takes it off.
inline constexpr char kRealNumbersAttr[] = "@real_numbers";

/// The variable, or "" where a slot is absent or nobody needs what it holds.
std::string Present(const std::string& variable);
/// The name of the cotangent of an output of a gradient op; "" where the op
/// does not make it.
std::string CotangentOf(const OpDesc& grad, absl::string_view slot);

class OpFormula {
 public:
  /// Values between the ops are called after an output of `grad`, the op whose
  /// gradient is made.
  explicit OpFormula(const OpDesc& grad);

  /// Appends an op that lacks its one output; gives the name of that.
  std::string Apply(OpDesc op, absl::string_view slot = "Out");
  std::string Unary(absl::string_view type, const std::string& x);
  /// Operands have one shape, or y is repeated along leading and single axes.
  std::string Binary(absl::string_view type, const std::string& x,
                     const std::string& y, int32_t axis = -1);
  std::string Mul(const std::string& x, const std::string& y) {
    return Binary("elementwise_mul", x, y);
  }
  std::string Div(const std::string& x, const std::string& y) {
    return Binary("elementwise_div", x, y);
  }
  std::string Sub(const std::string& x, const std::string& y) {
    return Binary("elementwise_sub", x, y);
  }
  /// scale * x + bias; the numbers are held as float32.
  std::string Scale(const std::string& x, double scale, double bias = 0);
  /// A number everywhere, in x's shape and dtype.
  std::string Like(const std::string& x, double value);
  std::string SumAlong(const std::string& x, int32_t axis);

  /// Appends an op whose outputs are named.
  void Add(OpDesc op) { ops_.push_back(std::move(op)); }
  /// Adds `value` to the gradient of `variable`.
  void Give(const std::string& value, const std::string& variable);

  std::vector<OpDesc> Take();

 protected:
  std::string Temporary();

 private:
  std::string base_;
  size_t temporaries_ = 0;
  std::vector<OpDesc> ops_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_OP_FORMULA_H_
