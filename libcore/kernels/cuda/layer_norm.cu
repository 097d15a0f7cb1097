// SPDX-License-Identifier: Apache-2.0
// Layer norm, with the formulas of libcore/ops/norm/layer_norm.cc. A few
// threads take a row and keep what they read of it, so that memory is read
// once.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/columns.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// W numbers from i on, or others where there are none.
template <int W, typename T, typename In>
PD_DEVICE Pack<T, W> PackOr(const In& in, int64_t i, T otherwise) {
  if (in != nullptr) return LoadPack<W>(in, i);
  Pack<T, W> pack;
  PD_UNROLL
  for (int j = 0; j < W; ++j) pack[j] = otherwise;
  return pack;
}

// Packs of W numbers of a row that each thread of it can keep, of N tensors.
template <int N>
constexpr int kKept = kRowPacks / N;

// The share of a thread in a row of n numbers of N tensors: packs from `first`
// on, `step` apart, which are kept.
template <typename T, int W, int N>
struct KeptRow {
  static constexpr int kWidth = W;

  PD_DEVICE void Load(const NumbersIn<T> (&in)[N], int64_t n, int64_t from,
                      int64_t distance) {
    constexpr int K = kKept<N>;
    first = static_cast<int>(from);
    step = static_cast<int>(distance);
    const int left = static_cast<int>(n) - first;
    count = left <= 0 ? 0 : (left - 1) / step + 1;
    decltype(LoadRaw<W>(in[0], 0)) raw[K][N];
    PD_UNROLL
    for (int k = 0; k < K; ++k)
      if (k < count) {
        PD_UNROLL
        for (int t = 0; t < N; ++t)
          raw[k][t] = LoadRaw<W>(in[t], first + k * step);
      }
    PD_UNROLL
    for (int k = 0; k < K; ++k)
      if (k < count) {
        PD_UNROLL
        for (int t = 0; t < N; ++t) packs[k][t] = Unpack(in[t], raw[k][t]);
      }
  }
  // f(i, packs that begin at i)
  template <typename F>
  PD_DEVICE void ForEach(const F& f) const {
    PD_UNROLL
    for (int k = 0; k < kKept<N>; ++k)
      if (k < count) f(first + k * step, packs[k]);
  }

  int first = 0, step = 0, count = 0;
  Pack<T, W> packs[kKept<N>][N];
};

// The same of a row that is too long, which is read again each time.
template <typename T, int W, int N>
struct LongRow {
  static constexpr int kWidth = W;

  PD_DEVICE void Load(const NumbersIn<T> (&in)[N], int64_t n, int64_t from,
                      int64_t distance) {
    PD_UNROLL
    for (int t = 0; t < N; ++t) row[t] = in[t];
    length = n;
    first = from;
    step = distance;
  }
  template <typename F>
  PD_DEVICE void ForEach(const F& f) const {
    constexpr int U = 2;
    int64_t i = first;
    PD_KEEP_LOOP
    for (; i + (U - 1) * step < length; i += U * step) Visit<U>(i, f);
    PD_KEEP_LOOP
    for (; i < length; i += step) Visit<1>(i, f);
  }
  template <int U, typename F>
  PD_DEVICE void Visit(int64_t i, const F& f) const {
    decltype(LoadRaw<W>(row[0], 0)) raw[U][N];
    PD_UNROLL
    for (int k = 0; k < U; ++k) {
      PD_UNROLL
      for (int t = 0; t < N; ++t) raw[k][t] = LoadRaw<W>(row[t], i + k * step);
    }
    PD_UNROLL
    for (int k = 0; k < U; ++k) {
      Pack<T, W> packs[N];
      PD_UNROLL
      for (int t = 0; t < N; ++t) packs[t] = Unpack(row[t], raw[k][t]);
      f(i + k * step, packs);
    }
  }

  NumbersIn<T> row[N];
  int64_t length = 0, first = 0, step = 0;
};

// run(a row of N tensors) of the kind that p's rows are.
template <int W, int N, typename T, typename F>
PD_DEVICE void ByLength(const NormArgsOf<T>& p, const F& run) {
  if (p.n <= int64_t{kKept<N>} * W * p.lanes)
    run(KeptRow<T, W, N>());
  else
    run(LongRow<T, W, N>());
}
template <int N, typename T, typename F>
PD_DEVICE void ByRow(const NormArgsOf<T>& p, const F& run) {
  if constexpr (sizeof(T) == sizeof(float))
    if (p.width == 4) return ByLength<4, N>(p, run);
  ByLength<1, N>(p, run);
}

// f(thread, row, its first number) for the threads that have one of the block's
// rows.
template <int W, typename T, typename F>
PD_DEVICE void EachRow(const Block& block, const NormArgsOf<T>& p, const F& f) {
  const int rows = block.threads() / p.lanes;
  block.EachAlone([&](int thread) {
    const int64_t row = block.index() * rows + thread / p.lanes;
    if (row < p.rows) f(thread, row, int64_t{W} * (thread % p.lanes));
  });
}

// The mean first: the variance is of what differs from it.
template <typename T>
struct LayerNorm {
  PD_DEVICE static void Run(const Block& block, const NormArgsOf<T>& p) {
    ByRow<1>(p, [&](auto kind) { Rows<decltype(kind)>(block, p); });
  }

  template <typename Row>
  PD_DEVICE static void Rows(const Block& block, const NormArgsOf<T>& p) {
    constexpr int W = Row::kWidth;
    const T n = static_cast<T>(p.n);
    PerThread<Row> x;
    PerThread<T> mean(0), variance(0);
    EachRow<W>(block, p, [&](int thread, int64_t row, int64_t first) {
      x[thread].Load({p.x + row * p.n}, p.n, first, int64_t{W} * p.lanes);
      x[thread].ForEach([&](int64_t, const auto& v) {
        PD_UNROLL
        for (int j = 0; j < W; ++j) mean[thread] += v[0][j];
      });
    });
    block.ReduceGroups(&mean, p.lanes, Plus());
    EachRow<W>(block, p, [&](int thread, int64_t, int64_t) {
      mean[thread] /= n;
      x[thread].ForEach([&](int64_t, const auto& v) {
        PD_UNROLL
        for (int j = 0; j < W; ++j) {
          const T d = v[0][j] - mean[thread];
          variance[thread] += d * d;
        }
      });
    });
    block.ReduceGroups(&variance, p.lanes, Plus());
    EachRow<W>(block, p, [&](int thread, int64_t row, int64_t first) {
      variance[thread] /= n;
      const T inverse = 1 / Sqrt(variance[thread] + p.epsilon);
      x[thread].ForEach([&](int64_t i, const auto& v) {
        const Pack<T, W> scale = PackOr<W, T>(p.scale, i, 1),
                         bias = PackOr<W, T>(p.bias, i, 0);
        Pack<T, W> y;
        PD_UNROLL
        for (int j = 0; j < W; ++j)
          y[j] = (v[0][j] - mean[thread]) * inverse * scale[j] + bias[j];
        StorePack(p.y, row * p.n + i, y);
      });
      if (first != 0) return;
      if (p.mean != nullptr) p.mean[row] = mean[thread];
      if (p.variance != nullptr) p.variance[row] = variance[thread];
    });
  }
};

template <typename T>
struct LayerNormGradX {
  PD_DEVICE static void Run(const Block& block, const NormArgsOf<T>& p) {
    ByRow<2>(p, [&](auto kind) { Rows<decltype(kind)>(block, p); });
  }

  template <typename Row>
  PD_DEVICE static void Rows(const Block& block, const NormArgsOf<T>& p) {
    constexpr int W = Row::kWidth;
    const T n = static_cast<T>(p.n);
    PerThread<Row> both;
    PerThread<T> mean(0), inverse(0), sum(0), dot(0);
    EachRow<W>(block, p, [&](int thread, int64_t row, int64_t first) {
      both[thread].Load({p.x + row * p.n, p.dy + row * p.n}, p.n, first,
                        int64_t{W} * p.lanes);
      mean[thread] = p.mean[row];
      inverse[thread] = 1 / Sqrt(p.variance[row] + p.epsilon);
      both[thread].ForEach([&](int64_t i, const auto& v) {
        const Pack<T, W> scale = PackOr<W, T>(p.scale, i, 1);
        PD_UNROLL
        for (int j = 0; j < W; ++j) {
          const T g = v[1][j] * scale[j];
          sum[thread] += g;
          dot[thread] += g * ((v[0][j] - mean[thread]) * inverse[thread]);
        }
      });
    });
    block.ReduceGroups(&sum, p.lanes, Plus());
    block.ReduceGroups(&dot, p.lanes, Plus());
    EachRow<W>(block, p, [&](int thread, int64_t row, int64_t) {
      const T center = sum[thread] / n, slope = dot[thread] / n;
      both[thread].ForEach([&](int64_t i, const auto& v) {
        const Pack<T, W> scale = PackOr<W, T>(p.scale, i, 1);
        Pack<T, W> dx;
        PD_UNROLL
        for (int j = 0; j < W; ++j) {
          const T h = (v[0][j] - mean[thread]) * inverse[thread];
          dx[j] = (v[1][j] * scale[j] - center - h * slope) * inverse[thread];
        }
        StorePack(p.y, row * p.n + i, dx);
      });
    });
  }
};

// The sums of dy times the normed x, and of dy, over a chunk of rows.
template <typename T, int W>
struct ScaleSums : Numbers<T, 2 * W> {
  PD_DEVICE void Join(const ScaleSums& other) {
    PD_UNROLL
    for (int j = 0; j < 2 * W; ++j) this->at[j] += other[j];
  }
  template <int U>
  PD_DEVICE void Add(const NormArgsOf<T>& p, const ColumnRows& rows,
                     int64_t row) {
    decltype(LoadRaw<W>(p.x, 0)) raw_x[U], raw_dy[U];
    T mean[U], variance[U];
    PD_UNROLL
    for (int k = 0; k < U; ++k) {
      const int64_t at = row + k * rows.step, i = at * p.n + rows.column;
      raw_x[k] = LoadRaw<W>(p.x, i);
      raw_dy[k] = LoadRaw<W>(p.dy, i);
      mean[k] = p.mean[at];
      variance[k] = p.variance[at];
    }
    PD_UNROLL
    for (int k = 0; k < U; ++k) {
      const Pack<T, W> x = Unpack(p.x, raw_x[k]), dy = Unpack(p.dy, raw_dy[k]);
      const T inverse = 1 / Sqrt(variance[k] + p.epsilon);
      PD_UNROLL
      for (int j = 0; j < W; ++j) {
        this->at[j] += dy[j] * ((x[j] - mean[k]) * inverse);
        this->at[W + j] += dy[j];
      }
    }
  }
};
template <typename T>
struct LayerNormGradParts {
  PD_DEVICE static void Run(const Block& block, const NormArgsOf<T>& p) {
    if constexpr (sizeof(T) == sizeof(float))
      if (p.width == 4) return Rows<4>(block, p);
    Rows<1>(block, p);
  }

  template <int W>
  PD_DEVICE static void Rows(const Block& block, const NormArgsOf<T>& p) {
    constexpr int U = 4;
    const ColumnTile tile = TileOf<W>(block, p.grid, false);
    PerThread<ScaleSums<T, W>> sums(ScaleSums<T, W>{});
    EachColumn<W>(block, p.grid, tile, [&](int thread, const auto& rows) {
      int64_t row = rows.first;
      PD_KEEP_LOOP
      for (; row + (U - 1) * rows.step < rows.last; row += U * rows.step)
        sums[thread].template Add<U>(p, rows, row);
      PD_KEEP_LOOP
      for (; row < rows.last; row += rows.step)
        sums[thread].template Add<1>(p, rows, row);
    });
    JoinDown(block, p.grid.across, &sums);
    EachColumn<W>(block, p.grid, tile, [&](int thread, const auto& rows) {
      if (thread >= p.grid.across) return;
      T* const scale = p.parts + 2 * tile.chunk * p.n + rows.column;
      PD_UNROLL
      for (int j = 0; j < W; ++j) {
        scale[j] = sums[thread][j];
        scale[p.n + j] = sums[thread][W + j];
      }
    });
  }
};

// The sums over all chunks: columns of a matrix of as many rows.
template <typename T>
struct PartSum : Numbers<T, 1> {
  PD_DEVICE void Join(const PartSum& other) { this->at[0] += other[0]; }
};
template <typename T>
struct LayerNormGradScale {
  PD_DEVICE static void Run(const Block& block, const NormArgsOf<T>& p) {
    const ColumnTile tile = TileOf<1>(block, p.grid, false);
    PerThread<PartSum<T>> sums(PartSum<T>{});
    EachColumn<1>(block, p.grid, tile, [&](int thread, const auto& rows) {
      T sum = 0;
      for (int64_t row = rows.first; row < rows.last; row += rows.step)
        sum += p.parts[row * p.grid.columns + rows.column];
      sums[thread][0] = sum;
    });
    JoinDown(block, p.grid.across, &sums);
    EachColumn<1>(block, p.grid, tile, [&](int thread, const auto& rows) {
      if (thread >= p.grid.across) return;
      const bool scale = rows.column < p.n;
      const NumbersOut<T>& to = scale ? p.dscale : p.dbias;
      if (to != nullptr)
        to[scale ? rows.column : rows.column - p.n] = sums[thread][0];
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_LAYER_NORM(suffix, T)                                         \
  PD_KERNEL(layer_norm##suffix, LayerNorm<T>, NormArgsOf<T>)             \
  PD_KERNEL(layer_norm_grad_x##suffix, LayerNormGradX<T>, NormArgsOf<T>) \
  PD_SMALL_KERNEL(layer_norm_grad_parts##suffix, LayerNormGradParts<T>,  \
                  NormArgsOf<T>)                                         \
  PD_SMALL_KERNEL(layer_norm_grad_scale##suffix, LayerNormGradScale<T>,  \
                  NormArgsOf<T>)
PD_LAYER_NORM(, float)
PD_LAYER_NORM(_64, double)
