// SPDX-License-Identifier: Apache-2.0
// Rotation with the arithmetic of Pillow's Image.rotate: quarter turns are
// exact; else each output pixel looks its source up through the inverse map,
// whose nearest variant runs in 16.16 fixed point.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "libcore/base/status_macros.h"
#include "libcore/data/geometry.h"

namespace pd {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Source coordinates of an output pixel: x = a[0] x + a[1] y + a[2], and
// y = a[3] x + a[4] y + a[5].
using Affine = std::array<double, 6>;

// Python's round(x, 15): correctly rounded in decimal.
double Round15(double x) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.15f", x);
  return std::strtod(digits, nullptr);
}

double MapX(const Affine& a, double x, double y) {
  return a[0] * x + a[1] * y + a[2];
}
double MapY(const Affine& a, double x, double y) {
  return a[3] * x + a[4] * y + a[5];
}

Affine InverseRotation(double degrees, const std::vector<float>& center,
                       int64_t width, int64_t height) {
  const double angle = -(degrees * kPi / 180.0);
  const double cosine = Round15(std::cos(angle));
  const double sine = Round15(std::sin(angle));
  Affine a = {cosine, sine, 0, Round15(-std::sin(angle)), cosine, 0};
  const double cx = center.empty() ? width / 2.0 : center[0];
  const double cy = center.empty() ? height / 2.0 : center[1];
  const double x = MapX(a, -cx, -cy), y = MapY(a, -cx, -cy);
  a[2] = x + cx;
  a[5] = y + cy;
  return a;
}

// The size that holds the whole rotated picture; moves the map to match.
void Expand(Affine* a, int64_t* width, int64_t* height) {
  const double w = static_cast<double>(*width),
               h = static_cast<double>(*height);
  const double xs[] = {MapX(*a, 0, 0), MapX(*a, w, 0), MapX(*a, w, h),
                       MapX(*a, 0, h)};
  const double ys[] = {MapY(*a, 0, 0), MapY(*a, w, 0), MapY(*a, w, h),
                       MapY(*a, 0, h)};
  const auto extent = [](const double* v) {
    return static_cast<int64_t>(std::ceil(*std::max_element(v, v + 4))) -
           static_cast<int64_t>(std::floor(*std::min_element(v, v + 4)));
  };
  const int64_t new_width = extent(xs), new_height = extent(ys);
  const double dx = -(new_width - *width) / 2.0;
  const double dy = -(new_height - *height) / 2.0;
  const double x = MapX(*a, dx, dy), y = MapY(*a, dx, dy);
  (*a)[2] = x;
  (*a)[5] = y;
  *width = new_width;
  *height = new_height;
}

int64_t Fixed(double v) {
  return static_cast<int64_t>(std::floor(v * 65536.0 + 0.5));
}

void Nearest(const Picture& in, const Affine& a, int64_t height, int64_t width,
             uint8_t* out) {
  const size_t channels = static_cast<size_t>(in.channels);
  const int64_t dx = Fixed(a[0]), dy = Fixed(a[3]);
  int64_t row_x = Fixed(a[2] + a[0] * 0.5 + a[1] * 0.5);
  int64_t row_y = Fixed(a[5] + a[3] * 0.5 + a[4] * 0.5);
  for (int64_t y = 0; y < height; ++y) {
    int64_t at_x = row_x, at_y = row_y;
    for (int64_t x = 0; x < width; ++x, out += channels) {
      const int64_t from_x = at_x >> 16, from_y = at_y >> 16;
      if (from_x >= 0 && from_x < in.width && from_y >= 0 && from_y < in.height)
        std::memcpy(out, in.row(from_y) + from_x * in.channels, channels);
      at_x += dx;
      at_y += dy;
    }
    row_x += Fixed(a[1]);
    row_y += Fixed(a[4]);
  }
}

double Linear(const double* v, double d) { return v[0] + (v[1] - v[0]) * d; }

double CubicSpline(const double* v, double d) {
  const double p1 = v[1];
  const double p2 = -v[0] + v[2];
  const double p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
  const double p4 = -v[0] + v[1] - v[2] + v[3];
  return p1 + d * (p2 + d * (p3 + d * p4));
}

// Interpolates over kTaps x kTaps pixels, those outside taken from the edge.
template <int kTaps, double (*kSpline)(const double*, double)>
void Smooth(const Picture& in, const Affine& a, int64_t height, int64_t width,
            uint8_t* out) {
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, out += in.channels) {
      double from_x = MapX(a, x + 0.5, y + 0.5);
      double from_y = MapY(a, x + 0.5, y + 0.5);
      if (!(from_x >= 0.0 && from_x < in.width && from_y >= 0.0 &&
            from_y < in.height))
        continue;
      from_x -= 0.5;
      from_y -= 0.5;
      const double floor_x = std::floor(from_x), floor_y = std::floor(from_y);
      const int64_t first_x = static_cast<int64_t>(floor_x) - (kTaps / 2 - 1);
      const int64_t first_y = static_cast<int64_t>(floor_y) - (kTaps / 2 - 1);
      for (int64_t c = 0; c < in.channels; ++c) {
        double down[kTaps];
        for (int i = 0; i < kTaps; ++i) {
          const uint8_t* row =
              in.row(std::clamp<int64_t>(first_y + i, 0, in.height - 1));
          double across[kTaps];
          for (int j = 0; j < kTaps; ++j)
            across[j] = row[std::clamp<int64_t>(first_x + j, 0, in.width - 1) *
                                in.channels +
                            c];
          down[i] = kSpline(across, from_x - floor_x);
        }
        const double value = kSpline(down, from_y - floor_y);
        out[c] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
}

double InFullCircle(double degrees) {
  degrees = std::fmod(degrees, 360.0);
  return degrees < 0 ? degrees + 360.0 : degrees;
}

// Whether Quarter makes the picture that is turned by `degrees`, 0 to 360.
bool IsQuarter(double degrees, const Rotation& rotation, int64_t height,
               int64_t width) {
  if (!rotation.center.empty()) return false;
  return degrees == 180 || ((degrees == 90 || degrees == 270) &&
                            (rotation.expand || width == height));
}

// Where a point of the turned picture comes from, as `a` of a picture says,
// when it is Quarter that turns it.
Affine QuarterMap(int64_t degrees, double height, double width) {
  if (degrees == 90) return {0, -1, width, 1, 0, 0};
  if (degrees == 180) return {-1, 0, width, 0, -1, height};
  return {0, 1, 0, -1, 0, height};
}

// Turns by 90, 180 or 270 degrees without loss.
absl::Status Quarter(int64_t degrees, Picture* picture,
                     TransformScratch* scratch) {
  const Picture in = *picture;
  const bool lying = degrees != 180;
  const int64_t height = lying ? in.width : in.height;
  const int64_t width = lying ? in.height : in.width;
  PD_ASSIGN_OR_RETURN(uint8_t * out, scratch->Room(height, width, in.channels));
  uint8_t* to = out;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x, to += in.channels) {
      const int64_t from_y = degrees == 90    ? x
                             : degrees == 180 ? in.height - 1 - y
                                              : in.height - 1 - x;
      const int64_t from_x = degrees == 90    ? in.width - 1 - y
                             : degrees == 180 ? in.width - 1 - x
                                              : y;
      std::memcpy(to, in.row(from_y) + from_x * in.channels,
                  static_cast<size_t>(in.channels));
    }
  }
  *picture = {out, height, width, in.channels};
  return absl::OkStatus();
}

}  // namespace

absl::Status RotatePicture(double degrees, const Rotation& rotation,
                           Picture* picture, TransformScratch* scratch) {
  degrees = InFullCircle(degrees);
  if (rotation.center.empty() && degrees == 0) return absl::OkStatus();
  if (IsQuarter(degrees, rotation, picture->height, picture->width))
    return Quarter(static_cast<int64_t>(degrees), picture, scratch);
  const Picture in = *picture;
  int64_t height = in.height, width = in.width;
  Affine a = InverseRotation(degrees, rotation.center, width, height);
  if (rotation.expand) Expand(&a, &width, &height);
  PD_ASSIGN_OR_RETURN(uint8_t * out, scratch->Room(height, width, in.channels));
  for (int64_t i = 0; i < height * width; ++i)
    std::memcpy(out + i * in.channels, rotation.fill.data(),
                static_cast<size_t>(in.channels));
  switch (rotation.interpolation) {
    case Interpolation::kBilinear:
      Smooth<2, Linear>(in, a, height, width, out);
      break;
    case Interpolation::kBicubic:
      Smooth<4, CubicSpline>(in, a, height, width, out);
      break;
    default:
      Nearest(in, a, height, width, out);
  }
  *picture = {out, height, width, in.channels};
  return absl::OkStatus();
}

void RotateBoxes(double degrees, const Rotation& rotation, int64_t height,
                 int64_t width, std::vector<PixelBox>* boxes) {
  degrees = InFullCircle(degrees);
  if (rotation.center.empty() && degrees == 0) return;
  Affine a;
  if (IsQuarter(degrees, rotation, height, width)) {
    a = QuarterMap(static_cast<int64_t>(degrees), static_cast<double>(height),
                   static_cast<double>(width));
  } else {
    a = InverseRotation(degrees, rotation.center, width, height);
    if (rotation.expand) Expand(&a, &width, &height);
  }
  // The map's matrix is orthonormal: its inverse is the transposed one.
  const auto x_of = [&a](double x, double y) {
    return a[0] * (x - a[2]) + a[3] * (y - a[5]);
  };
  const auto y_of = [&a](double x, double y) {
    return a[1] * (x - a[2]) + a[4] * (y - a[5]);
  };
  for (PixelBox& box : *boxes) {
    const PixelBox in = box;
    box.xmin = box.ymin = std::numeric_limits<double>::infinity();
    box.xmax = box.ymax = -std::numeric_limits<double>::infinity();
    for (const double x : {in.xmin, in.xmax}) {
      for (const double y : {in.ymin, in.ymax}) {
        box.xmin = std::min(box.xmin, x_of(x, y));
        box.xmax = std::max(box.xmax, x_of(x, y));
        box.ymin = std::min(box.ymin, y_of(x, y));
        box.ymax = std::max(box.ymax, y_of(x, y));
      }
    }
  }
}

}  // namespace pd
