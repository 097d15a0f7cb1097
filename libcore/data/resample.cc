// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/resample.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// 8 bits of result and 2 of headroom for weights outside [0, 1].
constexpr int kFractionBits = 32 - 8 - 2;
constexpr int kHalf = 1 << (kFractionBits - 1);
constexpr double kPi = 3.14159265358979323846;

double Box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double Triangle(double x) { return std::max(0.0, 1.0 - std::fabs(x)); }

double Hamming(double x) {
  x = std::fabs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= kPi;
  // Pillow's constants are floats.
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));
}

// Keys' cubic convolution with a = -0.5.
double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double Sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= kPi;
  return std::sin(x) / x;
}

double Lanczos(double x) {
  return -3.0 <= x && x < 3.0 ? Sinc(x) * Sinc(x / 3) : 0.0;
}

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel KernelOf(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kBox:
      return {Box, 0.5};
    case Interpolation::kHamming:
      return {Hamming, 1.0};
    case Interpolation::kBicubic:
      return {Cubic, 2.0};
    case Interpolation::kLanczos:
      return {Lanczos, 3.0};
    default:
      return {Triangle, 1.0};
  }
}

// The taps that make `outputs` pixels of `inputs`.
void ComputeTaps(int64_t inputs, int64_t outputs, const Kernel& kernel,
                 ResampleTaps* taps) {
  const double scale = static_cast<double>(inputs) / outputs;
  const double stretch = std::max(scale, 1.0);
  const double support = kernel.support * stretch;
  const double shrink = 1.0 / stretch;
  taps->width = static_cast<int>(std::ceil(support)) * 2 + 1;
  const size_t n = static_cast<size_t>(outputs);
  taps->first.resize(n);
  taps->count.resize(n);
  taps->weights.resize(n * taps->width);
  taps->exact.resize(taps->width);
  for (size_t i = 0; i < n; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int last = std::min(static_cast<int>(inputs),
                              static_cast<int>(center + support + 0.5));
    const int count = last - first;
    double sum = 0.0;
    for (int k = 0; k < count; ++k) {
      taps->exact[k] = kernel.weight((k + first - center + 0.5) * shrink);
      sum += taps->exact[k];
    }
    int* weights = taps->weights.data() + i * taps->width;
    for (int k = 0; k < count; ++k) {
      const double w = sum != 0.0 ? taps->exact[k] / sum : taps->exact[k];
      weights[k] =
          static_cast<int>((w < 0 ? -0.5 : 0.5) + w * (1 << kFractionBits));
    }
    taps->first[i] = first;
    taps->count[i] = count;
  }
}

uint8_t Clip(int sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

template <int kChannels>
void RowAcross(const uint8_t* in, const ResampleTaps& taps, int64_t outputs,
               uint8_t* out) {
  for (int64_t x = 0; x < outputs; ++x) {
    const int* weights = taps.weights.data() + x * taps.width;
    const uint8_t* pixel = in + int64_t{taps.first[x]} * kChannels;
    int sums[kChannels];
    for (int c = 0; c < kChannels; ++c) sums[c] = kHalf;
    for (int k = 0; k < taps.count[x]; ++k, pixel += kChannels)
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weights[k];
    for (int c = 0; c < kChannels; ++c) *out++ = Clip(sums[c]);
  }
}

// One output row: a weighted sum of `count` rows of `stride` bytes.
void RowDown(const uint8_t* in, int64_t stride, const int* weights, int count,
             int* sums, uint8_t* out) {
  std::fill(sums, sums + stride, kHalf);
  for (int k = 0; k < count; ++k, in += stride) {
    const int weight = weights[k];
#pragma omp simd
    for (int64_t i = 0; i < stride; ++i) sums[i] += in[i] * weight;
  }
#pragma omp simd
  for (int64_t i = 0; i < stride; ++i) {
    const int value = sums[i] >> kFractionBits;
    out[i] = static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
  }
}

absl::Status ResizeNearest(int64_t height, int64_t width, Picture* picture,
                           TransformScratch* scratch) {
  const int64_t channels = picture->channels;
  PD_ASSIGN_OR_RETURN(uint8_t * out, scratch->Room(height, width, channels));
  const double step_x = static_cast<double>(picture->width) / width;
  const double step_y = static_cast<double>(picture->height) / height;
  std::vector<int>& columns = scratch->sums;
  columns.resize(static_cast<size_t>(width));
  // Steps are added up, as Pillow does: their rounding decides ties.
  double at = step_x * 0.5;
  for (int64_t x = 0; x < width; ++x, at += step_x)
    columns[x] = static_cast<int>(
        std::min(static_cast<int64_t>(at), picture->width - 1));
  at = step_y * 0.5;
  uint8_t* to = out;
  for (int64_t y = 0; y < height; ++y, at += step_y) {
    const uint8_t* row =
        picture->row(std::min(static_cast<int64_t>(at), picture->height - 1));
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c)
        *to++ = row[columns[x] * channels + c];
  }
  *picture = {out, height, width, channels};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Interpolation> InterpolationFromName(absl::string_view name) {
  // In the order of the enumerators.
  static constexpr absl::string_view kNames[] = {
      "nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return InvalidArgument(
        "interpolation is '%s'; expected nearest, bilinear, bicubic, box, "
        "hamming or lanczos",
        name);
  }
  return static_cast<Interpolation>(found - std::begin(kNames));
}

absl::Status ResizePicture(int64_t height, int64_t width,
                           Interpolation interpolation, Picture* picture,
                           TransformScratch* scratch) {
  if (height == picture->height && width == picture->width)
    return absl::OkStatus();
  if (interpolation == Interpolation::kNearest)
    return ResizeNearest(height, width, picture, scratch);
  const Kernel kernel = KernelOf(interpolation);
  const int64_t channels = picture->channels;
  PD_ASSIGN_OR_RETURN(uint8_t * out, scratch->Room(height, width, channels));
  const uint8_t* rows = picture->pixels;
  const int64_t stride = width * channels;
  const bool down = height != picture->height;
  if (width != picture->width) {
    ComputeTaps(picture->width, width, kernel, &scratch->across);
    uint8_t* to = out;
    if (down) {
      const size_t bytes = static_cast<size_t>(picture->height * stride);
      if (scratch->halfway.size() < bytes) scratch->halfway.resize(bytes);
      to = scratch->halfway.data();
    }
    rows = to;
    for (int64_t y = 0; y < picture->height; ++y, to += stride) {
      if (channels == 1) {
        RowAcross<1>(picture->row(y), scratch->across, width, to);
      } else {
        RowAcross<3>(picture->row(y), scratch->across, width, to);
      }
    }
  }
  if (down) {
    const ResampleTaps& taps = scratch->down;
    ComputeTaps(picture->height, height, kernel, &scratch->down);
    scratch->sums.resize(static_cast<size_t>(stride));
    for (int64_t y = 0; y < height; ++y) {
      RowDown(rows + taps.first[y] * stride, stride,
              taps.weights.data() + y * taps.width, taps.count[y],
              scratch->sums.data(), out + y * stride);
    }
  }
  *picture = {out, height, width, channels};
  return absl::OkStatus();
}

}  // namespace pd
