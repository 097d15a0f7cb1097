// SPDX-License-Identifier: Apache-2.0
// Steps whose schedules are worked out by hand.
#include "libcore/dist/step_model.h"

#include <gtest/gtest.h>

namespace pd {
namespace test_dist_step_model {

// A byte takes 1 us, a message 100 us on its way and 10 us at either end.
constexpr LinkModel kLink = {100e-6, 10e-6, 1e-6};

TEST(StepModel, ExchangesABucket) {
  // Two processes of one shard each; 1000 numbers, so parts of 2000 bytes.
  // All-to-all: 100 + 1 (20 + 2000). All-gather: 1 (100 + 20 + 2000).
  EXPECT_NEAR(ExchangeSeconds(kLink, 2, 1000, 2, false), 2120e-6 + 2120e-6,
              1e-12);
  // Before the first one a byte of each process: 100 + 20 + 1.
  EXPECT_NEAR(ExchangeSeconds(kLink, 2, 1000, 2, true), 4361e-6, 1e-12);
  // Four processes of two shards, whose sums are one subtree; parts of 1000.
  // 100 + 3 (20 + 1000) and 3 (100 + 20 + 1000), 2 bytes: 3 (100 + 20 + 2).
  EXPECT_NEAR(ExchangeSeconds(kLink, 8, 1000, 4, false), 3160e-6 + 3360e-6,
              1e-12);
  EXPECT_NEAR(ExchangeSeconds(kLink, 8, 1000, 4, true), 6520e-6 + 366e-6,
              1e-12);
  // Two processes share three shards: 1, and 2 that are not one subtree of the
  // tree (0 1) 2, so two parts of 2000 bytes go out: 100 + 20 + 4000.
  EXPECT_NEAR(ExchangeSeconds(kLink, 3, 1000, 2, false), 4120e-6 + 2120e-6,
              1e-12);
  EXPECT_EQ(ExchangeSeconds(kLink, 8, 1000, 1, true), 0);
}

// A batch of two shards of 10 ms. The first bucket is full after 4 ms of a
// shard, the second after 9; updates take 1 and 2 ms, the rest 0.5.
StepTimeline Measured() {
  StepTimeline measured;
  measured.shards = 2;
  measured.shard = 10e-3;
  measured.buckets = {{1000, 4e-3, 1e-3}, {500, 9e-3, 2e-3}};
  measured.rest = 0.5e-3;
  return measured;
}

TEST(StepModel, OneProcessSendsNothing) {
  const StepPrediction step = PredictStep(Measured(), 1, kLink);
  EXPECT_NEAR(step.step, 23.5e-3, 1e-12);  // 10 + 10 + 1 + 2 + 0.5
  EXPECT_EQ(step.communication, 0);
  EXPECT_NEAR(step.waiting, 0, 1e-12);
  EXPECT_NEAR(step.efficiency, 1, 1e-12);
}

TEST(StepModel, TwoProcessesHideWhatTheyCan) {
  // In ms: bucket 0 travels from 4 for 4.361, to 8.361; bucket 1 is full at 9,
  // travels for 2 (0.1 + 0.02 + 1) = 2.24, to 11.24. The shard ends at 10,
  // bucket 0 is updated to 11, bucket 1 from 11.24 to 13.24, the rest to 13.74.
  const StepPrediction step = PredictStep(Measured(), 2, kLink);
  EXPECT_EQ(step.shards, 2);
  EXPECT_NEAR(step.communication, 6.601e-3, 1e-12);
  EXPECT_NEAR(step.waiting, 0.24e-3, 1e-12);
  EXPECT_NEAR(step.step, 13.74e-3, 1e-12);
  EXPECT_NEAR(step.efficiency, 23.5 / 13.74 / 2, 1e-9);
}

TEST(StepModel, ABucketWaitsForTheOneBefore) {
  // On a link of a quarter of the speed bucket 0 takes 2 (0.12 + 8) + 0.124 =
  // 16.364 from 4 on, to 20.364, and bucket 1, full at 9, 2 (0.12 + 4) = 8.24
  // behind it, to 28.604. Updates end at 30.604, all at 31.104.
  const LinkModel slow = {100e-6, 10e-6, 4e-6};
  const StepPrediction step = PredictStep(Measured(), 2, slow);
  EXPECT_NEAR(step.step, 31.104e-3, 1e-12);
  EXPECT_NEAR(step.communication, 24.604e-3, 1e-12);
  // Computing takes 10 + 1 + 2 of the 30.604.
  EXPECT_NEAR(step.waiting, 17.604e-3, 1e-12);
}

TEST(StepModel, MoreProcessesThanShardsComputeOneEach) {
  const LinkModel free = {0, 0, 0};
  const StepPrediction step = PredictStep(Measured(), 64, free);
  EXPECT_EQ(step.shards, 64);
  EXPECT_NEAR(step.step, 13.5e-3, 1e-12);
  // 64 shards in 13.5 ms, 64 times (2 shards in 23.5 ms).
  EXPECT_NEAR(step.efficiency, 23.5 / 13.5 / 2, 1e-9);
}

TEST(StepModel, ProcessesWithoutAnEqualShareWaitForTheLargest) {
  StepTimeline measured = Measured();
  measured.shards = 3;
  const LinkModel free = {0, 0, 0};
  // One of two computes two shards: 20 + 3 + 0.5.
  EXPECT_NEAR(PredictStep(measured, 2, free).step, 23.5e-3, 1e-12);
}

}  // namespace test_dist_step_model
}  // namespace pd
