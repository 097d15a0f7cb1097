// SPDX-License-Identifier: Apache-2.0
// States by the numbers that PaddlePaddle 2.6.2's make_scheduler gives.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/profile/scheduler.h"

namespace pd {
namespace test_scheduler {

std::string States(const std::string& text) {
  const auto scheduler = Scheduler::Parse(text);
  if (!scheduler.ok()) return std::string(scheduler.status().message());
  std::string states;
  for (int64_t step = 0; step < 16; ++step)
    absl::StrAppend(&states, static_cast<int>(scheduler->StateOf(step)));
  return states;
}

TEST(Scheduler, IsPaddlePaddles) {
  EXPECT_EQ(States("closed=1,ready=1,record=4,repeat=2,skip_first=0"),
            "0122230122230000");
  EXPECT_EQ(States("record=3,repeat=1,skip_first=2"), "0022300000000000");
  EXPECT_EQ(States("closed=2,ready=1,record=1,repeat=0,skip_first=1"),
            "0001300130013001");
  EXPECT_EQ(States("repeat=3,ready=2,record=2"), "1123112311230000");
  EXPECT_EQ(States("3,14"), "0012222222222300");
  EXPECT_EQ(States("0,2"), "2300000000000000");
  EXPECT_EQ(States("1,3"), "1230000000000000");
  EXPECT_EQ(States("2,5"), "0122300000000000");
}

TEST(Scheduler, KnowsItsFirstAndLastStep) {
  const auto window = Scheduler::Parse("3,14");
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(window->first_recorded(), 3);
  EXPECT_EQ(window->end(), 14);
  EXPECT_EQ(window->cycles(), 1);
  const auto cycles =
      Scheduler::Parse("closed=1,ready=1,record=4,repeat=2,skip_first=5");
  ASSERT_TRUE(cycles.ok());
  EXPECT_EQ(cycles->first_recorded(), 7);
  EXPECT_EQ(cycles->end(), 17);
  EXPECT_EQ(cycles->cycles(), 2);
  EXPECT_EQ(Scheduler::Parse("record=1")->end(), std::nullopt);
}

TEST(Scheduler, RefusesWhatRecordsNothing) {
  for (const auto& [text, what] :
       {std::make_pair("3,3", "steps 3 to 3: nothing is recorded"),
        std::make_pair("14,3", "nothing is recorded"),
        std::make_pair("closed=3,ready=1", "record is 0 or missing"),
        std::make_pair("record=0", "record is 0 or missing"),
        std::make_pair("", "is neither START,END"),
        std::make_pair("3", "is neither START,END"),
        std::make_pair("3,x", "the end is 'x'"),
        std::make_pair("-1,4", "the first step is '-1'"),
        std::make_pair("record=99999999999", "expected an integer"),
        std::make_pair("record=1,record=2", "'record' is given twice"),
        std::make_pair("recrod=1", "'recrod' is none of")})
    EXPECT_TRUE(absl::StrContains(States(text), what))
        << text << ": " << States(text);
}

}  // namespace test_scheduler
}  // namespace pd
