// SPDX-License-Identifier: Apache-2.0
#include "formats/cifar.h"

#include "formats/gzip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<CifarFile> ReadCifar(const std::string& path,
                                    int64_t label_bytes) {
  CifarFile file;
  file.label_bytes = label_bytes;
  PD_ASSIGN_OR_RETURN(file.bytes, ReadFileGunzip(path));
  const size_t record = static_cast<size_t>(label_bytes + kCifarPixels);
  if (file.bytes.size == 0)
    return DataLoss(
        "'%s': the file is empty; expected CIFAR records of %d bytes", path,
        record);
  if (file.bytes.size % record != 0) {
    return DataLoss(
        "'%s': %d bytes are not a whole number of CIFAR records of %d bytes",
        path, file.bytes.size, record);
  }
  file.records = static_cast<int64_t>(file.bytes.size / record);
  return file;
}

}  // namespace pd
