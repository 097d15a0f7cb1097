// SPDX-License-Identifier: Apache-2.0
// A fuzz target is one reader, given any bytes. Built with -DPD_FUZZ=ON the
// targets are one libFuzzer program, fuzz_readers, that runs the one which
// --target names; otherwise they are in test_fuzz_replay, which gives each its
// corpus. Names are those of testdata/fuzz/<name>.
#ifndef PD_TESTS_FUZZ_FUZZ_TARGET_H_
#define PD_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "libcore/base/file.h"

namespace pd::fuzz {

using Target = std::function<void(const FileBytes& file)>;

/// The targets of this program by name.
inline std::map<std::string, Target>& Targets() {
  static auto* targets = new std::map<std::string, Target>;
  return *targets;
}

/// Bytes that somebody else owns, as a file.
inline FileBytes Borrow(const uint8_t* data, size_t size) {
  FileBytes file;
  file.data = std::shared_ptr<const std::byte>(
      reinterpret_cast<const std::byte*>(data), [](const std::byte*) {});
  file.size = size;
  return file;
}

/// Aborts unless `condition` holds, as it must for all bytes.
inline void Check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace pd::fuzz

#define PD_FUZZ_TARGET(name)                                    \
  static void Fuzz_##name(const ::pd::FileBytes& file);         \
  static const bool registered_##name =                         \
      ::pd::fuzz::Targets().emplace(#name, Fuzz_##name).second; \
  static void Fuzz_##name(const ::pd::FileBytes& file)

#endif  // PD_TESTS_FUZZ_FUZZ_TARGET_H_
