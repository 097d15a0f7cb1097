// SPDX-License-Identifier: Apache-2.0
// Kernels over decoded sequences of tokens: the beams of gather_tree, and
// edit_distance.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/gather_tree_arguments.h"

namespace pd::cuda {
namespace {

// A thread takes a beam, from the last step on.
struct GatherTree {
  PD_DEVICE static void Run(const Block& block, const GatherTreeArgs& p) {
    block.Spread(p.batch * p.beams, [&](int64_t e) {
      const int64_t first = e / p.beams * p.beams;
      int64_t from = e % p.beams;
      for (int64_t t = p.steps; t-- > 0;) {
        const int64_t row = t * p.batch * p.beams + first;
        const int64_t id = WholeAt(p.ids, p.wide, row + from);
        const int64_t to = row + e % p.beams;
        if (p.wide != 0)
          static_cast<int64_t*>(p.out)[to] = id;
        else
          static_cast<int32_t*>(p.out)[to] = static_cast<int32_t>(id);
        from = WholeAt(p.parents, p.wide, row + from);
        if (from >= 0 && from < p.beams) continue;
        *p.bad = 1;
        from = 0;
      }
    });
  }
};

PD_DEVICE int32_t Least(int32_t a, int32_t b) { return a < b ? a : b; }

// A block takes a pair. The cells (i, j) of the table with i + j = d need those
// of d - 1 and d - 2 alone: three rows of numbers by i, in turn.
struct EditDistance {
  PD_DEVICE static void Run(const Block& block, const EditDistanceArgs& p) {
    for (int64_t s = block.index(); s < p.hyps.count; s += block.blocks()) {
      const DeviceSpan hyp = SpanAt(p.hyps, s), ref = SpanAt(p.refs, s);
      int32_t* const rows = p.rows + s * 3 * p.width;
      const int64_t last = hyp.length + ref.length;
      for (int64_t d = 0; d <= last; ++d) {
        int32_t* const now = rows + d % 3 * p.width;
        const int32_t* const before = rows + (d + 2) % 3 * p.width;
        const int32_t* const earlier = rows + (d + 1) % 3 * p.width;
        block.Each([&](int thread) {
          for (int64_t i = thread; i <= hyp.length; i += block.threads()) {
            const int64_t j = d - i;
            if (j < 0 || j > ref.length) continue;
            if (i == 0 || j == 0) {
              now[i] = static_cast<int32_t>(d);
              continue;
            }
            const bool same = WholeAt(p.hyp, p.hyp_wide, hyp.start + i - 1) ==
                              WholeAt(p.ref, p.ref_wide, ref.start + j - 1);
            now[i] = Least(Least(before[i - 1], before[i]) + 1,
                           earlier[i - 1] + (same ? 0 : 1));
          }
        });
      }
      block.Each([&](int thread) {
        if (thread == 0)
          Give(p, s, rows[last % 3 * p.width + hyp.length], ref.length);
      });
    }
  }

  PD_DEVICE static void Give(const EditDistanceArgs& p, int64_t s,
                             int32_t distance, int64_t divisor) {
    const auto value = static_cast<float>(distance);
    if (p.normalized != 0 && divisor == 0) *p.empty = 1;
    p.out[s] = p.normalized != 0 && divisor != 0
                   ? value / static_cast<float>(divisor)
                   : value;
    if (s == 0 && p.number != nullptr) *p.number = p.hyps.count;
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(gather_tree, GatherTree, GatherTreeArgs)
PD_KERNEL(edit_distance, EditDistance, EditDistanceArgs)
