// SPDX-License-Identifier: Apache-2.0
// Rows summed by their ids, in an order that is always the same: ids are put in
// order; a thread adds up to kSumRun terms of one sum in the order of their
// places, and where a sum has more, another adds what those threads made.
#include <cstdint>

#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/row_sums_arguments.h"
#include "libcore/kernels/cuda/strided_index.h"

namespace pd::cuda {
namespace {

PD_DEVICE int64_t IdAt(const RowOrderArgs& p, int64_t i) {
  return p.ids64 != 0 ? static_cast<const int64_t*>(p.ids)[i]
                      : static_cast<const int32_t*>(p.ids)[i];
}
PD_DEVICE bool IsRow(const RowOrderArgs& p, int64_t id) {
  return id >= 0 && id < p.rows && id != p.padding;
}
PD_DEVICE uint64_t FirstKeyOf(int64_t row) {
  return static_cast<uint64_t>(row) << 32;
}
PD_DEVICE uint64_t KeyAt(const RowOrderArgs& p, int64_t i) {
  const int64_t id = IdAt(p, i);
  return FirstKeyOf(IsRow(p, id) ? id : p.rows) | static_cast<uint64_t>(i);
}
PD_DEVICE int64_t RowOf(uint64_t key) {
  return static_cast<int64_t>(key >> 32);
}
PD_DEVICE int64_t PlaceOf(uint64_t key) {
  return static_cast<int64_t>(key & 0xffffffffu);
}

// How many of n keys in order are below `key`.
PD_DEVICE int32_t CountBelow(const uint64_t* keys, int64_t n, uint64_t key) {
  int32_t begin = 0, end = static_cast<int32_t>(n);
  while (begin < end) {
    const int32_t middle = begin + (end - begin) / 2;
    if (keys[middle] < key)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

PD_DEVICE int64_t EndOfChunk(const RowOrderArgs& p, int64_t begin) {
  return begin + kOrderChunk < p.count ? begin + kOrderChunk : p.count;
}

struct OrderChunks {
  PD_DEVICE static void Run(const Block& block, const RowOrderArgs& p) {
    block.Spread(p.count, [&](int64_t i) {
      const int64_t id = IdAt(p, i);
      if (!IsRow(p, id) && id != p.padding) *p.bad = 1;
      const uint64_t key = KeyAt(p, i);
      const int64_t begin = i / kOrderChunk * kOrderChunk;
      const int64_t end = EndOfChunk(p, begin);
      int64_t place = begin;
      for (int64_t k = begin; k < end; ++k) place += KeyAt(p, k) < key ? 1 : 0;
      p.chunks[place] = key;
    });
  }
};

// A key's place is the number of those below it in all chunks.
struct MergeChunks {
  PD_DEVICE static void Run(const Block& block, const RowOrderArgs& p) {
    block.Spread(p.count, [&](int64_t i) {
      const uint64_t key = p.chunks[i];
      int64_t place = i % kOrderChunk;
      for (int64_t begin = 0; begin < p.count; begin += kOrderChunk)
        if (begin != i - i % kOrderChunk)
          place +=
              CountBelow(p.chunks + begin, EndOfChunk(p, begin) - begin, key);
      p.keys[place] = key;
    });
  }
};

struct FindRows {
  PD_DEVICE static void Run(const Block& block, const RowOrderArgs& p) {
    block.Spread(p.count, [&](int64_t i) {
      const int64_t row = RowOf(p.keys[i]);
      p.begins[i] = CountBelow(p.keys, p.count, FirstKeyOf(row));
      p.ends[i] = CountBelow(p.keys, p.count, FirstKeyOf(row + 1));
    });
  }
};

// The row of `parts` for the run that begins at key e. Among kSumRun keys, one
// run at most is the first of a sum of several, and one is a later one.
PD_DEVICE int64_t PartOf(int64_t e, int64_t begin) {
  return e / kSumRun * 2 + (e == begin ? 1 : 0);
}

template <typename T>
struct SumRuns {
  PD_DEVICE static void Run(const Block& block, const RowSumsArgsOf<T>& p) {
    block.Spread(p.count * p.width, [&](int64_t i) {
      const int64_t e = Quotient(i, p.width), column = i - e * p.width;
      const int64_t row = RowOf(p.keys[e]);
      const int64_t begin = p.begins[e], end = p.ends[e];
      if (row >= p.rows || (e - begin) % kSumRun != 0) return;
      const int64_t last = e + kSumRun < end ? e + kSumRun : end;
      T sum = 0;
      for (int64_t k = e; k < last; ++k)
        sum += p.from[PlaceOf(p.keys[k]) * p.width + column];
      if (end - begin <= kSumRun)
        p.to[row * p.width + column] = sum;
      else
        p.parts[PartOf(e, begin) * p.width + column] = sum;
    });
  }
};

// A sum of several runs begins among kSumRun keys, the last of which it has.
template <typename T>
struct SumParts {
  PD_DEVICE static void Run(const Block& block, const RowSumsArgsOf<T>& p) {
    block.Spread(p.count / kSumRun * p.width, [&](int64_t i) {
      const int64_t r = Quotient(i, p.width), column = i - r * p.width;
      const int64_t last = r * kSumRun + kSumRun - 1;
      const int64_t row = RowOf(p.keys[last]);
      const int64_t begin = p.begins[last], end = p.ends[last];
      if (row >= p.rows || begin < r * kSumRun || end - begin <= kSumRun)
        return;
      T sum = 0;
      for (int64_t e = begin; e < end; e += kSumRun)
        sum += p.parts[PartOf(e, begin) * p.width + column];
      p.to[row * p.width + column] = sum;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(row_order_chunks, OrderChunks, RowOrderArgs)
PD_KERNEL(row_merge_chunks, MergeChunks, RowOrderArgs)
PD_KERNEL(row_find, FindRows, RowOrderArgs)
#define PD_ROW_SUMS(suffix, T)                                  \
  PD_KERNEL(row_sum_runs##suffix, SumRuns<T>, RowSumsArgsOf<T>) \
  PD_KERNEL(row_sum_parts##suffix, SumParts<T>, RowSumsArgsOf<T>)
PD_ROW_SUMS(, float)
PD_ROW_SUMS(_64, double)
