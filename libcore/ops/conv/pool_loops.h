// SPDX-License-Identifier: Apache-2.0
// The loops of pooling over one to three axes.
//   max: Out = the window's first maximum (a NaN is one); its gradient goes
//     there.
//   avg: Out = sum of the window / count; each gets its gradient / count.
// A window that lies wholly in the padding gives the lowest finite number (max)
// or 0 (avg) and no gradient.
#ifndef PD_LIBCORE_OPS_CONV_POOL_LOOPS_H_
#define PD_LIBCORE_OPS_CONV_POOL_LOOPS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "libcore/base/parallel.h"
#include "libcore/ops/conv/window.h"

namespace pd {

/// A PoolGeometry whose extents are all known, and where the elements lie.
struct PoolLoops {
  struct Strides {
    int64_t image, channel, position;
  };

  explicit PoolLoops(const PoolGeometry& geometry) : g(geometry) {
    const size_t n = g.axes.size();
    WindowAxis one;
    one.in = one.out = 1;
    d = n > 2 ? g.axes[n - 3] : one;
    h = n > 1 ? g.axes[n - 2] : one;
    w = g.axes[n - 1];
    in = Of(d.in * h.in * w.in);
    out = Of(d.out * h.out * w.out);
  }
  Strides Of(int64_t size) const {
    return g.channels_last ? Strides{g.channels * size, 1, g.channels}
                           : Strides{g.channels * size, size, 1};
  }

  PoolGeometry g;
  WindowAxis d, h, w;  ///< missing axes have extent 1
  Strides in, out;
};

/// The input positions of one window on each axis.
struct PoolBox {
  PoolWindow d, h, w;

  int64_t Inside() const {
    return (d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin);
  }
};

namespace pool_internal {

// Calls body(in plane, out plane) for the offsets of every image and channel.
template <typename Body>
void ForEachPlane(const PoolLoops& p, const Body& body) {
  ParallelFor(p.g.batch * p.g.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / p.g.channels, c = i % p.g.channels;
      body(n * p.in.image + c * p.in.channel,
           n * p.out.image + c * p.out.channel);
    }
  });
}

// Calls body(box, offset in the output plane) for every window.
template <typename Body>
void ForEachWindow(const PoolLoops& p, const Body& body) {
  PoolBox box;
  int64_t at = 0;
  for (int64_t z = 0; z < p.d.out; ++z) {
    box.d = WindowAt(p.d, p.g.adaptive, z);
    for (int64_t y = 0; y < p.h.out; ++y) {
      box.h = WindowAt(p.h, p.g.adaptive, y);
      for (int64_t x = 0; x < p.w.out; ++x) {
        box.w = WindowAt(p.w, p.g.adaptive, x);
        body(box, at++ * p.out.position);
      }
    }
  }
}

// Calls body(position) for every position of a box.
template <typename Body>
void ForEachPosition(const PoolLoops& p, const PoolBox& box, const Body& body) {
  for (int64_t z = box.d.begin; z < box.d.end; ++z)
    for (int64_t y = box.h.begin; y < box.h.end; ++y)
      for (int64_t x = box.w.begin; x < box.w.end; ++x)
        body((z * p.h.in + y) * p.w.in + x);
}

// The position of the first maximum, -1 in an empty window. It chooses without
// a branch, which random numbers would mislead.
template <typename T>
int64_t FirstMaximum(const PoolLoops& p, const PoolBox& box, const T* plane) {
  if (box.Inside() <= 0) return -1;
  int64_t best = (box.d.begin * p.h.in + box.h.begin) * p.w.in + box.w.begin;
  T most = plane[best * p.in.position];
  ForEachPosition(p, box, [&](int64_t at) {
    const T v = plane[at * p.in.position];
    const bool first_nan = (v != v) & (most == most);
    const bool take = (v > most) | first_nan;
    best = take ? at : best;
    most = take ? v : most;
  });
  return best;
}

inline int64_t CountOf(const PoolLoops& p, const PoolBox& box) {
  if (p.g.exclusive || p.g.adaptive) return box.Inside();
  return box.d.padded * box.h.padded * box.w.padded;
}

}  // namespace pool_internal

/// `mask` (of a maximum, may be null): the position of each maximum in its
/// plane.
template <typename T>
void PoolForward(const PoolLoops& p, const T* x, T* out,
                 int32_t* mask = nullptr) {
  using namespace pool_internal;  // NOLINT
  ForEachPlane(p, [&](int64_t in_plane, int64_t out_plane) {
    const T* in = x + in_plane;
    ForEachWindow(p, [&](const PoolBox& box, int64_t to) {
      T& result = out[out_plane + to];
      if (p.g.max) {
        const int64_t at = FirstMaximum(p, box, in);
        result =
            at < 0 ? std::numeric_limits<T>::lowest() : in[at * p.in.position];
        if (mask != nullptr) mask[out_plane + to] = static_cast<int32_t>(at);
        return;
      }
      T sum = T(0);
      ForEachPosition(p, box,
                      [&](int64_t at) { sum += in[at * p.in.position]; });
      const int64_t count = CountOf(p, box);
      result = count > 0 ? sum / static_cast<T>(count) : T(0);
    });
  });
}

/// dx += the gradient.
template <typename T>
void AddPoolBackward(const PoolLoops& p, const T* x, const T* dout, T* dx) {
  using namespace pool_internal;  // NOLINT
  ForEachPlane(p, [&](int64_t in_plane, int64_t out_plane) {
    T* grad = dx + in_plane;
    ForEachWindow(p, [&](const PoolBox& box, int64_t from) {
      const T g = dout[out_plane + from];
      if (p.g.max) {
        const int64_t at = FirstMaximum(p, box, x + in_plane);
        if (at >= 0) grad[at * p.in.position] += g;
        return;
      }
      const T share = g / static_cast<T>(CountOf(p, box));
      ForEachPosition(p, box,
                      [&](int64_t at) { grad[at * p.in.position] += share; });
    });
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_POOL_LOOPS_H_
