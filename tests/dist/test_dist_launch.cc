// SPDX-License-Identifier: Apache-2.0
// The environments of launchers.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "libcore/dist/world.h"

namespace pd {
namespace test_dist_launch {

using Environment = std::map<std::string, std::string>;

absl::StatusOr<std::optional<LaunchedBy>> Launch(const Environment& values) {
  return LaunchOf([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, IsNothingForOneProcess) {
  for (const Environment& values :
       {Environment{}, Environment{{"PADDLE_TRAINERS_NUM", "1"}},
        Environment{{"OMPI_COMM_WORLD_SIZE", "1"}},
        Environment{{"WORLD_SIZE", "1"}, {"RANK", "0"}},
        // A batch job of Slurm's, whose tasks are others' matter.
        Environment{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}}) {
    const auto launch = Launch(values);
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_FALSE(launch->has_value());
  }
}

TEST(Launch, IsMpiUnderItsLaunchers) {
  for (const Environment& values :
       {Environment{{"OMPI_COMM_WORLD_SIZE", "4"}},
        Environment{{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}},
        Environment{{"PMIX_RANK", "1"}, {"SLURM_NTASKS", "3"}}}) {
    const auto launch = Launch(values);
    ASSERT_TRUE(launch.ok() && launch->has_value());
    EXPECT_EQ((*launch)->engine, "mpi");
  }
}

TEST(Launch, TakesPaddlesEnvironment) {
  const Environment values = {
      {"PADDLE_TRAINERS_NUM", "2"},
      {"PADDLE_TRAINER_ID", "1"},
      {"PADDLE_TRAINER_ENDPOINTS", "node1:6170,node2:6171"},
      {"PADDLE_CURRENT_ENDPOINT", "node2:6171"}};
  const auto launch = Launch(values);
  ASSERT_TRUE(launch.ok() && launch->has_value());
  EXPECT_EQ((*launch)->engine, "gloo");
  const Meeting& meeting = (*launch)->meeting;
  EXPECT_EQ(meeting.rank, 1);
  EXPECT_EQ(meeting.size, 2);
  EXPECT_EQ(meeting.host, "node1");
  EXPECT_EQ(meeting.port, 6170);
  EXPECT_EQ(meeting.own_address, "node2");
}

TEST(Launch, TakesMasterAddress) {
  const auto launch = Launch({{"MASTER_ADDR", "node1"},
                              {"MASTER_PORT", "29500"},
                              {"SLURM_NTASKS", "3"},
                              {"SLURM_PROCID", "2"}});
  ASSERT_TRUE(launch.ok() && launch->has_value());
  EXPECT_EQ((*launch)->meeting.rank, 2);
  EXPECT_EQ((*launch)->meeting.size, 3);
  EXPECT_EQ((*launch)->meeting.port, 29500);
}

TEST(Launch, RefusesContradictions) {
  const Environment good = {
      {"PADDLE_TRAINERS_NUM", "2"},
      {"PADDLE_TRAINER_ID", "1"},
      {"PADDLE_TRAINER_ENDPOINTS", "a:1,b:2"},
  };
  const std::pair<const char*, const char*> bad[] = {
      {"PADDLE_TRAINERS_NUM", "two"},
      {"PADDLE_TRAINERS_NUM", "-1"},
      {"PADDLE_TRAINERS_NUM", "99999999999"},
      {"PADDLE_TRAINER_ID", "2"},
      {"PADDLE_TRAINER_ID", ""},
      {"PADDLE_TRAINER_ENDPOINTS", "a:1"},
      {"PADDLE_TRAINER_ENDPOINTS", "a,b:2"},
      {"PADDLE_TRAINER_ENDPOINTS", "a:0,b:2"},
      {"PADDLE_TRAINER_ENDPOINTS", ":1,b:2"},
      {"PADDLE_CURRENT_ENDPOINT", "a:1"},
  };
  ASSERT_TRUE(Launch(good).ok());
  for (const auto& [name, value] : bad) {
    Environment values = good;
    values[name] = value;
    const auto launch = Launch(values);
    EXPECT_EQ(launch.status().code(), absl::StatusCode::kInvalidArgument)
        << name << "=" << value;
  }
  EXPECT_FALSE(Launch({{"WORLD_SIZE", "2"}, {"RANK", "0"}}).ok());
  EXPECT_FALSE(Launch({{"WORLD_SIZE", "2"},
                       {"RANK", "0"},
                       {"MASTER_ADDR", "a"},
                       {"MASTER_PORT", "70000"}})
                   .ok());
}

}  // namespace test_dist_launch
}  // namespace pd
