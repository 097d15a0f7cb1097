// SPDX-License-Identifier: Apache-2.0
// Normalisation of groups of elements, h = (x - m) * r with the group's mean m
// and r = 1 / sqrt(variance + epsilon): the group norms and the second
// gradient of y = s * h + b, where s and b are constant in a group (batch norm,
// instance norm).
#ifndef PD_LIBCORE_OPS_NORM_NORM_GROUPS_H_
#define PD_LIBCORE_OPS_NORM_NORM_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/op_def.h"

namespace pd {

/// Values that all elements of a group share.
struct NormGroup {
  double mean = 0, inverse = 0, scale = 1;
  double ddscale = 0, ddbias = 0;  ///< cotangents of the first gradients
  double count = 0;
  bool constant = false;  ///< m and r do not depend on x
};

/// The second gradient in one group. The first one is, with g = dy,
///   dx = s r (g - mean(g) - h mean(g h)), ds = sum(g h), db = sum(g)
/// (without the means when m and r are constant). Its product with the
/// cotangents ddx, dds, ddb is differentiated by g, s and x:
///   ddy = s r (ddx - mean(ddx) - h mean(ddx h)) + dds h + ddb
///   dscale = r (sum(ddx g) - M mean(ddx) mean(g) - M mean(ddx h) mean(g h))
///   dx by way of h: v = dds g - s r (ddx mean(g h) + g mean(ddx h)),
///     r (v - mean(v) - h mean(v h)); by way of r: - s dscale / r * r r h / M
/// `for_each(body)` calls body(element) for the group's elements; x, dy, ddx
/// (null: 0) are indexed by it; ddy_out and dx_out may be null. Returns the
/// group's part of dscale.
template <typename T, typename ForEach>
double SecondNormGrad(const NormGroup& n, const ForEach& for_each, const T* x,
                      const T* dy, const T* ddx, T* ddy_out, T* dx_out) {
  const double s = n.scale, r = n.inverse, count = n.count;
  const auto h = [&](int64_t i) { return (x[i] - n.mean) * r; };
  const auto a = [&](int64_t i) { return ddx != nullptr ? double{ddx[i]} : 0; };
  double sum_a = 0, sum_g = 0, a_h = 0, g_h = 0, a_g = 0;
  for_each([&](int64_t i) {
    sum_a += a(i);
    sum_g += dy[i];
    a_h += a(i) * h(i);
    g_h += dy[i] * h(i);
    a_g += a(i) * dy[i];
  });
  const double share = n.constant ? 0 : 1 / count;
  if (ddy_out != nullptr)
    for_each([&](int64_t i) {
      ddy_out[i] =
          static_cast<T>(s * r * (a(i) - share * (sum_a + h(i) * a_h)) +
                         n.ddscale * h(i) + n.ddbias);
    });
  const double dscale = r * (a_g - share * (sum_a * sum_g + a_h * g_h));
  if (dx_out == nullptr) return dscale;
  const auto v = [&](int64_t i) {
    return n.ddscale * dy[i] - s * r * share * (a(i) * g_h + dy[i] * a_h);
  };
  double sum_v = 0, v_h = 0;
  for_each([&](int64_t i) {
    sum_v += v(i);
    v_h += v(i) * h(i);
  });
  for_each([&](int64_t i) {
    dx_out[i] = static_cast<T>(r * (v(i) - share * (sum_v + h(i) * v_h)) -
                               share * s * dscale * r * h(i));
  });
  return dscale;
}

/// The slots of a second gradient, which are named differently.
struct NormGradGradSlots {
  const char *x, *scale, *saved_mean, *saved_variance, *dy;
  const char *ddx, *ddscale, *ddbias;  ///< cotangents of the first gradients
  const char *dx, *dscale, *ddy;       ///< outputs
};
/// Of batch_norm_grad_grad, and of instance_norm before 2.6.
inline constexpr NormGradGradSlots kNormGradGrad = {
    "X",       "Scale",  "SavedMean", "SavedVariance", "DY", "DDX",
    "DDScale", "DDBias", "DX",        "DScale",        "DDY"};
/// Of instance_norm_double_grad.
inline constexpr NormGradGradSlots kNormDoubleGrad = {
    "x",      "fwd_scale",      "saved_mean",      "saved_variance",
    "grad_y", "grad_x@GRAD",    "grad_scale@GRAD", "grad_bias@GRAD",
    "x@GRAD", "fwd_scale@GRAD", "grad_y@GRAD"};
const NormGradGradSlots& NormSlotsOf(const OpDesc& op);

/// The op `type` for a gradient op of X, Scale, Bias; it reads SavedMean,
/// SavedVariance and `kept`, inputs of the gradient op.
absl::StatusOr<std::vector<OpDesc>> MakeNormGradGrad(
    const GradRequest& request, const std::string& type,
    const std::vector<const char*>& kept);

void AddNormGradGradSlots(OpDef* def);
absl::Status InferNormGradGrad(InferContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_NORM_NORM_GROUPS_H_
