// SPDX-License-Identifier: Apache-2.0
// Sound as a WAV file: a RIFF head of 44 bytes and samples of 16 bits (PCM), as
// VisualDL and TensorBoard play it.
#ifndef PD_FORMATS_WAV_H_
#define PD_FORMATS_WAV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pd {

/// Frames one after the other; a frame is one sample of each channel.
struct WavSound {
  int32_t rate = 0;  ///< frames a second
  int32_t channels = 1;
  std::vector<int16_t> samples;
};

/// A sample of full scale 1 as 16 bits, as VisualDL's `add_audio` makes them:
/// clipped, times 32767, cut towards 0. NaN is silence.
int16_t PcmOf(float sample);

/// The bytes of the file. InvalidArgument for a rate or channels that the head
/// cannot hold, for a frame that is not whole, and for more than 4 GiB.
absl::StatusOr<std::string> EncodeWav(const WavSound& sound);

}  // namespace pd

#endif  // PD_FORMATS_WAV_H_
