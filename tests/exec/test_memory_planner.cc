// SPDX-License-Identifier: Apache-2.0
// The planner's promise is that buffers alive together never overlap. Random
// lifetimes find gaps that hand-made ones do not; the chain shows the reuse.
// The plain form of the algorithm, which looks at every buffer that was placed,
// says where each must lie.
#include "libcore/exec/memory_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "libcore/base/rng.h"

namespace pd {
namespace test_memory_planner {

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

size_t RoundedUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The offsets of the buffers, largest first, each at the lowest gap.
std::vector<size_t> PlainOffsets(const std::vector<BufferRequest>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });
  std::vector<size_t> offsets(buffers.size());
  std::vector<size_t> placed;
  for (size_t i : order) {
    std::vector<std::pair<size_t, size_t>> taken;
    for (size_t j : placed)
      if (AliveTogether(buffers[i], buffers[j]))
        taken.emplace_back(offsets[j],
                           offsets[j] + RoundedUp(buffers[j].bytes));
    std::sort(taken.begin(), taken.end());
    for (const auto& [begin, end] : taken) {
      if (begin >= offsets[i] + RoundedUp(buffers[i].bytes)) break;
      offsets[i] = std::max(offsets[i], end);
    }
    placed.push_back(i);
  }
  return offsets;
}

// The bytes alive in the fullest step: no arena is smaller.
size_t MostAlive(const std::vector<BufferRequest>& buffers) {
  size_t most = 0;
  for (const BufferRequest& at : buffers) {
    size_t alive = 0;
    for (const BufferRequest& other : buffers)
      if (other.first <= at.first && at.first <= other.last)
        alive += RoundedUp(other.bytes);
    most = std::max(most, alive);
  }
  return most;
}

int Below(int n, RandomStream* random) {
  return static_cast<int>(random->Below(static_cast<uint64_t>(n)));
}

using LifeOf = std::pair<int, int> (*)(int i, int n, RandomStream* random);

// Lives as networks have them, and mixtures of long and short ones.
struct Lives {
  const char* name;
  LifeOf life;
};

const Lives kLives[] = {
    {"chain", [](int i, int, RandomStream*) { return std::pair(i, i + 1); }},
    {"trained chain",
     [](int i, int n, RandomStream*) { return std::pair(i, 2 * n - i); }},
    {"branches",
     [](int i, int n, RandomStream*) { return std::pair(i, n + i); }},
    {"short",
     [](int, int n, RandomStream* random) {
       const int first = Below(n, random);
       return std::pair(first, first + Below(20, random));
     }},
    {"any",
     [](int, int n, RandomStream* random) {
       const int a = Below(n, random);
       const int b = Below(n, random);
       return std::pair(std::min(a, b), std::max(a, b));
     }},
    {"long and short in turn",
     [](int i, int n, RandomStream*) {
       return std::pair(i, i % 2 == 0 ? i + 1 : 2 * n - i);
     }},
    {"three kinds in turn",
     [](int i, int n, RandomStream* random) {
       if (i % 3 == 0) return std::pair(i, i + 1);
       if (i % 3 == 1) return std::pair(0, n + i);
       return std::pair(i, i + Below(100, random));
     }},
};

TEST(MemoryPlanner, ThousandsLieWhereThePlainAlgorithmPutsThem) {
  constexpr int kBuffers = 1100;  // several chunks
  for (const Lives& lives : kLives) {
    for (const size_t sizes : {size_t{1}, size_t{12800}}) {
      RandomStream random(sizes, StreamOf(lives.name));
      std::vector<BufferRequest> buffers;
      for (int i = 0; i < kBuffers; ++i) {
        const auto [first, last] = lives.life(i, kBuffers, &random);
        buffers.push_back({1 + random.Below(sizes), first, last});
      }
      const std::vector<size_t> wanted = PlainOffsets(buffers);
      const size_t bound = MostAlive(buffers);
      const size_t total = PlanMemory(&buffers);
      size_t end = 0;
      for (size_t i = 0; i < buffers.size(); ++i) {
        ASSERT_EQ(buffers[i].offset, wanted[i]) << lives.name << " " << i;
        end = std::max(end, wanted[i] + RoundedUp(buffers[i].bytes));
      }
      EXPECT_EQ(total, end) << lives.name;
      EXPECT_GE(total, bound) << lives.name;
      EXPECT_LE(total, bound + bound / 2) << lives.name;
    }
  }
}

// All are alive in the middle: the arena is their sum, whatever the order.
TEST(MemoryPlanner, TrainedChainWastesNothing) {
  constexpr int kBuffers = 20000;
  std::vector<BufferRequest> buffers;
  size_t sum = 0;
  for (int i = 0; i < kBuffers; ++i) {
    buffers.push_back(
        {static_cast<size_t>(64 + i % 7 * 64), i, 2 * kBuffers - i});
    sum += buffers.back().bytes;
  }
  EXPECT_EQ(PlanMemory(&buffers), sum);
}

TEST(MemoryPlanner, KeepsBytesForADebugger) {
  const std::vector<BufferRequest> buffers = {
      {640, 0, 1}, {64, 1, 2}, {256, 2, 3}, {64, 3, 4}};
  const auto lasts = [&](double reused) {
    std::vector<BufferRequest> kept = buffers;
    KeepToTheEnd(reused, 9, &kept);
    std::vector<int> all;
    for (const BufferRequest& buffer : kept) all.push_back(buffer.last);
    return all;
  };
  EXPECT_EQ(lasts(1), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(lasts(0.9), (std::vector<int>{1, 9, 3, 9}));
  EXPECT_EQ(lasts(0.7), (std::vector<int>{1, 9, 9, 9}));
  EXPECT_EQ(lasts(0), (std::vector<int>{9, 9, 9, 9}));
  std::vector<BufferRequest> all = buffers;
  KeepToTheEnd(0, 9, &all);
  EXPECT_EQ(PlanMemory(&all), 640u + 64 + 256 + 64);
}

}  // namespace test_memory_planner
}  // namespace pd
