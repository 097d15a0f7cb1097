// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "absl/strings/match.h"

namespace pd {
namespace test_flags {

// Puts the flags back that a test has set.
class FlagsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const FlagInfo& flag : AllFlags())
      if (flag.value != flag.initial)
        EXPECT_TRUE(SetFlag(flag.name, FlagText(flag.initial)).ok())
            << flag.name;
  }
};

std::string ErrorOf(absl::string_view name, absl::string_view value) {
  return std::string(SetFlag(name, value).message());
}

TEST_F(FlagsTest, EachIsThereOnceInOrderWithASentence) {
  std::set<absl::string_view> names;
  absl::string_view last;
  for (const FlagInfo& flag : AllFlags()) {
    EXPECT_TRUE(absl::StartsWith(flag.name, "FLAGS_"));
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_LT(last, flag.name);
    last = flag.name;
    EXPECT_GT(flag.help.size(), 10u) << flag.name;
    EXPECT_NE(flag.help.back(), '.') << flag.name;
    EXPECT_FALSE(flag.given) << flag.name;
    // A default is a value that may be set.
    EXPECT_TRUE(SetFlag(flag.name, FlagText(flag.initial)).ok()) << flag.name;
    EXPECT_EQ(flag.value, flag.initial) << flag.name;
  }
  EXPECT_GE(names.size(), 54u);
}

TEST_F(FlagsTest, ValuesHaveTypesAndRanges) {
  EXPECT_TRUE(SetFlag("FLAGS_benchmark", "True").ok());
  EXPECT_TRUE(GetFlag<bool>("benchmark"));
  EXPECT_TRUE(FlagGiven("benchmark"));
  EXPECT_EQ(ErrorOf("benchmark", "perhaps"),
            "FLAGS_benchmark is 'perhaps'; expected true or false");
  EXPECT_EQ(ErrorOf("paddle_num_threads", "0"),
            "FLAGS_paddle_num_threads is '0'; expected an integer from 1 to "
            "1024");
  EXPECT_EQ(ErrorOf("conv_workspace_size_limit", "-5"),
            "FLAGS_conv_workspace_size_limit is '-5'; expected an integer of "
            "at least 0");
  EXPECT_EQ(ErrorOf("fraction_of_cpu_memory_to_use", "1.5"),
            "FLAGS_fraction_of_cpu_memory_to_use is '1.5'; expected a number "
            "from 0 to 1");
  EXPECT_EQ(ErrorOf("eager_delete_tensor_gb", "nan"),
            "FLAGS_eager_delete_tensor_gb is 'nan'; expected a number");
  EXPECT_EQ(ErrorOf("allocator_strategy", "fast"),
            "FLAGS_allocator_strategy is 'fast'; expected one of "
            "naive_best_fit, auto_growth");
  EXPECT_EQ(ErrorOf("selected_gpus", "0,-1"),
            "FLAGS_selected_gpus is '0,-1'; expected numbers from 0, separated "
            "by commas");
  EXPECT_TRUE(SetFlag("selected_gpus", "0,3").ok());
  // A refused value leaves the old one.
  EXPECT_EQ(GetFlag<std::string>("selected_gpus"), "0,3");
  EXPECT_TRUE(absl::IsNotFound(SetFlag("benchmrak", "1")));
  EXPECT_EQ(ErrorOf("benchmrak", "1"),
            "unknown flag 'FLAGS_benchmrak', did you mean 'FLAGS_benchmark'?");
}

TEST_F(FlagsTest, NothingToSwitchIsSaid) {
  EXPECT_TRUE(FlagsWithoutEffect().empty());
  ASSERT_TRUE(SetFlag("rpc_get_thread_num", "12").ok());  // its default
  EXPECT_TRUE(FlagsWithoutEffect().empty());
  ASSERT_TRUE(SetFlag("rpc_get_thread_num", "3").ok());
  ASSERT_EQ(FlagsWithoutEffect().size(), 1u);
  EXPECT_EQ(FlagsWithoutEffect()[0],
            "FLAGS_rpc_get_thread_num=3 changes nothing: there is no parameter "
            "server here");
}

TEST_F(FlagsTest, TheEnvironmentSetsThem) {
  ASSERT_EQ(setenv("FLAGS_paddle_num_threads", "7", 1), 0);
  ASSERT_EQ(setenv("FLAGS_no_such", "7", 1), 0);
  EXPECT_TRUE(SetFlagsFromEnvironment().ok());
  EXPECT_EQ(GetFlag<int64_t>("paddle_num_threads"), 7);
  ASSERT_EQ(FlagsWithoutEffect().size(), 1u);
  EXPECT_TRUE(absl::StrContains(FlagsWithoutEffect()[0], "FLAGS_no_such"));
  ASSERT_EQ(setenv("FLAGS_paddle_num_threads", "many", 1), 0);
  EXPECT_FALSE(SetFlagsFromEnvironment().ok());
  unsetenv("FLAGS_paddle_num_threads");
  unsetenv("FLAGS_no_such");
}

}  // namespace test_flags
}  // namespace pd
