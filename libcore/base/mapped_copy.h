// SPDX-License-Identifier: Apache-2.0
// Bytes of mapped files without the memory for them: from a mapped file
// straight into another one (the kernel moves the pages, so they are neither
// faulted in nor copied through this process), and pages given back once they
// were read.
#ifndef PD_LIBCORE_BASE_MAPPED_COPY_H_
#define PD_LIBCORE_BASE_MAPPED_COPY_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace pd {

/// Remembers that `size` bytes at `data` are those of the open file `fd`, until
/// ForgetMapping. Takes a descriptor of its own, of which few are held: small
/// files and those beyond the number are not remembered.
void RememberMapping(const void* data, size_t size, int fd);
void ForgetMapping(const void* data);

/// Appends what it can of `bytes` to the open file `fd`, when they lie in a
/// mapping; the count of bytes that were taken, 0 when the system or the
/// file systems do not do that.
size_t CopyFromMapping(absl::string_view bytes, int fd);

/// Gives the memory of `bytes` back to the system, when they lie in a
/// remembered mapping; whoever reads them again reads the file again.
void ReleaseMapped(absl::string_view bytes);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_MAPPED_COPY_H_
