// SPDX-License-Identifier: Apache-2.0
// Class numbers of pixels as a picture: Pascal VOC's colours, which tell any
// 256 classes apart; class 255, a mask's border, is white.
#ifndef PD_LIBCORE_DATA_CLASS_COLORS_H_
#define PD_LIBCORE_DATA_CLASS_COLORS_H_

#include <cstdint>
#include <vector>

#include "formats/image.h"

namespace pd {

/// An RGB picture; `classes` are height * width numbers, row by row.
Image ColoredClasses(const std::vector<int64_t>& classes, int64_t height,
                     int64_t width);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_CLASS_COLORS_H_
