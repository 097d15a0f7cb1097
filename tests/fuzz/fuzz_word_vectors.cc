// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "formats/word_vectors.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(word_vectors) {
  const auto size = pd::WordVectorSize(file.view());
  if (!size.ok() || *size > 4096) return;
  std::vector<float> numbers(static_cast<size_t>(*size));
  int64_t words = 0;
  const auto read = pd::ReadWordVectors(
      file.view(), *size, [&](absl::string_view word) -> float* {
        pd::fuzz::Check(!word.empty());
        return ++words % 2 == 0 ? numbers.data() : nullptr;
      });
  pd::fuzz::Check(!read.ok() || *read == words);
}
