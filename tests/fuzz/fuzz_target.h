// SPDX-License-Identifier: Apache-2.0
// One reader, given any bytes. Built with -DPD_FUZZ=ON a target is a libFuzzer
// program; otherwise all of them are in test_fuzz_replay, which gives each its
// corpus. Names are those of testdata/fuzz/<name>.
#ifndef PD_TESTS_FUZZ_FUZZ_TARGET_H_
#define PD_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "libcore/base/file.h"

namespace pd::fuzz {

using Target = void (*)(const FileBytes& file);

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

#ifdef PD_FUZZING
#define PD_FUZZ_TARGET(name)                                             \
  static void Fuzz_##name(const ::pd::FileBytes& file);                  \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) { \
    Fuzz_##name(::pd::fuzz::Borrow(data, n));                            \
    return 0;                                                            \
  }                                                                      \
  static void Fuzz_##name(const ::pd::FileBytes& file)
#else
#define PD_FUZZ_TARGET(name)                                    \
  static void Fuzz_##name(const ::pd::FileBytes& file);         \
  static const bool registered_##name =                         \
      ::pd::fuzz::Targets().emplace(#name, Fuzz_##name).second; \
  static void Fuzz_##name(const ::pd::FileBytes& file)
#endif

#endif  // PD_TESTS_FUZZ_FUZZ_TARGET_H_
