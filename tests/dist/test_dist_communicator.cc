// SPDX-License-Identifier: Apache-2.0
// Reductions against sums in float64, in every process to the same bits.
#include "libcore/dist/communicator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "libcore/base/half.h"
#include "tests/dist/thread_transport.h"

namespace pd {
namespace test_dist_communicator {

float NumberAt(int rank, int64_t i) {
  return static_cast<float>((rank * 31 + i * 17) % 101) / 7.0f - 5.0f;
}

TEST(Communicator, AddsUpTheElementsOfAllProcesses) {
  for (const int size : {1, 2, 3, 4, 5})
    for (const int64_t count : {1, 5, 4096, 20001}) {
      std::mutex mutex;
      std::vector<std::vector<float>> results;
      RunTogether(size, [&](const Communicator& all) {
        std::vector<float> in, out(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i)
          in.push_back(NumberAt(all.rank(), i));
        ASSERT_TRUE(all.AllReduce(Reduction::kSum, DType::kFloat32, count,
                                  in.data(), out.data())
                        .ok());
        const std::lock_guard<std::mutex> lock(mutex);
        results.push_back(out);
      });
      for (int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int r = 0; r < size; ++r) sum += NumberAt(r, i);
        const float got = results[0][static_cast<size_t>(i)];
        ASSERT_NEAR(got, sum, 1e-5 * size) << size << " " << count << " " << i;
      }
      for (const auto& other : results)
        EXPECT_EQ(std::memcmp(other.data(), results[0].data(),
                              other.size() * sizeof(float)),
                  0);
    }
}

// The order is that of a tree for few elements and for many.
TEST(Communicator, HasOneOrderOfSums) {
  const float parts[] = {1e8f, 1.0f, -1e8f, 1.0f};
  const float tree = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  for (const int64_t count : {1, 30000})
    RunTogether(4, [&](const Communicator& all) {
      std::vector<float> x(static_cast<size_t>(count), parts[all.rank()]);
      ASSERT_TRUE(all.AllReduce(Reduction::kSum, DType::kFloat32, count,
                                x.data(), x.data())
                      .ok());
      for (const float value : x) ASSERT_EQ(value, tree);
    });
}

TEST(Communicator, ReducesOtherDtypes) {
  RunTogether(3, [](const Communicator& all) {
    const int64_t mine = all.rank() == 1 ? INT64_MAX : 2;
    int64_t sum = mine, most = mine;
    ASSERT_TRUE(
        all.AllReduce(Reduction::kSum, DType::kInt64, 1, &sum, &sum).ok());
    EXPECT_EQ(sum, INT64_MIN + 3);  // wraps around
    ASSERT_TRUE(
        all.AllReduce(Reduction::kMax, DType::kInt64, 1, &most, &most).ok());
    EXPECT_EQ(most, INT64_MAX);
    Float16 half(static_cast<float>(all.rank()) + 0.5f);
    ASSERT_TRUE(
        all.AllReduce(Reduction::kProd, DType::kFloat16, 1, &half, &half).ok());
    EXPECT_EQ(static_cast<float>(half), 0.5f * 1.5f * 2.5f);
    float nan = all.rank() == 2 ? NAN : 1.0f;
    ASSERT_TRUE(
        all.AllReduce(Reduction::kMin, DType::kFloat32, 1, &nan, &nan).ok());
    EXPECT_TRUE(nan != nan);
    bool truth = true;
    EXPECT_EQ(
        all.AllReduce(Reduction::kSum, DType::kBool, 1, &truth, &truth).code(),
        absl::StatusCode::kUnimplemented);
  });
}

TEST(Communicator, ScattersSumsAndGathersTexts) {
  RunTogether(3, [](const Communicator& all) {
    std::vector<int32_t> in(6), out(2);
    for (int i = 0; i < 6; ++i) in[static_cast<size_t>(i)] = i + all.rank();
    ASSERT_TRUE(all.ReduceScatter(Reduction::kSum, DType::kInt32, 2, in.data(),
                                  out.data())
                    .ok());
    EXPECT_EQ(out[0], 3 * (2 * all.rank()) + 3);
    EXPECT_EQ(out[1], 3 * (2 * all.rank() + 1) + 3);
    const auto texts =
        all.GatherTexts(std::string(static_cast<size_t>(all.rank()), 'x'));
    ASSERT_TRUE(texts.ok());
    EXPECT_EQ(*texts, (std::vector<std::string>{"", "x", "xx"}));
  });
}

TEST(Communicator, RefusesRanksThatAreNone) {
  RunTogether(2, [](const Communicator& all) {
    char byte = 0;
    for (const int rank : {-1, 2, 1 << 30}) {
      EXPECT_FALSE(all.Broadcast(rank, &byte, 1).ok());
      EXPECT_FALSE(all.Send(rank, &byte, 1).ok());
      EXPECT_FALSE(all.Receive(rank, &byte, 1).ok());
    }
    EXPECT_FALSE(all.Send(all.rank(), &byte, 1).ok());
  });
}

}  // namespace test_dist_communicator
}  // namespace pd
