// SPDX-License-Identifier: Apache-2.0
// Sliding windows of convolutions and pools: how they lie on one axis.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_WINDOW_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/kernel.h"

namespace pd_run {

struct WindowAxis {
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;

  /// The input position that tap `k` of a window reads; it may lie outside.
  int64_t Source(int64_t window, int64_t k) const {
    return window * stride - before + k * dilation;
  }
  /// The windows [first, second) whose tap `k` lies inside of the input.
  std::pair<int64_t, int64_t> Inside(int64_t k) const {
    const int64_t shift = before - k * dilation;  // window * stride >= shift
    if (stride == 1) {                            // without divisions
      const int64_t end = std::min(std::max(in + shift, int64_t{0}), out);
      return {std::min(std::max(shift, int64_t{0}), end), end};
    }
    const int64_t first = shift > 0 ? (shift + stride - 1) / stride : 0;
    const int64_t room = in + shift;
    const int64_t last = room > 0 ? (room + stride - 1) / stride : 0;
    const int64_t end = std::min(last, out);
    return {std::min(first, end), end};
  }
};

/// Reads how the window of a node whose input 0 is float32 [N, C, H, W] lies;
/// `out` stays 1.
bool ReadWindowAxes(Call* call, WindowAxis* h, WindowAxis* w);

/// Reads the window of a node whose input 0 is float32 [N, C, H, W]. With
/// `ceil` the last window may begin inside and end outside.
bool ReadWindow(Call* call, bool ceil, WindowAxis* h, WindowAxis* w);

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_WINDOW_H_
