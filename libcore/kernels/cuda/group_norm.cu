// SPDX-License-Identifier: Apache-2.0
// group_norm and instance_norm. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

PD_DEVICE float ScaleOf(const GroupArgs& p, int64_t channel) {
  return p.scale != nullptr ? p.scale[channel] : 1.0f;
}

PD_DEVICE float InverseOf(const GroupArgs& p, int64_t group) {
  const float v = p.variance[group];
  return p.instance != 0 ? v : 1 / sqrtf(v + p.epsilon);
}

// Element i of a group of an image, and its channel.
struct Place {
  int64_t at, channel;
};
PD_DEVICE Place PlaceOf(const GroupArgs& p, int64_t group, int64_t i) {
  const int64_t channel = group % p.groups * p.width + i / p.positions;
  return {group / p.groups * p.groups * p.width * p.positions +
              channel * p.channel_step + i % p.positions * p.position_step,
          channel};
}

// A block takes a group of an image.
struct GroupNorm {
  PD_DEVICE static void Run(const Block& block, const GroupArgs& p) {
    const int64_t count = p.width * p.positions;
    const float n = static_cast<float>(count);
    for (int64_t g = block.index(); g < p.images * p.groups;
         g += block.blocks()) {
      const auto x = [&](int64_t i) { return p.x[PlaceOf(p, g, i).at]; };
      const float mean = SumOf(block, count, x) / n;
      const float variance =
          SumOf(block, count,
                [&](int64_t i) { return (x(i) - mean) * (x(i) - mean); }) /
          n;
      const float inverse = 1 / sqrtf(variance + p.epsilon);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < count; i += block.threads()) {
          const Place place = PlaceOf(p, g, i);
          p.out[place.at] =
              (p.x[place.at] - mean) * inverse * ScaleOf(p, place.channel) +
              (p.bias != nullptr ? p.bias[place.channel] : 0.0f);
        }
        if (thread != 0) return;
        if (p.mean != nullptr) p.mean[g] = mean;
        if (p.variance != nullptr)
          p.variance[g] = p.instance != 0 ? inverse : variance;
      });
    }
  }
};

struct GroupNormGradX {
  PD_DEVICE static void Run(const Block& block, const GroupArgs& p) {
    const int64_t count = p.width * p.positions;
    const float n = static_cast<float>(count);
    for (int64_t g = block.index(); g < p.images * p.groups;
         g += block.blocks()) {
      const float mean = p.mean[g], inverse = InverseOf(p, g);
      const auto d = [&](int64_t i) {
        const Place place = PlaceOf(p, g, i);
        return p.dy[place.at] * ScaleOf(p, place.channel);
      };
      const auto h = [&](int64_t i) {
        return (p.x[PlaceOf(p, g, i).at] - mean) * inverse;
      };
      // group_norm without Scale: as PaddlePaddle's CPU kernel.
      const bool centered = p.instance != 0 || p.scale != nullptr;
      const float sum = centered ? SumOf(block, count, d) / n : 0.0f;
      const float dot =
          SumOf(block, count, [&](int64_t i) { return d(i) * h(i); }) / n;
      block.Each([&](int thread) {
        for (int64_t i = thread; i < count; i += block.threads())
          p.out[PlaceOf(p, g, i).at] = inverse * (d(i) - sum - h(i) * dot);
      });
    }
  }
};

// A block takes a channel.
struct GroupNormGradScale {
  PD_DEVICE static void Run(const Block& block, const GroupArgs& p) {
    const int64_t channels = p.groups * p.width;
    for (int64_t c = block.index(); c < channels; c += block.blocks()) {
      const auto at = [&](int64_t i) {
        return i / p.positions * channels * p.positions + c * p.channel_step +
               i % p.positions * p.position_step;
      };
      const int64_t count = p.images * p.positions;
      const float dot = SumOf(block, count, [&](int64_t i) {
        const int64_t g = i / p.positions * p.groups + c / p.width;
        return p.dy[at(i)] * (p.x[at(i)] - p.mean[g]) * InverseOf(p, g);
      });
      const float sum =
          SumOf(block, count, [&](int64_t i) { return p.dy[at(i)]; });
      block.Each([&](int thread) {
        if (thread != 0) return;
        if (p.dscale != nullptr) p.dscale[c] = dot;
        if (p.dbias != nullptr) p.dbias[c] = sum;
      });
    }
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(group_norm, GroupNorm, GroupArgs)
PD_KERNEL(group_norm_grad_x, GroupNormGradX, GroupArgs)
PD_KERNEL(group_norm_grad_scale, GroupNormGradScale, GroupArgs)
