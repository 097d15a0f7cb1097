// SPDX-License-Identifier: Apache-2.0
#include "libcore/tensor/magnitude.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>

#include "libcore/base/half.h"
#include "libcore/base/parallel.h"

namespace pd {
namespace {

// A thread's share is at least this: less is read faster than a thread starts.
constexpr int64_t kGrainBytes = 256 << 10;

// The largest of `n` integers without their sign bit. Vectors are the
// compiler's, as wide as the machine's (see tensor_stats.cc); four of them hide
// the latency of the loads. Signed, because AVX2 compares no others.
template <typename Bits>
Bits LargestBits(const std::byte* data, int64_t n) {
  constexpr int64_t kLanes = 32 / sizeof(Bits);
  constexpr int64_t kVectors = 4;
  typedef Bits Vector __attribute__((vector_size(32)));
  constexpr Bits kNoSign = std::numeric_limits<Bits>::max();
  Vector most[kVectors] = {};
  int64_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    for (int64_t v = 0; v < kVectors; ++v) {
      Vector x;
      std::memcpy(&x, data + (i + v * kLanes) * int64_t{sizeof(Bits)},
                  sizeof(x));
      x &= kNoSign;
      most[v] = x > most[v] ? x : most[v];
    }
  }
  Bits largest = 0;
  for (const Vector& vector : most)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      largest = std::max<Bits>(largest, vector[lane]);
  for (; i < n; ++i) {
    Bits x;
    std::memcpy(&x, data + i * int64_t{sizeof(Bits)}, sizeof(x));
    largest = std::max<Bits>(largest, x & kNoSign);
  }
  return largest;
}

template <typename Bits>
Bits LargestInParallel(const void* data, int64_t n) {
  const std::byte* bytes = static_cast<const std::byte*>(data);
  constexpr int64_t kGrain = kGrainBytes / int64_t{sizeof(Bits)};
  if (n < 2 * kGrain) return LargestBits<Bits>(bytes, n);
  std::atomic<Bits> largest{0};
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    const Bits mine =
        LargestBits<Bits>(bytes + begin * int64_t{sizeof(Bits)}, end - begin);
    Bits seen = largest.load(std::memory_order_relaxed);
    while (seen < mine && !largest.compare_exchange_weak(
                              seen, mine, std::memory_order_relaxed)) {
    }
  });
  return largest.load(std::memory_order_relaxed);
}

template <typename T, typename Bits>
double AsNumber(Bits bits) {
  static_assert(sizeof(T) == sizeof(Bits));
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(value));
  return static_cast<double>(value);
}

}  // namespace

double LargestMagnitude(DType dtype, const void* data, int64_t n) {
  switch (dtype) {
    case DType::kFloat16:
      return AsNumber<Float16>(LargestInParallel<int16_t>(data, n));
    case DType::kBFloat16:
      return AsNumber<BFloat16>(LargestInParallel<int16_t>(data, n));
    case DType::kFloat32:
      return AsNumber<float>(LargestInParallel<int32_t>(data, n));
    case DType::kComplex64:
      return AsNumber<float>(LargestInParallel<int32_t>(data, 2 * n));
    case DType::kFloat64:
      return AsNumber<double>(LargestInParallel<int64_t>(data, n));
    case DType::kComplex128:
      return AsNumber<double>(LargestInParallel<int64_t>(data, 2 * n));
    default:
      return 0;
  }
}

}  // namespace pd
