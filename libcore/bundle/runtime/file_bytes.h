// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, mapped where the system can, or the caller's own.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_FILE_BYTES_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_FILE_BYTES_H_

#include <cstddef>
#include <memory>

#include "libcore/bundle/runtime/error.h"

namespace pd_run {

struct FileBytes {
  std::shared_ptr<const void> data;
  size_t size = 0;
};

bool OpenFile(const char* path, FileBytes* bytes, Error* error);

/// Memory at a multiple of 64; null where there is none left.
std::shared_ptr<void> Allocate(size_t bytes);

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_FILE_BYTES_H_
