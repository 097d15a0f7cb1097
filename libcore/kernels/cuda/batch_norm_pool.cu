// SPDX-License-Identifier: Apache-2.0
// Batch norm and pooling. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/sums.h"
#include "libcore/kernels/cuda/pool_windows.h"

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

// The windows [begin, end) that input position i may be part of.
PD_DEVICE void WindowsWith(const PoolAxis& a, bool adaptive, int32_t i,
                           int32_t* begin, int32_t* end) {
  if (adaptive) {
    *begin = static_cast<int32_t>(int64_t{i} * a.out / a.in);
    *end = static_cast<int32_t>(((int64_t{i} + 1) * a.out - 1) / a.in + 1);
  } else {
    const int32_t reach = i + a.pad - a.kernel + 1;
    *begin = reach <= 0 ? 0 : (reach + a.stride - 1) / a.stride;
    *end = (i + a.pad) / a.stride + 1;
  }
  if (*end > a.out) *end = a.out;
}

struct Box {
  int32_t begin[3], end[3];
  int64_t count;  // the divisor of an average
};
PD_DEVICE Box BoxOf(const PoolWindows& p, const int32_t* o) {
  Box box;
  int64_t inside = 1, all = 1;
  for (int a = 0; a < 3; ++a) {
    int32_t padded = 0;
    WindowOf(p.axes[a], p.adaptive != 0, o[a], &box.begin[a], &box.end[a],
             &padded);
    inside *= box.end[a] - box.begin[a];
    all *= padded;
  }
  box.count = p.exclusive || p.adaptive ? inside : all;
  return box;
}

// body(position in the plane) for every position of a box, in order.
template <typename Body>
PD_DEVICE void ForEachIn(const PoolWindows& p, const Box& box,
                         const Body& body) {
  for (int32_t z = box.begin[0]; z < box.end[0]; ++z)
    for (int32_t y = box.begin[1]; y < box.end[1]; ++y)
      for (int32_t x = box.begin[2]; x < box.end[2]; ++x)
        body((int64_t{z} * p.axes[1].in + y) * p.axes[2].in + x);
}

PD_DEVICE float Lowest(float) { return -3.402823466e+38f; }
PD_DEVICE double Lowest(double) { return -1.7976931348623157e+308; }

// The position of the first maximum, -1 in an empty window; a NaN is one.
PD_REAL int64_t FirstMaximum(const PoolArgsOf<T>& p, const Box& box,
                             const NumbersIn<T>& plane) {
  int64_t best = -1;
  T most = 0;
  ForEachIn(p, box, [&](int64_t at) {
    const T v = plane[at * p.position_step];
    if (best < 0 || v > most || (v != v && most == most)) {
      best = at;
      most = v;
    }
  });
  return best;
}

// Element i of a side: its place, its plane's first element on both sides, and
// its position.
struct Spot {
  int64_t at, in_plane, out_plane;
  int32_t o[3];
};
PD_DEVICE Spot SpotOf(const PoolWindows& p, int64_t i, bool of_input) {
  int32_t extents[3];
  int64_t in_size = 1, out_size = 1;
  for (int a = 0; a < 3; ++a) {
    extents[a] = of_input ? p.axes[a].in : p.axes[a].out;
    in_size *= p.axes[a].in;
    out_size *= p.axes[a].out;
  }
  const int64_t size = of_input ? in_size : out_size;
  const bool last = p.position_step != 1;  // channels are
  const int64_t image = i / (size * p.channels);
  const int64_t rest = i % (size * p.channels);
  const int64_t channel = last ? rest % p.channels : rest / size;
  int64_t position = last ? rest / p.channels : rest % size;
  Spot s;
  s.at = i;
  const int64_t in_step = last ? 1 : in_size, out_step = last ? 1 : out_size;
  s.in_plane = image * p.channels * in_size + channel * in_step;
  s.out_plane = image * p.channels * out_size + channel * out_step;
  for (int a = 2; a >= 0; --a) {
    s.o[a] = static_cast<int32_t>(position % extents[a]);
    position /= extents[a];
  }
  return s;
}

template <typename T>
struct PoolForward {
  PD_DEVICE static void Run(const Block& block, const PoolArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      const Spot s = SpotOf(p, i, false);
      const Box box = BoxOf(p, s.o);
      const auto plane = p.x + s.in_plane;
      if (p.max) {
        const int64_t best = FirstMaximum(p, box, plane);
        if (p.mask != nullptr) p.mask[i] = static_cast<int32_t>(best);
        p.out[i] = best < 0 ? Lowest(T()) : T(plane[best * p.position_step]);
        return;
      }
      T sum = 0;
      ForEachIn(p, box,
                [&](int64_t at) { sum += plane[at * p.position_step]; });
      p.out[i] = box.count > 0 ? sum / static_cast<T>(box.count) : T(0);
    });
  }
};

// A thread owns an element of the input and looks at the windows that it is
// part of, so sums have one order.
template <typename T>
struct PoolBackward {
  PD_DEVICE static void Run(const Block& block, const PoolArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      const Spot s = SpotOf(p, i, true);
      int32_t begin[3], end[3];
      for (int a = 0; a < 3; ++a)
        WindowsWith(p.axes[a], p.adaptive != 0, s.o[a], &begin[a], &end[a]);
      const int64_t here =
          (int64_t{s.o[0]} * p.axes[1].in + s.o[1]) * p.axes[2].in + s.o[2];
      T sum = 0;
      for (int32_t z = begin[0]; z < end[0]; ++z)
        for (int32_t y = begin[1]; y < end[1]; ++y)
          for (int32_t x = begin[2]; x < end[2]; ++x) {
            const int32_t o[3] = {z, y, x};
            const Box box = BoxOf(p, o);
            const int64_t at =
                (int64_t{z} * p.axes[1].out + y) * p.axes[2].out + x;
            const T g = p.dout[s.out_plane + at * p.position_step];
            if (!p.max)
              sum += g / static_cast<T>(box.count);
            else if (FirstMaximum(p, box, p.x + s.in_plane) == here)
              sum += g;
          }
      p.out[i] = sum;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_IMAGES(suffix, T)                                             \
  PD_KERNEL(norm_parts##suffix, NormParts<T>, ChannelArgsOf<T>)          \
  PD_KERNEL(norm_join##suffix, NormJoin<T>, ChannelArgsOf<T>)            \
  PD_KERNEL(norm_apply##suffix, NormApply<T>, ChannelArgsOf<T>)          \
  PD_KERNEL(norm_grad_parts##suffix, NormGradParts<T>, ChannelArgsOf<T>) \
  PD_KERNEL(norm_grad_join##suffix, NormGradJoin<T>, ChannelArgsOf<T>)   \
  PD_KERNEL(norm_grad_x##suffix, NormGradX<T>, ChannelArgsOf<T>)         \
  PD_KERNEL(pool##suffix, PoolForward<T>, PoolArgsOf<T>)                 \
  PD_KERNEL(pool_grad##suffix, PoolBackward<T>, PoolArgsOf<T>)
PD_IMAGES(, float)
PD_IMAGES(_64, double)
