// SPDX-License-Identifier: Apache-2.0
// Resizing with antialiasing, with the arithmetic of Pillow's Image.resize:
// filters are widened by the scale when shrinking, weights are 22-bit fixed
// point, rows first, then columns, each pass rounded to 8 bits.
#ifndef PD_LIBCORE_DATA_RESAMPLE_H_
#define PD_LIBCORE_DATA_RESAMPLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/data/picture.h"

namespace pd {

enum class Interpolation {
  kNearest,
  kBilinear,
  kBicubic,
  kBox,
  kHamming,
  kLanczos
};

/// By paddle's name; InvalidArgument names the nearest one.
absl::StatusOr<Interpolation> InterpolationFromName(absl::string_view name);

/// Replaces `picture` by one of the given size in the scratch.
absl::Status ResizePicture(int64_t height, int64_t width,
                           Interpolation interpolation, Picture* picture,
                           TransformScratch* scratch);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_RESAMPLE_H_
