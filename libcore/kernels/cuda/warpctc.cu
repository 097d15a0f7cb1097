// SPDX-License-Identifier: Apache-2.0
// warpctc: softmax of every row, then the lattice of each sequence, whose
// states are spread over the threads of a block, step after step; in double, as
// libcore/ops/loss/warpctc.cc has it, since logarithms of whole paths are
// subtracted.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/warpctc_arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// A sequence and its label with blanks between and around the tokens.
struct Path {
  const CtcArgs& p;
  int64_t which;
  DeviceSpan rows, tokens;

  PD_DEVICE Path(const CtcArgs& args, int64_t sequence)
      : p(args),
        which(sequence),
        rows(SpanAt(args.logits, sequence)),
        tokens(SpanAt(args.labels, sequence)) {}

  PD_DEVICE int64_t states() const { return 2 * tokens.length + 1; }
  PD_DEVICE int64_t TokenAt(int64_t s) const {
    if (s % 2 == 0) return p.blank;
    const int64_t token = WholeAt(p.label, p.wide, tokens.start + s / 2);
    if (token >= 0 && token < p.classes) return token;
    *p.bad_label = 1;
    return p.blank;
  }
  // State s may follow s - 2: a token other than the one before the blank.
  PD_DEVICE bool Skips(int64_t s) const {
    if (s < 2) return false;
    const int64_t token = TokenAt(s);
    return token != p.blank && token != TokenAt(s - 2);
  }
  PD_DEVICE bool Possible() const {
    int64_t needed = 0;
    for (int64_t s = 1; s < states(); s += 2)
      needed += s > 1 && TokenAt(s) == TokenAt(s - 2) ? 2 : 1;
    return needed <= rows.length && rows.length > 0;
  }
  PD_DEVICE int64_t RowOf(int64_t t) const {
    return p.padded != 0 ? t * p.count + which : rows.start + t;
  }
  // The row of `kept`.
  PD_DEVICE int64_t KeptRow(int64_t t) const { return t * p.count + which; }
  PD_DEVICE double LogP(int64_t t, int64_t s) const {
    return p.x[RowOf(t) * p.classes + TokenAt(s)] - p.log_sums[KeptRow(t)];
  }
};

PD_DEVICE double Never() { return -INFINITY; }
PD_DEVICE double LogAdd(double a, double b) {
  if (a == Never()) return b;
  if (b == Never()) return a;
  return (a > b ? a : b) + log1p(exp(-fabs(a - b)));
}

// A block takes a row of `kept`.
struct CtcSoftmax {
  PD_DEVICE static void Run(const Block& block, const CtcArgs& p) {
    for (int64_t i = block.index(); i < p.steps * p.count;
         i += block.blocks()) {
      const Path path(p, i % p.count);
      const int64_t t = i / p.count;
      if (t < path.rows.length && path.Possible()) One(block, path, t);
    }
  }
  PD_DEVICE static void One(const Block& block, const Path& path, int64_t t) {
    const CtcArgs& p = path.p;
    const int64_t n = p.classes;
    const float* const x = p.x + path.RowOf(t) * n;
    float* const y = p.kept + path.KeptRow(t) * n;
    PerThread<float> most(x[0]);
    PerThread<double> part(0.0);
    block.Each([&](int thread) {
      for (int64_t k = thread; k < n; k += block.threads())
        if (x[k] > most[thread]) most[thread] = x[k];
    });
    const double max =
        block.Reduce(&most, [](float a, float b) { return a > b ? a : b; });
    block.Each([&](int thread) {
      for (int64_t k = thread; k < n; k += block.threads())
        part[thread] += exp(x[k] - max);
    });
    const double log_sum = max + log(block.Reduce(&part, Plus()));
    block.Each([&](int thread) {
      for (int64_t k = thread; k < n; k += block.threads())
        y[k] = static_cast<float>(exp(x[k] - log_sum));
      if (thread == 0) p.log_sums[path.KeptRow(t)] = log_sum;
    });
  }
};

// A block takes a sequence.
struct CtcAlign {
  PD_DEVICE static void Run(const Block& block, const CtcArgs& p) {
    for (int64_t i = block.index(); i < p.count; i += block.blocks()) {
      const Path path(p, i);
      const bool possible = path.Possible();
      const double log_p = possible ? Prefixes(block, path) : 0;
      block.Each([&](int thread) {
        if (thread == 0) p.loss[i] = static_cast<float>(-log_p);
      });
      if (possible) Expect(block, path, log_p);
    }
  }

  template <typename F>
  PD_DEVICE static void EachState(const Block& block, const Path& path,
                                  const F& f) {
    block.Each([&](int thread) {
      for (int64_t s = thread; s < path.states(); s += block.threads()) f(s);
    });
  }

  // a(t, s), and the log likelihood.
  PD_DEVICE static double Prefixes(const Block& block, const Path& path) {
    const CtcArgs& p = path.p;
    const int64_t n = path.states();
    double* const a = p.prefixes + path.which * p.steps * p.states;
    for (int64_t t = 0; t < path.rows.length; ++t) {
      EachState(block, path, [&](int64_t s) {
        double sum = s < 2 ? 0.0 : Never();
        if (t > 0) {
          const double* const before = a + (t - 1) * p.states;
          sum = before[s];
          if (s >= 1) sum = LogAdd(sum, before[s - 1]);
          if (path.Skips(s)) sum = LogAdd(sum, before[s - 2]);
        }
        a[t * p.states + s] = sum + path.LogP(t, s);
      });
    }
    const double* const last = a + (path.rows.length - 1) * p.states;
    return n > 1 ? LogAdd(last[n - 1], last[n - 2]) : last[n - 1];
  }

  // Subtracts from y what the paths expect, from the last step on.
  PD_DEVICE static void Expect(const Block& block, const Path& path,
                               double log_p) {
    const CtcArgs& p = path.p;
    const int64_t n = path.states(), last = path.rows.length - 1;
    const double* const a = p.prefixes + path.which * p.steps * p.states;
    double* const b = p.suffixes + path.which * 3 * p.states;
    double* const after = b + p.states;
    double* const part = after + p.states;
    for (int64_t t = last; t >= 0; --t) {
      if (t < last)
        EachState(block, path,
                  [&](int64_t s) { after[s] = b[s] + path.LogP(t + 1, s); });
      EachState(block, path, [&](int64_t s) {
        double sum = s + 2 >= n ? 0.0 : Never();
        if (t < last) {
          sum = after[s];
          if (s + 1 < n) sum = LogAdd(sum, after[s + 1]);
          if (s + 2 < n && path.Skips(s + 2)) sum = LogAdd(sum, after[s + 2]);
        }
        b[s] = sum;
        part[s] = exp(a[t * p.states + s] + sum - log_p);
      });
      float* const y = p.kept + path.KeptRow(t) * p.classes;
      EachState(block, path, [&](int64_t s) { TakeFrom(path, part, s, y); });
    }
  }

  // The first state of a token takes the part of all of them.
  PD_DEVICE static void TakeFrom(const Path& path, const double* part,
                                 int64_t s, float* y) {
    const int64_t token = path.TokenAt(s);
    for (int64_t i = 0; i < s; ++i)
      if (path.TokenAt(i) == token) return;
    double expected = 0;
    for (int64_t i = s; i < path.states(); ++i)
      if (path.TokenAt(i) == token) expected += part[i];
    y[token] -= static_cast<float>(expected);
  }
};

// A block takes a row of `kept`.
struct CtcGrad {
  PD_DEVICE static void Run(const Block& block, const CtcArgs& p) {
    for (int64_t i = block.index(); i < p.steps * p.count;
         i += block.blocks()) {
      const int64_t t = i / p.count, which = i % p.count;
      const DeviceSpan rows = SpanAt(p.logits, which);
      if (t >= rows.length) continue;
      float scale = p.dloss[which];
      if (p.by_times != 0) scale /= static_cast<float>(rows.length);
      const float* const from = p.kept + i * p.classes;
      float* const to = p.dx + (p.padded != 0 ? i : rows.start + t) * p.classes;
      block.Each([&](int thread) {
        for (int64_t k = thread; k < p.classes; k += block.threads())
          to[k] = scale * from[k];
      });
    }
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(ctc_softmax, CtcSoftmax, CtcArgs)
PD_KERNEL(ctc_align, CtcAlign, CtcArgs)
PD_KERNEL(ctc_grad, CtcGrad, CtcArgs)
