// SPDX-License-Identifier: Apache-2.0
// Which records make up which batch: the samplers of paddle.io, and batches of
// records of similar length. The order of an epoch is a function of (seed,
// epoch) alone, so a run can start again at any batch of any epoch.
#ifndef PD_LIBCORE_DATA_SAMPLER_H_
#define PD_LIBCORE_DATA_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace pd {

struct SamplerOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;  ///< leave out a last batch that is not full
  uint64_t seed = 0;

  bool replacement = false;  ///< random: a record may come more than once
  int64_t num_samples = 0;  ///< records an epoch draws; 0: as many as there are
  /// One per record, not all 0: records are drawn in proportion, with
  /// replacement or without.
  std::vector<double> weights = {};

  /// Batches of batch_size / per_class classes, per_class records of each side
  /// by side; 0: no such batches. `classes` has the class of each record.
  int64_t per_class = 0;
  std::vector<int64_t> classes = {};

  /// paddle.io.DistributedBatchSampler: this process takes every
  /// `num_replicas`-th batch; the first records come again where the number
  /// does not divide.
  int64_t num_replicas = 1, rank = 0;

  /// One per record: batches hold records of similar length.
  std::vector<int64_t> lengths = {};
  /// Ascending: batches hold records between two neighbours. Empty: the records
  /// of `pool` batches are sorted.
  std::vector<int64_t> boundaries = {};
  int64_t pool = 100;

  /// Record i of each batch goes on where record i of the batch before ended:
  /// the data is cut into batch_size pieces, read side by side.
  bool contiguous = false;
};

class Sampler {
 public:
  /// `records` below 2^32, options that pass Check.
  Sampler(int64_t records, const SamplerOptions& options);

  /// InvalidArgument on numbers out of range and on what does not go together.
  static absl::Status Check(int64_t records, const SamplerOptions& options);

  /// Batches of an epoch.
  int64_t batches() const { return batches_; }

  /// Computes the order of `epoch`: a Fisher-Yates shuffle, or draws, on Philox
  /// numbers of (seed, epoch).
  void StartEpoch(int64_t epoch);

  /// Records in batch `batch`, [0, batches()): batch_size, fewer in the last.
  int64_t BatchRecords(int64_t batch) const;

  /// Record number of place `i` of `batch`.
  int64_t Record(int64_t batch, int64_t i) const {
    const int64_t place = Begin(batch) + i;
    return ordered_ ? static_cast<int64_t>(order_[static_cast<size_t>(place)])
                    : place;
  }

 private:
  int64_t Begin(int64_t batch) const {
    return begins_.empty() ? batch * options_.batch_size
                           : begins_[static_cast<size_t>(batch)];
  }
  void Draw(int64_t epoch);
  void DrawWeighted(int64_t epoch);
  void DrawClasses(int64_t epoch);
  void Distribute();
  void Interleave();
  void FillBuckets();
  void SortPools(int64_t epoch);

  int64_t records_;
  SamplerOptions options_;
  int64_t drawn_ = 0;    // records of an epoch, of all processes
  int64_t samples_ = 0;  // of this one
  int64_t batches_ = 0;
  bool ordered_ = false;  // order_ says which record; else they count up
  std::vector<std::vector<uint32_t>> by_class_;  // where per_class is set
  std::vector<uint32_t> order_;
  std::vector<int64_t> begins_;  // of batches whose size is not batch_size
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_SAMPLER_H_
