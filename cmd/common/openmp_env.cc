// SPDX-License-Identifier: Apache-2.0
// Setup to run before libgomp and libpd.so start. Linked into every tool,
// never into the library.
//
// 1. The tree is built for AVX2 and FMA. On an older CPU the first such
//    instruction would be a crash, so a function in .preinit_array, which the
//    loader calls before any library's constructor, says so and exits 3. This
//    file is compiled for plain x86-64.
//
// 2. GNU OpenMP lets a waiting thread spin 300,000 rounds, milliseconds, before
//    it sleeps. With other busy processes on the machine a step then becomes
//    tens of times slower, since the spinning thread holds the core that its
//    partner needs. 3000 rounds bridge the gaps inside a step (same speed when
//    alone; with 1000, Wide & Deep takes a fifth longer, MobileNetV2 7 %) and
//    slow down in proportion otherwise. libgomp reads the number
//    once, by getenv in its constructor. A setenv from .preinit_array does not
//    reach it: the C library's own constructor comes later and sets `environ`
//    anew. Starting the program again by exec would cost the loading twice. So
//    the executable defines getenv, which the loader binds libgomp to, and it
//    answers for that one name where the user said nothing. Child processes do
//    not inherit it.
#include <cstring>

#include <unistd.h>

namespace {

constexpr char kSpinRounds[] = "3000";

const char* Lookup(const char* name) {
  const size_t length = std::strlen(name);
  // Null until the C library has started.
  if (environ == nullptr) return nullptr;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
      return *entry + length + 1;
  return nullptr;
}

void CheckCpu() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return;
  static constexpr char kMessage[] =
      "pdkit: error: UnavailableError: this CPU has no AVX2 and FMA "
      "instructions; expected an x86-64 CPU of 2013 (Haswell) or later\n";
  // Nothing is left to do when even this cannot be written.
  if (write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) < 0) _exit(3);
  _exit(3);
}

using Function = void (*)();
[[maybe_unused, gnu::section(".preinit_array"),
  gnu::used]] const Function kBeforeConstructors = CheckCpu;

}  // namespace

// Exported from the executable, so that libraries find this one first.
extern "C" [[gnu::visibility("default"), gnu::used]] char* getenv(
    const char* name) noexcept {
  const char* value = Lookup(name);
  if (value == nullptr && std::strcmp(name, "GOMP_SPINCOUNT") == 0 &&
      Lookup("OMP_WAIT_POLICY") == nullptr)
    value = kSpinRounds;
  return const_cast<char*>(value);
}
