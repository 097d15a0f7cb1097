// SPDX-License-Identifier: Apache-2.0
// Weights as integers: q = round(w / scale * n), halves to even, n = 127 for 8
// bits and 32767 for 16, with one scale or one for each channel.
#ifndef PD_LIBCORE_QUANT_WEIGHTS_H_
#define PD_LIBCORE_QUANT_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/array.h"
#include "libcore/ops/quantize/quantize.h"

namespace pd {

struct WeightOptions {
  int bits = 8;
  bool per_channel = true;
  /// Scales that lose the least squared error, of 0.5 to 1.0 of the greatest
  /// |w|, instead of the greatest.
  bool mse = false;
  /// Roundings are chosen so that the mean of each channel stays what it is:
  /// those nearest to a half go the other way.
  bool keep_mean = false;
};

struct QuantizedWeight {
  Shape shape;
  int bits = 8;
  int axis = -1;              ///< of the scales; -1: there is one
  std::vector<float> scales;  ///< |w| that becomes n; never 0
  std::vector<int32_t> values;

  int32_t levels() const { return QuantLevels(bits); }
  float Dequantized(size_t i, size_t channel) const {
    return static_cast<float>(values[i]) * scales[channel] /
           static_cast<float>(levels());
  }
  Array AsIntegers() const;     ///< int8 or int16
  Array AsFloats() const;       ///< the integers in float32
  Array AsDequantized() const;  ///< the values they stand for
};

/// `w` is float32; `axis` as in QuantOp. InvalidArgument for NaN and Inf.
absl::StatusOr<QuantizedWeight> QuantizeWeight(const Array& w, int axis,
                                               const WeightOptions& options);

/// The view around the axis of the scales.
ChannelView ViewOf(const Shape& shape, int axis);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_WEIGHTS_H_
