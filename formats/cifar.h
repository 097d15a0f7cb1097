// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100, binary version: records of one label byte (two for
// CIFAR-100: coarse, fine) and 3072 bytes, the red, green and blue planes of
// a 32 x 32 image. Plain or gzip. The format has no magic number.
#ifndef PD_FORMATS_CIFAR_H_
#define PD_FORMATS_CIFAR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/base/file.h"

namespace pd {

constexpr int64_t kCifarSide = 32;
constexpr int64_t kCifarPixels = 3 * kCifarSide * kCifarSide;

/// The records of one file, as they are in it.
struct CifarFile {
  FileBytes bytes;
  int64_t records = 0;
  int64_t label_bytes = 1;

  /// The label bytes of a record.
  const uint8_t* labels(int64_t record) const {
    return reinterpret_cast<const uint8_t*>(bytes.data.get()) +
           record * (label_bytes + kCifarPixels);
  }
  /// The planes of a record, [3, 32, 32].
  const uint8_t* planes(int64_t record) const {
    return labels(record) + label_bytes;
  }
};

/// Reads a file with `label_bytes` (1 or 2) label bytes a record. DataLoss when
/// it is empty or not a whole number of records. Messages name the path.
absl::StatusOr<CifarFile> ReadCifar(const std::string& path,
                                    int64_t label_bytes);

}  // namespace pd

#endif  // PD_FORMATS_CIFAR_H_
