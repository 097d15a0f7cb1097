// SPDX-License-Identifier: Apache-2.0
// Batch norm, with the formulas of libcore/ops/norm/batch_norm.cc.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// Part of a channel: elements [first, last) of `c`.
struct Chunk {
  int64_t c;
  uint32_t first, last;
};
PD_REAL Chunk ChunkOf(const ChannelArgsOf<T>& p, int64_t c, int64_t k) {
  const uint32_t first = static_cast<uint32_t>(k) * p.chunk;
  const uint32_t last = first + p.chunk < p.count
                            ? first + p.chunk
                            : static_cast<uint32_t>(p.count);
  return {c, first, last};
}
// Where two numbers of part k of channel c lie: those of neighbouring channels
// beside each other where neighbouring threads write them.
PD_REAL T* PairOf(const ChannelArgsOf<T>& p, int64_t c, int64_t k) {
  return p.parts + 2 * (p.last ? k * p.channels + c : c * p.chunks + k);
}
// Where element i of channel c lies: channels are not last.
PD_REAL int64_t At(const ChannelArgsOf<T>& p, int64_t c, uint32_t i) {
  const uint32_t positions = static_cast<uint32_t>(p.positions);
  return (i / positions * p.channels + c) * p.positions + i % positions;
}

// The sum of f(place in memory) over a chunk, which is a block's, or a
// thread's.
template <typename T>
struct BlockSum {
  const Block& block;
  const ChannelArgsOf<T>& p;
  const Chunk k;
  template <typename F>
  PD_DEVICE T operator()(const F& f) const {
    return SumOf(block, k.last - k.first, [&](int64_t i) {
      return f(At(p, k.c, k.first + static_cast<uint32_t>(i)));
    });
  }
};
template <typename T>
struct ThreadSum {
  const ChannelArgsOf<T>& p;
  const Chunk k;
  template <typename F>
  PD_DEVICE T operator()(const F& f) const {
    T sum = 0;
    for (int64_t i = k.first; i < k.last; ++i) sum += f(i * p.channels + k.c);
    return sum;
  }
};

template <typename T>
struct Pair {
  T a, b;
};
// Stores body(chunk, its sums) for every chunk.
template <typename T, typename Body>
PD_DEVICE void ForEachSum(const Block& block, const ChannelArgsOf<T>& p,
                          const Body& body) {
  const auto store = [&](int64_t c, int64_t k, const Pair<T>& pair) {
    T* const to = PairOf(p, c, k);
    to[0] = pair.a;
    to[1] = pair.b;
  };
  if (p.last) {
    block.Spread(p.channels * p.chunks, [&](int64_t i) {
      const int64_t c = i % p.channels, k = i / p.channels;
      const Chunk chunk = ChunkOf(p, c, k);
      store(c, k, body(chunk, ThreadSum<T>{p, chunk}));
    });
    return;
  }
  for (int64_t index = block.index(); index < p.channels * p.chunks;
       index += block.blocks()) {
    const int64_t c = index / p.chunks, k = index % p.chunks;
    const Chunk chunk = ChunkOf(p, c, k);
    const Pair<T> pair = body(chunk, BlockSum<T>{block, p, chunk});
    block.Each([&](int thread) {
      if (thread == 0) store(c, k, pair);
    });
  }
}

// f(place in memory), f = body(channel), for every element.
template <typename T, typename Body>
PD_DEVICE void ForEachElement(const Block& block, const ChannelArgsOf<T>& p,
                              const Body& body) {
  if (p.last) {
    block.Spread(p.channels * p.chunks, [&](int64_t i) {
      const Chunk chunk = ChunkOf(p, i % p.channels, i / p.channels);
      const auto f = body(chunk.c);
      for (int64_t e = chunk.first; e < chunk.last; ++e)
        f(e * p.channels + chunk.c);
    });
    return;
  }
  for (int64_t index = block.index(); index < p.channels * p.chunks;
       index += block.blocks()) {
    const Chunk chunk = ChunkOf(p, index / p.chunks, index % p.chunks);
    const auto f = body(chunk.c);
    block.Each([&](int thread) {
      for (uint32_t i = chunk.first + static_cast<uint32_t>(thread);
           i < chunk.last; i += static_cast<uint32_t>(block.threads()))
        f(At(p, chunk.c, i));
    });
  }
}

// The mean of each chunk, and the squares of what differs from it.
template <typename T>
struct NormParts {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    ForEachSum(block, p, [&](const Chunk& k, const auto& sum) {
      const T mean = sum([&](int64_t at) { return p.x[at]; }) /
                     static_cast<T>(k.last - k.first);
      return Pair<T>{mean, sum([&](int64_t at) {
                       return (p.x[at] - mean) * (p.x[at] - mean);
                     })};
    });
  }
};

// The chunks of a channel joined by a block; the running statistics.
template <typename T>
struct NormJoin {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    for (int64_t c = block.index(); c < p.channels; c += block.blocks()) {
      const auto elements = [&](int64_t k) {
        const Chunk chunk = ChunkOf(p, c, k);
        return static_cast<T>(chunk.last - chunk.first);
      };
      const T n = static_cast<T>(p.count);
      // Differences from one of them are small, and so are their roundings.
      const T about = PairOf(p, c, 0)[0];
      const T mean = about + SumOf(block, p.chunks, [&](int64_t k) {
                       return (PairOf(p, c, k)[0] - about) * (elements(k) / n);
                     });
      const T squares = SumOf(block, p.chunks, [&](int64_t k) {
        const T distance = PairOf(p, c, k)[0] - mean;
        return PairOf(p, c, k)[1] + distance * distance * elements(k);
      });
      const T variance = squares / n;
      block.Each([&](int thread) {
        if (thread != 0) return;
        if (p.saved_mean != nullptr) p.saved_mean[c] = mean;
        if (p.saved_inverse != nullptr)
          p.saved_inverse[c] = 1 / Sqrt(variance + p.epsilon);
        p.mean_out[c] = p.keep * p.mean[c] + (1 - p.keep) * mean;
        p.variance_out[c] = p.keep * p.variance[c] + (1 - p.keep) * variance;
      });
    }
  }
};

// `variance` is that, or with `inverted` 1 / its root.
PD_REAL T InverseOf(const ChannelArgsOf<T>& p, int64_t c) {
  return p.inverted ? p.variance[c] : 1 / Sqrt(p.variance[c] + p.epsilon);
}

template <typename T>
struct NormApply {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    ForEachElement(block, p, [&](int64_t c) {
      const T scale = p.scale != nullptr ? p.scale[c] : T(1);
      const T factor = scale * InverseOf(p, c);
      const T shift = p.bias != nullptr ? p.bias[c] : T(0);
      const T mean = p.mean[c];
      return [&p, factor, shift, mean](int64_t at) {
        p.y[at] = (p.x[at] - mean) * factor + shift;
      };
    });
  }
};

// The sums of dy, and of dy times the normed x.
template <typename T>
struct NormGradParts {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    ForEachSum(block, p, [&](const Chunk& k, const auto& sum) {
      const T mean = p.mean[k.c], inverse = InverseOf(p, k.c);
      const T first = sum([&](int64_t at) { return p.dy[at]; });
      return Pair<T>{first, sum([&](int64_t at) {
                       return p.dy[at] * (p.x[at] - mean) * inverse;
                     })};
    });
  }
};

template <typename T>
struct NormGradJoin {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    for (int64_t c = block.index(); c < p.channels; c += block.blocks()) {
      const T sum =
          SumOf(block, p.chunks, [&](int64_t k) { return PairOf(p, c, k)[0]; });
      const T dot =
          SumOf(block, p.chunks, [&](int64_t k) { return PairOf(p, c, k)[1]; });
      block.Each([&](int thread) {
        if (thread != 0) return;
        p.dbias[c] = sum;
        p.dscale[c] = dot;
      });
    }
  }
};

template <typename T>
struct NormGradX {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    ForEachElement(block, p, [&](int64_t c) {
      const T mean = p.mean[c], inverse = InverseOf(p, c);
      const T scale = p.scale != nullptr ? p.scale[c] : T(1);
      const T n = static_cast<T>(p.count);
      const T sum = p.constant ? T(0) : p.dbias[c] / n;
      const T dot = p.constant ? T(0) : p.dscale[c] / n;
      return [&p, mean, inverse, scale, sum, dot](int64_t at) {
        const T h = (p.x[at] - mean) * inverse;
        p.y[at] = scale * inverse * (p.dy[at] - sum - h * dot);
      };
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_BATCH_NORM(suffix, T)                                         \
  PD_KERNEL(norm_parts##suffix, NormParts<T>, ChannelArgsOf<T>)          \
  PD_KERNEL(norm_join##suffix, NormJoin<T>, ChannelArgsOf<T>)            \
  PD_KERNEL(norm_apply##suffix, NormApply<T>, ChannelArgsOf<T>)          \
  PD_KERNEL(norm_grad_parts##suffix, NormGradParts<T>, ChannelArgsOf<T>) \
  PD_KERNEL(norm_grad_join##suffix, NormGradJoin<T>, ChannelArgsOf<T>)   \
  PD_KERNEL(norm_grad_x##suffix, NormGradX<T>, ChannelArgsOf<T>)
PD_BATCH_NORM(, float)
PD_BATCH_NORM(_64, double)
