// SPDX-License-Identifier: Apache-2.0
#include "libcore/tensor/tensor_stats.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/half.h"
#include "libcore/base/parallel.h"

namespace pd {
namespace {

// Elements are summed in chunks of this many and the chunks in their order, so
// that threads do not show.
constexpr int64_t kChunk = 1 << 16;
constexpr int64_t kChunksPerThread = 4;

// The type that an element is computed in.
template <typename T>
using Wide = std::conditional_t<
    std::is_same_v<T, int64_t> || std::is_same_v<T, double>, T,
    std::conditional_t<std::is_integral_v<T>, int32_t, float>>;

// Vectors of the compiler's, as wide as the machine's: wider ones would go
// through memory. Every operation goes lane by lane.
constexpr size_t kVectorBytes = 32;
template <typename T, size_t kLanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * kLanes)));
};
template <typename W>
constexpr size_t kLanes = kVectorBytes / sizeof(W);
template <typename W>
using Vector = typename VectorOf<W, kLanes<W>>::type;
// A comparison of vectors of W gives one of these: all bits or none.
template <typename W>
using Mask = Vector<std::conditional_t<sizeof(W) == 4, int32_t, int64_t>>;
using Doubles = VectorOf<double, 4>::type;

// The elements at any address, widened.
template <typename T>
void Load(const std::byte* from, Vector<Wide<T>>* out) {
  constexpr size_t kCount = kLanes<Wide<T>>;
  if constexpr (std::is_same_v<T, BFloat16>) {
    typename VectorOf<uint16_t, kCount>::type bits;
    std::memcpy(&bits, from, sizeof(bits));
    const auto wide = __builtin_convertvector(bits, Vector<uint32_t>) << 16;
    std::memcpy(out, &wide, sizeof(wide));
  } else if constexpr (std::is_same_v<T, Float16>) {
    const __m256 wide = _mm256_cvtph_ps(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    std::memcpy(out, &wide, sizeof(wide));
  } else {
    typename VectorOf<T, kCount>::type values;
    std::memcpy(&values, from, sizeof(values));
    *out = __builtin_convertvector(values, Vector<Wide<T>>);
  }
}

template <typename W>
struct Part {
  W min = std::numeric_limits<W>::max();
  W max = std::numeric_limits<W>::lowest();
  double sum = 0;
  int64_t nan = 0, finite = 0;

  void Add(const Part& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    sum += other.sum;
    nan += other.nan;
    finite += other.finite;
  }
};

// Each lane its own minimum, sum and so on; `Take` is the loop's body.
template <typename W>
class LaneParts {
 public:
  explicit LaneParts(double scale) : scale_(scale) {
    min_ = Vector<W>{} + std::numeric_limits<W>::max();
    max_ = Vector<W>{} + std::numeric_limits<W>::lowest();
  }

  /// Lanes without a bit in `valid` do not count.
  void Take(const Vector<W>& x, const Mask<W>& valid) {
    Mask<W> finite = valid;
    if constexpr (std::is_floating_point_v<W>) {
      nan_ -= (x != x) & valid;
      finite &= (x - x) == 0;  // NaN for NaN and the infinities
    }
    finite_ -= finite;
    const Mask<W> less = (x < min_) & finite, more = (x > max_) & finite;
    min_ = (Vector<W>)(((Mask<W>)x & less) | ((Mask<W>)min_ & ~less));
    max_ = (Vector<W>)(((Mask<W>)x & more) | ((Mask<W>)max_ & ~more));
    const Vector<W> kept = (Vector<W>)((Mask<W>)x & finite);
    if constexpr (sizeof(W) == sizeof(double)) {
      sum_[0] += __builtin_convertvector(kept, Doubles) * scale_;
    } else {
      typename VectorOf<W, 4>::type half[2];
      std::memcpy(half, &kept, sizeof(kept));
      sum_[0] += __builtin_convertvector(half[0], Doubles) * scale_;
      sum_[1] += __builtin_convertvector(half[1], Doubles) * scale_;
    }
  }

  Part<W> Sum() const {
    Part<W> all;
    for (size_t i = 0; i < kLanes<W>; ++i)
      all.Add({min_[i], max_[i], sum_[i / 4][i % 4], nan_[i], finite_[i]});
    return all;
  }

 private:
  double scale_;
  Vector<W> min_, max_;
  Doubles sum_[2] = {};
  Mask<W> nan_ = {}, finite_ = {};
};

// `scale` keeps sums of huge doubles finite; 1 otherwise.
template <typename T>
Part<Wide<T>> PartOf(const std::byte* values, int64_t n, double scale) {
  using W = Wide<T>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  constexpr auto kCount = static_cast<int64_t>(kLanes<W>);
  LaneParts<W> lanes(scale);
  Vector<W> x;
  Mask<W> valid = ~Mask<W>{};
  int64_t i = 0;
  for (; i + kCount <= n; i += kCount) {
    Load<T>(values + i * kSize, &x);
    lanes.Take(x, valid);
  }
  if (i < n) {
    std::byte rest[kCount * kSize] = {};
    std::memcpy(rest, values + i * kSize, static_cast<size_t>((n - i) * kSize));
    Load<T>(rest, &x);
    for (int64_t lane = n - i; lane < kCount; ++lane) valid[lane] = 0;
    lanes.Take(x, valid);
  }
  return lanes.Sum();
}

template <typename T>
void AddWhole(const std::byte* values, int64_t n, double scale,
              Part<Wide<T>>* all) {
  using W = Wide<T>;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<Part<W>> parts(static_cast<size_t>(chunks));
  ParallelFor(chunks, kChunksPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      parts[static_cast<size_t>(c)] =
          PartOf<T>(values + c * kChunk * static_cast<int64_t>(sizeof(T)),
                    std::min(kChunk, n - c * kChunk), scale);
  });
  for (const Part<W>& part : parts) all->Add(part);
}

template <typename W>
Number ToNumber(W value) {
  if constexpr (std::is_integral_v<W>)
    return Number(static_cast<int64_t>(value));
  else
    return Number(static_cast<double>(value));
}

template <typename W>
TensorStats StatsFrom(const Part<W>& all, int64_t n) {
  TensorStats stats;
  stats.nan = all.nan;
  stats.finite = all.finite;
  stats.inf = n - all.nan - all.finite;
  if (all.finite == 0) return stats;
  stats.min = ToNumber(all.min);
  stats.max = ToNumber(all.max);
  stats.mean = all.sum / static_cast<double>(all.finite);
  return stats;
}

template <typename T>
TensorStats RealStats(const Array& array) {
  const int64_t n = array.size();
  Part<Wide<T>> all;
  AddWhole<T>(array.bytes.get(), n, 1.0, &all);
  TensorStats stats = StatsFrom(all, n);
  if (stats.mean.has_value() && !std::isfinite(all.sum)) {
    Part<Wide<T>> scaled;
    AddWhole<T>(array.bytes.get(), n, 1.0 / static_cast<double>(all.finite),
                &scaled);
    stats.mean = scaled.sum;
  }
  return stats;
}

template <typename T>
TensorStats ComplexStats(const Array& array) {
  TensorStats stats;
  for (int64_t i = 0; i < array.size(); ++i) {
    T value[2];
    std::memcpy(value,
                array.data<char>() + i * static_cast<int64_t>(sizeof(value)),
                sizeof(value));
    const bool nan = std::isnan(value[0]) || std::isnan(value[1]);
    const bool inf = std::isinf(value[0]) || std::isinf(value[1]);
    stats.nan += nan;
    stats.inf += inf && !nan;
    stats.finite += !inf && !nan;
  }
  return stats;
}

// Calls `body` with a tag of the C++ type that numbers of `dtype` are read as,
// and whether they are complex.
template <typename Body>
void ForType(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return body(TypeTag<uint8_t>{}, std::false_type{});
    case DType::kInt8:
      return body(TypeTag<int8_t>{}, std::false_type{});
    case DType::kInt16:
      return body(TypeTag<int16_t>{}, std::false_type{});
    case DType::kInt32:
      return body(TypeTag<int32_t>{}, std::false_type{});
    case DType::kInt64:
      return body(TypeTag<int64_t>{}, std::false_type{});
    case DType::kFloat16:
      return body(TypeTag<Float16>{}, std::false_type{});
    case DType::kBFloat16:
      return body(TypeTag<BFloat16>{}, std::false_type{});
    case DType::kFloat32:
      return body(TypeTag<float>{}, std::false_type{});
    case DType::kFloat64:
      return body(TypeTag<double>{}, std::false_type{});
    case DType::kComplex64:
      return body(TypeTag<float>{}, std::true_type{});
    case DType::kComplex128:
      return body(TypeTag<double>{}, std::true_type{});
  }
}

}  // namespace

TensorStats StatsOf(const Array& array) {
  TensorStats stats;
  ForType(array.dtype, [&](auto tag, auto complex) {
    using T = typename decltype(tag)::type;
    if constexpr (decltype(complex)::value)
      stats = ComplexStats<T>(array);
    else
      stats = RealStats<T>(array);
  });
  return stats;
}

struct StatsBuilder::State {
  virtual ~State() = default;
  virtual void Add(const Array& block) = 0;
  virtual TensorStats Finish() const = 0;
};

namespace {

template <typename T>
class RealBuilder : public StatsBuilder::State {
 public:
  explicit RealBuilder(int64_t elements)
      : scale_(1.0 / static_cast<double>(std::max<int64_t>(elements, 1))) {}

  void Add(const Array& block) override {
    AddWhole<T>(block.bytes.get(), block.size(), 1.0, &all_);
    // Whether the sum stays finite is known at the end only.
    if constexpr (std::is_same_v<T, double>)
      AddWhole<T>(block.bytes.get(), block.size(), scale_, &scaled_);
    elements_ += block.size();
  }

  TensorStats Finish() const override {
    TensorStats stats = StatsFrom(all_, elements_);
    if (stats.mean.has_value() && !std::isfinite(all_.sum))
      stats.mean = scaled_.sum / (scale_ * static_cast<double>(all_.finite));
    return stats;
  }

 private:
  double scale_;
  int64_t elements_ = 0;
  Part<Wide<T>> all_, scaled_;
};

template <typename T>
class ComplexBuilder : public StatsBuilder::State {
 public:
  void Add(const Array& block) override {
    const TensorStats more = ComplexStats<T>(block);
    stats_.nan += more.nan;
    stats_.inf += more.inf;
    stats_.finite += more.finite;
  }
  TensorStats Finish() const override { return stats_; }

 private:
  TensorStats stats_;
};

}  // namespace

StatsBuilder::StatsBuilder(DType dtype, int64_t elements) {
  ForType(dtype, [&](auto tag, auto complex) {
    using T = typename decltype(tag)::type;
    if constexpr (decltype(complex)::value)
      state_ = std::make_unique<ComplexBuilder<T>>();
    else
      state_ = std::make_unique<RealBuilder<T>>(elements);
  });
}

StatsBuilder::~StatsBuilder() = default;

void StatsBuilder::Add(const Array& block) { state_->Add(block); }

TensorStats StatsBuilder::Finish() const { return state_->Finish(); }

}  // namespace pd
