// SPDX-License-Identifier: Apache-2.0
// Slices that numbers name: copied out, or given back. What goes to one place
// is one run of sorted keys, whose first thread does it in the CPU's order.
#include "libcore/kernels/cuda/gather_arguments.h"

#include "libcore/kernels/cuda/strided_index.h"

namespace pd::cuda {
namespace {

constexpr uint64_t kNoKey = ~uint64_t{0};

// -1: nowhere.
PD_DEVICE int64_t SliceOf(const PlacesArgs& p, int64_t i) {
  int64_t slice = 0;
  Place(p.walk, i, &slice);
  for (int32_t d = 0; d < p.k; ++d) {
    const int64_t which = i % p.period * p.k + d;
    int64_t at = p.index64 != 0 ? static_cast<const int64_t*>(p.index)[which]
                                : static_cast<const int32_t*>(p.index)[which];
    if (at < 0 && p.negative == kNowhere) return -1;
    if (at < 0 && p.negative == kFromTheEnd) at += p.extents[d];
    if (at < 0 || at >= p.extents[d]) {
      *p.bad = 1;
      return -1;
    }
    slice += at * p.strides[d];
  }
  return slice;
}

template <typename T>
struct TakeSlices {
  PD_DEVICE static void Run(const Block& block, const PlacesArgs& p) {
    block.Spread(p.n * p.width, [&](int64_t e) {
      const int64_t slice = SliceOf(p, e / p.width);
      static_cast<T*>(p.to)[e] =
          slice < 0
              ? T(0)
              : static_cast<const T*>(p.from)[slice * p.width + e % p.width];
    });
  }
};

struct SliceKeys {
  PD_DEVICE static void Run(const Block& block, const PlacesArgs& p) {
    block.Spread(p.line, [&](int64_t i) {
      const int64_t slice = i < p.n ? SliceOf(p, i) : -1;
      p.keys[i] = slice < 0 ? kNoKey
                            : static_cast<uint64_t>(slice) << 32 |
                                  static_cast<uint64_t>(i);
    });
  }
};

struct SliceRuns {
  PD_DEVICE static void Run(const Block& block, const RunsArgs& p) {
    block.Spread(p.n * p.width, [&](int64_t e) {
      const int64_t s = e / p.width, column = e % p.width;
      if (p.keys[s] == kNoKey) return;
      const uint64_t place = p.keys[s] >> 32;
      const auto at = [&](int64_t k) {
        return static_cast<int64_t>(p.keys[k] & 0xffffffffu) * p.width + column;
      };
      const auto same = [&](int64_t k) {
        return k >= 0 && k < p.n && p.keys[k] >> 32 == place;
      };
      const int64_t big = static_cast<int64_t>(place) * p.width + column;
      if (p.kind == kGiveRun) {
        p.to[at(s)] = same(s + 1) ? 0.0f : p.from[big];
        return;
      }
      if (same(s - 1)) return;
      float result = p.kind == kAddRun ? p.to[big] : 0.0f;
      for (int64_t k = s; same(k); ++k) {
        const float value = p.from != nullptr ? p.from[at(k)] : 0.0f;
        result = p.kind == kAddRun ? result + value : value;
      }
      p.to[big] = result;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(take_slices_1, TakeSlices<uint8_t>, PlacesArgs)
PD_KERNEL(take_slices_2, TakeSlices<uint16_t>, PlacesArgs)
PD_KERNEL(take_slices_4, TakeSlices<uint32_t>, PlacesArgs)
PD_KERNEL(take_slices_8, TakeSlices<uint64_t>, PlacesArgs)
PD_KERNEL(slice_keys, SliceKeys, PlacesArgs)
PD_KERNEL(slice_runs, SliceRuns, RunsArgs)
