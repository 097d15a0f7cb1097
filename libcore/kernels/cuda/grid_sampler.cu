// SPDX-License-Identifier: Apache-2.0
// grid_sampler and affine_grid. The formulas are those of libcore/ops; places
// are rounded as there, so that both sides agree which neighbours a place has.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/exact.h"
#include "libcore/kernels/cuda/grid_sampler_arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// A place on one axis of x, and its derivative by the grid's number.
struct Spot {
  float at = 0, slope = 0;
};

PD_DEVICE Spot Clamped(float last, Spot spot) {
  if (spot.at >= 0 && spot.at <= last) return spot;
  if (!(spot.at > last)) spot.at = 0;  // a NaN too
  if (spot.at > last) spot.at = last;
  spot.slope = 0;
  return spot;
}

PD_DEVICE Spot SpotOf(const SampleArgs& p, float g, int64_t extent) {
  const bool corners = p.align_corners != 0;
  const float last = static_cast<float>(extent - 1);
  Spot spot;
  spot.slope = (corners ? last : static_cast<float>(extent)) / 2;
  spot.at = Add(Mul(Add(g, 1.0f), spot.slope), corners ? 0.0f : -0.5f);
  if (p.padding == kZerosOutside) return spot;
  if (p.padding == kReflected) {
    const float low = corners ? 0.0f : -0.5f;
    const float span = corners ? last : last + 1;
    if (span <= 0) return Spot{};
    const bool left = spot.at < low;
    const float away = fabsf(Add(spot.at, -low));
    const float turns = floorf(Div(away, span));
    const float rest = Add(away, -Mul(turns, span));
    const bool odd = fmodf(turns, 2.0f) != 0;
    spot.at = odd ? Add(Add(low, span), -rest) : Add(low, rest);
    if (left != odd) spot.slope = -spot.slope;
  }
  return Clamped(last, spot);
}

// Where output position `i` of all images reads, and its lower neighbour.
struct Reading {
  Spot spots[3];
  int64_t low[3];
  bool inside = true;  // of the nearest one

  PD_DEVICE Reading(const SampleArgs& p, int64_t i) {
    for (int a = 0; a < 3; ++a) {
      low[a] = 0;
      if (a >= p.axes) continue;
      spots[a] = SpotOf(p, p.grid[i * p.axes + a], p.extent[a]);
      const float spot = spots[a].at;
      if (p.nearest != 0) {
        const float at = p.ties_to_even != 0 ? rintf(spot) : roundf(spot);
        const float bounded = p.axes == 3 ? spot : at;
        const bool in =
            bounded >= 0 && bounded <= static_cast<float>(p.extent[a] - 1);
        inside = inside && in;
        low[a] = in ? static_cast<int64_t>(at) : 0;
      } else {
        // Far outside is outside: keep the conversion defined.
        const float at = floorf(spot);
        const bool near = at >= -2 && at <= static_cast<float>(p.extent[a] + 2);
        low[a] = near ? static_cast<int64_t>(at) : -2;
      }
    }
  }

  PD_DEVICE float Weight(int corner, int a) const {
    const float f = spots[a].at - floorf(spots[a].at);
    return (corner >> a & 1) != 0 ? f : 1 - f;
  }
  PD_DEVICE float Product(const SampleArgs& p, int corner, int but) const {
    float w = 1;
    for (int a = 0; a < p.axes; ++a)
      if (a != but) w *= Weight(corner, a);
    return w;
  }
  // The neighbour's place in a channel of x; -1: outside.
  PD_DEVICE int64_t Neighbour(const SampleArgs& p, int corner) const {
    int64_t offset = 0;
    for (int a = 0; a < p.axes; ++a) {
      const int64_t at = low[a] + (corner >> a & 1);
      if (at < 0 || at >= p.extent[a]) return -1;
      offset += at * p.step[a];
    }
    return offset;
  }
};

PD_DEVICE int Corners(const SampleArgs& p) {
  return p.nearest != 0 ? 1 : 1 << p.axes;
}

struct Sample {
  PD_DEVICE static void Run(const Block& block, const SampleArgs& p) {
    block.Spread(p.images * p.channels * p.out_size, [&](int64_t e) {
      const int64_t plane = e / p.out_size, image = plane / p.channels;
      const Reading r(p, image * p.out_size + e % p.out_size);
      const float* x = p.x + plane * p.in_size;
      float sum = 0;
      for (int corner = 0; corner < Corners(p) && r.inside; ++corner) {
        const int64_t from = r.Neighbour(p, corner);
        if (p.nearest != 0)
          sum = x[from];
        else if (from >= 0)
          sum += r.Product(p, corner, -1) * x[from];
      }
      p.to[e] = sum;
    });
  }
};

// A thread has a place: no two write to one number of the grid.
struct SampleGradGrid {
  PD_DEVICE static void Run(const Block& block, const SampleArgs& p) {
    block.Spread(p.images * p.out_size, [&](int64_t i) {
      const Reading r(p, i);
      const int64_t first = i / p.out_size * p.channels;
      float slopes[3] = {0, 0, 0};
      for (int corner = 0; p.nearest == 0 && corner < Corners(p); ++corner) {
        const int64_t at = r.Neighbour(p, corner);
        if (at < 0) continue;
        float dot = 0;
        for (int64_t c = first; c < first + p.channels; ++c)
          dot +=
              p.dout[c * p.out_size + i % p.out_size] * p.x[c * p.in_size + at];
        for (int a = 0; a < p.axes; ++a)
          slopes[a] +=
              ((corner >> a & 1) != 0 ? dot : -dot) * r.Product(p, corner, a);
      }
      for (int a = 0; a < p.axes; ++a)
        p.to[i * p.axes + a] = slopes[a] * r.spots[a].slope;
    });
  }
};

constexpr uint64_t kNoCell = ~uint64_t{0};

// The cell whose lower corner is `low`, above the place's number.
PD_DEVICE uint64_t CellOf(const SampleArgs& p, const int64_t* low) {
  int64_t cell = 0;
  for (int a = p.axes - 1; a >= 0; --a) {
    if (low[a] < -1 || low[a] >= p.extent[a]) return kNoCell;
    cell = cell * (p.extent[a] + 1) + low[a] + 1;
  }
  return static_cast<uint64_t>(cell) << 32;
}

struct SampleKeys {
  PD_DEVICE static void Run(const Block& block, const SampleArgs& p) {
    block.Spread(p.images * p.line, [&](int64_t e) {
      const int64_t place = e % p.line;
      p.keys[e] = kNoCell;
      if (place >= p.out_size) return;
      const Reading r(p, e / p.line * p.out_size + place);
      if (r.inside) p.keys[e] = CellOf(p, r.low) | static_cast<uint64_t>(place);
    });
  }
};

// An element of x asks the cells around it for the places that read it.
struct SampleGradX {
  PD_DEVICE static void Run(const Block& block, const SampleArgs& p) {
    block.Spread(p.images * p.channels * p.in_size, [&](int64_t e) {
      const int64_t plane = e / p.in_size, image = plane / p.channels;
      const uint64_t* keys = p.keys + image * p.line;
      float sum = 0;
      for (int corner = 0; corner < Corners(p); ++corner) {
        int64_t low[3];
        for (int a = 0; a < p.axes; ++a)
          low[a] = e % p.in_size / p.step[a] % p.extent[a] - (corner >> a & 1);
        const uint64_t cell = CellOf(p, low);
        int64_t i = 0;
        for (int64_t end = p.out_size; i < end;) {
          const int64_t middle = (i + end) / 2;
          if (keys[middle] < cell)
            i = middle + 1;
          else
            end = middle;
        }
        for (; i < p.out_size && keys[i] >> 32 == cell >> 32; ++i) {
          const auto place = static_cast<int64_t>(keys[i] & 0xffffffffu);
          const Reading r(p, image * p.out_size + place);
          sum += (p.nearest != 0 ? 1.0f : r.Product(p, corner, -1)) *
                 p.dout[plane * p.out_size + place];
        }
      }
      p.to[e] = sum;
    });
  }
};

// Column j of the position's (x, y, 1) or (x, y, z, 1).
PD_DEVICE float Base(const AffineArgs& p, int64_t position, int j) {
  if (j == p.axes) return 1;
  for (int a = 0; a < j; ++a) position /= p.extent[a];
  const int64_t i = position % p.extent[j];
  const bool corners = p.align_corners != 0;
  const int64_t steps = corners ? p.extent[j] - 1 : p.extent[j];
  if (steps == 0) return -1;
  return Add(-1.0f, Div(static_cast<float>(2 * i) + (corners ? 0.0f : 1.0f),
                        static_cast<float>(steps)));
}

struct AffineGrid {
  PD_DEVICE static void Run(const Block& block, const AffineArgs& p) {
    block.Spread(p.images * p.positions * p.axes, [&](int64_t e) {
      const int64_t row = e % p.axes, position = e / p.axes % p.positions;
      const int64_t image = e / p.axes / p.positions;
      const float* theta = p.from + (image * p.axes + row) * (p.axes + 1);
      float sum = 0;
      for (int j = 0; j <= p.axes; ++j) sum += theta[j] * Base(p, position, j);
      p.to[e] = sum;
    });
  }
};

// A block for each element of Theta.
struct AffineGridGrad {
  PD_DEVICE static void Run(const Block& block, const AffineArgs& p) {
    const int64_t columns = p.axes + 1;
    for (int64_t e = block.index(); e < p.images * p.axes * columns;
         e += block.blocks()) {
      const int j = static_cast<int>(e % columns);
      const int64_t row = e / columns % p.axes, image = e / columns / p.axes;
      const float* from = p.from + image * p.positions * p.axes + row;
      const float sum = SumOf(block, p.positions, [&](int64_t i) {
        return from[i * p.axes] * Base(p, i, j);
      });
      block.Each([&](int thread) {
        if (thread == 0) p.to[e] = sum;
      });
    }
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(sample, Sample, SampleArgs)
PD_KERNEL(sample_keys, SampleKeys, SampleArgs)
PD_KERNEL(sample_grad_x, SampleGradX, SampleArgs)
PD_KERNEL(sample_grad_grid, SampleGradGrid, SampleArgs)
PD_KERNEL(affine_grid, AffineGrid, AffineArgs)
PD_KERNEL(affine_grid_grad, AffineGridGrad, AffineArgs)
