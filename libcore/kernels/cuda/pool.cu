// SPDX-License-Identifier: Apache-2.0
// Pooling, with the formulas of libcore/ops/conv/pool.cc. A thread has W
// elements of neighbouring channels, which lie side by side, or one.
#include <cstdint>
#include <type_traits>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/pool_windows.h"
#include "libcore/kernels/cuda/strided_index.h"

namespace pd::cuda {
namespace {

// The windows [begin, end) that input position i may be part of.
PD_DEVICE void WindowsWith(const PoolAxis& a, bool adaptive, int32_t i,
                           int32_t* begin, int32_t* end) {
  if (a.out == 1 && (adaptive || a.in + a.pad <= a.kernel)) {
    *begin = 0;
    *end = 1;
    return;
  }
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

// Packs are of two axes, and of images whose places 32 bits can hold.
template <int W>
inline constexpr int kFirstAxis = W > 1 ? 1 : 0;
template <int W>
using Offset = std::conditional_t<(W > 1), int32_t, int64_t>;

// The part of the input that a window covers.
struct Box {
  int32_t begin[3], end[3];
};
template <int W>
PD_DEVICE Box BoxOf(const PoolWindows& p, const int32_t* o, Offset<W>* count) {
  Box box = {{0, 0, 0}, {1, 1, 1}};
  Offset<W> inside = 1, all = 1;
  PD_UNROLL
  for (int a = kFirstAxis<W>; a < 3; ++a) {
    int32_t padded = 0;
    WindowOf(p.axes[a], p.adaptive != 0, o[a], &box.begin[a], &box.end[a],
             &padded);
    inside *= box.end[a] - box.begin[a];
    all *= padded;
  }
  *count = p.exclusive || p.adaptive ? inside : all;  // an average's divisor
  return box;
}

// The positions of a box are numbered from 0.
PD_DEVICE int32_t NumberIn(const Box& box, const int32_t* at) {
  const int32_t row = (at[0] - box.begin[0]) * (box.end[1] - box.begin[1]) +
                      at[1] - box.begin[1];
  return row * (box.end[2] - box.begin[2]) + at[2] - box.begin[2];
}
PD_DEVICE int64_t InPlane(const PoolWindows& p, int32_t z, int32_t y,
                          int32_t x) {
  return (int64_t{z} * p.axes[1].in + y) * p.axes[2].in + x;
}
// The position in the plane of that of a number, -1 for none.
PD_DEVICE int64_t PositionOf(const PoolWindows& p, const Box& box,
                             int32_t number) {
  if (number < 0) return -1;
  const int32_t width = box.end[2] - box.begin[2];
  const int32_t height = box.end[1] - box.begin[1];
  const int32_t row = number / width;
  return InPlane(p, box.begin[0] + row / height, box.begin[1] + row % height,
                 box.begin[2] + number % width);
}

// body(offset from the plane's first element) for every position of a box, in
// order.
template <int W, typename Body>
PD_DEVICE void ForEachIn(const PoolWindows& p, const Box& box,
                         const Body& body) {
  const auto step = static_cast<Offset<W>>(p.position_step);
  for (Offset<W> z = box.begin[0]; z < box.end[0]; ++z)
    for (int32_t y = box.begin[1]; y < box.end[1]; ++y) {
      const Offset<W> row = (z * p.axes[1].in + y) * p.axes[2].in;
      for (int32_t x = box.begin[2]; x < box.end[2]; ++x)
        body((row + x) * step);
    }
}

PD_DEVICE float Lowest(float) { return -3.402823466e+38f; }
PD_DEVICE double Lowest(double) { return -1.7976931348623157e+308; }

// The first maximum of a box in each of W channels, and the number of its
// position, -1 in an empty box; a NaN is one.
template <typename T, int W>
struct Maxima {
  Pack<T, W> most;
  int32_t number[W];
};
template <int W, typename T>
PD_DEVICE Maxima<T, W> MaximaOf(const PoolArgsOf<T>& p, const Box& box,
                                int64_t plane) {
  Maxima<T, W> m;
  PD_UNROLL
  for (int j = 0; j < W; ++j) {
    m.most[j] = 0;
    m.number[j] = -1;
  }
  int32_t number = 0;
  ForEachIn<W>(p, box, [&](Offset<W> at) {
    const Pack<T, W> v = LoadPack<W>(p.x, plane + at);
    PD_UNROLL
    for (int j = 0; j < W; ++j)
      if (m.number[j] < 0 || v[j] > m.most[j] ||
          (v[j] != v[j] && m.most[j] == m.most[j])) {
        m.most[j] = v[j];
        m.number[j] = number;
      }
    ++number;
  });
  return m;
}

// Numbers as bytes, where a window has few positions: -1 is 255.
template <int W>
PD_DEVICE void StorePlaces(uint8_t* places, int64_t i, const int32_t* numbers) {
  if constexpr (W == 8) {
    uint64_t bytes = 0;
    PD_UNROLL
    for (int j = 0; j < W; ++j)
      bytes |= uint64_t{static_cast<uint8_t>(numbers[j])} << (8 * j);
    reinterpret_cast<uint64_t*>(places)[i / W] = bytes;
  } else {
    places[i] = static_cast<uint8_t>(numbers[0]);
  }
}
template <int W>
PD_DEVICE uint64_t LoadPlaces(const uint8_t* places, int64_t i) {
  if constexpr (W == 8)
    return reinterpret_cast<const uint64_t*>(places)[i / W];
  else
    return places[i];
}

// W elements of a side: their plane's first ones on both sides, and their
// position.
struct Spot {
  int64_t in_plane, out_plane;
  int32_t o[3];
};
template <int W>
PD_DEVICE Spot SpotOf(const PoolWindows& p, int64_t i, bool of_input) {
  const bool last = p.position_step != 1;  // channels are
  Spot s;
  int64_t channel = 0;
  if (last) {
    const int64_t packs = p.channels / W, rest = Quotient(i, packs);
    channel = (i - rest * packs) * W;
    i = rest;
  }
  int64_t in_size = p.position_step, out_size = p.position_step;
  s.o[0] = 0;
  PD_UNROLL
  for (int a = 2; a >= kFirstAxis<W>; --a) {
    const PoolAxis& axis = p.axes[a];
    const int32_t extent = of_input ? axis.in : axis.out;
    const int64_t rest = extent == 1 ? i : Quotient(i, extent);
    s.o[a] = static_cast<int32_t>(i - rest * extent);
    i = rest;
    in_size *= axis.in;
    out_size *= axis.out;
  }
  s.in_plane = i * in_size + channel;
  s.out_plane = i * out_size + channel;
  return s;
}

template <typename T, int W>
struct PoolForward {
  PD_DEVICE static void Largest(const Block& block, const PoolArgsOf<T>& p) {
    block.Spread(p.n / W, [&](int64_t pack) {
      const int64_t i = pack * W;
      const Spot s = SpotOf<W>(p, pack, false);
      Offset<W> count = 0;
      const Box box = BoxOf<W>(p, s.o, &count);
      const Maxima<T, W> m = MaximaOf<W>(p, box, s.in_plane);
      Pack<T, W> out;
      PD_UNROLL
      for (int j = 0; j < W; ++j)
        out[j] = m.number[j] < 0 ? Lowest(T()) : m.most[j];
      StorePack<W>(p.out, i, out);
      if (p.places != nullptr) StorePlaces<W>(p.places, i, m.number);
      if (p.mask != nullptr)
        for (int j = 0; j < W; ++j)
          p.mask[i + j] = static_cast<int32_t>(PositionOf(p, box, m.number[j]));
    });
  }

  PD_DEVICE static void Average(const Block& block, const PoolArgsOf<T>& p) {
    block.Spread(p.n / W, [&](int64_t pack) {
      const Spot s = SpotOf<W>(p, pack, false);
      Offset<W> count = 0;
      const Box box = BoxOf<W>(p, s.o, &count);
      Pack<T, W> out;
      PD_UNROLL
      for (int j = 0; j < W; ++j) out[j] = 0;
      ForEachIn<W>(p, box, [&](Offset<W> at) {
        const auto v = LoadPack<W>(p.x, s.in_plane + at);
        PD_UNROLL
        for (int j = 0; j < W; ++j) out[j] += v[j];
      });
      PD_UNROLL
      for (int j = 0; j < W; ++j)
        out[j] = count > 0 ? out[j] / static_cast<T>(count) : T(0);
      StorePack<W>(p.out, pack * W, out);
    });
  }

  PD_DEVICE static void Run(const Block& block, const PoolArgsOf<T>& p) {
    if (p.max)
      Largest(block, p);
    else
      Average(block, p);
  }
};

// A thread owns elements of the input and looks at the windows that they are
// part of, so sums have one order.
template <typename T, int W>
struct PoolBackward {
  // add(spot, window, its first element in the output, sum) for each.
  template <typename Add>
  PD_DEVICE static void Sum(const Block& block, const PoolArgsOf<T>& p,
                            const Add& add) {
    block.Spread(p.n / W, [&](int64_t pack) {
      const Spot s = SpotOf<W>(p, pack, true);
      const auto step = static_cast<Offset<W>>(p.position_step);
      int32_t begin[3] = {0, 0, 0}, end[3] = {1, 1, 1}, o[3];
      PD_UNROLL
      for (int a = kFirstAxis<W>; a < 3; ++a)
        WindowsWith(p.axes[a], p.adaptive != 0, s.o[a], &begin[a], &end[a]);
      Pack<T, W> sum;
      PD_UNROLL
      for (int j = 0; j < W; ++j) sum[j] = 0;
      for (o[0] = begin[0]; o[0] < end[0]; ++o[0])
        for (o[1] = begin[1]; o[1] < end[1]; ++o[1])
          for (o[2] = begin[2]; o[2] < end[2]; ++o[2]) {
            const auto row =
                (Offset<W>{o[0]} * p.axes[1].out + o[1]) * p.axes[2].out;
            add(s, o, s.out_plane + (row + o[2]) * step, &sum);
          }
      StorePack<W>(p.out, pack * W, sum);
    });
  }

  PD_DEVICE static void Run(const Block& block, const PoolArgsOf<T>& p) {
    if (!p.max)
      Sum(block, p,
          [&](const Spot&, const int32_t* o, int64_t at, Pack<T, W>* sum) {
            Offset<W> count = 0;
            BoxOf<W>(p, o, &count);
            const Pack<T, W> g = LoadPack<W>(p.dout, at);
            PD_UNROLL
            for (int j = 0; j < W; ++j)
              (*sum)[j] += g[j] / static_cast<T>(count);
          });
    else if (p.places != nullptr)
      Sum(block, p,
          [&](const Spot& s, const int32_t* o, int64_t at, Pack<T, W>* sum) {
            const uint64_t places = LoadPlaces<W>(p.places, at);
            const Pack<T, W> g = LoadPack<W>(p.dout, at);
            Offset<W> count = 0;
            const auto here =
                static_cast<uint32_t>(NumberIn(BoxOf<W>(p, o, &count), s.o));
            PD_UNROLL
            for (int j = 0; j < W; ++j)
              if (((places >> (8 * j)) & 255) == here) (*sum)[j] += g[j];
          });
    else
      Sum(block, p,
          [&](const Spot& s, const int32_t* o, int64_t at, Pack<T, W>* sum) {
            Offset<W> count = 0;
            const Box box = BoxOf<W>(p, o, &count);
            const Maxima<T, W> m = MaximaOf<W>(p, box, s.in_plane);
            const Pack<T, W> g = LoadPack<W>(p.dout, at);
            const int32_t here = NumberIn(box, s.o);
            PD_UNROLL
            for (int j = 0; j < W; ++j)
              if (m.number[j] == here) (*sum)[j] += g[j];
          });
  }
};

template <typename T>
using PoolOnes = PoolForward<T, 1>;
template <typename T>
using PoolOnesGrad = PoolBackward<T, 1>;
using PoolPacks = PoolForward<float, kPoolPack>;
using PoolPacksGrad = PoolBackward<float, kPoolPack>;

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_POOL(suffix, T)                            \
  PD_KERNEL(pool##suffix, PoolOnes<T>, PoolArgsOf<T>) \
  PD_KERNEL(pool_grad##suffix, PoolOnesGrad<T>, PoolArgsOf<T>)
PD_POOL(, float)
PD_POOL(_64, double)
PD_KERNEL(pool_packs, PoolPacks, PoolArgs)
PD_KERNEL(pool_grad_packs, PoolPacksGrad, PoolArgs)
