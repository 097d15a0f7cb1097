// SPDX-License-Identifier: Apache-2.0
// Convolutions of one to three axes as matrix products. For a block of output
// positions the inputs that each filter tap meets are laid out as a matrix of
// [inputs a group * taps, positions] ("columns"); then
//   output  = filter [outputs a group, inputs * taps] x columns
//   columns' gradient = filter^T x output's gradient, added to the inputs that
//     they came from
//   filter's gradient = output's gradient x columns^T
// A transposed convolution is the middle line.
#ifndef PD_LIBCORE_OPS_CONV_CONV_GEMM_H_
#define PD_LIBCORE_OPS_CONV_CONV_GEMM_H_

#include <algorithm>
#include <cstdint>

#include "libcore/base/parallel.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/conv/window.h"

namespace pd {

struct ConvGemm {
  /// How elements of one side lie in memory.
  struct Strides {
    int64_t image, channel, position;
  };

  /// Of a convolution of 1 to 3 axes whose extents are all known.
  explicit ConvGemm(const ConvGeometry& geometry) : g(geometry) {
    const size_t n = g.axes.size();
    WindowAxis one;
    one.in = one.out = 1;
    d = n > 2 ? g.axes[n - 3] : one;
    h = n > 1 ? g.axes[n - 2] : one;
    w = g.axes[n - 1];
    group_in = g.in_channels / g.groups;
    group_out = g.out_channels / g.groups;
    taps = d.kernel * h.kernel * w.kernel;
    rows = group_in * taps;
    in_size = d.in * h.in * w.in;
    out_size = d.out * h.out * w.out;
    in = Of(g.in_channels, in_size);
    out = Of(g.out_channels, out_size);
    // A block of columns stays in the second cache.
    block = std::clamp<int64_t>((1 << 17) / std::max<int64_t>(rows, 1), 64,
                                std::max<int64_t>(out_size, 64));
  }
  Strides Of(int64_t channels, int64_t size) const {
    return g.channels_last ? Strides{channels * size, 1, channels}
                           : Strides{channels * size, size, 1};
  }
  /// Elements of the scratch that the functions below want.
  int64_t ScratchSize() const { return (rows + group_out) * block; }

  ConvGeometry g;
  WindowAxis d, h, w;  ///< missing axes have extent 1
  int64_t group_in, group_out, taps, rows, in_size, out_size, block;
  Strides in, out;
};

namespace conv_internal {

// The output positions [first, last) at filter tap `tap`, row by row:
// body(at, input, before, count, all): of `all` positions from `at` (counted
// from `first`) `count` after the first `before` meet the input, beginning at
// input position `input`; the others meet padding.
template <typename Body>
void ForEachRun(const ConvGemm& c, int64_t tap, int64_t first, int64_t last,
                const Body& body) {
  const int64_t kw = tap % c.w.kernel;
  const int64_t kh = tap / c.w.kernel % c.h.kernel;
  const int64_t kd = tap / c.w.kernel / c.h.kernel;
  const auto [left, right] = c.w.Valid(kw);
  for (int64_t p = first; p < last;) {
    const int64_t x = p % c.w.out, line = p / c.w.out;
    const int64_t all = std::min(c.w.out - x, last - p);
    const int64_t y = c.h.Source(line % c.h.out, kh);
    const int64_t z = c.d.Source(line / c.h.out, kd);
    const bool inside = y >= 0 && y < c.h.in && z >= 0 && z < c.d.in;
    const int64_t from = std::clamp(left, x, x + all);
    const int64_t to = inside ? std::clamp(right, from, x + all) : from;
    body(p - first, (z * c.h.in + y) * c.w.in + c.w.Source(from, kw), from - x,
         to - from, all);
    p += all;
  }
}

// columns[rows][last - first] of one image and group.
template <typename T>
void FillColumns(const ConvGemm& c, const T* in, int64_t first, int64_t last,
                 T* columns) {
  const int64_t n = last - first, step = c.w.stride * c.in.position;
  ParallelFor(c.rows, 8192 / n + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = in + r / c.taps * c.in.channel;
      T* row = columns + r * n;
      ForEachRun(c, r % c.taps, first, last,
                 [&](int64_t at, int64_t input, int64_t before, int64_t count,
                     int64_t all) {
                   T* to = row + at;
                   std::fill(to, to + before, T(0));
                   const T* x = from + input * c.in.position;
                   for (int64_t i = 0; i < count; ++i)
                     to[before + i] = x[i * step];
                   std::fill(to + before + count, to + all, T(0));
                 });
    }
  });
}

// Adds columns to where they came from.
template <typename T>
void AddColumns(const ConvGemm& c, const T* columns, int64_t first,
                int64_t last, T* in) {
  const int64_t n = last - first, step = c.w.stride * c.in.position;
  const int64_t grain = 8192 / (n * c.taps) + 1;
  ParallelFor(c.group_in, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin * c.taps; r < end * c.taps; ++r) {
      T* to = in + r / c.taps * c.in.channel;
      const T* row = columns + r * n;
      ForEachRun(c, r % c.taps, first, last,
                 [&](int64_t at, int64_t input, int64_t before, int64_t count,
                     int64_t) {
                   T* x = to + input * c.in.position;
                   for (int64_t i = 0; i < count; ++i)
                     x[i * step] += row[at + before + i];
                 });
    }
  });
}

// Calls body(image, group, first, last) for every block of output positions.
template <typename Body>
void ForEachBlock(const ConvGemm& c, const Body& body) {
  for (int64_t n = 0; n < c.g.batch; ++n)
    for (int64_t group = 0; group < c.g.groups; ++group)
      for (int64_t p = 0; p < c.out_size; p += c.block)
        body(n, group, p, std::min(p + c.block, c.out_size));
}

// A matrix [outputs a group, positions] out of an output-shaped tensor.
template <typename T>
void CopyOutputs(const ConvGemm& c, const T* out, int64_t first, int64_t last,
                 T* matrix) {
  for (int64_t o = 0; o < c.group_out; ++o)
    for (int64_t p = first; p < last; ++p)
      *matrix++ = out[o * c.out.channel + p * c.out.position];
}

// C += op(A) op(B), its rows shared out among the threads.
template <typename T>
void AddProduct(const GemmShape& s, const T* a, const T* b, T* c) {
  const int64_t grain = std::max<int64_t>(kGemmM, 65536 / (s.n * s.k + 1));
  ParallelFor(s.m, grain, [&](int64_t begin, int64_t end) {
    GemmRows(s, T(1), a, b, c, begin, end);
  });
}

}  // namespace conv_internal

/// output = input * filter, or output += with `add`.
template <typename T>
void ConvForward(const ConvGemm& c, const T* input, const T* filter, T* output,
                 T* scratch, bool add = false) {
  using namespace conv_internal;  // NOLINT
  T* columns = scratch;
  T* result = scratch + c.rows * c.block;
  ForEachBlock(c, [&](int64_t n, int64_t group, int64_t first, int64_t last) {
    FillColumns(c, input + n * c.in.image + group * c.group_in * c.in.channel,
                first, last, columns);
    const int64_t count = last - first;
    std::fill(result, result + c.group_out * count, T(0));
    AddProduct<T>({c.group_out, count, c.rows},
                  filter + group * c.group_out * c.rows, columns, result);
    T* to = output + n * c.out.image + group * c.group_out * c.out.channel +
            first * c.out.position;
    for (int64_t o = 0; o < c.group_out; ++o) {
      const T* row = result + o * count;
      for (int64_t p = 0; p < count; ++p) {
        T& y = to[o * c.out.channel + p * c.out.position];
        y = add ? y + row[p] : row[p];
      }
    }
  });
}

/// din = the gradient by the input.
template <typename T>
void ConvBackwardInput(const ConvGemm& c, const T* filter, const T* dout,
                       T* din, T* scratch) {
  using namespace conv_internal;  // NOLINT
  T* columns = scratch;
  T* outputs = scratch + c.rows * c.block;
  std::fill(din, din + c.g.batch * c.in.image, T(0));
  ForEachBlock(c, [&](int64_t n, int64_t group, int64_t first, int64_t last) {
    CopyOutputs(c, dout + n * c.out.image + group * c.group_out * c.out.channel,
                first, last, outputs);
    const int64_t count = last - first;
    std::fill(columns, columns + c.rows * count, T(0));
    GemmShape shape{c.rows, count, c.group_out};
    shape.trans_a = true;
    AddProduct<T>(shape, filter + group * c.group_out * c.rows, outputs,
                  columns);
    AddColumns(c, columns, first, last,
               din + n * c.in.image + group * c.group_in * c.in.channel);
  });
}

/// dfilter = the gradient by the filter.
template <typename T>
void ConvBackwardFilter(const ConvGemm& c, const T* input, const T* dout,
                        T* dfilter, T* scratch) {
  using namespace conv_internal;  // NOLINT
  T* columns = scratch;
  T* outputs = scratch + c.rows * c.block;
  std::fill(dfilter, dfilter + c.g.out_channels * c.rows, T(0));
  ForEachBlock(c, [&](int64_t n, int64_t group, int64_t first, int64_t last) {
    FillColumns(c, input + n * c.in.image + group * c.group_in * c.in.channel,
                first, last, columns);
    CopyOutputs(c, dout + n * c.out.image + group * c.group_out * c.out.channel,
                first, last, outputs);
    GemmShape shape{c.group_out, c.rows, last - first};
    shape.trans_b = true;
    AddProduct<T>(shape, outputs, columns,
                  dfilter + group * c.group_out * c.rows);
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_CONV_GEMM_H_
