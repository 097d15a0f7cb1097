// SPDX-License-Identifier: Apache-2.0
// Colour changes with the arithmetic of Pillow's ImageEnhance and its HSV
// conversion. Each replaces `picture` by a new one in the scratch.
#ifndef PD_LIBCORE_DATA_COLOR_H_
#define PD_LIBCORE_DATA_COLOR_H_

#include "absl/status/status.h"
#include "libcore/data/picture.h"

namespace pd {

/// Blends with black: 0 is black, 1 the picture.
absl::Status AdjustBrightness(float factor, Picture* picture,
                              TransformScratch* scratch);
/// Blends with the mean grey.
absl::Status AdjustContrast(float factor, Picture* picture,
                            TransformScratch* scratch);
/// Blends with the grey picture.
absl::Status AdjustSaturation(float factor, Picture* picture,
                              TransformScratch* scratch);
/// Turns the hue by `factor` of a whole turn, [-0.5, 0.5].
absl::Status AdjustHue(float factor, Picture* picture,
                       TransformScratch* scratch);
/// Grey, in 1 or 3 equal channels.
absl::Status ToGrayscale(int channels, Picture* picture,
                         TransformScratch* scratch);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_COLOR_H_
