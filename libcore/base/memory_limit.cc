// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> g_limit{0};  // 0: not set
std::atomic<int64_t> g_in_use{0};

// The number in a file of a cgroup; "max", no file, no number: no limit.
int64_t LimitIn(const std::string& path) {
  std::ifstream file(path);
  int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : kNoLimit;
}

// The least limit of a cgroup and those around it, below a mounted `root`.
int64_t LimitOfTree(const std::string& root, std::string path,
                    const std::string& file) {
  int64_t least = kNoLimit;
  while (true) {
    least = std::min(least, LimitIn(absl::StrCat(root, path, "/", file)));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

int64_t CgroupLimit() {
  // In a container the process's group is mounted as the root itself.
  int64_t least =
      std::min(LimitIn("/sys/fs/cgroup/memory.max"),
               LimitIn("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // number:controllers:path; version 2 names no controllers.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty())
      least = std::min(least,
                       LimitOfTree("/sys/fs/cgroup", parts[2], "memory.max"));
    else if (absl::StrContains(parts[1], "memory"))
      least = std::min(least, LimitOfTree("/sys/fs/cgroup/memory", parts[2],
                                          "memory.limit_in_bytes"));
  }
  return least;
}

absl::Status TooMuch(int64_t bytes, int64_t in_use) {
  return ResourceExhausted(
      "%s are needed%s; the limit is %s (see --memory-limit)",
      MemoryText(bytes),
      in_use > 0 ? absl::StrCat(" beside ", MemoryText(in_use), " in use") : "",
      MemoryText(MemoryLimit()));
}

}  // namespace

int64_t MachineMemory() {
  int64_t bytes = kNoLimit;
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) bytes = pages * page;
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    bytes = static_cast<int64_t>(
        std::min<uint64_t>(static_cast<uint64_t>(bytes), space.rlim_cur));
  return std::min(bytes, CgroupLimit());
}

int64_t MemoryLimit() {
  int64_t limit = g_limit.load(std::memory_order_relaxed);
  if (limit == 0) {
    limit = MachineMemory();
    g_limit.store(limit, std::memory_order_relaxed);
  }
  return limit;
}

void SetMemoryLimit(int64_t bytes) { g_limit.store(bytes); }

int64_t MemoryInUse() { return g_in_use.load(std::memory_order_relaxed); }

absl::Status CheckMemory(int64_t bytes) {
  return bytes <= MemoryLimit() ? absl::OkStatus() : TooMuch(bytes, 0);
}

absl::Status CheckTensorSize(DType dtype, const Shape& shape) {
  PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(dtype)).status());
  PD_ASSIGN_OR_RETURN(const int64_t bytes,
                      BytesOfExtents(shape, SizeOf(dtype)));
  const absl::Status fits = CheckMemory(bytes);
  if (fits.ok()) return fits;  // the text would cost more than the check
  return Annotate(
      fits, absl::StrCat("a tensor of ", Name(dtype), " ", ToString(shape)));
}

absl::Status ReserveMemory(int64_t bytes) {
  const int64_t limit = MemoryLimit();
  const int64_t before = g_in_use.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes <= limit && before <= limit - bytes) return absl::OkStatus();
  g_in_use.fetch_sub(bytes, std::memory_order_relaxed);
  return TooMuch(bytes, before);
}

void ReleaseMemory(int64_t bytes) {
  g_in_use.fetch_sub(bytes, std::memory_order_relaxed);
}

std::string MemoryText(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " bytes");
  static constexpr const char* kUnits[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  return absl::StrFormat("%.1f %s", size, kUnits[unit]);
}

}  // namespace pd
