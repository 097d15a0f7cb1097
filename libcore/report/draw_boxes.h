// SPDX-License-Identifier: Apache-2.0
// Boxes drawn into pictures, for the samples of detectors.
#ifndef PD_LIBCORE_REPORT_DRAW_BOXES_H_
#define PD_LIBCORE_REPORT_DRAW_BOXES_H_

#include <cstdint>
#include <vector>

#include "formats/image.h"

namespace pd {

/// A box of a class: xmin, ymin, xmax, ymax as parts of the picture.
struct DrawnBox {
  int64_t number = 0;
  double corners[4] = {};
};

/// The picture in colour, with the edges of the boxes in their classes'
/// colours; what lies outside of the picture is left out. A small picture is
/// enlarged so that edges do not hide what they surround.
Image DrawBoxes(const Image& picture, const std::vector<DrawnBox>& boxes);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_DRAW_BOXES_H_
