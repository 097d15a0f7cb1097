// SPDX-License-Identifier: Apache-2.0
// Moving pixels about: crop, pad, flip, rotate, as Pillow and numpy.pad do it.
// Each replaces `picture` by a new one in the scratch.
#ifndef PD_LIBCORE_DATA_GEOMETRY_H_
#define PD_LIBCORE_DATA_GEOMETRY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/data/picture.h"
#include "libcore/data/resample.h"

namespace pd {

enum class PaddingMode { kConstant, kEdge, kReflect, kSymmetric };

/// By paddle's name; InvalidArgument otherwise.
absl::StatusOr<PaddingMode> PaddingModeFromName(absl::string_view name);

/// Pixels outside of the picture are black.
absl::Status CropPicture(int64_t top, int64_t left, int64_t height,
                         int64_t width, Picture* picture,
                         TransformScratch* scratch);

struct Padding {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
};
/// `fill` is the colour of kConstant.
absl::Status PadPicture(const Padding& padding, PaddingMode mode,
                        const std::array<uint8_t, 3>& fill, Picture* picture,
                        TransformScratch* scratch);

absl::Status FlipPicture(bool horizontally, Picture* picture,
                         TransformScratch* scratch);

struct Rotation {
  Interpolation interpolation = Interpolation::kNearest;
  bool expand = false;
  std::vector<float> center;  ///< none or [x, y]
  std::array<uint8_t, 3> fill = {0, 0, 0};
};
/// Counter-clockwise.
absl::Status RotatePicture(double degrees, const Rotation& rotation,
                           Picture* picture, TransformScratch* scratch);
/// The smallest upright boxes around those that RotatePicture turns with a
/// picture of this size.
void RotateBoxes(double degrees, const Rotation& rotation, int64_t height,
                 int64_t width, std::vector<PixelBox>* boxes);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_GEOMETRY_H_
