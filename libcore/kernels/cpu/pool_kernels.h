// SPDX-License-Identifier: Apache-2.0
// Pooling in the batch-inner layout [C, H, W, N].
#ifndef PD_LIBCORE_KERNELS_CPU_POOL_KERNELS_H_
#define PD_LIBCORE_KERNELS_CPU_POOL_KERNELS_H_

#include <cstdint>
#include <vector>

namespace pd {
namespace cpu {

/// The windows along one axis, clipped to the input.
struct PoolAxis {
  struct Range {
    int64_t begin = 0, end = 0;
  };
  int64_t in = 0, out = 0;
  std::vector<Range> windows;   ///< [out], of input positions
  std::vector<int64_t> padded;  ///< [out], extents with padding
  std::vector<Range> covers;    ///< [in], of the windows that hold a position
};

struct PoolArgs {
  const PoolAxis *h = nullptr, *w = nullptr;
  int64_t channels = 0, batch = 0;
  bool max = true;
  bool count_padding = false;  ///< of averages
  const float* in = nullptr;   ///< x, or the gradient of the output
  float* out = nullptr;        ///< the output, or the gradient of x
  /// Maximum pooling: for each output the number of its maximum in the window,
  /// row by row; 255 for an empty window.
  uint8_t* index = nullptr;
};

/// The largest window whose positions an index can tell apart.
inline constexpr int64_t kMaxPoolWindow = 255;

void PoolForward(const PoolArgs& args);
void PoolBackward(const PoolArgs& args);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_POOL_KERNELS_H_
