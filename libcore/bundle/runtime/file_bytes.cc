// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/file_bytes.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "libcore/bundle/runtime/bundle_format.h"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define PD_RUN_HAS_MMAP 1
#endif

namespace pd_run {

std::shared_ptr<void> Allocate(size_t bytes) {
  constexpr std::align_val_t kAt{kAlignment};
  void* memory = ::operator new(bytes + 1, kAt, std::nothrow);
  if (memory == nullptr) return nullptr;
  return {memory, [](void* p) { ::operator delete(p, kAt); }};
}

#ifdef PD_RUN_HAS_MMAP

bool OpenFile(const char* path, FileBytes* bytes, Error* error) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return error->Fail(PD_RUN_NO_FILE, "cannot open '%s': %s", path,
                       std::strerror(errno));
  struct stat about;
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode) ||
      about.st_size <= 0) {
    ::close(file);
    return error->Fail(PD_RUN_BAD_FILE, "'%s' is empty or no file", path);
  }
  const auto size = static_cast<size_t>(about.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int reason = errno;
  ::close(file);
  if (memory == MAP_FAILED)
    return error->Fail(PD_RUN_NO_FILE, "cannot map '%s': %s", path,
                       std::strerror(reason));
  bytes->data = {static_cast<const void*>(memory), [size](const void* p) {
                   ::munmap(const_cast<void*>(p), size);
                 }};
  bytes->size = size;
  return true;
}

#else

bool OpenFile(const char* path, FileBytes* bytes, Error* error) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path, "rb"), std::fclose);
  if (file == nullptr || std::fseek(file.get(), 0, SEEK_END) != 0)
    return error->Fail(PD_RUN_NO_FILE, "cannot open '%s'", path);
  const long size = std::ftell(file.get());
  std::rewind(file.get());
  if (size <= 0)
    return error->Fail(PD_RUN_BAD_FILE, "'%s' is empty or no file", path);
  const auto memory = Allocate(static_cast<size_t>(size));
  if (memory == nullptr)
    return error->Fail(PD_RUN_NO_MEMORY, "no memory for the %ld bytes of '%s'",
                       size, path);
  bytes->size = static_cast<size_t>(size);
  if (std::fread(memory.get(), 1, bytes->size, file.get()) != bytes->size)
    return error->Fail(PD_RUN_NO_FILE, "cannot read '%s'", path);
  bytes->data = memory;
  return true;
}

#endif

}  // namespace pd_run
