// SPDX-License-Identifier: Apache-2.0
// The geometry of sliding windows (convolution, pooling): attributes and shapes
// turned into numbers once, for inference, reference and fast kernels alike.
#ifndef PD_LIBCORE_OPS_CONV_WINDOW_H_
#define PD_LIBCORE_OPS_CONV_WINDOW_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// One spatial axis. Extents are -1 where they are not known yet.
struct WindowAxis {
  int64_t in = -1, out = -1;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_before = 0, pad_after = 0;

  /// The output positions [first, second) whose tap `k` lies inside the input;
  /// there it reads input position Source(position, k).
  std::pair<int64_t, int64_t> Valid(int64_t k) const;
  int64_t Source(int64_t position, int64_t k) const {
    return position * stride - pad_before + k * dilation;
  }
};

/// A convolution. Filters are [out_channels, in_channels / groups, kernel...]
/// whatever the data's format.
struct ConvGeometry {
  bool channels_last = false;
  int64_t batch = -1, groups = 1, in_channels = -1, out_channels = -1;
  std::vector<WindowAxis> axes;

  Shape InputShape() const;
  Shape OutputShape() const;
};

/// Reads strides, paddings, padding_algorithm, dilations, groups, data_format.
/// "SAME" sets every dilation to 1, as PaddlePaddle does.
/// InvalidArgument: attributes and shapes that do not fit together.
absl::StatusOr<ConvGeometry> ReadConv(const OpDesc& op, const Shape& input,
                                      const Shape& filter);

/// A transposed convolution, told as the convolution whose gradient it is:
/// OutputShape() is its input, InputShape() its output. Reads output_padding
/// and output_size too. Filters are [inputs, outputs / groups, kernel...].
absl::StatusOr<ConvGeometry> ReadConvTranspose(const OpDesc& op,
                                               const Shape& input,
                                               const Shape& filter);

struct PoolGeometry {
  bool channels_last = false;
  bool max = false;        ///< else average
  bool exclusive = true;   ///< an average leaves padding out of its count
  bool adaptive = false;   ///< windows split the input into `out` parts
  bool ceil_mode = false;  ///< the last window may begin inside and end outside
  int64_t batch = -1, channels = -1;
  std::vector<WindowAxis> axes;

  Shape OutputShape() const;
};

/// Reads pooling_type, ksize, strides, paddings, padding_algorithm, ceil_mode,
/// exclusive, adaptive, global_pooling, data_format.
absl::StatusOr<PoolGeometry> ReadPool(const OpDesc& op, const Shape& input);

/// One window on one axis of pooling.
struct PoolWindow {
  int64_t begin, end;  ///< of the input, clipped to it
  int64_t padded;      ///< positions before clipping, padding included
};
PoolWindow WindowAt(const WindowAxis& axis, bool adaptive, int64_t position);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_WINDOW_H_
