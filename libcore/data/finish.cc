// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/finish.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr std::array<int, 3> kHwc = {0, 1, 2};
constexpr std::array<int, 3> kChw = {2, 0, 1};

// PaddlePaddle's `image / 255.0` multiplies by the reciprocal.
constexpr float kByteScale = static_cast<float>(1.0 / 255.0);

absl::Status CheckFormat(const std::string& data_format) {
  if (data_format == "CHW" || data_format == "HWC") return absl::OkStatus();
  return InvalidArgument("data_format is '%s'; expected 'CHW' or 'HWC'",
                         data_format);
}

absl::Status CheckPerChannel(const char* name, const std::vector<float>& values,
                             int64_t channels) {
  const int64_t n = static_cast<int64_t>(values.size());
  if (n == 1 || n == channels) return absl::OkStatus();
  return InvalidArgument("%s has %d numbers; expected 1 or the image's %d",
                         name, n, channels);
}

// One channel: the same operations, in the same order, as made the table, so
// the same bits; vectors divide faster than they gather.
template <bool kScale>
void Convert(const uint8_t* in, int64_t n, float mean, float std, float* out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float value = static_cast<float>(static_cast<int>(in[i]));
    out[i] = ((kScale ? value * kByteScale : value) - mean) / std;
  }
}

}  // namespace

Finish::Finish(int64_t channels)
    : channels_(channels), source_(static_cast<size_t>(channels)) {
  std::iota(source_.begin(), source_.end(), 0);
}

void Finish::StartFloat() {
  started_ = true;
  if (is_float_) return;
  is_float_ = true;
  tables_.resize(static_cast<size_t>(channels_));
  for (auto& table : tables_) std::iota(table.begin(), table.end(), 0.0f);
}

absl::Status Finish::Add(const transforms::ToTensor& t) {
  absl::Status format = CheckFormat(t.data_format);
  if (!format.ok()) return format;
  if (is_tensor_) return InvalidArgument("the image is a tensor already");
  if (axes_ != kHwc)
    return InvalidArgument("the image's axes have been moved; expected HWC");
  const bool scale = !is_float_;
  StartFloat();
  is_tensor_ = true;
  scaled_ = scale;
  if (scale) {
    for (auto& table : tables_)
      for (float& value : table) value *= kByteScale;
  }
  if (t.data_format == "CHW") axes_ = kChw;
  return absl::OkStatus();
}

absl::Status Finish::Add(const transforms::Normalize& t) {
  absl::Status format = CheckFormat(t.data_format);
  if (!format.ok()) return format;
  absl::Status lengths = CheckPerChannel("mean", t.mean, channels_);
  if (lengths.ok()) lengths = CheckPerChannel("std", t.std, channels_);
  if (!lengths.ok()) return lengths;
  if (std::count(t.std.begin(), t.std.end(), 0.0f) > 0)
    return InvalidArgument("std holds 0");
  const bool first = t.data_format == "CHW";
  if (!started_ && channels_ == 1) {
    axes_ = kChw;  // a grey picture has no channel axis: one is put in front
  } else if (axes_[first ? 0 : 2] != 2) {
    return InvalidArgument(
        "data_format is '%s' but the image's channels are not its %s axis%s",
        t.data_format, first ? "first" : "last",
        first && !started_ ? "; put ToTensor or Transpose before it" : "");
  }
  if (t.to_rgb && first)
    return InvalidArgument("to_rgb needs data_format 'HWC'");
  StartFloat();
  if (t.to_rgb) {
    std::reverse(source_.begin(), source_.end());
    std::reverse(tables_.begin(), tables_.end());
  }
  ++normalized_;
  mean_ = t.mean[0];
  std_ = t.std[0];
  for (size_t c = 0; c < tables_.size(); ++c) {
    const float mean = t.mean.size() == 1 ? t.mean[0] : t.mean[c];
    const float std = t.std.size() == 1 ? t.std[0] : t.std[c];
    for (float& value : tables_[c]) value = (value - mean) / std;
  }
  return absl::OkStatus();
}

absl::Status Finish::Add(const transforms::Transpose& t) {
  std::vector<int> sorted = t.order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != std::vector<int>{0, 1, 2})
    return InvalidArgument("order must hold 0, 1 and 2, each once");
  std::array<int, 3> axes;
  for (size_t i = 0; i < 3; ++i) axes[i] = axes_[t.order[i]];
  axes_ = axes;
  started_ = true;
  return absl::OkStatus();
}

std::array<int64_t, 3> Finish::OutputShape(int64_t height,
                                           int64_t width) const {
  const std::array<int64_t, 3> hwc = {height, width, channels_};
  return {hwc[axes_[0]], hwc[axes_[1]], hwc[axes_[2]]};
}

template <typename T, typename Look>
void Finish::Write(const Picture& picture, const Look& look, T* out) const {
  // Where a step along height, width and channels leads in the output.
  const auto shape = OutputShape(picture.height, picture.width);
  std::array<int64_t, 3> step;
  step[axes_[2]] = 1;
  step[axes_[1]] = shape[2];
  step[axes_[0]] = shape[1] * shape[2];
  for (int64_t c = 0; c < channels_; ++c) {
    const auto channel = look(c);
    for (int64_t y = 0; y < picture.height; ++y) {
      const uint8_t* in = picture.row(y) + source_[c];
      T* to = out + c * step[2] + y * step[0];
      for (int64_t x = 0; x < picture.width; ++x)
        to[x * step[1]] = channel(in[x * channels_]);
    }
  }
}

bool Finish::RunGrey(const Picture& picture, float* out) const {
  const bool in_order = axes_ == kHwc || axes_ == kChw;
  if (channels_ != 1 || !in_order || normalized_ > 1) return false;
  const int64_t pixels = picture.height * picture.width;
  if (scaled_) {
    Convert<true>(picture.pixels, pixels, mean_, std_, out);
  } else {
    Convert<false>(picture.pixels, pixels, mean_, std_, out);
  }
  return true;
}

void Finish::Run(const Picture& picture, std::byte* out) const {
  if (is_float_ && RunGrey(picture, reinterpret_cast<float*>(out))) return;
  if (is_float_) {
    Write(
        picture,
        [this](int64_t c) {
          const float* table = tables_[c].data();
          return [table](uint8_t v) { return table[v]; };
        },
        reinterpret_cast<float*>(out));
  } else if (axes_ == kHwc) {
    std::memcpy(out, picture.pixels,
                static_cast<size_t>(picture.height * picture.stride()));
  } else {
    Write(
        picture, [](int64_t) { return [](uint8_t v) { return v; }; },
        reinterpret_cast<uint8_t*>(out));
  }
}

}  // namespace pd
