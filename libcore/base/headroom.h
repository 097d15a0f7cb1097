// SPDX-License-Identifier: Apache-2.0
// Room for what other libraries take from a process whose memory is limited
// (`ulimit -v`, `ulimit -d`). Where they find none, libgomp ends the process,
// and oneDNN writes code to a null pointer or throws on a thread where nobody
// can catch it; so they are asked only while there is room.
#ifndef PD_LIBCORE_BASE_HEADROOM_H_
#define PD_LIBCORE_BASE_HEADROOM_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pd {

/// The most memory that compiling one kernel takes, or running one that
/// compiles parts of itself.
inline constexpr size_t kKernelHeadroom = size_t{16} << 20;

/// True where the system limits this process's addresses or writable memory.
bool HasMemoryLimit();

/// ResourceExhausted where the process is limited and `bytes` more for `what`
/// ("the stacks of 4 threads") would be beyond the limit. Costs nothing where
/// there is no limit, two system calls where there is one.
absl::Status CheckHeadroom(size_t bytes, absl::string_view what);

/// For a limited process: starts the compute threads while there is room for
/// their stacks, and has all threads share one heap, of which each would
/// reserve 64 MB else. ResourceExhausted where even that is too much.
absl::Status PrepareForMemoryLimit();

}  // namespace pd

#endif  // PD_LIBCORE_BASE_HEADROOM_H_
