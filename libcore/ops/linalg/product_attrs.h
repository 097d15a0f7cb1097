// SPDX-License-Identifier: Apache-2.0
// The attributes of matmul_v2, matmul and mul in one form, for code outside of
// the operator that treats the three alike.
#ifndef PD_LIBCORE_OPS_LINALG_PRODUCT_ATTRS_H_
#define PD_LIBCORE_OPS_LINALG_PRODUCT_ATTRS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Out = alpha * op(X) op(Y).
struct ProductAttrs {
  bool trans_x = false, trans_y = false;
  float alpha = 1;
  /// Of mul: how many axes of X, and of Y, are rows. Other types have no such
  /// attribute; the last axis of their X is no row.
  int32_t x_num_col_dims = -1, y_num_col_dims = 1;
};

inline bool IsProduct(absl::string_view op_type) {
  return op_type == "matmul_v2" || op_type == "matmul" || op_type == "mul";
}

/// `op` is a product, and normalized.
inline ProductAttrs ProductAttrsOf(const OpDesc& op) {
  ProductAttrs attrs;
  if (op.type == "mul") {
    attrs.x_num_col_dims = op.Attr<int32_t>("x_num_col_dims");
    attrs.y_num_col_dims = op.Attr<int32_t>("y_num_col_dims");
    return attrs;
  }
  const bool old = op.type == "matmul";
  attrs.trans_x = op.Attr<bool>(old ? "transpose_X" : "trans_x");
  attrs.trans_y = op.Attr<bool>(old ? "transpose_Y" : "trans_y");
  if (old) attrs.alpha = op.Attr<float>("alpha");
  return attrs;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LINALG_PRODUCT_ATTRS_H_
