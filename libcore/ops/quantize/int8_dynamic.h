// SPDX-License-Identifier: Apache-2.0
// Dynamic quantization: weights are integers of 8 bits, and what they are
// multiplied by becomes integers when it is known, with a scale and a zero
// point for each row, so that an answer does not depend on what else is in the
// batch. A row x[0 .. depth) becomes bytes u by the rule of ONNX's
// DynamicQuantizeLinear:
//   low = min(0, min x), high = max(0, max x), scale = (high - low) / 255
//   zero = round_half_even(clamp(-low / scale, 0, 255))
//   u = clamp(round_half_even(x / scale) + zero, 0, 255)
// and the product
//   acc = sum of (u - zero) * w, an int32 that cannot overflow
//   out = float(acc) * (scale * scale_of_w[o])
// with every named operation rounded to float32 once: the same bits on every
// CPU. A row of zeros has scale 0 and gives zeros; NaN becomes 0.
#ifndef PD_LIBCORE_OPS_QUANTIZE_INT8_DYNAMIC_H_
#define PD_LIBCORE_OPS_QUANTIZE_INT8_DYNAMIC_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "libcore/base/shape.h"

namespace pd {

/// The longest row whose sum of products surely fits in an int32.
constexpr int64_t kMostDynamicDepth = 65536;

/// How the numbers of a row become bytes.
struct DynamicRow {
  float scale = 0;
  int32_t zero = 0;

  static DynamicRow Of(const float* x, int64_t depth) {
    float low = 0, high = 0;
#pragma omp simd reduction(min : low) reduction(max : high)
    for (int64_t k = 0; k < depth; ++k) {
      low = x[k] < low ? x[k] : low;
      high = x[k] > high ? x[k] : high;
    }
    DynamicRow row;
    row.scale = (high - low) / 255.0f;
    if (row.scale > 0)
      row.zero = static_cast<int32_t>(
          std::nearbyint(std::min(std::max(-low / row.scale, 0.0f), 255.0f)));
    return row;
  }

  /// u of a number.
  int32_t operator()(float x) const {
    if (!(scale > 0)) return zero;
    const float q = std::nearbyint(x / scale) + static_cast<float>(zero);
    const float least = q > 0 ? q : 0;  // NaN too
    return static_cast<int32_t>(least < 255 ? least : 255);
  }
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_QUANTIZE_INT8_DYNAMIC_H_
