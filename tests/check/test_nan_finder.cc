// SPDX-License-Identifier: Apache-2.0
// The report on the op that made the first bad number: worked by hand
// on programs of one or two ops.
#include "libcore/check/nan_finder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "libcore/check/half_ranges.h"
#include "libcore/check/nan_dump.h"
#include "libcore/check/nan_guard.h"
#include "libcore/kernels/attach.h"
#include "libcore/program/prune.h"

namespace pd {
namespace test_nan_finder {

class NanFinder : public ::testing::Test {
 protected:
  NanFinder() : session_(&registry_) {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
    program_.version = 2003000;
    program_.blocks.emplace_back();
  }

  VarDesc* Var(const std::string& name) {
    if (program_.global().FindVar(name) == nullptr) {
      VarDesc var;
      var.name = name;
      program_.global().vars.push_back(var);
    }
    return program_.global().FindVar(name);
  }
  OpDesc* Op(const std::string& type, const SlotList& in, const SlotList& out) {
    OpDesc op;
    op.type = type;
    op.inputs = in;
    op.outputs = out;
    for (const SlotList* slots : {&in, &out})
      for (const auto& [slot, names] : *slots)
        for (const std::string& name : names) Var(name);
    program_.global().ops.push_back(op);
    return &program_.global().ops.back();
  }
  std::optional<NanFinding> Find(const NamedArrays& feeds,
                                 std::vector<std::string> fetches = {"y"}) {
    auto query = QueryOf(&session_, &program_, feeds, std::move(fetches));
    EXPECT_TRUE(query.ok()) << query.status();
    auto finding = FindNan(*query);
    EXPECT_TRUE(finding.ok()) << finding.status();
    return finding.ok() ? *finding : std::nullopt;
  }

  OpRegistry registry_;
  Session session_;
  ProgramDesc program_;
};

TEST_F(NanFinder, SaysWhatItSaw) {
  Op("relu", {{"X", {"x"}}}, {{"Out", {"r"}}});
  Op("log", {{"X", {"r"}}}, {{"Out", {"y"}}});
  const auto f = Find({{"x", MakeArray<float>({2, 3}, {1, 2, 3, 4, -5, 6})}});
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->op.type, "log");
  EXPECT_EQ(f->index, 1);
  EXPECT_EQ(f->output.name, "y");
  EXPECT_EQ(f->output.first_bad, 4);
  EXPECT_EQ(f->output.stats.inf, 1);
  EXPECT_EQ(f->output.stats.finite, 5);
  ASSERT_EQ(f->inputs.size(), 1u);
  EXPECT_EQ(f->inputs[0].name, "r");
  EXPECT_EQ(f->inputs[0].first_bad, -1);
  EXPECT_EQ(std::get<double>(*f->inputs[0].stats.max), 6);
  EXPECT_TRUE(f->clean_inputs());
  EXPECT_EQ(
      f->causes,
      (std::vector<std::string>{"log of zero: element [1, 1] of 'r' is 0"}));
  ASSERT_EQ(f->samples.size(), 4u);  // three numbers, one infinity
  EXPECT_EQ(f->samples[0].value, "0.000000");
  EXPECT_EQ(f->samples[3].index, 4);
  EXPECT_EQ(f->samples[3].value, "-inf");
}

TEST_F(NanFinder, CleanIsNothing) {
  Op("log", {{"X", {"x"}}}, {{"Out", {"y"}}});
  EXPECT_FALSE(Find({{"x", MakeArray<float>({1}, {1e-40f})}}).has_value());
}

TEST_F(NanFinder, FedDataIsAtFault) {
  Op("relu", {{"X", {"x"}}}, {{"Out", {"y"}}});
  const auto f = Find({{"x", MakeArray<float>({2}, {1, INFINITY})}});
  ASSERT_TRUE(f.has_value());
  EXPECT_FALSE(f->clean_inputs());
  EXPECT_EQ(f->inputs[0].origin, ValueOrigin::kFed);
  EXPECT_EQ(f->causes,
            (std::vector<std::string>{"bad data: the fed 'x' holds 0 NaN and 1 "
                                      "Inf, the first at [1]"}));
}

// An update in place: the parameter's value from before is shown.
TEST_F(NanFinder, KeepsWhatAnOpWritesOver) {
  Var("w")->persistable = true;
  Var("lr")->persistable = true;
  ASSERT_TRUE(session_.scope().Set("w", MakeArray<float>({2}, {3, 4})).ok());
  ASSERT_TRUE(session_.scope().Set("lr", MakeArray<float>({1}, {1e38f})).ok());
  Op("sgd", {{"Param", {"w"}}, {"Grad", {"g"}}, {"LearningRate", {"lr"}}},
     {{"ParamOut", {"w"}}});
  const auto f = Find({{"g", MakeArray<float>({2}, {1, -100})}}, {});
  ASSERT_TRUE(f.has_value());
  EXPECT_EQ(f->output.name, "w");
  EXPECT_EQ(f->output.first_bad, 1);
  EXPECT_EQ(f->input_values.at("w").data<float>()[0], 3);
  EXPECT_EQ(f->input_values.at("w").data<float>()[1], 4);
  ASSERT_EQ(f->causes.size(), 1u);
  EXPECT_EQ(f->causes[0].substr(0, 8), "overflow");
}

struct CauseCase {
  std::string type;
  std::vector<std::pair<std::string, float>> inputs;  // slot, its elements
  std::string cause;                                  // how it begins
};

class NanCause : public NanFinder,
                 public ::testing::WithParamInterface<CauseCase> {};

TEST_P(NanCause, IsSaid) {
  SlotList in;
  NamedArrays feeds;
  for (const auto& [slot, value] : GetParam().inputs) {
    in.push_back({slot, {"in_" + slot}});
    feeds["in_" + slot] = MakeArray<float>({1, 2}, {value, value});
  }
  Op(GetParam().type, in, {{"Out", {"y"}}});
  const auto f = Find(feeds);
  ASSERT_TRUE(f.has_value());
  ASSERT_FALSE(f->causes.empty());
  EXPECT_EQ(f->causes[0].substr(0, GetParam().cause.size()), GetParam().cause);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, NanCause,
    ::testing::Values(
        CauseCase{"log", {{"X", 0}}, "log of zero"},
        CauseCase{"log", {{"X", -2}}, "log of a negative number"},
        CauseCase{"log2", {{"X", 0}}, "log of zero"},
        CauseCase{"log1p", {{"X", -1}}, "log of zero"},
        CauseCase{"exp", {{"X", 89}}, "overflow in exp: the largest of 'in_X'"},
        CauseCase{"sqrt", {{"X", -1}}, "square root of a negative number"},
        CauseCase{"rsqrt", {{"X", 0}}, "division by zero"},
        CauseCase{"reciprocal", {{"X", 0}}, "division by zero"},
        CauseCase{
            "elementwise_div",
            {{"X", 1}, {"Y", 0}},
            "division by zero: element [0, 0] of 'in_Y' is 0, and 1 more"},
        CauseCase{"elementwise_mul", {{"X", 1e30f}, {"Y", 1e30f}}, "overflow"},
        CauseCase{"square", {{"X", 1e20f}}, "overflow"},
        CauseCase{"elementwise_pow", {{"X", -1}, {"Y", 0.5f}}, "power of a"}),
    [](const auto& info) {
      return info.param.type + std::to_string(info.index);
    });

// A dumped op gives the same results when it is run alone.
TEST_F(NanFinder, DumpRepeatsIt) {
  Op("elementwise_div", {{"X", {"x"}}, {"Y", {"z"}}}, {{"Out", {"y"}}});
  const auto f = Find({{"x", MakeArray<float>({3}, {1, 0, -1})},
                       {"z", MakeArray<float>({3}, {0, 0, 0})}});
  ASSERT_TRUE(f.has_value());
  const std::string folder = ::testing::TempDir() + "/nan_dump_test";
  const auto paths = DumpFinding(*f, folder);
  ASSERT_TRUE(paths.ok()) << paths.status();
  EXPECT_EQ(paths->size(), 3u);
  auto program = ReadProgram(folder + "/op.pdmodel");
  ASSERT_TRUE(program.ok());
  const auto names = StripFeedFetch(&*program);
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->feeds, (std::vector<std::string>{"x", "z"}));
  const auto inputs = ReadNpz(folder + "/inputs.npz");
  Session fresh(&registry_);
  const auto got = fresh.Run(*program, *inputs, names->fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  const float* y = got->at("y").data<float>();
  EXPECT_EQ(y[0], INFINITY);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], -INFINITY);
  std::filesystem::remove_all(folder);
}

// Limits by hand: 65520 rounds to infinity in float16, 65519 does not; 2^-25
// rounds to zero, a little more to 2^-24; 2^-14 is the least normal number.
TEST(HalfRange, CountsAtTheLimits) {
  HalfRange r;
  r.Add(MakeArray<float>({9}, {65520, -65519.996f, 0x1p-25f, 0x1.000002p-25f,
                               0x1p-14f, 0, NAN, -INFINITY, 3.4e38f}));
  EXPECT_EQ(r.finite, 7);
  EXPECT_EQ(r.fp16_over, 2);
  EXPECT_EQ(r.fp16_under, 1);
  EXPECT_EQ(r.fp16_denormal, 1);
  EXPECT_EQ(r.bf16_over, 1);
  EXPECT_EQ(r.bf16_under, 0);
  EXPECT_EQ(r.smallest, 0x1p-25);
  HalfRange b;
  b.Add(MakeArray<float>({3}, {0x1p-134f, 0x1p-133f, 0x1p-126f}));
  EXPECT_EQ(b.bf16_under, 1);
  EXPECT_EQ(b.bf16_denormal, 1);
  EXPECT_EQ(b.fp16_under, 3);
}

}  // namespace test_nan_finder
}  // namespace pd
