// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// The 64-bit numbers of an epoch, two from each block of Philox.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t stream) : philox_(seed, stream) {}
  uint64_t Next() {
    if (drawn_ % 2 == 0) block_ = philox_.Block(drawn_ / 2);
    const size_t half = (drawn_++ % 2) * 2;
    return (uint64_t{block_[half]} << 32) | block_[half + 1];
  }
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >>
                                 64);
  }
  // (0, 1], 53 bits.
  double Unit() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }

 private:
  Philox philox_;
  std::array<uint32_t, 4> block_ = {};
  uint64_t drawn_ = 0;
};

template <typename T>
void Shuffle(Draws* draws, T* values, size_t count) {
  for (size_t n = count; n > 1; --n)
    std::swap(values[n - 1], values[draws->Below(n)]);
}

constexpr uint64_t kOrder = StreamOf("data.order");
constexpr uint64_t kPools = StreamOf("data.pools");
constexpr uint64_t kClasses = StreamOf("data.classes");

// Which bucket a length falls into: those below boundaries[0], then from each
// boundary to the next.
size_t BucketOf(const std::vector<int64_t>& boundaries, int64_t length) {
  return static_cast<size_t>(
      std::upper_bound(boundaries.begin(), boundaries.end(), length) -
      boundaries.begin());
}

absl::Status CheckWeights(int64_t records, const SamplerOptions& options) {
  if (options.weights.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(options.weights.size()) != records)
    return InvalidArgument("there are %d weights for %d records",
                           options.weights.size(), records);
  int64_t drawable = 0;
  for (double weight : options.weights) {
    if (!(weight >= 0) || std::isinf(weight))
      return InvalidArgument("a weight is %g; expected 0 or more", weight);
    drawable += weight > 0;
  }
  if (drawable == 0) return InvalidArgument("every weight is 0");
  const int64_t wanted =
      options.num_samples > 0 ? options.num_samples : records;
  if (!options.replacement && wanted > drawable)
    return InvalidArgument(
        "%d records cannot be drawn without replacement: %d have a weight "
        "above 0",
        wanted, drawable);
  return absl::OkStatus();
}

absl::Status CheckPerClass(int64_t records, const SamplerOptions& options) {
  if (options.per_class == 0) return absl::OkStatus();
  if (options.per_class < 1 || options.batch_size % options.per_class != 0)
    return InvalidArgument(
        "batches of %d records cannot hold %d records of each of their "
        "classes; expected a multiple of %d",
        options.batch_size, options.per_class, options.per_class);
  if (options.shuffle || options.replacement || !options.weights.empty() ||
      options.contiguous || options.num_replicas > 1 ||
      !options.lengths.empty())
    return InvalidArgument(
        "batches by classes go with no other shuffling, sampling or bucketing");
  if (static_cast<int64_t>(options.classes.size()) != records)
    return InvalidArgument("there are %d classes for %d records",
                           options.classes.size(), records);
  const auto count = static_cast<int64_t>(
      std::set<int64_t>(options.classes.begin(), options.classes.end()).size());
  const int64_t wanted = options.batch_size / options.per_class;
  if (wanted > count)
    return InvalidArgument(
        "a batch of %d records, %d of each class, holds %d classes; the data "
        "has %d",
        options.batch_size, options.per_class, wanted, count);
  const int64_t drawn = options.num_samples > 0 ? options.num_samples : records;
  if (drawn < options.batch_size)
    return InvalidArgument(
        "an epoch of %d records holds no whole batch of %d, and batches by "
        "classes are whole",
        drawn, options.batch_size);
  return absl::OkStatus();
}

}  // namespace

absl::Status Sampler::Check(int64_t records, const SamplerOptions& options) {
  const bool drawn = options.replacement || !options.weights.empty();
  if (options.num_samples < 0 || options.num_samples >= int64_t{1} << 32)
    return InvalidArgument("num_samples is %d; expected 1 to %d",
                           options.num_samples, (int64_t{1} << 32) - 1);
  PD_RETURN_IF_ERROR(CheckPerClass(records, options));
  if (options.num_samples > records && !options.replacement &&
      options.per_class == 0)
    return InvalidArgument(
        "num_samples is %d without replacement; the data set holds %d records",
        options.num_samples, records);
  PD_RETURN_IF_ERROR(CheckWeights(records, options));
  if (options.num_replicas < 1 || options.rank < 0 ||
      options.rank >= options.num_replicas)
    return InvalidArgument("rank is %d of %d processes; expected 0 to %d",
                           options.rank, options.num_replicas,
                           options.num_replicas - 1);
  if (options.contiguous &&
      (drawn || options.shuffle || options.num_samples > 0 ||
       options.num_replicas > 1 || !options.lengths.empty()))
    return InvalidArgument(
        "contiguous batches follow the order of the data: they go with no "
        "shuffling, sampling or bucketing");
  if (options.contiguous && records < options.batch_size)
    return InvalidArgument(
        "%d records cannot be cut into %d pieces for contiguous batches",
        records, options.batch_size);
  if (!options.boundaries.empty() && (drawn || options.num_replicas > 1))
    return InvalidArgument(
        "buckets with boundaries give every record once to one process; leave "
        "the boundaries out to sort pools of drawn records");
  return absl::OkStatus();
}

Sampler::Sampler(int64_t records, const SamplerOptions& options)
    : records_(records), options_(options) {
  drawn_ = options.num_samples > 0 ? options.num_samples : records;
  samples_ = (drawn_ + options.num_replicas - 1) /
             std::max<int64_t>(1, options.num_replicas);
  batches_ = samples_ / options.batch_size;
  if (!options.drop_last && samples_ % options.batch_size != 0) ++batches_;
  if (options.contiguous) batches_ = records / options.batch_size;
  if (options.per_class > 0) {
    batches_ = drawn_ / options.batch_size;
    samples_ = batches_ * options.batch_size;
    std::map<int64_t, std::vector<uint32_t>> by_class;
    for (size_t i = 0; i < options.classes.size(); ++i)
      by_class[options.classes[i]].push_back(static_cast<uint32_t>(i));
    for (auto& [number, of_class] : by_class)
      by_class_.push_back(std::move(of_class));
    options_.classes.clear();
  }
  ordered_ = options.shuffle || options.replacement ||
             !options.weights.empty() || options.num_replicas > 1 ||
             options.contiguous || !options.lengths.empty() ||
             options.per_class > 0;
  // The number of batches is known before the first epoch begins.
  if (!options.lengths.empty() && !options.boundaries.empty()) StartEpoch(0);
}

void Sampler::StartEpoch(int64_t epoch) {
  if (!ordered_) return;
  if (options_.contiguous) return Interleave();
  if (options_.per_class > 0) return DrawClasses(epoch);
  if (options_.weights.empty()) {
    Draw(epoch);
  } else {
    DrawWeighted(epoch);
  }
  if (options_.num_replicas > 1) Distribute();
  if (options_.lengths.empty()) return;
  if (options_.boundaries.empty()) {
    SortPools(epoch);
  } else {
    FillBuckets();
  }
}

// A permutation, or draws with replacement; the first drawn_ of them.
void Sampler::Draw(int64_t epoch) {
  Draws draws(options_.seed, kOrder + static_cast<uint64_t>(epoch));
  if (options_.replacement) {
    order_.resize(static_cast<size_t>(drawn_));
    for (uint32_t& record : order_)
      record =
          static_cast<uint32_t>(draws.Below(static_cast<uint64_t>(records_)));
    return;
  }
  order_.resize(static_cast<size_t>(records_));
  std::iota(order_.begin(), order_.end(), 0u);
  if (options_.shuffle) Shuffle(&draws, order_.data(), order_.size());
  order_.resize(static_cast<size_t>(drawn_));
}

// With replacement by the distribution's inverse. Without, by exponential
// clocks of rate w: the order in which they ring is that of drawing one after
// the other (Efraimidis and Spirakis, 2006).
void Sampler::DrawWeighted(int64_t epoch) {
  Draws draws(options_.seed, kOrder + static_cast<uint64_t>(epoch));
  const std::vector<double>& weights = options_.weights;
  order_.resize(static_cast<size_t>(drawn_));
  if (options_.replacement) {
    std::vector<double> sums(weights.size());
    std::partial_sum(weights.begin(), weights.end(), sums.begin());
    for (uint32_t& record : order_) {
      const double at = draws.Unit() * sums.back();
      record = static_cast<uint32_t>(
          std::lower_bound(sums.begin(), sums.end(), at) - sums.begin());
    }
    return;
  }
  std::vector<std::pair<double, uint32_t>> rings;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double wait = -std::log(draws.Unit());
    if (weights[i] > 0)
      rings.emplace_back(wait / weights[i], static_cast<uint32_t>(i));
  }
  std::sort(rings.begin(), rings.end());
  for (size_t i = 0; i < order_.size(); ++i) order_[i] = rings[i].second;
}

// Batch by batch a new choice of classes. Each class hands out its records in a
// shuffled order; where the rest does not suffice for a batch it is shuffled
// anew, so that a batch holds no record twice while the class has enough.
void Sampler::DrawClasses(int64_t epoch) {
  Draws draws(options_.seed, kClasses + static_cast<uint64_t>(epoch));
  const auto each = static_cast<size_t>(options_.per_class);
  const size_t chosen = static_cast<size_t>(options_.batch_size) / each;
  // The order of an epoch owes nothing to the epochs before.
  std::vector<std::vector<uint32_t>> orders = by_class_;
  std::vector<size_t> next(orders.size());
  for (size_t c = 0; c < orders.size(); ++c) next[c] = orders[c].size();
  std::vector<size_t> classes(orders.size());
  std::iota(classes.begin(), classes.end(), size_t{0});
  order_.clear();
  for (int64_t batch = 0; batch < batches_; ++batch) {
    for (size_t i = 0; i < chosen; ++i) {
      std::swap(classes[i], classes[i + draws.Below(classes.size() - i)]);
      std::vector<uint32_t>& order = orders[classes[i]];
      size_t& at = next[classes[i]];
      for (size_t n = 0; n < each; ++n) {
        const bool starts = n == 0 && order.size() - at < each;
        if (starts || at == order.size()) {
          Shuffle(&draws, order.data(), order.size());
          at = 0;
        }
        order_.push_back(order[at++]);
      }
    }
  }
}

// Rank r takes batches r, r + n, ...; what is left behind the last full round
// of batches is shared out in equal parts.
void Sampler::Distribute() {
  const int64_t n = options_.num_replicas, batch = options_.batch_size;
  const size_t drawn = order_.size();
  const int64_t total = samples_ * n;
  for (size_t i = 0; static_cast<int64_t>(order_.size()) < total; ++i)
    order_.push_back(order_[i % drawn]);
  std::vector<uint32_t> mine;
  mine.reserve(static_cast<size_t>(samples_));
  const auto take = [&](int64_t begin, int64_t count) {
    mine.insert(mine.end(), order_.begin() + begin,
                order_.begin() + begin + count);
  };
  const int64_t rest = total % (batch * n);
  for (int64_t at = options_.rank * batch; at < total - rest; at += batch * n)
    take(at, batch);
  take(total - rest + options_.rank * (rest / n), rest / n);
  order_ = std::move(mine);
}

void Sampler::Interleave() {
  order_.resize(static_cast<size_t>(batches_ * options_.batch_size));
  size_t place = 0;
  for (int64_t batch = 0; batch < batches_; ++batch)
    for (int64_t i = 0; i < options_.batch_size; ++i)
      order_[place++] = static_cast<uint32_t>(i * batches_ + batch);
}

// Records go to their buckets in their order; a full bucket is a batch. What is
// left in them at the end makes smaller batches, shortest first.
void Sampler::FillBuckets() {
  std::vector<std::vector<uint32_t>> buckets(options_.boundaries.size() + 1);
  std::vector<uint32_t> order;
  order.reserve(order_.size());
  begins_.clear();
  const auto emit = [&](std::vector<uint32_t>* bucket) {
    begins_.push_back(static_cast<int64_t>(order.size()));
    order.insert(order.end(), bucket->begin(), bucket->end());
    bucket->clear();
  };
  for (uint32_t record : order_) {
    std::vector<uint32_t>& bucket =
        buckets[BucketOf(options_.boundaries, options_.lengths[record])];
    bucket.push_back(record);
    if (static_cast<int64_t>(bucket.size()) == options_.batch_size)
      emit(&bucket);
  }
  for (std::vector<uint32_t>& bucket : buckets)
    if (!bucket.empty() && !options_.drop_last) emit(&bucket);
  batches_ = static_cast<int64_t>(begins_.size());
  samples_ = static_cast<int64_t>(order.size());
  order_ = std::move(order);
}

// Sorts the records of each pool by length; where the order is random, the
// pool's batches then change places, all but one that is not full.
void Sampler::SortPools(int64_t epoch) {
  Draws draws(options_.seed, kPools + static_cast<uint64_t>(epoch));
  const size_t batch = static_cast<size_t>(options_.batch_size);
  const size_t pool = batch * static_cast<size_t>(options_.pool);
  const bool random =
      options_.shuffle || options_.replacement || !options_.weights.empty();
  std::vector<uint32_t> sorted;
  for (size_t begin = 0; begin < order_.size(); begin += pool) {
    const size_t count = std::min(pool, order_.size() - begin);
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = first + static_cast<std::ptrdiff_t>(count);
    std::stable_sort(first, last, [this](uint32_t a, uint32_t b) {
      return options_.lengths[a] < options_.lengths[b];
    });
    if (!random) continue;
    std::vector<size_t> full(count / batch);
    std::iota(full.begin(), full.end(), size_t{0});
    Shuffle(&draws, full.data(), full.size());
    sorted.assign(first, last);
    for (size_t i = 0; i < full.size(); ++i)
      std::copy_n(sorted.begin() + static_cast<std::ptrdiff_t>(full[i] * batch),
                  batch, first + static_cast<std::ptrdiff_t>(i * batch));
  }
}

int64_t Sampler::BatchRecords(int64_t batch) const {
  if (begins_.empty())
    return std::min(options_.batch_size,
                    samples_ - batch * options_.batch_size);
  return (batch + 1 < batches_ ? begins_[static_cast<size_t>(batch) + 1]
                               : samples_) -
         begins_[static_cast<size_t>(batch)];
}

}  // namespace pd
