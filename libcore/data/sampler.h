// SPDX-License-Identifier: Apache-2.0
// Which records make up which batch. The order of an epoch is a function of
// (seed, epoch) alone, so a run can start again at any batch of any epoch.
#ifndef PD_LIBCORE_DATA_SAMPLER_H_
#define PD_LIBCORE_DATA_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pd {

struct SamplerOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;  ///< leave out a last batch that is not full
  uint64_t seed = 0;
};

class Sampler {
 public:
  /// `records` below 2^32, batch_size at least 1.
  Sampler(int64_t records, const SamplerOptions& options);

  /// Batches of an epoch.
  int64_t batches() const { return batches_; }

  /// Computes the order of `epoch`: a Fisher-Yates shuffle on Philox numbers
  /// of (seed, epoch).
  void StartEpoch(int64_t epoch);

  /// Records in batch `batch`, [0, batches()): batch_size, fewer in the last.
  int64_t BatchRecords(int64_t batch) const;

  /// Record number of place `i` of `batch`.
  int64_t Record(int64_t batch, int64_t i) const {
    const int64_t place = batch * options_.batch_size + i;
    return options_.shuffle
               ? static_cast<int64_t>(order_[static_cast<size_t>(place)])
               : place;
  }

 private:
  int64_t records_;
  SamplerOptions options_;
  int64_t batches_;
  std::vector<uint32_t> order_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_SAMPLER_H_
