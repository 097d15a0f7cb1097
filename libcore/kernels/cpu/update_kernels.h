// SPDX-License-Identifier: Apache-2.0
// Parameter updates over many tensors in one pass. Elements are independent, so
// layouts do not matter as long as the tensors of one parameter agree.
#ifndef PD_LIBCORE_KERNELS_CPU_UPDATE_KERNELS_H_
#define PD_LIBCORE_KERNELS_CPU_UPDATE_KERNELS_H_

#include <cstdint>
#include <vector>

namespace pd {
namespace cpu {

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
/// p = p - decay p - rate m / (sqrt(v) + epsilon)
struct AdamPart {
  int64_t size = 0;
  const float *param, *grad, *moment1, *moment2;
  float *param_out, *moment1_out, *moment2_out;
  float beta1, beta2, rate, epsilon, decay;
};

/// g = rescale g + decay p; without velocity: p = p - rate g;
/// else v = mu v + g, p = p - rate (nesterov ? g + mu v : v)
struct MomentumPart {
  int64_t size = 0;
  const float *param, *grad, *velocity;
  float *param_out, *velocity_out;
  float mu, rate, rescale, decay;
  bool nesterov;
};

/// m = m + g^2, p = p - rate g / (sqrt(m) + epsilon)
struct AdagradPart {
  int64_t size = 0;
  const float *param, *grad, *moment;
  float *param_out, *moment_out;
  float rate, epsilon;
};

void UpdateAdam(const std::vector<AdamPart>& parts);
void UpdateMomentum(const std::vector<MomentumPart>& parts);
void UpdateAdagrad(const std::vector<AdagradPart>& parts);
/// The same for some rows of a table of rows of `width` elements; no row is
/// there twice. table.grad is [count, width].
void UpdateAdagradRows(const AdagradPart& table, const int64_t* rows,
                       int64_t count, int64_t width);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_UPDATE_KERNELS_H_
