// SPDX-License-Identifier: Apache-2.0
// The libFuzzer program of all targets: --target=NAME is the one that it runs,
// --list prints their names. libFuzzer leaves options with two dashes to us.
#include <cstdio>

#include "absl/strings/strip.h"
#include "tests/fuzz/fuzz_target.h"

namespace {
const pd::fuzz::Target* chosen = nullptr;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const auto& targets = pd::fuzz::Targets();
  for (int i = 1; i < *argc; ++i) {
    absl::string_view option = (*argv)[i];
    if (option == "--list") {
      for (const auto& [name, target] : targets) std::puts(name.c_str());
      std::exit(0);
    }
    if (!absl::ConsumePrefix(&option, "--target=")) continue;
    const auto found = targets.find(std::string(option));
    if (found != targets.end()) chosen = &found->second;
  }
  if (chosen != nullptr) return 0;
  std::fputs("expected --target=NAME; --list prints the names\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (*chosen)(pd::fuzz::Borrow(data, size));
  return 0;
}
