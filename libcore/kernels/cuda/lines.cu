// SPDX-License-Identifier: Apache-2.0
// Work on lines of a tensor, a block each: softmax and cross entropy. The
// formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

struct Larger {
  PD_DEVICE float operator()(float a, float b) const { return a > b ? a : b; }
};
PD_DEVICE int64_t StartOf(const LinesArgs& p, int64_t line) {
  return line / p.inner * p.n * p.inner + line % p.inner;
}

PD_DEVICE int64_t LabelOf(const LinesArgs& p, int64_t line) {
  return p.label64 ? static_cast<const int64_t*>(p.label)[line]
                   : static_cast<const int32_t*>(p.label)[line];
}

// The line's maximum, and the sum of exp(x - maximum); a NaN makes the sum one.
PD_DEVICE float MaxAndSum(const Block& block, const LinesArgs& p,
                          const FloatsIn& x, float* sum) {
  PerThread<float> largest(-HUGE_VALF);
  block.Each([&](int thread) {
    for (int64_t i = thread; i < p.n; i += block.threads())
      largest[thread] = Larger()(largest[thread], x[i * p.inner]);
  });
  const float top = block.Reduce(&largest, Larger());
  PerThread<float> part(0.0f);
  block.Each([&](int thread) {
    for (int64_t i = thread; i < p.n; i += block.threads())
      part[thread] += expf(x[i * p.inner] - top);
  });
  *sum = block.Reduce(&part, Plus());
  return top;
}

// out = softmax(x)
struct Softmax {
  PD_DEVICE static void Run(const Block& block, const LinesArgs& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      float sum = 0;
      const float top = MaxAndSum(block, p, p.x + start, &sum);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          p.out[at] = expf(p.x[at] - top) / sum;
        }
      });
    }
  }
};

// out = x * (y - sum(x * y)), x the softmax and y its gradient
struct SoftmaxGrad {
  PD_DEVICE static void Run(const Block& block, const LinesArgs& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      PerThread<float> part(0.0f);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          part[thread] += p.x[at] * p.y[at];
        }
      });
      const float dot = block.Reduce(&part, Plus());
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          p.out[at] = p.x[at] * (p.y[at] - dot);
        }
      });
    }
  }
};

// out = max(x - top, -64) - log(sum)
struct LogSoftmax {
  PD_DEVICE static void Run(const Block& block, const LinesArgs& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      float sum = 0;
      const float top = MaxAndSum(block, p, p.x + start, &sum);
      const float log_sum = logf(sum);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          const float above = p.x[at] - top;
          p.out[at] = (above < -64 ? -64.0f : above) - log_sum;
        }
      });
    }
  }
};

// out = y - exp(x) * sum(y), x the logarithms and y their gradient
struct LogSoftmaxGrad {
  PD_DEVICE static void Run(const Block& block, const LinesArgs& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      PerThread<float> part(0.0f);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads())
          part[thread] += p.y[start + i * p.inner];
      });
      const float sum = block.Reduce(&part, Plus());
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          p.out[at] = p.y[at] - expf(p.x[at]) * sum;
        }
      });
    }
  }
};

// The logarithm of a probability; 0 has PaddlePaddle's stand-in for -inf.
PD_DEVICE float LogProbability(float p) {
  const float log = logf(p);
  return log == -HUGE_VALF ? -1e20f : log;
}

// out = softmax(x), second = the loss of each line; y: soft labels or null.
// log(softmax) is x - top - log(sum), with -64 as the floor of x - top.
struct CrossEntropy {
  PD_DEVICE static void Run(const Block& block, const LinesArgs& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      const bool given = p.given != 0;
      float sum = 0;
      const float top = given ? 0.0f : MaxAndSum(block, p, p.x + start, &sum);
      const float log_sum = given ? 0.0f : logf(sum);
      const int64_t label = p.y != nullptr ? 0 : LabelOf(p, line);
      const bool counts = label != p.ignore;
      const bool good = label >= 0 && label < p.n;
      PerThread<float> part(0.0f);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          const float above = p.x[at] - top;
          const float log = given ? LogProbability(p.x[at])
                                  : (above < -64 ? -64.0f : above) - log_sum;
          if (p.y != nullptr)
            part[thread] -= p.y[at] * log;
          else if (i == label && counts)
            part[thread] -= log;
          p.out[at] = given ? p.x[at] : expf(above) / sum;
        }
      });
      const float loss = block.Reduce(&part, Plus());
      block.Each([&](int thread) {
        if (thread != 0) return;
        p.second[line] = loss;
        if (p.y == nullptr && counts && !good) *p.bad = 1;
      });
    }
  }
};

// out = z[line] * (x - label), x the softmax; y: soft labels or null
struct CrossEntropyGrad {
  PD_DEVICE static void Run(const Block& block, const LinesArgs& p) {
    block.Spread(p.lines * p.n, [&](int64_t k) {
      const int64_t line = k / p.n, i = k % p.n;
      const int64_t at = StartOf(p, line) + i * p.inner;
      const float g = p.z[line];
      if (p.y != nullptr) {
        p.out[at] =
            p.given != 0 ? -g * p.y[at] / p.x[at] : g * (p.x[at] - p.y[at]);
        return;
      }
      const int64_t label = LabelOf(p, line);
      if (p.given != 0) {
        p.out[at] = i == label && label != p.ignore ? -g / p.x[at] : 0.0f;
        return;
      }
      const float hit = i == label ? g : 0.0f;
      p.out[at] = label == p.ignore ? 0.0f : g * p.x[at] - hit;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(softmax, Softmax, LinesArgs)
PD_KERNEL(softmax_grad, SoftmaxGrad, LinesArgs)
PD_KERNEL(log_softmax, LogSoftmax, LinesArgs)
PD_KERNEL(log_softmax_grad, LogSoftmaxGrad, LinesArgs)
PD_KERNEL(cross_entropy, CrossEntropy, LinesArgs)
PD_KERNEL(cross_entropy_grad, CrossEntropyGrad, LinesArgs)
