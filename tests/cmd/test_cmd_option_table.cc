// SPDX-License-Identifier: Apache-2.0
// The numbers are those that CLI11 or strtod would let through.
#include "cmd/common/option_table.h"

#include <gtest/gtest.h>

#include "cmd/common/exit_status.h"
#include "tests/cmd/demo_tool.h"

namespace pd {
namespace test_cmd_option_table {

struct Parsed {
  DemoOptions options;
  absl::Status status;
};

Parsed Parse(std::vector<const char*> words) {
  Parsed parsed;
  const Tool tool = DemoTool(&parsed.options);
  OptionTable table;
  BindAll(tool, &table);
  words.insert(words.begin(), "pd-demo");
  parsed.status = table.Parse(static_cast<int>(words.size()), words.data());
  if (parsed.status.ok()) parsed.status = tool.validate(table);
  return parsed;
}

std::string Error(const std::vector<const char*>& words) {
  const absl::Status status = Parse(words).status;
  if (status.ok()) return "";
  EXPECT_EQ(ExitCode(status), kExitUsage);
  EXPECT_TRUE(IsCommandLineError(status));
  return std::string(status.message());
}

TEST(ParseIntegerTest, TakesDecimalsOnly) {
  EXPECT_EQ(*ParseInteger("0"), 0);
  EXPECT_EQ(*ParseInteger("-10"), -10);
  EXPECT_EQ(*ParseInteger("9223372036854775807"), INT64_MAX);
  for (const char* wrong : {"", "-", "010", "-01", "0x10", "1e3", "+1", " 1",
                            "1 ", "1.0", "9223372036854775808", "1'000", "a"})
    EXPECT_FALSE(ParseInteger(wrong).ok()) << wrong;
  EXPECT_EQ(ParseInteger("11", 1, 10).status().message(),
            "'11' is not a decimal integer from 1 to 10");
}

TEST(ParseRealTest, TakesFiniteDecimalsOnly) {
  EXPECT_EQ(*ParseReal("1e-3"), 0.001);
  EXPECT_EQ(*ParseReal(".5"), 0.5);
  for (const char* wrong : {"", "nan", "inf", "-inf", "1e999", "0x1p3", "1,5",
                            "1e", "--1", " 1", "1f", "."})
    EXPECT_FALSE(ParseReal(wrong).ok()) << wrong;
  EXPECT_FALSE(ParseReal("-0.1", 0, 1).ok());
}

TEST(OptionTableTest, ChoicesAreTakenAgainAndAgain) {
  const auto parse = [](std::vector<const char*> words,
                        std::vector<std::string>* values) {
    OptionTable table;
    table.Choices({"--leave", "NAME", "leaves one out"}, {"head", "tail"},
                  values);
    words.insert(words.begin(), "pd-demo");
    const std::vector<OptionGroup> groups = table.Describe();
    EXPECT_TRUE(groups[0].options[0].repeatable);
    EXPECT_EQ(groups[0].options[0].words,
              (std::vector<std::string>{"head", "tail"}));
    return table.Parse(static_cast<int>(words.size()), words.data());
  };
  std::vector<std::string> values;
  EXPECT_TRUE(parse({"--leave", "tail", "--leave=head"}, &values).ok());
  EXPECT_EQ(values, (std::vector<std::string>{"tail", "head"}));
  const absl::Status status = parse({"--leave", "tial"}, &values);
  EXPECT_EQ(ExitCode(status), kExitUsage);
  EXPECT_EQ(status.message(),
            "option '--leave': 'tial' is none of head, tail, did you mean "
            "'tail'?");
}

TEST(OptionTableTest, AssignsValues) {
  const Parsed parsed =
      Parse({"-c", "job", "a", "-o", "x=-1", "--steps=7", "-o", "y=2", "-vv",
             "--threshold", "0.5", "--seed", "9", "-", "--threads", "2"});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  const DemoOptions& o = parsed.options;
  EXPECT_EQ(o.config, "job");
  EXPECT_EQ(o.overrides, (std::vector<std::string>{"x=-1", "y=2"}));
  EXPECT_EQ(o.files, (std::vector<std::string>{"a", "-"}));
  EXPECT_EQ(o.steps, 7);
  EXPECT_EQ(o.threshold, 0.5);
  EXPECT_EQ(o.common.seed, 9);
  EXPECT_EQ(o.common.threads, 2);
  EXPECT_EQ(o.common.verbose, 2);
  EXPECT_FALSE(o.log);
}

TEST(OptionTableTest, ArgumentsAfterTwoDashesAreNoOptions) {
  const Parsed parsed = Parse({"-c", "job", "--", "-z", "--log"});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  EXPECT_EQ(parsed.options.files, (std::vector<std::string>{"-z", "--log"}));
}

TEST(OptionTableTest, SaysWhatIsWrongInOneLine) {
  EXPECT_EQ(Error({}), "option '--config' is missing");
  EXPECT_EQ(Error({"-c"}), "option '--config' needs a value");
  EXPECT_EQ(Error({"-c", ""}), "option '--config': the value is empty");
  EXPECT_EQ(Error({"-c", "x", "--stpes", "3"}),
            "unknown option '--stpes', did you mean '--steps'?");
  EXPECT_EQ(Error({"-c", "x", "--stpes=3"}),
            "unknown option '--stpes', did you mean '--steps'?");
  EXPECT_EQ(Error({"-c", "x", "-z"}), "unknown option '-z'");
  EXPECT_EQ(Error({"-c", "x", "a", "b", "d"}), "unexpected argument 'd'");
  EXPECT_EQ(Error({"-c", "x", "-c", "y"}),
            "option '--config' is given 2 times; expected once");
  EXPECT_EQ(Error({"-c", "x", "--log=yes"}), "option '--log' takes no value");
  EXPECT_EQ(Error({"-c", "x", "--log"}),
            "option '--log' needs option '--steps'");
  EXPECT_EQ(Error({"-c", "x", "--steps", "010"}),
            "option '--steps': '010' is not a decimal integer from 1 to "
            "1000000");
  EXPECT_EQ(Error({"-c", "x", "--end", "dnoe"}),
            "option '--end': 'dnoe' is none of done, no, job, work, memory, "
            "length, range, folder, did you mean 'done'?");
}

TEST(OptionTableTest, DescribesWhatItParses) {
  DemoOptions options;
  OptionTable table;
  BindAll(DemoTool(&options), &table);
  const std::vector<OptionGroup> groups = table.Describe();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "Job");
  EXPECT_EQ(groups[1].name, "Common");
  const OptionEntry& config = groups[0].options[0];
  EXPECT_EQ(config.short_name, "c");
  EXPECT_TRUE(config.required);
  EXPECT_EQ(groups[0].options[2].fallback, "3");
}

}  // namespace test_cmd_option_table
}  // namespace pd
