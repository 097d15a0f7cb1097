// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/headroom.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
constexpr size_t kUsualStack = 8 * kMegabyte;

// The smaller of the limits of addresses and of writable memory.
rlim_t Limit() {
  rlim_t least = RLIM_INFINITY;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    struct rlimit limit;
    if (::getrlimit(resource, &limit) == 0)
      least = std::min(least, limit.rlim_cur);
  }
  return least;
}

size_t StackBytes() {
  struct rlimit limit;
  const bool known =
      ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? static_cast<size_t>(limit.rlim_cur) : kUsualStack;
}

}  // namespace

bool HasMemoryLimit() {
  static const bool limited = Limit() != RLIM_INFINITY;
  return limited;
}

absl::Status CheckHeadroom(size_t bytes, absl::string_view what) {
  if (!HasMemoryLimit()) return absl::OkStatus();
  // Never touched, so it costs addresses and no memory.
  void* probe = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe != MAP_FAILED) {
    ::munmap(probe, bytes);
    return absl::OkStatus();
  }
  return ResourceExhausted(
      "out of memory: this process is limited to %d MB (ulimit -v), which "
      "leaves less than the %d MB for %s",
      Limit() / kMegabyte, bytes / kMegabyte, what);
}

absl::Status PrepareForMemoryLimit() {
  if (!HasMemoryLimit()) return absl::OkStatus();
  ::mallopt(M_ARENA_MAX, 1);
  const auto threads = static_cast<size_t>(Threads());
  PD_RETURN_IF_ERROR(
      CheckHeadroom(threads * StackBytes() + kKernelHeadroom,
                    absl::StrCat("the stacks of ", threads, " threads")));
  ParallelParts([](int, int) {});
  return absl::OkStatus();
}

}  // namespace pd
