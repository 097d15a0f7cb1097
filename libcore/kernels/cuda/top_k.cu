// SPDX-License-Identifier: Apache-2.0
// The largest elements of lines, all of them in order, how many rows hold their
// label, and classes as rows of 0 and 1.
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/argsort_arguments.h"
#include "libcore/kernels/cuda/sums.h"
#include "libcore/kernels/cuda/integer_at.h"

namespace pd::cuda {
namespace {

// A number and its place as one whole number: the larger of two comes first in
// the order that is wanted; of equal ones, the one that stands first. NaN
// counts as the largest number.
PD_DEVICE uint64_t KeyOf(float value, int64_t at, bool largest) {
  uint32_t bits = 0x80000000u;  // of 0, whatever its sign
  if (value != value) {
    bits = 0xffffffffu;
  } else if (value != 0) {
    union {
      float number;
      uint32_t bits;
    } raw = {value};
    bits = raw.bits >> 31 != 0 ? ~raw.bits : raw.bits | 0x80000000u;
  }
  return static_cast<uint64_t>(largest ? bits : ~bits) << 32 |
         (~static_cast<uint64_t>(at) & 0xffffffffu);
}

struct Larger {
  PD_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const {
    return a > b ? a : b;
  }
};
// A block takes a line: k times the largest that is behind the one before.
struct TopK {
  PD_DEVICE static void Run(const Block& block, const TopKArgs& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t outer = line / p.inner, inner = line % p.inner;
      const FloatsIn x = p.x + outer * p.n * p.inner + inner;
      uint64_t before = 0;
      for (int64_t j = 0; j < p.k; ++j) {
        PerThread<uint64_t> most(0);
        block.Each([&](int thread) {
          for (int64_t i = thread; i < p.n; i += block.threads()) {
            const uint64_t key = KeyOf(x[i * p.inner], i, p.largest != 0);
            if ((j == 0 || key < before) && key > most[thread])
              most[thread] = key;
          }
        });
        before = block.Reduce(&most, Larger());
        block.Each([&](int thread) {
          if (thread != 0) return;
          const int64_t at = ~before & 0xffffffffu;
          const int64_t to = (outer * p.k + j) * p.inner + inner;
          p.out[to] = x[at * p.inner];
          p.indices[to] = at;
        });
      }
    }
  }
};

// The first element in the order has the smallest key.
struct OrderKeys {
  PD_DEVICE static void Run(const Block& block, const OrderArgs& p) {
    block.Spread(p.lines * p.line, [&](int64_t e) {
      const int64_t line = e / p.line, i = e % p.line;
      const int64_t from =
          (line / p.inner * p.n + i) * p.inner + line % p.inner;
      p.keys[e] =
          i < p.n ? ~KeyOf(p.x[from], i, p.descending != 0) : ~uint64_t{0};
    });
  }
};
struct OrderOut {
  PD_DEVICE static void Run(const Block& block, const OrderArgs& p) {
    block.Spread(p.lines * p.n, [&](int64_t e) {
      const int64_t line = e / p.n;
      const int64_t start = line / p.inner * p.n * p.inner + line % p.inner;
      const auto at =
          static_cast<int64_t>(p.keys[line * p.line + e % p.n] & 0xffffffffu);
      const int64_t to = start + e % p.n * p.inner;
      p.out[to] = p.x[start + at * p.inner];
      p.indices[to] = at;
    });
  }
};

// A block takes a line. NaN wins either way.
struct Extremum {
  PD_DEVICE static void Run(const Block& block, const ExtremumArgs& p) {
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const float* x = p.x + line / p.inner * p.n * p.inner + line % p.inner;
      PerThread<uint64_t> most(0);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const float value = x[i * p.inner];
          const uint64_t key =
              KeyOf(value, i, p.largest != 0 || value != value);
          if (key > most[thread]) most[thread] = key;
        }
      });
      const uint64_t best = block.Reduce(&most, Larger());
      block.Each([&](int thread) {
        if (thread != 0) return;
        const auto at = static_cast<int64_t>(~best & 0xffffffffu);
        if (p.out64 != 0)
          static_cast<int64_t*>(p.out)[line] = at;
        else
          static_cast<int32_t*>(p.out)[line] = static_cast<int32_t>(at);
      });
    }
  }
};

// An element of dx looks for its place among those that were picked.
struct PickedGrad {
  PD_DEVICE static void Run(const Block& block, const PickedArgs& p) {
    block.Spread(p.lines * p.n, [&](int64_t e) {
      const int64_t inner = e % p.inner, i = e / p.inner % p.n;
      const int64_t outer = e / p.inner / p.n;
      float sum = 0;
      for (int64_t j = 0; j < p.k; ++j) {
        const int64_t from = (outer * p.k + j) * p.inner + inner;
        const int64_t at = p.indices[from];
        if (at < 0 || at >= p.n) *p.bad = 1;
        if (at == i) sum += p.dout[from];
      }
      p.dx[e] = sum;
    });
  }
};

// One block.
struct Accuracy {
  PD_DEVICE static void Run(const Block& block, const AccuracyArgs& p) {
    PerThread<int32_t> part(0);
    block.Each([&](int thread) {
      for (int64_t row = thread; row < p.rows; row += block.threads()) {
        const int64_t wanted = WholeAt(p.labels, p.labels64, row);
        bool hit = false;
        for (int64_t j = 0; j < p.k; ++j)
          hit = hit || p.picked[row * p.k + j] == wanted;
        part[thread] += hit ? 1 : 0;
      }
    });
    const int32_t hits = block.Reduce(&part, Plus());
    block.Each([&](int thread) {
      if (thread != 0) return;
      if (p.correct != nullptr) *p.correct = hits;
      if (p.total != nullptr) *p.total = static_cast<int32_t>(p.rows);
      if (p.accuracy != nullptr)
        *p.accuracy =
            p.rows == 0 ? 0.0f
                        : static_cast<float>(hits) / static_cast<float>(p.rows);
    });
  }
};

struct OneHot {
  PD_DEVICE static void Run(const Block& block, const OneHotArgs& p) {
    block.Spread(p.n * p.depth, [&](int64_t e) {
      const int64_t wanted = WholeAt(p.classes, p.classes64, e / p.depth);
      p.out[e] = wanted == e % p.depth ? 1.0f : 0.0f;
      if (p.bad != nullptr && (wanted < 0 || wanted >= p.depth)) *p.bad = 1;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(top_k, TopK, TopKArgs)
PD_KERNEL(order_keys, OrderKeys, OrderArgs)
PD_KERNEL(order_out, OrderOut, OrderArgs)
PD_KERNEL(extremum, Extremum, ExtremumArgs)
PD_KERNEL(picked_grad, PickedGrad, PickedArgs)
PD_KERNEL(accuracy, Accuracy, AccuracyArgs)
PD_KERNEL(one_hot, OneHot, OneHotArgs)
