// SPDX-License-Identifier: Apache-2.0
#include "formats/wav.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr uint32_t kRiffRest = 36;  // of the head, behind the length in it
constexpr uint32_t kSampleBytes = 2;

// The low `bytes` bytes of a number, the lowest first.
void AppendLittle(uint32_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i)
    to->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

}  // namespace

int16_t PcmOf(float sample) {
  if (std::isnan(sample)) return 0;
  return static_cast<int16_t>(
      32767.0 * static_cast<double>(std::clamp(sample, -1.0f, 1.0f)));
}

absl::StatusOr<std::string> EncodeWav(const WavSound& sound) {
  if (sound.channels < 1 || sound.channels > 0xffff / 2)
    return InvalidArgument("a sound has %d channels; expected 1 to %d",
                           sound.channels, 0xffff / 2);
  const auto frame = static_cast<uint32_t>(sound.channels) * kSampleBytes;
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  if (sound.rate < 1 || static_cast<uint32_t>(sound.rate) > kMost / frame)
    return InvalidArgument(
        "a sound of %d channels has a rate of %d; expected 1 to %d",
        sound.channels, sound.rate, kMost / frame);
  const size_t count = sound.samples.size();
  if (count % static_cast<size_t>(sound.channels) != 0)
    return InvalidArgument("a sound has %d samples; its channels are %d", count,
                           sound.channels);
  if (count > (kMost - kRiffRest) / kSampleBytes)
    return InvalidArgument("a sound has %d samples; a file holds %d", count,
                           (kMost - kRiffRest) / kSampleBytes);
  const auto size = static_cast<uint32_t>(count) * kSampleBytes;
  const auto rate = static_cast<uint32_t>(sound.rate);
  std::string bytes = "RIFF";
  bytes.reserve(8 + kRiffRest + size);
  AppendLittle(kRiffRest + size, 4, &bytes);
  bytes += "WAVEfmt ";
  AppendLittle(16, 4, &bytes);  // bytes of the format
  AppendLittle(1, 2, &bytes);   // PCM
  AppendLittle(static_cast<uint32_t>(sound.channels), 2, &bytes);
  AppendLittle(rate, 4, &bytes);
  AppendLittle(rate * frame, 4, &bytes);
  AppendLittle(frame, 2, &bytes);
  AppendLittle(8 * kSampleBytes, 2, &bytes);
  bytes += "data";
  AppendLittle(size, 4, &bytes);
  for (const int16_t sample : sound.samples)
    AppendLittle(static_cast<uint16_t>(sample), kSampleBytes, &bytes);
  return bytes;
}

}  // namespace pd
