// SPDX-License-Identifier: Apache-2.0
// Threads of loops, for the process and for one thread of it.
#include "libcore/base/thread_count.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <thread>

#include "libcore/base/parallel.h"

namespace pd {
namespace test_thread_count {

// How many parts a loop has.
int Parts() {
  int parts = 0;
  ParallelParts([&](int part, int all) {
    if (part == 0) parts = all;
  });
  return parts;
}

TEST(ThreadCountTest, IsOfTheCallingThreadWhileItLives) {
  SetThreads(3);
  const int omp_before = omp_get_max_threads();
  EXPECT_EQ(Parts(), 3);
  {
    const ThreadCount one(1);
    EXPECT_EQ(Threads(), 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
    EXPECT_EQ(Parts(), 1);
    {
      const ThreadCount two(2);
      EXPECT_EQ(Parts(), 2);
    }
    EXPECT_EQ(Parts(), 1);
    std::thread other([] {
      EXPECT_EQ(Threads(), 3);
      const ThreadCount two(2);
      EXPECT_EQ(Parts(), 2);
    });
    other.join();
    EXPECT_EQ(Threads(), 1);
  }
  EXPECT_EQ(Parts(), 3);
  EXPECT_EQ(omp_get_max_threads(), omp_before);
  {
    const ThreadCount all(0);
    EXPECT_EQ(Threads(), AvailableCpus());
  }
  SetThreads(0);
}

}  // namespace test_thread_count
}  // namespace pd
