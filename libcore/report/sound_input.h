// SPDX-License-Identifier: Apache-2.0
// The input of a network that is sound, for logs to play.
#ifndef PD_LIBCORE_REPORT_SOUND_INPUT_H_
#define PD_LIBCORE_REPORT_SOUND_INPUT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "formats/wav.h"
#include "libcore/data/loader.h"
#include "libcore/train/train_program.h"

namespace pd {

/// [records, samples] or [records, channels, samples] between -1 and 1.
struct SoundInput {
  std::string name;  ///< "": no input is
  int32_t rate = 0;  ///< samples a second
};

/// InvalidArgument where a network has no such input: unknown, not float32, or
/// of other shapes than mono's and stereo's.
absl::Status CheckSound(const TrainProgram& program, const SoundInput& sound);

/// The first `length` samples of record i of a batch, 30 seconds at most;
/// nothing where the field is none that CheckSound accepts.
WavSound SoundOf(const BatchField& field, int64_t i, int64_t length,
                 const SoundInput& sound);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_SOUND_INPUT_H_
