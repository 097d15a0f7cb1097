// SPDX-License-Identifier: Apache-2.0
// The gradients of depthwise convolutions of images that lie in blocks of
// VectorFloats() channels: [N, C / block, H, W, block]. A plane is one block of
// one image.
#ifndef PD_LIBCORE_KERNELS_CPU_DEPTHWISE_PLANES_H_
#define PD_LIBCORE_KERNELS_CPU_DEPTHWISE_PLANES_H_

#include <cstddef>
#include <cstdint>

namespace pd {
namespace cpu {

struct DepthwiseGeometry {
  int64_t batch = 1, blocks = 1;
  int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;

  int64_t taps() const { return kernel_h * kernel_w; }
};

/// The longest kernel_h and kernel_w.
constexpr int64_t kMaxDepthwiseKernel = 7;

/// Bytes that the function below needs as `scratch`.
size_t DepthwiseScratch(const DepthwiseGeometry& g);

/// The gradients by x and w. Null stands for one that is not wanted. `dw` gets
/// a sum for each plane, [N, blocks, kernel_h, kernel_w, block].
struct DepthwiseInputs {
  const float *x, *w, *dy;
};
void DepthwiseGradients(const DepthwiseGeometry& g, const DepthwiseInputs& in,
                        float* scratch, float* dx, float* dw);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_DEPTHWISE_PLANES_H_
