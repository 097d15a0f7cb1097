// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/geometry.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// The coordinate in [0, n) that shows at coordinate i, which may be outside;
// -1 for the fill colour. numpy.pad's modes.
int64_t Source(int64_t i, int64_t n, PaddingMode mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case PaddingMode::kConstant:
      return -1;
    case PaddingMode::kEdge:
      return i < 0 ? 0 : n - 1;
    case PaddingMode::kReflect: {
      if (n == 1) return 0;
      const int64_t period = 2 * (n - 1);
      const int64_t at = ((i % period) + period) % period;
      return at < n ? at : period - at;
    }
    case PaddingMode::kSymmetric: {
      const int64_t period = 2 * n;
      const int64_t at = ((i % period) + period) % period;
      return at < n ? at : period - 1 - at;
    }
  }
  return -1;
}

void FillPixels(const std::array<uint8_t, 3>& fill, int64_t channels,
                int64_t pixels, uint8_t* out) {
  if (channels == 1) {
    std::memset(out, fill[0], static_cast<size_t>(pixels));
    return;
  }
  for (int64_t i = 0; i < pixels; ++i, out += 3)
    std::memcpy(out, fill.data(), 3);
}

}  // namespace

absl::StatusOr<PaddingMode> PaddingModeFromName(absl::string_view name) {
  if (name == "constant") return PaddingMode::kConstant;
  if (name == "edge") return PaddingMode::kEdge;
  if (name == "reflect") return PaddingMode::kReflect;
  if (name == "symmetric") return PaddingMode::kSymmetric;
  return InvalidArgument(
      "padding_mode is '%s'; expected constant, edge, reflect or symmetric",
      name);
}

absl::Status CropPicture(int64_t top, int64_t left, int64_t height,
                         int64_t width, Picture* picture,
                         TransformScratch* scratch) {
  // A crop is a padding by what is added on each side, less than none inside.
  return PadPicture({-left, -top, left + width - picture->width,
                     top + height - picture->height},
                    PaddingMode::kConstant, {0, 0, 0}, picture, scratch);
}

absl::Status PadPicture(const Padding& padding, PaddingMode mode,
                        const std::array<uint8_t, 3>& fill, Picture* picture,
                        TransformScratch* scratch) {
  if (padding.left == 0 && padding.top == 0 && padding.right == 0 &&
      padding.bottom == 0)
    return absl::OkStatus();
  const Picture in = *picture;
  const int64_t height = in.height + padding.top + padding.bottom;
  const int64_t width = in.width + padding.left + padding.right;
  const int64_t channels = in.channels;
  PD_ASSIGN_OR_RETURN(uint8_t * out, scratch->Room(height, width, channels));
  // Columns [inside, outside) of the output come from the picture as they are.
  const int64_t inside = std::clamp<int64_t>(padding.left, 0, width);
  const int64_t outside =
      std::clamp<int64_t>(padding.left + in.width, inside, width);
  uint8_t* to = out;
  for (int64_t y = 0; y < height; ++y, to += width * channels) {
    const int64_t from_y = Source(y - padding.top, in.height, mode);
    if (from_y < 0) {
      FillPixels(fill, channels, width, to);
      continue;
    }
    const uint8_t* row = in.row(from_y);
    std::memcpy(to + inside * channels,
                row + (inside - padding.left) * channels,
                static_cast<size_t>((outside - inside) * channels));
    const auto outer = [&](int64_t begin, int64_t end) {
      for (int64_t x = begin; x < end; ++x) {
        const int64_t from_x = Source(x - padding.left, in.width, mode);
        const uint8_t* pixel =
            from_x < 0 ? fill.data() : row + from_x * channels;
        std::memcpy(to + x * channels, pixel, static_cast<size_t>(channels));
      }
    };
    outer(0, inside);
    outer(outside, width);
  }
  *picture = {out, height, width, channels};
  return absl::OkStatus();
}

absl::Status FlipPicture(bool horizontally, Picture* picture,
                         TransformScratch* scratch) {
  const Picture in = *picture;
  PD_ASSIGN_OR_RETURN(uint8_t * out,
                      scratch->Room(in.height, in.width, in.channels));
  const int64_t stride = in.stride();
  for (int64_t y = 0; y < in.height; ++y) {
    uint8_t* to = out + y * stride;
    if (!horizontally) {
      std::memcpy(to, in.row(in.height - 1 - y), static_cast<size_t>(stride));
      continue;
    }
    const uint8_t* row = in.row(y);
    if (in.channels == 1) {
      std::reverse_copy(row, row + in.width, to);
    } else {
      for (int64_t x = 0; x < in.width; ++x)
        std::memcpy(to + x * 3, row + (in.width - 1 - x) * 3, 3);
    }
  }
  picture->pixels = out;
  return absl::OkStatus();
}

}  // namespace pd
