// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/mapped_copy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

namespace pd {
namespace {

constexpr size_t kSmallest = size_t{1} << 20;
constexpr size_t kMostFiles = 32;

struct Mapping {
  size_t size = 0;
  int fd = -1;
};

struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, Mapping> by_start;
};

Mappings& All() {
  static auto* mappings = new Mappings;
  return *mappings;
}

uintptr_t Address(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

}  // namespace

void RememberMapping(const void* data, size_t size, int fd) {
  if (size < kSmallest) return;
  Mappings& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.by_start.size() >= kMostFiles) return;
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own >= 0) all.by_start[Address(data)] = {size, own};
}

void ForgetMapping(const void* data) {
  Mappings& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_start.find(Address(data));
  if (found == all.by_start.end()) return;
  ::close(found->second.fd);
  all.by_start.erase(found);
}

namespace {

struct Place {
  int fd = -1;  // open as long as the caller holds the bytes; -1: in no mapping
  off_t offset = 0;
};

Place PlaceOf(absl::string_view bytes) {
  const uintptr_t address = Address(bytes.data());
  Mappings& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  auto next = all.by_start.upper_bound(address);
  if (next == all.by_start.begin()) return {};
  const auto& [start, mapping] = *std::prev(next);
  if (address - start > mapping.size ||
      bytes.size() > mapping.size - (address - start))
    return {};
  return {mapping.fd, static_cast<off_t>(address - start)};
}

}  // namespace

size_t CopyFromMapping(absl::string_view bytes, int fd) {
  Place from = PlaceOf(bytes);
  if (from.fd < 0) return 0;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::copy_file_range(from.fd, &from.offset, fd, nullptr,
                                        bytes.size() - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void ReleaseMapped(absl::string_view bytes) {
  if (PlaceOf(bytes).fd < 0) return;
  // Whole pages; of those at the ends, neighbours are read again if need be.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = Address(bytes.data()) / page * page;
  const uintptr_t end = Address(bytes.data()) + bytes.size();
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace pd
