// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/requirement.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cmd/common/exit_status.h"

namespace pd {
namespace test_cmd_requirement {

using Operator = Requirement::Operator;

TEST(Requirement, ReadsNameOperatorAndNumber) {
  const auto parsed = ParseRequirements(
      {"acc>=0.99", "loss < 2e-1", "a.b==1", "cer<=0", "map>-1"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)[0].name, "acc");
  EXPECT_EQ((*parsed)[0].op, Operator::kAtLeast);
  EXPECT_EQ((*parsed)[0].bound, 0.99);
  EXPECT_EQ((*parsed)[1].name, "loss");
  EXPECT_EQ((*parsed)[1].op, Operator::kLess);
  EXPECT_EQ((*parsed)[1].bound, 0.2);
  EXPECT_EQ((*parsed)[2].op, Operator::kEqual);
  EXPECT_EQ((*parsed)[3].op, Operator::kAtMost);
  EXPECT_EQ((*parsed)[4].op, Operator::kMore);
  EXPECT_EQ((*parsed)[4].bound, -1);
}

TEST(Requirement, RefusesOtherForms) {
  for (const char* text :
       {"", "acc", "acc=1", "acc!=1", ">=1", "acc>=", "acc=>1", "acc>=x",
        "acc>=nan", "acc>=inf", "acc>>1"}) {
    const auto parsed = ParseRequirements({text});
    EXPECT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(ExitCode(parsed.status()), kExitUsage) << text;
  }
}

TEST(Requirement, IsMetAtItsBoundAndNeverByNaN) {
  const auto met = [](const char* text, double value) {
    return (*ParseRequirements({text}))[0].MetBy(value);
  };
  EXPECT_TRUE(met("a>=1", 1));
  EXPECT_FALSE(met("a>1", 1));
  EXPECT_TRUE(met("a<=1", 1));
  EXPECT_FALSE(met("a<1", 1));
  EXPECT_TRUE(met("a==1", 1));
  EXPECT_FALSE(met("a==1", std::nextafter(1, 2)));
  for (const char* text : {"a>=1", "a>1", "a<=1", "a<1", "a==1"})
    EXPECT_FALSE(met(text, std::nan(""))) << text;
}

TEST(Requirement, UnknownNamesListWhatThereIs) {
  const auto parsed = ParseRequirements({"acc>=1", "f1>=1"});
  const absl::Status status =
      CheckRequirements(*parsed, {{"loss", false}, {"acc", true}});
  EXPECT_EQ(ExitCode(status), kExitUsage);
  EXPECT_EQ(status.message(),
            "--require 'f1>=1': evaluation gives no 'f1'; there are loss, acc");
}

TEST(Requirement, AllThatAreMissedAreNamed) {
  EvaluationResult result;
  result.loss = 0.5;
  result.metrics = {{"acc", 0.75}};
  const auto parsed = ParseRequirements({"acc>=0.75", "acc>0.8", "loss<0.1"});
  const auto judgements = Judge(*parsed, result);
  EXPECT_TRUE(judgements[0].met);
  const absl::Status status = MissedRequirements(judgements);
  EXPECT_EQ(ExitCode(status), kExitNo);
  EXPECT_EQ(std::string(status.message()),
            "2 of 3 requirements missed: acc>0.8 (acc is 0.75), loss<0.1 (loss "
            "is 0.5)");
  EXPECT_TRUE(MissedRequirements({judgements[0]}).ok());
}

}  // namespace test_cmd_requirement
}  // namespace pd
