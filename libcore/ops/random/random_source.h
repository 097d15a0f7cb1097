// SPDX-License-Identifier: Apache-2.0
// Where a random op's numbers come from: element i is a function of (seed,
// output name, step, i). It does not depend on threads, nor on what was drawn
// before. Seed 0 is the run's seed; another one gives the same numbers in every
// step, as in PaddlePaddle.
#ifndef PD_LIBCORE_OPS_RANDOM_RANDOM_SOURCE_H_
#define PD_LIBCORE_OPS_RANDOM_RANDOM_SOURCE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "libcore/base/parallel.h"
#include "libcore/base/rng.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/computed.h"

namespace pd {

/// The seed and stream that give each op random numbers of its own.
struct RandomSource {
  uint64_t seed = 0;  ///< 0: the run's
  uint64_t stream = 0;

  Philox Numbers(const RunContext& run) const {
    if (seed != 0) return Philox(seed, stream);
    return Philox(run.seed, stream + run.step * 0x9E3779B97F4A7C15ull);
  }
};

/// The source for the variable in an output slot, with the attribute `seed`
/// where there is one.
inline RandomSource RandomSourceOf(const BindContext& context,
                                   absl::string_view slot = "Out") {
  const auto seed = context.op().AttrOr<int32_t>("seed", 0);
  return {static_cast<uint64_t>(static_cast<uint32_t>(seed)),
          StreamOf(context.op().Out(slot))};
}

/// Philox's numbers for those who ask for them in order: a block, and a pair of
/// normal numbers, is computed once.
class OrderedNumbers {
 public:
  explicit OrderedNumbers(const Philox& numbers) : numbers_(numbers) {}
  uint32_t U32(uint64_t i) {
    if (i >> 2 != at_) block_ = numbers_.Block(at_ = i >> 2);
    return block_[i & 3];
  }
  float Uniform(uint64_t i) { return Philox::ToUniform(U32(i)); }
  /// Philox::Normal.
  double Normal(uint64_t i) {
    if (i >> 1 != pair_at_) {
      pair_at_ = i >> 1;
      const Philox::Polar at = numbers_.NormalPair(pair_at_);
      pair_ = {at.radius * std::cos(at.angle), at.radius * std::sin(at.angle)};
    }
    return pair_[i & 1];
  }

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  const Philox& numbers_;
  uint64_t at_ = kNone, pair_at_ = kNone;
  std::array<uint32_t, 4> block_{};
  std::array<double, 2> pair_{};
};

/// The step that sets element i to f(numbers, i); where f takes them, they are
/// OrderedNumbers.
template <typename T, typename F>
Step RandomFillStep(Tensor* out, const RandomSource& source, const F& f) {
  constexpr int64_t kGrain = 2048;  // numbers per thread at least
  return [out, source, f, n = out->size()](const RunContext& run) {
    const Philox numbers = source.Numbers(run);
    T* result = out->data<T>();
    ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
      OrderedNumbers ordered(numbers);
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_invocable_v<const F&, OrderedNumbers&, int64_t>)
          result[i] = static_cast<T>(f(ordered, i));
        else
          result[i] = static_cast<T>(f(numbers, i));
      }
    });
    return absl::OkStatus();
  };
}

/// Number i, uniform in (0, 1).
template <typename Numbers>
double OpenUniform(Numbers& p, int64_t i) {
  return (p.U32(static_cast<uint64_t>(i)) + 0.5) * 0x1p-32;
}

/// A reader of the numbers of one element, whatever their count.
class ElementStream {
 public:
  ElementStream(const Philox& numbers, int64_t element)
      : numbers_(numbers), next_(static_cast<uint64_t>(element) << 24) {}
  /// Uniform in (0, 1).
  double Uniform() { return (numbers_.U32(next_++) + 0.5) * 0x1p-32; }
  double Normal() {
    const double radius = std::sqrt(-2.0 * std::log(Uniform()));
    return radius * std::cos(2.0 * M_PI * Uniform());
  }

 private:
  const Philox& numbers_;
  uint64_t next_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RANDOM_RANDOM_SOURCE_H_
