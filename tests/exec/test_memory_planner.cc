// SPDX-License-Identifier: Apache-2.0
// The planner's promise is that buffers alive together never overlap. Random
// lifetimes find gaps that hand-made ones do not; the chain shows the reuse.
#include "libcore/exec/memory_planner.h"

#include <gtest/gtest.h>

#include "libcore/base/rng.h"

namespace pd {
namespace {

bool AliveTogether(const BufferRequest& a, const BufferRequest& b) {
  return a.first <= b.last && b.first <= a.last;
}

TEST(MemoryPlanner, ChainNeedsTwoBuffers) {
  std::vector<BufferRequest> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back({1000, i, i + 1});
  EXPECT_EQ(PlanMemory(&buffers), 2048u);
}

TEST(MemoryPlanner, EmptyAndZeroBytes) {
  std::vector<BufferRequest> none;
  EXPECT_EQ(PlanMemory(&none), 0u);
  std::vector<BufferRequest> zero = {{0, 0, 3}, {64, 1, 2}};
  EXPECT_EQ(PlanMemory(&zero), 64u);
}

TEST(MemoryPlanner, RandomLifetimesNeverOverlap) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed, StreamOf("planner"));
    std::vector<BufferRequest> buffers;
    const size_t n = 1 + random.Below(60);
    size_t sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const int first = static_cast<int>(random.Below(40));
      const int last = first + static_cast<int>(random.Below(10));
      buffers.push_back({random.Below(5000), first, last});
      sum += (buffers.back().bytes + 63) / 64 * 64;
    }
    const size_t total = PlanMemory(&buffers);
    EXPECT_LE(total, sum);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(buffers[i].offset % 64, 0u);
      EXPECT_LE(buffers[i].offset + buffers[i].bytes, total);
      for (size_t j = 0; j < i; ++j) {
        const BufferRequest &a = buffers[i], &b = buffers[j];
        if (!AliveTogether(a, b) || a.bytes == 0 || b.bytes == 0) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset ||
                    b.offset + b.bytes <= a.offset)
            << "seed " << seed << ": " << i << " and " << j;
      }
    }
  }
}

}  // namespace
}  // namespace pd
