// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/sampler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "libcore/base/rng.h"

namespace pd {

Sampler::Sampler(int64_t records, const SamplerOptions& options)
    : records_(records), options_(options) {
  batches_ = records / options.batch_size;
  if (!options.drop_last && records % options.batch_size != 0) ++batches_;
  if (options.shuffle) order_.resize(static_cast<size_t>(records));
}

void Sampler::StartEpoch(int64_t epoch) {
  if (!options_.shuffle) return;
  std::iota(order_.begin(), order_.end(), 0u);
  constexpr uint64_t kPurpose = StreamOf("data.order");
  const Philox philox(options_.seed, kPurpose + static_cast<uint64_t>(epoch));
  // Each block of Philox gives the 64-bit numbers of two exchanges.
  std::array<uint32_t, 4> block = {};
  uint64_t drawn = 0;
  for (uint64_t n = order_.size(); n > 1; --n, ++drawn) {
    if (drawn % 2 == 0) block = philox.Block(drawn / 2);
    const size_t half = (drawn % 2) * 2;
    const uint64_t wide = (uint64_t{block[half]} << 32) | block[half + 1];
    const auto other =
        static_cast<size_t>((static_cast<unsigned __int128>(wide) * n) >> 64);
    std::swap(order_[n - 1], order_[other]);
  }
}

int64_t Sampler::BatchRecords(int64_t batch) const {
  return std::min(options_.batch_size, records_ - batch * options_.batch_size);
}

}  // namespace pd
