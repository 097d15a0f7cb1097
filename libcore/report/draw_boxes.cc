// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/draw_boxes.h"

#include <algorithm>
#include <cmath>

#include "libcore/data/class_colors.h"

namespace pd {
namespace {

constexpr int64_t kLeastSide = 192;  // of an enlarged picture

Image EnlargedInColour(const Image& picture) {
  const int64_t side = std::min(picture.height, picture.width);
  const int64_t factor = std::max<int64_t>(1, kLeastSide / side);
  Image image{picture.height * factor, picture.width * factor, 3, {}};
  image.pixels.reserve(static_cast<size_t>(image.height * image.width * 3));
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const int64_t from =
          (y / factor * picture.width + x / factor) * picture.channels;
      for (int64_t c = 0; c < 3; ++c)
        image.pixels.push_back(picture.pixels[static_cast<size_t>(
            from + (picture.channels >= 3 ? c : 0))]);
    }
  return image;
}

// The pixel that a part of a side is in; false where it is no number.
bool PixelAt(double part, int64_t side, int64_t* pixel) {
  if (!std::isfinite(part)) return false;
  const double last = static_cast<double>(side - 1);
  *pixel = static_cast<int64_t>(
      std::clamp(std::floor(part * static_cast<double>(side)), 0.0, last));
  return true;
}

}  // namespace

Image DrawBoxes(const Image& picture, const std::vector<DrawnBox>& boxes) {
  if (picture.pixels.empty()) return {};
  Image image = EnlargedInColour(picture);
  for (const DrawnBox& box : boxes) {
    int64_t at[4];
    bool known = true;
    for (size_t k = 0; k < 4; ++k)
      known = PixelAt(box.corners[k], k % 2 == 0 ? image.width : image.height,
                      &at[k]) &&
              known;
    if (!known || at[2] < at[0] || at[3] < at[1]) continue;
    // Number 0 is black among the colours.
    const Image colour = ColoredClasses({box.number % 254 + 1}, 1, 1);
    const auto paint = [&](int64_t x, int64_t y) {
      std::copy_n(colour.pixels.begin(), 3,
                  image.pixels.begin() + (y * image.width + x) * 3);
    };
    for (int64_t x = at[0]; x <= at[2]; ++x) paint(x, at[1]), paint(x, at[3]);
    for (int64_t y = at[1]; y <= at[3]; ++y) paint(at[0], y), paint(at[2], y);
  }
  return image;
}

}  // namespace pd
