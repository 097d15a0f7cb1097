// SPDX-License-Identifier: Apache-2.0
// The image that transforms hand on: uint8, rows of interleaved channels, in
// one of two scratch buffers of the thread, which only grow.
#ifndef PD_LIBCORE_DATA_PICTURE_H_
#define PD_LIBCORE_DATA_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/error.h"

namespace pd {

/// A view of pixels [height, width, channels].
struct Picture {
  const uint8_t* pixels = nullptr;
  int64_t height = 0, width = 0, channels = 0;

  int64_t stride() const { return width * channels; }
  const uint8_t* row(int64_t y) const { return pixels + y * stride(); }
};

/// A box while transforms move it, in pixels from the picture's edges: the
/// whole picture is 0, 0, width, height.
struct PixelBox {
  double xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  double visible = 1;  ///< the part of its area that cuts have left
  size_t row = 0;      ///< of the record's boxes
};

/// The taps of one output coordinate's resampling filter.
struct ResampleTaps {
  std::vector<int> first, count;  ///< [outputs]
  std::vector<int> weights;       ///< [outputs, width], fixed point
  std::vector<double> exact;
  int width = 0;
};

/// Buffers that one thread needs to transform pictures.
class TransformScratch {
 public:
  /// Room for a picture that is not where the last call's was, so a step reads
  /// one and writes the other. ResourceExhausted above 2^30 bytes.
  absl::StatusOr<uint8_t*> Room(int64_t height, int64_t width,
                                int64_t channels) {
    constexpr int64_t kMost = int64_t{1} << 30;
    if (height <= 0 || width <= 0 || width > kMost / channels ||
        height > kMost / (width * channels)) {
      return ResourceExhausted(
          "a transformed image of %d x %d pixels; expected at least one and "
          "at most 2^30 bytes",
          width, height);
    }
    current_ = 1 - current_;
    std::vector<uint8_t>& buffer = buffers_[current_];
    const size_t bytes = static_cast<size_t>(height * width * channels);
    if (buffer.size() < bytes) buffer.resize(bytes);
    return buffer.data();
  }

  ResampleTaps across, down;
  std::vector<int> sums;         ///< one row of a resampling pass
  std::vector<uint8_t> halfway;  ///< resampled across, not yet down

 private:
  std::vector<uint8_t> buffers_[2];
  int current_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_PICTURE_H_
