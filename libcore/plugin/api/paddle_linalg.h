// SPDX-License-Identifier: Apache-2.0
// Functions of matrices. The notes of paddle_math.h hold here too.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_LINALG_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_LINALG_H_

#include <string>
#include <tuple>
#include <vector>

#include "paddle_op_call.h"

namespace paddle {
namespace experimental {

inline Tensor addmm(const Tensor& input, const Tensor& x, const Tensor& y,
                    float alpha = 1.0f, float beta = 1.0f) {
  return detail::Op("addmm")
      .In("Input", input)
      .In("X", x)
      .In("Y", y)
      .Attr("Alpha", alpha)
      .Attr("Beta", beta)
      .Out("Out")
      .One();
}
inline Tensor cholesky(const Tensor& x, bool upper) {
  return detail::Op("cholesky")
      .In("X", x)
      .Attr("upper", upper)
      .Out("Out")
      .One();
}
inline Tensor cholesky_solve(const Tensor& x, const Tensor& y, bool upper) {
  return detail::Op("cholesky_solve")
      .In("X", x)
      .In("Y", y)
      .Attr("upper", upper)
      .Out("Out")
      .One();
}
inline Tensor det(const Tensor& x) {
  return detail::Op("determinant").In("Input", x).Out("Out").One();
}
inline Tensor matmul(const Tensor& x, const Tensor& y, bool transpose_x = false,
                     bool transpose_y = false) {
  return detail::Op("matmul_v2")
      .In("X", x)
      .In("Y", y)
      .Attr("trans_x", transpose_x)
      .Attr("trans_y", transpose_y)
      .Out("Out")
      .One();
}
inline Tensor matrix_power(const Tensor& x, int n) {
  return detail::Op("matrix_power").In("X", x).Attr("n", n).Out("Out").One();
}
inline Tensor multi_dot(const std::vector<Tensor>& x) {
  return detail::Op("multi_dot").In("X", x).Out("Out").One();
}
inline std::tuple<Tensor, Tensor> qr(const Tensor& x, const std::string& mode) {
  const auto all =
      detail::Op("qr").In("X", x).Attr("mode", mode).Out("Q").Out("R").All();
  return std::make_tuple(all[0][0], all[1][0]);
}
inline Tensor trace(const Tensor& x, int offset, int axis1, int axis2) {
  return detail::Op("trace")
      .In("Input", x)
      .Attr("offset", offset)
      .Attr("axis1", axis1)
      .Attr("axis2", axis2)
      .Out("Out")
      .One();
}
inline Tensor triangular_solve(const Tensor& x, const Tensor& y, bool upper,
                               bool transpose, bool unitriangular) {
  return detail::Op("triangular_solve")
      .In("X", x)
      .In("Y", y)
      .Attr("upper", upper)
      .Attr("transpose", transpose)
      .Attr("unitriangular", unitriangular)
      .Out("Out")
      .One();
}

}  // namespace experimental
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_LINALG_H_
