// SPDX-License-Identifier: Apache-2.0
// nce: the draws of libcore/ops/loss/nce.cc, its costs and their slopes. Which
// numbers a draw takes follows from its place, so all are drawn at once.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/linear_rows_arguments.h"
#include "libcore/kernels/cuda/integer_at.h"

namespace pd::cuda {
namespace {

// Numbered as NceSampler::Kind.
enum Sampler : int32_t { kUniform, kLogUniform, kCustom };

PD_DEVICE int64_t Draw(const NceArgs& p, uint64_t draw) {
  const auto total = static_cast<uint64_t>(p.total);
  if (p.sampler == kLogUniform) {
    const double power =
        PhiloxUniform(p.draws, draw) * log(static_cast<double>(p.total));
    return static_cast<int64_t>(exp(power)) - 1;
  }
  if (p.sampler == kUniform)
    return static_cast<int64_t>(PhiloxBelow(p.draws, draw * 2, total));
  const auto c = static_cast<int64_t>(PhiloxBelow(p.draws, draw * 3, total));
  if (PhiloxUniform(p.draws, draw * 3 + 2) <= p.alias_probs[c]) return c;
  return p.alias[c] == -1 ? c : p.alias[c];
}

// P(class) * negatives.
PD_DEVICE float Expected(const NceArgs& p, int64_t c) {
  double probability = 1.0 / static_cast<double>(p.total);
  if (p.sampler == kCustom) probability = p.probs[c];
  if (p.sampler == kLogUniform) {
    const auto at = static_cast<double>(c);
    probability =
        log((at + 2.0) / (at + 1.0)) / log(static_cast<double>(p.total));
  }
  return static_cast<float>(probability * p.negatives);
}

struct NceClasses {
  PD_DEVICE static void Run(const Block& block, const NceArgs& p) {
    block.Spread(p.samples * p.columns, [&](int64_t i) {
      const int64_t sample = i / p.columns, drawn = i % p.columns - p.labels;
      int64_t c = 0;
      if (drawn < 0)
        c = WholeAt(p.label, p.wide, sample * p.labels + i % p.columns);
      else if (p.given != nullptr)
        c = p.given[drawn];
      else
        c = Draw(p, static_cast<uint64_t>(sample * p.negatives + drawn));
      const bool good = c >= 0 && c < p.known;
      if (!good) *p.bad = 1;
      p.classes[i] = good ? c : 0;
    });
  }
};

struct NceLogits {
  PD_DEVICE static void Run(const Block& block, const NceArgs& p) {
    block.Spread(p.samples * p.columns, [&](int64_t i) {
      const int64_t c = p.classes[i];
      const float z =
          LinearRow(p.x + i / p.columns * p.width, p.w + c * p.width, p.width,
                    p.bias != nullptr ? p.bias[c] : 0.0f);
      p.logits[i] = 1 / (1 + expf(-z));
    });
  }
};

struct NceCost {
  PD_DEVICE static void Run(const Block& block, const NceArgs& p) {
    block.Spread(p.samples, [&](int64_t sample) {
      float sum = 0;
      for (int64_t j = 0; j < p.columns; ++j) {
        const int64_t i = sample * p.columns + j;
        const float o = p.logits[i], b = Expected(p, p.classes[i]);
        sum -= logf((j < p.labels ? o : b) / (o + b));
      }
      p.cost[sample] =
          p.sample_weight != nullptr ? p.sample_weight[sample] * sum : sum;
    });
  }
};

struct NceSlopes {
  PD_DEVICE static void Run(const Block& block, const NceArgs& p) {
    block.Spread(p.samples * p.columns, [&](int64_t i) {
      const int64_t sample = i / p.columns, c = p.classes[i];
      const bool good = c >= 0 && c < p.known;
      if (!good) *p.bad = 1;
      const float o = p.logits[i], b = Expected(p, good ? c : 0);
      const float slope = i % p.columns < p.labels ? b / (o + b) * (o - 1)
                                                   : o * (1 - o) / (o + b);
      const float weight =
          p.sample_weight != nullptr ? p.sample_weight[sample] : 1.0f;
      p.rows[i] = good ? c : 0;
      p.dz[i] = slope * weight * p.dcost[sample];
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(nce_classes, NceClasses, NceArgs)
PD_KERNEL(nce_logits, NceLogits, NceArgs)
PD_KERNEL(nce_cost, NceCost, NceArgs)
PD_KERNEL(nce_slopes, NceSlopes, NceArgs)
