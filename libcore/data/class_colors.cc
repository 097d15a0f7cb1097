// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/class_colors.h"

#include <array>

namespace pd {
namespace {

// VOC's colour map: the bits of the number, three at a time, from the highest
// bit of each colour on.
std::array<uint8_t, 3> ColorOf(int64_t number) {
  if (number == 255) return {255, 255, 255};
  std::array<uint8_t, 3> color = {0, 0, 0};
  auto bits = static_cast<uint64_t>(number) & 255;
  for (int place = 7; bits != 0; --place, bits >>= 3)
    for (size_t c = 0; c < 3; ++c)
      color[c] = static_cast<uint8_t>(color[c] | (((bits >> c) & 1) << place));
  return color;
}

}  // namespace

Image ColoredClasses(const std::vector<int64_t>& classes, int64_t height,
                     int64_t width) {
  Image image{height, width, 3, {}};
  image.pixels.reserve(classes.size() * 3);
  for (const int64_t number : classes)
    for (const uint8_t value : ColorOf(number)) image.pixels.push_back(value);
  return image;
}

}  // namespace pd
