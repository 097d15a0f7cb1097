// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/sound_input.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr int64_t kMostSeconds = 30;

bool IsSound(DType dtype, const Shape& shape) {
  return dtype == DType::kFloat32 &&
         (shape.size() == 2 ||
          (shape.size() == 3 && (shape[1] == 1 || shape[1] == 2)));
}

}  // namespace

absl::Status CheckSound(const TrainProgram& program, const SoundInput& sound) {
  const auto& inputs = program.inputs;
  const auto feed =
      std::find_if(program.feeds.begin(), program.feeds.end(),
                   [&](const FeedSpec& f) { return f.name == sound.name; });
  if (feed == program.feeds.end() ||
      std::find(inputs.begin(), inputs.end(), sound.name) == inputs.end())
    return InvalidArgument("the network has no input '%s' to hear; it has %s",
                           sound.name, absl::StrJoin(inputs, ", "));
  if (IsSound(feed->dtype, feed->shape)) return absl::OkStatus();
  return InvalidArgument(
      "input '%s' to hear is %s %s; expected float32 [records, samples] or "
      "[records, 1 or 2 channels, samples]",
      sound.name, Name(feed->dtype), ToString(feed->shape));
}

WavSound SoundOf(const BatchField& field, int64_t i, int64_t length,
                 const SoundInput& sound) {
  WavSound heard;
  const Shape& shape = field.shape;
  if (!IsSound(field.dtype, shape)) return heard;
  const int64_t channels = shape.size() == 3 ? shape[1] : 1;
  const int64_t width = shape.back();
  const int64_t frames = std::clamp<int64_t>(
      std::min(length, kMostSeconds * sound.rate), 0, width);
  const float* values =
      reinterpret_cast<const float*>(field.data) + i * channels * width;
  heard.rate = sound.rate;
  heard.channels = static_cast<int32_t>(channels);
  for (int64_t k = 0; k < frames; ++k)
    for (int64_t c = 0; c < channels; ++c)
      heard.samples.push_back(PcmOf(values[c * width + k]));
  return heard;
}

}  // namespace pd
