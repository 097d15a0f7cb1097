// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/color.h"

#include <algorithm>
#include <cmath>

#include "formats/image.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Image.blend of one byte.
uint8_t Blend(int from, int to, float factor) {
  const float value = from + factor * (to - from);
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

uint8_t GreyOf(const Picture& in, int64_t pixel) {
  const uint8_t* p = in.pixels + pixel * in.channels;
  return in.channels == 1 ? *p : Luma(p[0], p[1], p[2]);
}

absl::StatusOr<uint8_t*> SameRoom(const Picture& in,
                                  TransformScratch* scratch) {
  return scratch->Room(in.height, in.width, in.channels);
}

// Blends with one grey level.
absl::Status BlendWith(int level, float factor, Picture* picture,
                       TransformScratch* scratch) {
  PD_ASSIGN_OR_RETURN(uint8_t * out, SameRoom(*picture, scratch));
  uint8_t table[256];
  for (int i = 0; i < 256; ++i) table[i] = Blend(level, i, factor);
  const int64_t bytes = picture->height * picture->stride();
  for (int64_t i = 0; i < bytes; ++i) out[i] = table[picture->pixels[i]];
  picture->pixels = out;
  return absl::OkStatus();
}

struct Hsv {
  uint8_t h, s, v;
};

Hsv ToHsv(uint8_t r, uint8_t g, uint8_t b) {
  const uint8_t high = std::max({r, g, b}), low = std::min({r, g, b});
  if (low == high) return {0, 0, high};
  const float range = static_cast<float>(high - low);
  const float s = range / high;
  const float rc = (high - r) / range;
  const float gc = (high - g) / range;
  const float bc = (high - b) / range;
  float h;
  if (r == high) {
    h = bc - gc;
  } else if (g == high) {
    h = static_cast<float>(2.0 + rc - bc);
  } else {
    h = static_cast<float>(4.0 + gc - rc);
  }
  h = static_cast<float>(std::fmod(h / 6.0 + 1.0, 1.0));
  const auto byte = [](double v) {
    return static_cast<uint8_t>(std::clamp(static_cast<int>(v), 0, 255));
  };
  return {byte(h * 255.0), byte(s * 255.0), high};
}

void FromHsv(const Hsv& hsv, uint8_t* rgb) {
  const uint8_t v = hsv.v;
  if (hsv.s == 0) {
    rgb[0] = rgb[1] = rgb[2] = v;
    return;
  }
  const float sixth = static_cast<float>(hsv.h) * 6.0 / 255.0;
  const int sector = static_cast<int>(std::floor(sixth));
  const float f =
      static_cast<float>(static_cast<float>(hsv.h) * 6.0 / 255.0 - sector);
  const float s = static_cast<float>(hsv.s / 255.0);
  const auto byte = [v](double scale) {
    const int value =
        static_cast<int>(std::round(static_cast<float>(v) * scale));
    return static_cast<uint8_t>(std::clamp(value, 0, 255));
  };
  const uint8_t p = byte(1.0 - s);
  const uint8_t q = byte(1.0 - s * f);
  const uint8_t t = byte(1.0 - s * (1.0 - f));
  const uint8_t table[6][3] = {{v, t, p}, {q, v, p}, {p, v, t},
                               {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(table[sector % 6], 3, rgb);
}

}  // namespace

absl::Status AdjustBrightness(float factor, Picture* picture,
                              TransformScratch* scratch) {
  return BlendWith(0, factor, picture, scratch);
}

absl::Status AdjustContrast(float factor, Picture* picture,
                            TransformScratch* scratch) {
  const int64_t pixels = picture->height * picture->width;
  int64_t sum = 0;
  for (int64_t i = 0; i < pixels; ++i) sum += GreyOf(*picture, i);
  const double mean = static_cast<double>(sum) / pixels;
  return BlendWith(static_cast<int>(mean + 0.5), factor, picture, scratch);
}

absl::Status AdjustSaturation(float factor, Picture* picture,
                              TransformScratch* scratch) {
  if (picture->channels == 1) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(uint8_t * out, SameRoom(*picture, scratch));
  const int64_t pixels = picture->height * picture->width;
  for (int64_t i = 0; i < pixels; ++i) {
    const int grey = GreyOf(*picture, i);
    for (int64_t c = 0; c < 3; ++c)
      out[3 * i + c] = Blend(grey, picture->pixels[3 * i + c], factor);
  }
  picture->pixels = out;
  return absl::OkStatus();
}

absl::Status AdjustHue(float factor, Picture* picture,
                       TransformScratch* scratch) {
  if (picture->channels == 1) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(uint8_t * out, SameRoom(*picture, scratch));
  const int shift = static_cast<int>(factor * 255.0);
  const int64_t pixels = picture->height * picture->width;
  for (int64_t i = 0; i < pixels; ++i) {
    const uint8_t* p = picture->pixels + 3 * i;
    Hsv hsv = ToHsv(p[0], p[1], p[2]);
    hsv.h = static_cast<uint8_t>(hsv.h + shift);  // modulo 256
    FromHsv(hsv, out + 3 * i);
  }
  picture->pixels = out;
  return absl::OkStatus();
}

absl::Status ToGrayscale(int channels, Picture* picture,
                         TransformScratch* scratch) {
  if (picture->channels == 1 && channels == 1) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(uint8_t * out,
                      scratch->Room(picture->height, picture->width, channels));
  const int64_t pixels = picture->height * picture->width;
  for (int64_t i = 0; i < pixels; ++i)
    std::fill_n(out + i * channels, channels, GreyOf(*picture, i));
  picture->pixels = out;
  picture->channels = channels;
  return absl::OkStatus();
}

}  // namespace pd
