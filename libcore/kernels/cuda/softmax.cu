// SPDX-License-Identifier: Apache-2.0
// Work on lines of a tensor, a block each, which may be one warp: softmax and
// cross entropy. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/strided_index.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

struct Larger {
  PD_REAL T operator()(T a, T b) const { return a > b ? a : b; }
};
PD_REAL int64_t StartOf(const LinesArgsOf<T>& p, int64_t line) {
  if (p.inner == 1) return line * p.n;
  const int64_t outer = Quotient(line, p.inner);
  return outer * p.n * p.inner + line - outer * p.inner;
}

PD_REAL int64_t LabelOf(const LinesArgsOf<T>& p, int64_t line) {
  return p.label64 ? static_cast<const int64_t*>(p.label)[line]
                   : static_cast<const int32_t*>(p.label)[line];
}

// The line's maximum, and the sum of exp(x - maximum); a NaN makes the sum one.
PD_REAL T MaxAndSum(const Block& block, const LinesArgsOf<T>& p,
                    const NumbersIn<T>& x, T* sum) {
  PerThread<T> largest(-HUGE_VALF);
  block.Each([&](int thread) {
    for (int64_t i = thread; i < p.n; i += block.threads())
      largest[thread] = Larger()(largest[thread], T(x[i * p.inner]));
  });
  const T top = block.Reduce(&largest, Larger());
  PerThread<T> part(0);
  block.Each([&](int thread) {
    for (int64_t i = thread; i < p.n; i += block.threads())
      part[thread] += Exp(x[i * p.inner] - top);
  });
  *sum = block.Reduce(&part, Plus());
  return top;
}

// out = softmax(x)
template <typename T>
struct Softmax {
  PD_DEVICE static void Run(const Block& block, const LinesArgsOf<T>& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      T sum = 0;
      const T top = MaxAndSum(block, p, p.x + start, &sum);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          p.out[at] = Exp(p.x[at] - top) / sum;
        }
      });
    }
  }
};

// out = x * (y - sum(x * y)), x the softmax and y its gradient
template <typename T>
struct SoftmaxGrad {
  PD_DEVICE static void Run(const Block& block, const LinesArgsOf<T>& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      PerThread<T> part(0);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          part[thread] += p.x[at] * p.y[at];
        }
      });
      const T dot = block.Reduce(&part, Plus());
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
template <typename T>
struct LogSoftmax {
  PD_DEVICE static void Run(const Block& block, const LinesArgsOf<T>& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      T sum = 0;
      const T top = MaxAndSum(block, p, p.x + start, &sum);
      const T log_sum = Log(sum);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          const T above = p.x[at] - top;
          p.out[at] = (above < -64 ? T(-64) : above) - log_sum;
        }
      });
    }
  }
};

// out = y - exp(x) * sum(y), x the logarithms and y their gradient
template <typename T>
struct LogSoftmaxGrad {
  PD_DEVICE static void Run(const Block& block, const LinesArgsOf<T>& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      PerThread<T> part(0);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads())
          part[thread] += p.y[start + i * p.inner];
      });
      const T sum = block.Reduce(&part, Plus());
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          p.out[at] = p.y[at] - Exp(p.x[at]) * sum;
        }
      });
    }
  }
};

// The logarithm of a probability; 0 has PaddlePaddle's stand-in for -inf.
template <typename T>
PD_DEVICE T LogProbability(T p) {
  const T log = Log(p);
  return log == -HUGE_VAL ? T(-1e20) : log;
}

// out = softmax(x), second = the loss of each line; y: soft labels or null.
// log(softmax) is x - top - log(sum), with -64 as the floor of x - top.
template <typename T>
struct CrossEntropy {
  PD_DEVICE static void Run(const Block& block, const LinesArgsOf<T>& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = StartOf(p, line);
      const bool given = p.given != 0;
      T sum = 0;
      const T top = given ? T(0) : MaxAndSum(block, p, p.x + start, &sum);
      const T log_sum = given ? T(0) : Log(sum);
      const int64_t label = p.y != nullptr ? 0 : LabelOf(p, line);
      const bool counts = label != p.ignore;
      const bool good = label >= 0 && label < p.n;
      PerThread<T> part(0);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const int64_t at = start + i * p.inner;
          const T above = p.x[at] - top;
          const T log = given ? LogProbability(T(p.x[at]))
                              : (above < -64 ? T(-64) : above) - log_sum;
          if (p.y != nullptr)
            part[thread] -= p.y[at] * log;
          else if (i == label && counts)
            part[thread] -= log;
          p.out[at] = given ? T(p.x[at]) : Exp(above) / sum;
        }
      });
      const T loss = block.Reduce(&part, Plus());
      block.Each([&](int thread) {
        if (thread != 0) return;
        p.second[line] = loss;
        if (p.y == nullptr && counts && !good) *p.bad = 1;
      });
    }
  }
};

// out = z[line] * (x - label), x the softmax; y: soft labels or null
template <typename T>
struct CrossEntropyGrad {
  // W elements of a line, side by side where they are several.
  template <int W>
  PD_DEVICE static void SetPacks(const Block& block, const LinesArgsOf<T>& p) {
    const int64_t packs = p.n / W;
    block.Spread(p.lines * packs, [&](int64_t k) {
      const int64_t line = Quotient(k, packs), i = (k - line * packs) * W;
      const int64_t at = StartOf(p, line) + i * p.inner;
      const T g = p.z[line];
      const Pack<T, W> x = LoadPack<W>(p.x, at);
      Pack<T, W> out;
      if (p.y != nullptr) {
        const Pack<T, W> y = LoadPack<W>(p.y, at);
        PD_UNROLL
        for (int j = 0; j < W; ++j)
          out[j] = p.given != 0 ? -g * y[j] / x[j] : g * (x[j] - y[j]);
      } else {
        const int64_t label = LabelOf(p, line);
        const bool counts = label != p.ignore;
        PD_UNROLL
        for (int j = 0; j < W; ++j) {
          const bool hit = i + j == label;
          if (p.given != 0)
            out[j] = hit && counts ? -g / x[j] : T(0);
          else
            out[j] = counts ? g * x[j] - (hit ? g : T(0)) : T(0);
        }
      }
      StorePack<W>(p.out, at, out);
    });
  }

  PD_DEVICE static void Run(const Block& block, const LinesArgsOf<T>& p) {
    if constexpr (std::is_same_v<T, float>)
      if (p.inner == 1 && p.n % 8 == 0 && IsAligned<8>(p.x) &&
          IsAligned<8>(p.y) && IsAligned<8>(p.out)) {
        SetPacks<8>(block, p);
        return;
      }
    SetPacks<1>(block, p);
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_LINES(suffix, T)                                              \
  PD_KERNEL(softmax##suffix, Softmax<T>, LinesArgsOf<T>)                 \
  PD_KERNEL(softmax_grad##suffix, SoftmaxGrad<T>, LinesArgsOf<T>)        \
  PD_KERNEL(log_softmax##suffix, LogSoftmax<T>, LinesArgsOf<T>)          \
  PD_KERNEL(log_softmax_grad##suffix, LogSoftmaxGrad<T>, LinesArgsOf<T>) \
  PD_KERNEL(cross_entropy##suffix, CrossEntropy<T>, LinesArgsOf<T>)      \
  PD_KERNEL(cross_entropy_grad##suffix, CrossEntropyGrad<T>, LinesArgsOf<T>)
PD_LINES(, float)
PD_LINES(_64, double)
