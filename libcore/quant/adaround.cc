// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/adaround.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/sgemm.h"

namespace pd {
namespace {

constexpr int kSteps = 500;
constexpr float kRate = 0.02f;
// Of the steps the first fifth only lowers the error. Then weights between
// their integers cost something, which becomes sharper (beta falls).
constexpr float kWarm = 0.2f, kPress = 0.1f;
constexpr float kFirstBeta = 20, kLastBeta = 2;
// The sigmoid is stretched so that it reaches both ends.
constexpr float kLow = -0.1f, kHigh = 1.1f;
// The damping of the moments' diagonal, as a part of its mean: inputs that
// were always 0 in calibration may have other values later.
constexpr float kDamping = 0.01f;

// Some rows of one group, in units of a step between integers. Rows know
// nothing of each other, so threads take theirs from beginning to end.
class Group {
 public:
  Group(const Array& w, const QuantizedWeight& q, const WeightRows& rows,
        int64_t group, std::pair<int64_t, int64_t> part,
        const std::vector<float>& moments)
      : n_(part.second - part.first),
        k_(rows.size),
        levels_(q.levels()),
        c_(moments) {
    scaled_.resize(static_cast<size_t>(n_ * k_));
    integers_.resize(scaled_.size());
    for (int64_t o = 0; o < n_; ++o) {
      const size_t channel =
          q.axis < 0
              ? 0
              : static_cast<size_t>(group * rows.outputs + part.first + o);
      for (int64_t k = 0; k < k_; ++k) {
        const size_t at = rows.At(group, part.first + o, k), i = Index(o, k);
        scaled_[i] = w.data<float>()[at] / q.scales[channel] *
                     static_cast<float>(levels_);
        integers_[i] = static_cast<float>(q.values[at]);
      }
    }
  }

  // Candidate integers of the rows, with the rows of e C.
  struct Choice {
    std::vector<float> integers, slopes;
  };
  Choice Choose(std::vector<float> integers) const {
    Choice choice;
    std::vector<float> errors(scaled_.size());
    for (size_t i = 0; i < errors.size(); ++i)
      errors[i] = integers[i] - scaled_[i];
    choice.slopes.resize(errors.size());
    Sgemm({n_, k_, k_}, errors.data(), c_.data(), choice.slopes.data());
    choice.integers = std::move(integers);
    return choice;
  }

  // Of a row: e C e^T without the damping, or with it.
  double Error(const Choice& choice, int64_t o, bool damped) const {
    double error = 0;
    for (int64_t k = 0; k < k_; ++k) {
      const size_t i = Index(o, k);
      const double e = static_cast<double>(choice.integers[i]) - scaled_[i];
      error += e * choice.slopes[i] - (damped ? 0 : kDamping * e * e);
    }
    return std::max(error, 0.0);
  }

  // The integers that are learned.
  std::vector<float> Learn() const {
    const size_t size = scaled_.size();
    std::vector<float> v(size), error(size), gradient(size), first(size),
        second(size), result(size);
    for (size_t i = 0; i < size; ++i) {
      const float rest = scaled_[i] - std::floor(scaled_[i]);
      v[i] = -std::log((kHigh - kLow) / (rest - kLow) - 1);
    }
    for (int step = 0; step < kSteps; ++step) {
      for (size_t i = 0; i < size; ++i)
        error[i] = Soft(v[i]) - (scaled_[i] - std::floor(scaled_[i]));
      Sgemm({n_, k_, k_}, error.data(), c_.data(), gradient.data());
      const float warm = kWarm * kSteps;
      const float part = (static_cast<float>(step) - warm) / (kSteps - warm);
      const float beta =
          part < 0 ? 0
                   : kLastBeta + 0.5f * (kFirstBeta - kLastBeta) *
                                     (1 + std::cos(part * 3.14159265f));
      const double t = step + 1;
      const auto scale1 = static_cast<float>(1 / (1 - std::pow(0.9, t)));
      const auto scale2 = static_cast<float>(1 / (1 - std::pow(0.999, t)));
      for (size_t i = 0; i < size; ++i) {
        const float g = Gradient(v[i], gradient[i], beta);
        first[i] = 0.9f * first[i] + 0.1f * g;
        second[i] = 0.999f * second[i] + 0.001f * g * g;
        v[i] -= kRate * first[i] * scale1 /
                (std::sqrt(second[i] * scale2) + 1e-12f);
      }
    }
    for (size_t i = 0; i < size; ++i)
      result[i] = Clipped(std::floor(scaled_[i]) + (Soft(v[i]) >= 0.5f));
    return result;
  }

  // Turns over the weight of the row that gains most, as long as one gains.
  void Descend(int64_t o, Choice* choice) const {
    float* const q = choice->integers.data() + o * k_;
    float* const slope = choice->slopes.data() + o * k_;
    const float* const s = scaled_.data() + o * k_;
    // Each turn lowers the error; the bound is for roundings.
    for (int64_t turn = 0; turn < 8 * k_; ++turn) {
      int64_t best = -1;
      float least = -1e-5f, to = 0;
      for (int64_t i = 0; i < k_; ++i) {
        const float down = std::floor(s[i]);
        const float d = Clipped(q[i] > s[i] ? down : down + 1) - q[i];
        const float change = d * (2 * slope[i] + d * c_[Index(i, i)]);
        if (change >= least) continue;
        least = change;
        best = i;
        to = d;
      }
      if (best < 0) return;
      q[best] += to;
      for (int64_t k = 0; k < k_; ++k) slope[k] += to * c_[Index(best, k)];
    }
  }

  const std::vector<float>& nearest() const { return integers_; }
  size_t Index(int64_t row, int64_t k) const {
    return static_cast<size_t>(row * k_ + k);
  }

 private:
  static float Soft(float v) {
    return std::min(std::max((kHigh - kLow) / (1 + std::exp(-v)) + kLow, 0.0f),
                    1.0f);
  }
  // By v, of the error and, with a beta, of kPress (1 - |2 h - 1|^beta), where
  // h is Soft(v) and `slope` the row of e C.
  static float Gradient(float v, float slope, float beta) {
    const float s = 1 / (1 + std::exp(-v)), h = (kHigh - kLow) * s + kLow;
    if (h <= 0 || h >= 1) return 0;
    float by_h = 2 * slope;
    if (beta > 0) {
      const float u = 2 * h - 1;
      by_h -= 2 * kPress * beta *
              std::copysign(std::pow(std::fabs(u), beta - 1), u);
    }
    return by_h * (kHigh - kLow) * s * (1 - s);
  }
  float Clipped(float q) const {
    const auto n = static_cast<float>(levels_);
    return std::min(std::max(q, -n), n);
  }

  const int64_t n_, k_;
  const int32_t levels_;
  const std::vector<float>& c_;  // [k][k], its diagonal 1 on average
  std::vector<float> scaled_, integers_;
};

// The moments of one group with a mean of 1 on the diagonal, which is returned
// as it was; 0 where the inputs were nothing but zeros.
double Normalised(const InputMoments& moments, int64_t group,
                  std::vector<float>* c) {
  const int64_t k = moments.rows.size;
  const float* from = moments.sums.data() + group * k * k;
  c->assign(from, from + k * k);
  double mean = 0;
  for (int64_t i = 0; i < k; ++i)
    mean += static_cast<double>(from[i * k + i]) / static_cast<double>(k);
  if (!(mean > 0)) return 0;
  for (float& v : *c) v = static_cast<float>(v / mean);
  for (int64_t i = 0; i < k; ++i)
    (*c)[static_cast<size_t>(i * k + i)] += kDamping;
  return mean / static_cast<double>(moments.count);
}

}  // namespace

RoundingGain LearnRounding(const Array& w, const InputMoments& moments,
                           QuantizedWeight* q) {
  RoundingGain gain;
  const WeightRows& rows = moments.rows;
  std::vector<double> nearest(static_cast<size_t>(rows.groups));
  std::vector<double> learned(nearest);
  ParallelFor(rows.groups, 1, [&](int64_t first, int64_t last) {
    std::vector<float> c;
    for (int64_t g = first; g < last; ++g) {
      const double mean = Normalised(moments, g, &c);
      if (mean == 0) continue;
      std::vector<double> before(static_cast<size_t>(rows.outputs));
      std::vector<double> after(before);
      ParallelFor(rows.outputs, 1, [&](int64_t begin, int64_t end) {
        const Group part(w, *q, rows, g, {begin, end}, c);
        Group::Choice turned = part.Choose(part.nearest());
        Group::Choice soft = part.Choose(part.Learn());
        for (int64_t o = 0; o < end - begin; ++o) {
          const auto at = static_cast<size_t>(begin + o);
          before[at] = part.Error(turned, o, false);
          part.Descend(o, &turned);
          part.Descend(o, &soft);
          const Group::Choice& best =
              part.Error(soft, o, true) < part.Error(turned, o, true) ? soft
                                                                      : turned;
          after[at] = part.Error(best, o, false);
          for (int64_t k = 0; k < rows.size; ++k)
            q->values[rows.At(g, begin + o, k)] =
                static_cast<int32_t>(best.integers[part.Index(o, k)]);
        }
      });
      for (int64_t o = 0; o < rows.outputs; ++o) {
        const size_t channel =
            q->axis < 0 ? 0 : static_cast<size_t>(g * rows.outputs + o);
        const double step = q->scales[channel] / q->levels();
        nearest[static_cast<size_t>(g)] +=
            before[static_cast<size_t>(o)] * step * step * mean;
        learned[static_cast<size_t>(g)] +=
            after[static_cast<size_t>(o)] * step * step * mean;
      }
    }
  });
  const auto outputs = static_cast<double>(rows.groups * rows.outputs);
  for (size_t g = 0; g < nearest.size(); ++g) {
    gain.nearest += nearest[g] / outputs;
    gain.learned += learned[g] / outputs;
  }
  return gain;
}

absl::StatusOr<std::vector<RoundingGain>> LearnRoundings(
    OpRegistry* registry, const InferenceModel& model, Loader* loader,
    int64_t most_batches, const BatchProgress& progress,
    Quantization* quantization) {
  PD_ASSIGN_OR_RETURN(const auto moments,
                      MeasureInputMoments(registry, model, quantization->plan,
                                          loader, most_batches, nullptr));
  std::vector<RoundingGain> gains;
  for (const QuantOp& op : quantization->plan.ops) {
    const auto it = moments.find(op.weight);
    const auto done = [&](const RoundingGain& g) {
      return g.weight == op.weight;
    };
    if (it == moments.end() || std::any_of(gains.begin(), gains.end(), done))
      continue;
    RoundingGain gain = LearnRounding(model.params.at(op.weight), it->second,
                                      &quantization->weights.at(op.weight));
    gain.weight = op.weight;
    gains.push_back(std::move(gain));
    const auto count = static_cast<int64_t>(gains.size());
    if (progress != nullptr && !progress(count, count))
      return absl::CancelledError("stopped");
  }
  return gains;
}

}  // namespace pd
