// SPDX-License-Identifier: Apache-2.0
// 8-bit arithmetic around cuBLASLt's products, and without them. The formulas
// are those of ops/int8.h, to the bit.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/exact.h"
#include "libcore/kernels/cuda/int8_arguments.h"
#include "libcore/kernels/cuda/pool_windows.h"

namespace pd::cuda {
namespace {

PD_DEVICE float Clip(float z, float low, float high) {
  z = z > low ? z : low;
  return z < high ? z : high;
}

PD_DEVICE float Activated(const Int8Finish& f, float z) {
  switch (f.activation) {
    case Int8Activation::kNone:
      return z;
    case Int8Activation::kRelu:
      return z > 0 ? z : 0.0f;
    case Int8Activation::kClip:
      return Clip(z, f.a, f.b);
    case Int8Activation::kLeaky:
      return z > 0 ? z : Mul(z, f.a);
    case Int8Activation::kHardSwish:
      return Mul(Mul(z, Clip(Add(z, f.c), 0, f.a)), f.b);
    case Int8Activation::kHardSigmoid:
      return Clip(fmaf(z, f.a, f.b), 0, 1);
  }
  return z;
}

// z, or the byte that it becomes, or both, at `at`.
PD_DEVICE void Finish(const Int8Finish& f, float z, int64_t at, uint8_t* bytes,
                      float* floats) {
  z = Activated(f, z);
  if (floats != nullptr) floats[at] = z;
  if (bytes == nullptr) return;
  const float v = Clip(Mul(z, f.factor), static_cast<float>(f.low - f.zero),
                       static_cast<float>(f.high - f.zero));
  bytes[at] = static_cast<uint8_t>(static_cast<int32_t>(rintf(v)) + f.zero);
}

PD_DEVICE float Real(uint8_t u, int32_t zero) {
  return static_cast<float>(static_cast<int32_t>(u) - zero);
}

// Where tap k reads on an axis; -1 for nowhere.
PD_DEVICE int64_t Source(bool transposed, int64_t in, int64_t stride,
                         int64_t pad, int64_t at, int64_t shift) {
  int64_t from = at * stride - pad + shift;
  if (transposed) {
    from = at + pad - shift;
    if (from % stride != 0) return -1;
    from /= stride;
  }
  return from >= 0 && from < in ? from : -1;
}

// The place of a tap in a channel for an output position; -1 for nowhere.
PD_DEVICE int64_t PlaceOf(const Int8WindowArgs& p, int64_t position,
                          int64_t tap) {
  const bool transposed = p.transposed != 0;
  const int64_t y = Source(transposed, p.in_h, p.stride_h, p.pad_h,
                           position / p.out_w, tap / p.kernel_w * p.dilation_h);
  const int64_t x = Source(transposed, p.in_w, p.stride_w, p.pad_w,
                           position % p.out_w, tap % p.kernel_w * p.dilation_w);
  return y < 0 || x < 0 ? -1 : y * p.in_w + x;
}

struct alignas(16) Bytes16 {
  uint32_t words[4];
};

// Neighbouring threads take neighbouring rows, which read neighbouring bytes.
struct Rows {
  PD_DEVICE static void Run(const Block& block, const Int8WindowArgs& p) {
    const int64_t chunks = p.depth / kInt8Depth, size = p.taps * p.channels;
    const int64_t positions = p.out_h * p.out_w;
    block.Spread(p.groups * chunks * p.rows, [&](int64_t e) {
      const int64_t row = e % p.rows, chunk = e / p.rows % chunks;
      const int64_t group = e / p.rows / chunks;
      const uint8_t* image = p.x + row / positions * p.image_step +
                             group * p.channels * p.channel_step;
      const int64_t first = chunk * kInt8Depth;
      int64_t tap = first / p.channels, channel = first % p.channels;
      int64_t from = first < size ? PlaceOf(p, row % positions, tap) : -1;
      Bytes16 bytes{};
      for (int i = 0; i < kInt8Depth && first + i < size; ++i) {
        const int32_t u =
            from < 0 ? p.zero : image[channel * p.channel_step + from];
        bytes.words[i / 4] |= (static_cast<uint32_t>(u - p.shift) & 0xff)
                              << i % 4 * 8;
        if (++channel == p.channels) {
          channel = 0;
          if (++tap < p.taps) from = PlaceOf(p, row % positions, tap);
        }
      }
      *reinterpret_cast<Bytes16*>(
          p.rows_out + (group * p.rows + row) * p.depth + first) = bytes;
    });
  }
};

// The result of a channel's sum at a position of its image.
PD_DEVICE void FinishSum(const Int8SumArgs& p, int32_t sum, int64_t channel,
                         int64_t row) {
  const int64_t at =
      (row / p.positions * p.groups * p.outputs + channel) * p.positions +
      row % p.positions;
  float z = fmaf(static_cast<float>(sum), p.scales[channel], p.bias[channel]);
  if (p.residual_bytes != nullptr)
    z = fmaf(Real(p.residual_bytes[at], p.finish.y_zero), p.finish.y_scale, z);
  else if (p.residual_floats != nullptr)
    z = Add(z, p.residual_floats[at]);
  Finish(p.finish, z, at, p.bytes, p.floats);
}

struct alignas(16) Sums4 {
  int32_t sums[kInt8Width];
};

// Neighbouring threads write neighbouring elements: of a row where images have
// one position, else of positions.
struct FinishSums {
  PD_DEVICE static void Run(const Block& block, const Int8SumArgs& p) {
    const int64_t fours = p.width / kInt8Width;
    block.Spread(p.groups * fours * p.rows, [&](int64_t e) {
      const bool flat = p.positions == 1;
      const int64_t four = flat ? e % fours : e / p.rows % fours;
      const int64_t row = flat ? e / fours % p.rows : e % p.rows;
      const int64_t group = e / p.rows / fours;
      const Sums4 sums = *reinterpret_cast<const Sums4*>(
          p.sums + (group * p.rows + row) * p.width + four * kInt8Width);
      for (int i = 0; i < kInt8Width; ++i) {
        const int64_t output = four * kInt8Width + i;
        if (output >= p.outputs) break;
        const int64_t channel = group * p.outputs + output;
        FinishSum(p, sums.sums[i] + p.corrections[channel], channel, row);
      }
    });
  }
};

struct Depthwise {
  PD_DEVICE static void Run(const Block& block, const Int8DepthwiseArgs& p) {
    const Int8WindowArgs& w = p.window;
    const int64_t positions = w.out_h * w.out_w;
    const int64_t outputs = w.groups * p.sum.outputs;
    block.Spread(outputs * w.rows, [&](int64_t e) {
      const int64_t position = e % positions, channel = e / positions % outputs;
      const int64_t image = e / positions / outputs;
      const uint8_t* x = w.x + image * w.image_step +
                         channel / p.sum.outputs * w.channels * w.channel_step;
      const int8_t* weights = p.weights + channel * w.taps * w.channels;
      int32_t sum = 0;
      for (int64_t tap = 0; tap < w.taps; ++tap) {
        const int64_t from = PlaceOf(w, position, tap);
        if (from < 0) continue;
        for (int64_t c = 0; c < w.channels; ++c)
          sum += (static_cast<int32_t>(x[c * w.channel_step + from]) - w.zero) *
                 weights[tap * w.channels + c];
      }
      FinishSum(p.sum, sum, channel, image * positions + position);
    });
  }
};

struct Map {
  PD_DEVICE static void Run(const Block& block, const Int8MapArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const float z = p.floats_in != nullptr
                          ? p.floats_in[i]
                          : Mul(Real(p.x[i], p.zero), p.scale);
      Finish(p.finish, z, i, p.bytes, p.floats);
    });
  }
};

struct Pair {
  PD_DEVICE static void Run(const Block& block, const Int8MapArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const float left = Real(p.x[i], p.zero);
      const float right =
          Mul(Real(p.y[p.repeats == 1 ? i : i / p.repeats], p.finish.y_zero),
              p.finish.y_scale);
      const float z = p.adds != 0 ? fmaf(left, p.scale, right)
                                  : Mul(Mul(left, p.scale), right);
      Finish(p.finish, z, i, p.bytes, p.floats);
    });
  }
};

struct Pool {
  PD_DEVICE static void Run(const Block& block, const Int8PoolArgs& p) {
    const PoolAxis &h = p.windows.axes[1], &w = p.windows.axes[2];
    const bool adaptive = p.windows.adaptive != 0;
    block.Spread(p.windows.n, [&](int64_t e) {
      int32_t top, bottom, left, right, tall, wide;
      WindowOf(h, adaptive, static_cast<int32_t>(e / w.out % h.out), &top,
               &bottom, &tall);
      WindowOf(w, adaptive, static_cast<int32_t>(e % w.out), &left, &right,
               &wide);
      const uint8_t* plane = p.x + e / w.out / h.out * h.in * w.in;
      int32_t sum = 0, most = 0;
      for (int32_t i = top; i < bottom; ++i)
        for (int32_t j = left; j < right; ++j) {
          const int32_t u = plane[int64_t{i} * w.in + j];
          sum += u;
          most = u > most ? u : most;
        }
      if (p.windows.max != 0) {
        p.bytes[e] = static_cast<uint8_t>(most);
        return;
      }
      const int32_t inside = (bottom - top) * (right - left);
      const int32_t count =
          p.windows.exclusive != 0 || adaptive ? inside : tall * wide;
      const float z =
          Div(Mul(static_cast<float>(sum - inside * p.zero), p.scale),
              static_cast<float>(count));
      Finish(p.finish, z, e, p.bytes, p.floats);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(int8_rows, Rows, Int8WindowArgs)
PD_KERNEL(int8_finish_sums, FinishSums, Int8SumArgs)
PD_KERNEL(int8_depthwise, Depthwise, Int8DepthwiseArgs)
PD_KERNEL(int8_map, Map, Int8MapArgs)
PD_KERNEL(int8_pair, Pair, Int8MapArgs)
PD_KERNEL(int8_pool, Pool, Int8PoolArgs)
