// SPDX-License-Identifier: Apache-2.0
// Pooling, with the formulas of libcore/ops/conv/pool.cc.
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/pool_windows.h"

namespace pd::cuda {
namespace {

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

#define PD_POOL(suffix, T)                               \
  PD_KERNEL(pool##suffix, PoolForward<T>, PoolArgsOf<T>) \
  PD_KERNEL(pool_grad##suffix, PoolBackward<T>, PoolArgsOf<T>)
PD_POOL(, float)
PD_POOL(_64, double)
