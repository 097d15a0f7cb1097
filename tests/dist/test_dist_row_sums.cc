// SPDX-License-Identifier: Apache-2.0
// Rows of a table: the sums of any number of processes are those of one, and
// those of a whole table.
#include "libcore/dist/row_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/dist/thread_transport.h"

namespace pd {
namespace test_dist_row_sums {

constexpr int64_t kHeight = 11, kWidth = 3, kLooks = 6;

int64_t RowOf(int64_t shard, int64_t look) {
  return (shard * 5 + look * look * 3) % kHeight;
}
// Numbers whose sum depends on the order of additions.
float ValueOf(int64_t shard, int64_t look, int64_t c) {
  return std::sin(static_cast<float>(shard * 31 + look * 7 + c)) *
         std::pow(10.0f, static_cast<float>((shard * 3 + look) % 7));
}

// Shard `absent` has no records.
TableRows SumsIn(const Communicator& processes, int64_t shards,
                 int64_t absent) {
  RowSums sums(shards, kHeight, kWidth, &processes);
  const ShardRange own =
      ShardRange::Of(shards, processes.rank(), processes.size());
  TableRows found;
  for (int step = 0; step < 2; ++step) {
    for (int64_t s = own.begin; s < own.end; ++s) {
      if (s == absent) {
        sums.AddNone();
        continue;
      }
      std::vector<int64_t> rows;
      std::vector<float> values;
      for (int64_t look = 0; look < kLooks; ++look) {
        rows.push_back(RowOf(s, look));
        for (int64_t c = 0; c < kWidth; ++c)
          values.push_back(ValueOf(s, look, c));
      }
      sums.Add(rows.data(), kLooks, values.data(), 0.3f);
    }
    const auto sum = sums.Finish();
    EXPECT_TRUE(sum.ok()) << sum.status();
    if (sum.ok()) found = *sum;
  }
  return found;
}

TEST(RowSums, HaveTheSameBitsForAnyNumberOfProcesses) {
  for (const int64_t shards : {1, 2, 3, 5, 8})
    for (const int64_t absent : {int64_t{-1}, shards - 1, int64_t{0}}) {
      const TableRows one = SumsIn(Communicator(), shards, absent);
      double table[kHeight][kWidth] = {}, size[kHeight][kWidth] = {};
      bool looked[kHeight] = {};
      for (int64_t s = 0; s < shards; ++s)
        for (int64_t look = 0; s != absent && look < kLooks; ++look)
          for (int64_t c = 0; c < kWidth; ++c) {
            const double value = 0.3 * ValueOf(s, look, c);
            looked[RowOf(s, look)] = true;
            table[RowOf(s, look)][c] += value;
            size[RowOf(s, look)][c] += std::abs(value);
          }
      size_t at = 0;
      for (int64_t row = 0; row < kHeight; ++row) {
        if (!looked[row]) continue;
        ASSERT_LT(at, one.rows.size());
        ASSERT_EQ(one.rows[at], row);
        for (int64_t c = 0; c < kWidth; ++c)
          ASSERT_NEAR(one.values[at * kWidth + static_cast<size_t>(c)],
                      table[row][c], 1e-6 * size[row][c]);
        ++at;
      }
      ASSERT_EQ(at, one.rows.size());
      for (int size = 2; size <= shards; ++size)
        RunTogether(size, [&](const Communicator& processes) {
          const TableRows many = SumsIn(processes, shards, absent);
          EXPECT_EQ(many.rows, one.rows);
          ASSERT_EQ(many.values.size(), one.values.size());
          EXPECT_TRUE(one.values.empty() ||
                      std::memcmp(many.values.data(), one.values.data(),
                                  one.values.size() * sizeof(float)) == 0);
        });
    }
}

}  // namespace test_dist_row_sums
}  // namespace pd
