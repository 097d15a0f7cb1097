// SPDX-License-Identifier: Apache-2.0
// Batch norm, with the formulas of libcore/ops/norm/batch_norm.cc. Each kernel
// goes over x once: the time is that of its way through memory. A thread has a
// few loads under way before it looks at any; means and squares of what differs
// from them are formed of these few, then joined, which loses no digits where a
// mean is large.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/columns.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// Packs of W numbers that a thread loads at once from each of so many tensors.
template <int W, int kTensors>
constexpr int kLoads = W == 4   ? 4
                       : W == 8 ? 4 / kTensors
                                : 8 / kTensors;

// Two numbers of part k of channel c.
PD_REAL T* PairOf(const ChannelArgsOf<T>& p, int64_t c, int64_t k) {
  return p.parts + 2 * (c * p.grid.chunks + k);
}

// The elements [first, last) of channel c, its part k.
struct Chunk {
  int64_t c, k;
  uint32_t first, last;
};

// The chunk of a block, where channels are not last.
PD_REAL Chunk ChunkOf(const Block& block, const ChannelArgsOf<T>& p,
                      bool backwards) {
  const uint32_t chunks = static_cast<uint32_t>(p.grid.chunks);
  const uint32_t index = static_cast<uint32_t>(
      backwards ? block.blocks() - 1 - block.index() : block.index());
  const int64_t k = index % chunks, first = k * p.grid.chunk;
  const int64_t last = first + p.grid.chunk;
  return {index / chunks, k, static_cast<uint32_t>(first),
          static_cast<uint32_t>(last < p.count ? last : p.count)};
}

// f(places) for the packs of a thread, U at once, then one by one.
template <int W, int U, typename T, typename F>
PD_DEVICE void ForEachPlace(const Block& block, const ChannelArgsOf<T>& p,
                            const Chunk& chunk, int thread, const F& f) {
  const uint32_t step = static_cast<uint32_t>(block.threads()) * W;
  const uint32_t positions = static_cast<uint32_t>(p.positions);
  const uint32_t rest = step % positions;
  const int64_t image = p.channels * p.positions;
  const int64_t jump = step / positions * image + rest;
  uint32_t i = chunk.first + static_cast<uint32_t>(thread) * W;
  uint32_t position = i % positions;
  int64_t at = i / positions * image + chunk.c * p.positions + position;
  const auto next = [&] {
    const int64_t place = at;
    at += jump;
    position += rest;
    if (position >= positions) {
      position -= positions;
      at += image - p.positions;
    }
    i += step;
    return place;
  };
  PD_KEEP_LOOP
  while (i + (U - 1) * step < chunk.last) {
    int64_t places[U];
    PD_UNROLL
    for (int k = 0; k < U; ++k) places[k] = next();
    f(places);
  }
  PD_KEEP_LOOP
  while (i < chunk.last) {
    const int64_t place[] = {next()};
    f(place);
  }
}

// The same for rows, where channels are last.
template <int U, typename F>
PD_DEVICE void ForEachRow(const ColumnGrid& g, const ColumnRows& rows,
                          const F& f) {
  int64_t row = rows.first;
  PD_KEEP_LOOP
  for (; row + (U - 1) * rows.step < rows.last; row += U * rows.step) {
    int64_t places[U];
    PD_UNROLL
    for (int k = 0; k < U; ++k)
      places[k] = (row + k * rows.step) * g.columns + rows.column;
    f(places);
  }
  PD_KEEP_LOOP
  for (; row < rows.last; row += rows.step) {
    const int64_t place[] = {row * g.columns + rows.column};
    f(place);
  }
}

// Body::Columns<W> where channels are last, else Body::Chunks<W>.
template <typename Body, typename T>
PD_DEVICE void ByLayout(const Block& block, const ChannelArgsOf<T>& p) {
  constexpr bool kPacks = sizeof(T) == sizeof(float);
  if (p.last) {
    if constexpr (kPacks)
      if (p.grid.width == 8) return Body::template Columns<8>(block, p);
    return Body::template Columns<1>(block, p);
  }
  if constexpr (kPacks)
    if (p.grid.width == 4) return Body::template Chunks<4>(block, p);
  Body::template Chunks<1>(block, p);
}

// U packs of W numbers that have all begun to load.
template <int W, int U, typename In>
struct Loaded {
  PD_DEVICE Loaded(const In& from, const int64_t (&places)[U]) : in(from) {
    PD_UNROLL
    for (int k = 0; k < U; ++k) raw[k] = LoadRaw<W>(in, places[k]);
  }
  PD_DEVICE auto operator[](int k) const { return Unpack(in, raw[k]); }

  const In& in;
  decltype(LoadRaw<W>(In(), 0)) raw[U];
};

// A number of each of C channels from c on.
template <int C, typename T>
PD_DEVICE Pack<T, C> ChannelsOf(const T* at, int64_t c, T otherwise) {
  if (at != nullptr) return LoadPack<C>(at, c);
  Pack<T, C> pack;
  PD_UNROLL
  for (int j = 0; j < C; ++j) pack[j] = otherwise;
  return pack;
}

// `variance` is that, or with `inverted` 1 / its root.
template <int C, typename T>
PD_DEVICE Pack<T, C> InversesOf(const ChannelArgsOf<T>& p, int64_t c) {
  Pack<T, C> pack = LoadPack<C>(p.variance, c);
  if (p.inverted) return pack;
  PD_UNROLL
  for (int j = 0; j < C; ++j) pack[j] = 1 / Sqrt(pack[j] + p.epsilon);
  return pack;
}

// How many numbers, their means, and the squares of what differs from these, of
// C channels.
template <typename T, int C>
struct Moments : Numbers<T, 2 * C + 1> {
  static constexpr int kTensors = 1;

  PD_DEVICE void Start(const ChannelArgsOf<T>&, int64_t) {}
  PD_DEVICE T& count() { return this->at[0]; }
  PD_DEVICE T& mean(int c) { return this->at[1 + c]; }
  PD_DEVICE T& squares(int c) { return this->at[1 + C + c]; }

  // Adds packs of W numbers, each of a channel, or all of the only one.
  template <int W, int U>
  PD_DEVICE void Add(const ChannelArgsOf<T>& p, const int64_t (&places)[U]) {
    const Loaded<W, U, NumbersIn<T>> loaded(p.x, places);
    Pack<T, W> x[U];
    PD_UNROLL
    for (int k = 0; k < U; ++k) x[k] = loaded[k];
    // Packs of one number a channel, or of numbers of the only channel.
    constexpr int kEach = W / C, kCount = U * kEach;
    const T n = kCount, weight = n / (count() + n), both = count() * weight;
    PD_UNROLL
    for (int c = 0; c < C; ++c) {
      T sum = 0, more = 0;
      PD_UNROLL
      for (int k = 0; k < kCount; ++k) sum += x[k / kEach][c + k % kEach];
      const T center = sum / n;
      PD_UNROLL
      for (int k = 0; k < kCount; ++k) {
        const T d = x[k / kEach][c + k % kEach] - center;
        more += d * d;
      }
      Join(c, center, more, weight, both);
    }
    count() += n;
  }
  PD_DEVICE void Join(Moments other) {
    const T all = count() + other.count();
    if (all == 0) return;
    const T weight = other.count() / all, both = count() * weight;
    PD_UNROLL
    for (int c = 0; c < C; ++c)
      Join(c, other.mean(c), other.squares(c), weight, both);
    count() = all;
  }
  PD_DEVICE void Store(const ChannelArgsOf<T>&, int64_t, int c, T* to) {
    to[0] = mean(c);
    to[1] = squares(c);
  }

 private:
  PD_DEVICE void Join(int c, T center, T more, T weight, T both) {
    const T distance = center - mean(c);
    mean(c) += distance * weight;
    squares(c) += more + distance * distance * both;
  }
};

// y before its activation, for C channels from c on.
template <typename T, int C>
struct Line {
  PD_DEVICE Line() {}
  PD_DEVICE Line(const ChannelArgsOf<T>& p, int64_t c)
      : mean(LoadPack<C>(p.mean, c)),
        factor(ChannelsOf<C, T>(p.scale, c, 1)),
        shift(ChannelsOf<C, T>(p.bias, c, 0)) {
    const Pack<T, C> inverse = InversesOf<C>(p, c);
    PD_UNROLL
    for (int j = 0; j < C; ++j) factor[j] *= inverse[j];
  }
  PD_DEVICE T At(T x, int c) const {
    return (x - mean[c]) * factor[c] + shift[c];
  }
  // dy, or 0 where the ReLU lets no gradient through. y is not read: computing
  // it anew is quicker.
  PD_DEVICE T Gated(const ChannelArgsOf<T>& p, T x, T dy, int c) const {
    const T y = At(x, c);
    return y > 0 && !(p.top > 0 && y >= p.top) ? dy : T(0);
  }

  Pack<T, C> mean, factor, shift;
};

// The sums of dy, and of dy times what x differs from its mean, of C channels.
template <typename T, int C, bool kRelu>
struct GradSumsOf : Numbers<T, 2 * C> {
  static constexpr int kTensors = 2;

  PD_DEVICE void Start(const ChannelArgsOf<T>& p, int64_t c) {
    if constexpr (kRelu)
      line = Line<T, C>(p, c);
    else
      line.mean = LoadPack<C>(p.mean, c);
  }
  template <int W, int U>
  PD_DEVICE void Add(const ChannelArgsOf<T>& p, const int64_t (&places)[U]) {
    const Loaded<W, U, NumbersIn<T>> all_x(p.x, places), all_dy(p.dy, places);
    PD_UNROLL
    for (int k = 0; k < U; ++k) {
      const Pack<T, W> x = all_x[k], dy = all_dy[k];
      PD_UNROLL
      for (int j = 0; j < W; ++j) {
        const int c = C == 1 ? 0 : j;
        const T d = kRelu ? line.Gated(p, x[j], dy[j], c) : dy[j];
        this->at[c] += d;
        this->at[C + c] += d * (x[j] - line.mean[c]);
      }
    }
  }
  PD_DEVICE void Join(const GradSumsOf& other) {
    PD_UNROLL
    for (int j = 0; j < 2 * C; ++j) this->at[j] += other[j];
  }
  PD_DEVICE void Store(const ChannelArgsOf<T>& p, int64_t first, int c, T* to) {
    to[0] = this->at[c];
    to[1] = this->at[C + c] * InversesOf<1>(p, first + c)[0];
  }

  Line<T, C> line;
};
template <typename T, int C>
using GradSums = GradSumsOf<T, C, false>;
template <typename T, int C>
using GradSumsRelu = GradSumsOf<T, C, true>;

// Two numbers of every chunk of every channel, by S<T, C>.
template <typename T, template <typename, int> class S>
struct NormParts {
  using Args = ChannelArgsOf<T>;
  PD_DEVICE static void Run(const Block& block, const Args& p) {
    ByLayout<NormParts>(block, p);
  }

  template <int W>
  PD_DEVICE static void Columns(const Block& block, const Args& p) {
    using Sums = S<T, W>;
    constexpr int U = kLoads<W, Sums::kTensors>;
    const ColumnGrid& g = p.grid;
    const ColumnTile tile = TileOf<W>(block, g, false);
    PerThread<Sums> sums(Sums{});
    EachColumn<W>(block, g, tile, [&](int thread, const auto& rows) {
      sums[thread].Start(p, rows.column);
      ForEachRow<U>(g, rows, [&](const auto& places) {
        sums[thread].template Add<W>(p, places);
      });
    });
    JoinDown(block, g.across, &sums);
    EachColumn<W>(block, g, tile, [&](int thread, const auto& rows) {
      if (thread >= g.across) return;
      PD_UNROLL
      for (int c = 0; c < W; ++c)
        sums[thread].Store(p, rows.column, c,
                           PairOf(p, rows.column + c, tile.chunk));
    });
  }

  template <int W>
  PD_DEVICE static void Chunks(const Block& block, const Args& p) {
    using Sums = S<T, 1>;
    constexpr int U = kLoads<W, Sums::kTensors>;
    const Chunk chunk = ChunkOf(block, p, false);
    PerThread<Sums> sums(Sums{});
    block.EachAlone([&](int thread) {
      sums[thread].Start(p, chunk.c);
      ForEachPlace<W, U>(block, p, chunk, thread, [&](const auto& places) {
        sums[thread].template Add<W>(p, places);
      });
    });
    JoinDown(block, 1, &sums);
    block.EachAlone([&](int thread) {
      if (thread == 0)
        sums[0].Store(p, chunk.c, 0, PairOf(p, chunk.c, chunk.k));
    });
  }
};

// The chunks of a channel joined by a block; the running statistics.
template <typename T>
struct NormJoin {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    const ColumnGrid& g = p.grid;
    for (int64_t c = block.index(); c < p.channels; c += block.blocks()) {
      const auto elements = [&](int64_t k) {
        const int64_t left = p.count - k * g.chunk;
        return static_cast<T>(left < g.chunk ? left : g.chunk);
      };
      const T n = static_cast<T>(p.count);
      // Differences from one of them are small, and so are their roundings.
      const T about = PairOf(p, c, 0)[0];
      const T mean = about + SumOf(block, g.chunks, [&](int64_t k) {
                       return (PairOf(p, c, k)[0] - about) * (elements(k) / n);
                     });
      const T squares = SumOf(block, g.chunks, [&](int64_t k) {
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

template <typename T>
struct NormGradJoin {
  PD_DEVICE static void Run(const Block& block, const ChannelArgsOf<T>& p) {
    for (int64_t c = block.index(); c < p.channels; c += block.blocks()) {
      const T sum = SumOf(block, p.grid.chunks,
                          [&](int64_t k) { return PairOf(p, c, k)[0]; });
      const T dot = SumOf(block, p.grid.chunks,
                          [&](int64_t k) { return PairOf(p, c, k)[1]; });
      block.Each([&](int thread) {
        if (thread != 0) return;
        p.dbias[c] = sum;
        p.dscale[c] = dot;
      });
    }
  }
};

// y of x for C channels from c on.
template <typename T, int C, bool kRelu>
struct NormedOf {
  static constexpr int kTensors = 2;

  PD_DEVICE NormedOf(const ChannelArgsOf<T>& p, int64_t c) : line(p, c) {}
  template <int W, int U>
  PD_DEVICE void Write(const ChannelArgsOf<T>& p,
                       const int64_t (&places)[U]) const {
    const Loaded<W, U, NumbersIn<T>> all(p.x, places);
    PD_UNROLL
    for (int k = 0; k < U; ++k) {
      Pack<T, W> x = all[k];
      PD_UNROLL
      for (int j = 0; j < W; ++j) {
        x[j] = line.At(x[j], C == 1 ? 0 : j);
        if (!kRelu) continue;
        if (x[j] < 0) x[j] = 0;
        if (p.top > 0 && x[j] > p.top) x[j] = p.top;
      }
      StorePack(p.y, places[k], x);
    }
  }

  Line<T, C> line;
};
template <typename T, int C>
using Normed = NormedOf<T, C, false>;
template <typename T, int C>
using NormedRelu = NormedOf<T, C, true>;

// dx = factor * (dy - sum - (x - mean) * slope)
template <typename T, int C, bool kRelu>
struct NormedGradOf {
  static constexpr int kTensors = 2;

  PD_DEVICE NormedGradOf(const ChannelArgsOf<T>& p, int64_t c)
      : line(p, c),
        sum(ChannelsOf<C, T>(p.constant ? nullptr : p.dbias, c, 0)),
        slope(ChannelsOf<C, T>(p.constant ? nullptr : p.dscale, c, 0)) {
    const Pack<T, C> inverse = InversesOf<C>(p, c);
    const T share = 1 / static_cast<T>(p.count);
    PD_UNROLL
    for (int j = 0; j < C; ++j) {
      sum[j] *= share;
      slope[j] *= share * inverse[j];
    }
  }
  template <int W, int U>
  PD_DEVICE void Write(const ChannelArgsOf<T>& p,
                       const int64_t (&places)[U]) const {
    const Loaded<W, U, NumbersIn<T>> all_x(p.x, places), all_dy(p.dy, places);
    PD_UNROLL
    for (int k = 0; k < U; ++k) {
      const Pack<T, W> x = all_x[k];
      Pack<T, W> dy = all_dy[k];
      PD_UNROLL
      for (int j = 0; j < W; ++j) {
        const int c = C == 1 ? 0 : j;
        const T d = kRelu ? line.Gated(p, x[j], dy[j], c) : dy[j];
        dy[j] =
            line.factor[c] * (d - sum[c] - (x[j] - line.mean[c]) * slope[c]);
      }
      StorePack(p.y, places[k], dy);
    }
  }

  Line<T, C> line;
  Pack<T, C> sum, slope;
};
template <typename T, int C>
using NormedGrad = NormedGradOf<T, C, false>;
template <typename T, int C>
using NormedGradRelu = NormedGradOf<T, C, true>;

// Writes every element by F<T, C>.
template <typename T, template <typename, int> class F>
struct NormWrite {
  using Args = ChannelArgsOf<T>;
  PD_DEVICE static void Run(const Block& block, const Args& p) {
    ByLayout<NormWrite>(block, p);
  }

  template <int W>
  PD_DEVICE static void Columns(const Block& block, const Args& p) {
    constexpr int U = kLoads<W, F<T, W>::kTensors>;
    const ColumnTile tile = TileOf<W>(block, p.grid, true);
    EachColumn<W>(block, p.grid, tile, [&](int, const auto& rows) {
      const F<T, W> f(p, rows.column);
      ForEachRow<U>(p.grid, rows, [&](const auto& places) {
        f.template Write<W>(p, places);
      });
    });
  }
  template <int W>
  PD_DEVICE static void Chunks(const Block& block, const Args& p) {
    constexpr int U = kLoads<W, F<T, 1>::kTensors>;
    const Chunk chunk = ChunkOf(block, p, true);
    const F<T, 1> f(p, chunk.c);
    block.EachAlone([&](int thread) {
      ForEachPlace<W, U>(block, p, chunk, thread, [&](const auto& places) {
        f.template Write<W>(p, places);
      });
    });
  }
};

template <typename T>
using NormMoments = NormParts<T, Moments>;
template <typename T>
using NormGradSums = NormParts<T, GradSums>;
template <typename T>
using NormGradSumsRelu = NormParts<T, GradSumsRelu>;
template <typename T>
using NormApply = NormWrite<T, Normed>;
template <typename T>
using NormApplyRelu = NormWrite<T, NormedRelu>;
template <typename T>
using NormGradX = NormWrite<T, NormedGrad>;
template <typename T>
using NormGradXRelu = NormWrite<T, NormedGradRelu>;

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_BATCH_NORM(suffix, T)                                               \
  PD_SMALL_KERNEL(norm_parts##suffix, NormMoments<T>, ChannelArgsOf<T>)        \
  PD_KERNEL(norm_join##suffix, NormJoin<T>, ChannelArgsOf<T>)                  \
  PD_SMALL_KERNEL(norm_apply##suffix, NormApply<T>, ChannelArgsOf<T>)          \
  PD_SMALL_KERNEL(norm_apply_relu##suffix, NormApplyRelu<T>, ChannelArgsOf<T>) \
  PD_SMALL_KERNEL(norm_grad_parts##suffix, NormGradSums<T>, ChannelArgsOf<T>)  \
  PD_SMALL_KERNEL(norm_grad_parts_relu##suffix, NormGradSumsRelu<T>,           \
                  ChannelArgsOf<T>)                                            \
  PD_KERNEL(norm_grad_join##suffix, NormGradJoin<T>, ChannelArgsOf<T>)         \
  PD_SMALL_KERNEL(norm_grad_x##suffix, NormGradX<T>, ChannelArgsOf<T>)         \
  PD_SMALL_KERNEL(norm_grad_x_relu##suffix, NormGradXRelu<T>, ChannelArgsOf<T>)
PD_BATCH_NORM(, float)
PD_BATCH_NORM(_64, double)
