// SPDX-License-Identifier: Apache-2.0
// Operators of PaddlePaddle 1.x as those of 2.x: the answers that PaddlePaddle
// recorded for the old ones, and for types that PaddlePaddle 2.6.2 no longer
// has answers worked out by hand.
#include "libcore/convert/upgrade.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/model/load_model.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"

namespace pd {
namespace test_upgrade {

const OpRegistry& Registry() {
  static const OpRegistry* registry = [] {
    auto* made = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(made).ok());
    EXPECT_TRUE(AttachAllKernels(made).ok());
    return made;
  }();
  return *registry;
}

bool HasType(const ProgramDesc& program, absl::string_view type) {
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      if (op.type == type) return true;
  return false;
}

// The cases of testdata/ops and ops_more of one old type.
class Recorded : public ::testing::TestWithParam<const char*> {};

TEST_P(Recorded, UpgradedAnswersAsPaddlePaddle) {
  const std::string type = GetParam();
  const auto cases =
      ReadGoldenCases(absl::StrCat(PD_TESTDATA "/ops/", type, ".zip"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  int upgraded = 0;
  for (const GoldenCase& golden : *cases) {
    ProgramDesc program = golden.forward;
    const auto report = UpgradeProgram(Registry(), &program);
    ASSERT_TRUE(report.ok()) << golden.name << ": " << report.status();
    const auto count = report->replaced.find(type);
    EXPECT_EQ(HasType(program, type), !report->kept.empty()) << golden.name;
    if (count == report->replaced.end()) continue;
    ++upgraded;
    Session session(&Registry(), 1);
    if (!golden.startup.blocks.empty())
      ASSERT_TRUE(session.RunOnce(golden.startup).ok());
    std::vector<std::string> fetches;
    for (const auto& [name, array] : golden.expect)
      if (program.FindVar(0, name) != nullptr) fetches.push_back(name);
    const auto results = session.Run(program, golden.feed, fetches);
    ASSERT_TRUE(results.ok()) << golden.name << ": " << results.status();
    for (const std::string& name : fetches)
      EXPECT_EQ(Difference(results->at(name), golden.expect.at(name),
                           golden.rtol, golden.atol),
                "")
          << golden.name << ", " << name;
  }
  EXPECT_GT(upgraded, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, Recorded,
                         ::testing::Values("bicubic_interp", "bilinear_interp",
                                           "fill_zeros_like", "isinf", "isnan",
                                           "linear_interp", "lookup_table",
                                           "matmul", "nearest_interp",
                                           "trilinear_interp"),
                         [](const auto& info) { return info.param; });

// A program of one op.
class OneOp {
 public:
  explicit OneOp(const std::string& type) {
    program.blocks.resize(1);
    op.type = type;
  }
  OneOp& In(const std::string& slot, const Array& array) {
    Var(slot, array.shape, array.dtype);
    op.SetInput(slot, {slot});
    feed[slot] = array;
    return *this;
  }
  OneOp& Out(const std::string& slot) {
    Var(slot, {}, DType::kFloat32);
    op.SetOutput(slot, {slot});
    return *this;
  }
  VarDesc* Var(const std::string& name, const Shape& shape, DType dtype) {
    program.global().vars.emplace_back();
    VarDesc* var = &program.global().vars.back();
    var->name = name;
    var->shape = shape;
    var->dtype = dtype;
    return var;
  }
  // Upgrades and runs.
  Array Answer(const std::string& out = "Out") {
    program.global().ops.push_back(op);
    const auto report = UpgradeProgram(Registry(), &program);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return Array();
    EXPECT_EQ(report->replaced.count(op.type), 1u);
    EXPECT_FALSE(HasType(program, op.type));
    Session session(&Registry(), 1);
    auto results = session.Run(program, feed, {out});
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->at(out) : Array();
  }
  // The reason for which it stays.
  std::string Kept() {
    program.global().ops.push_back(op);
    const auto report = UpgradeProgram(Registry(), &program);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok() || report->kept.size() != 1) return "";
    EXPECT_TRUE(HasType(program, op.type));
    return report->kept[0];
  }

  ProgramDesc program;
  OpDesc op;
  NamedArrays feed;
};

void ExpectArray(const Array& got, const Array& want) {
  EXPECT_EQ(Difference(got, want, 1e-6, 1e-7), "");
}

TEST(Upgrade, OneHotTakesClassesWithoutTheirLastExtent) {
  OneOp one("one_hot");
  one.In("X", MakeArray<int64_t>({2, 1}, {2, 0})).Out("Out");
  one.op.attrs["depth"] = int32_t{3};
  ExpectArray(one.Answer(), MakeArray<float>({2, 3}, {0, 0, 1, 1, 0, 0}));
}

TEST(Upgrade, ShapesOfTheFirstVersions) {
  const Array x = MakeArray<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  OneOp squeeze("squeeze");
  squeeze.In("X", x).Out("Out");
  squeeze.op.attrs["axes"] = std::vector<int32_t>{1};
  ExpectArray(squeeze.Answer(), MakeArray<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  OneOp unsqueeze("unsqueeze");
  unsqueeze.In("X", x).Out("Out");
  unsqueeze.op.attrs["axes"] = std::vector<int32_t>{0};
  ExpectArray(unsqueeze.Answer(),
              MakeArray<float>({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}));
  OneOp flatten("flatten");
  flatten.In("X", x).Out("Out");
  flatten.op.attrs["axis"] = int32_t{2};
  ExpectArray(flatten.Answer(), MakeArray<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  OneOp reshape("reshape");
  reshape.In("X", x).Out("Out");
  reshape.op.attrs["shape"] = std::vector<int32_t>{0, -1};
  ExpectArray(reshape.Answer(), MakeArray<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  OneOp transpose("transpose");
  transpose.In("X", x).Out("Out");
  transpose.op.attrs["axis"] = std::vector<int32_t>{2, 1, 0};
  ExpectArray(transpose.Answer(),
              MakeArray<float>({3, 1, 2}, {1, 4, 2, 5, 3, 6}));
}

TEST(Upgrade, ExpandAndTopK) {
  OneOp expand("expand");
  expand.In("X", MakeArray<float>({1, 2}, {1, 2})).Out("Out");
  expand.op.attrs["expand_times"] = std::vector<int32_t>{2, 2};
  ExpectArray(expand.Answer(),
              MakeArray<float>({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}));
  OneOp top("top_k");
  top.In("X", MakeArray<float>({1, 4}, {3, 9, 1, 7})).Out("Out").Out("Indices");
  top.op.attrs["k"] = int32_t{2};
  ExpectArray(top.Answer(), MakeArray<float>({1, 2}, {9, 7}));
}

TEST(Upgrade, OneAnswerForAWholeTensor) {
  OneOp finite("isfinite");
  finite.In("X", MakeArray<float>({2, 2}, {1, 2, INFINITY, 4})).Out("Out");
  Array no = MakeArray<uint8_t>({1}, {0});
  no.dtype = DType::kBool;
  ExpectArray(finite.Answer(), no);
}

TEST(Upgrade, DiagOfAVector) {
  OneOp diag("diag");
  diag.In("Diagonal", MakeArray<float>({2}, {3, 4})).Out("Out");
  ExpectArray(diag.Answer(), MakeArray<float>({2, 2}, {3, 0, 0, 4}));
}

TEST(Upgrade, ExpandAsBroadcastsOrRepeats) {
  OneOp broadcast("expand_as");
  broadcast.In("X", MakeArray<float>({1, 2}, {1, 2}))
      .In("target_tensor", MakeArray<float>({2, 2}, {0, 0, 0, 0}))
      .Out("Out");
  ExpectArray(broadcast.Answer(), MakeArray<float>({2, 2}, {1, 2, 1, 2}));
  OneOp repeat("expand_as");
  repeat.In("X", MakeArray<float>({1, 2}, {1, 2}))
      .In("target_tensor", MakeArray<float>({1, 4}, {0, 0, 0, 0}))
      .Out("Out");
  ExpectArray(repeat.Answer(), MakeArray<float>({1, 4}, {1, 2, 1, 2}));
}

TEST(Upgrade, CosSimAndItsNorms) {
  const Array x = MakeArray<float>({2, 2}, {3, 4, 0, 2});
  OneOp similar("cos_sim");
  similar.In("X", x).In("Y", MakeArray<float>({1, 2}, {1, 0}));
  similar.Out("Out").Out("XNorm").Out("YNorm");
  OneOp norms = similar;
  ExpectArray(similar.Answer(), MakeArray<float>({2, 1}, {0.6f, 0}));
  ExpectArray(norms.Answer("XNorm"), MakeArray<float>({2, 1}, {5, 2}));
}

TEST(Upgrade, DistancesAndPadding) {
  OneOp distance("squared_l2_distance");
  distance.In("X", MakeArray<float>({2, 2}, {1, 2, 3, 4}))
      .In("Y", MakeArray<float>({1, 2}, {1, 1}))
      .Out("Out")
      .Out("sub_result");
  ExpectArray(distance.Answer(), MakeArray<float>({2, 1}, {1, 13}));
  OneOp pad("pad_constant_like");
  pad.In("X", MakeArray<float>({2, 3}, {0, 0, 0, 0, 0, 0}))
      .In("Y", MakeArray<float>({1, 2}, {1, 2}))
      .Out("Out");
  pad.op.attrs["pad_value"] = 9.0f;
  ExpectArray(pad.Answer(), MakeArray<float>({2, 3}, {1, 2, 9, 9, 9, 9}));
}

TEST(Upgrade, AnOpThatCannotBeReplacedStaysWithTheReason) {
  OneOp vector("matmul");
  vector.In("X", MakeArray<float>({2}, {1, 2}))
      .In("Y", MakeArray<float>({2, 1}, {1, 2}))
      .Out("Out");
  EXPECT_EQ(vector.Kept(),
            "block 0, op 0 (matmul): 'X' is declared with shape [2]; expected "
            "a matrix or a stack of them");
  OneOp ids("one_hot");
  ids.In("X", MakeArray<int64_t>({2}, {2, 0})).Out("Out");
  EXPECT_TRUE(absl::StrContains(ids.Kept(), "expected a last extent of 1"));
  OneOp unknown("space_to_depth");
  unknown.In("X", MakeArray<float>({2}, {1, 2})).Out("Out");
  EXPECT_EQ(unknown.Kept(),
            "block 0, op 0 (space_to_depth): no operator of this type is "
            "known");
}

TEST(Upgrade, ProgramsWithGradientsAreRefused) {
  OneOp one("matmul_grad");
  one.program.global().ops.push_back(one.op);
  const auto report = UpgradeProgram(Registry(), &one.program);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(report.status().message(), "'matmul_grad'"));
}

TEST(Upgrade, AnOpThatBreaksItsSchemaIsAnErrorWithItsPlace) {
  OneOp one("top_k");
  one.program.global().ops.push_back(one.op);
  const auto report = UpgradeProgram(Registry(), &one.program);
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(
      absl::StrContains(report.status().message(), "block 0, op 0 (top_k)"))
      << report.status();
}

// Whole models, with PaddlePaddle 2.6.2's answers to the old operators.
class Models : public ::testing::TestWithParam<const char*> {};

TEST_P(Models, UpgradedAnswerAsPaddlePaddle) {
  const std::string path = absl::StrCat(PD_TESTDATA "/upgrade/", GetParam());
  auto model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto report = UpgradeProgram(Registry(), &model->program);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->kept.size(), std::string(GetParam()) == "pictures" ? 3 : 0);
  for (const OpUpgrade& old : OpUpgrades())
    if (report->kept.empty())
      EXPECT_FALSE(HasType(model->program, old.from)) << old.from;
  const auto feed = ReadNpz(path + ".feed.npz");
  const auto expect = ReadNpz(path + ".expect.npz");
  ASSERT_TRUE(feed.ok() && expect.ok());
  Session session(&Registry(), 1);
  ASSERT_TRUE(FillScope(*model, &session.scope()).ok());
  const auto results = session.Run(model->program, *feed, model->fetches);
  ASSERT_TRUE(results.ok()) << results.status();
  for (const std::string& name : model->fetches)
    EXPECT_EQ(Difference(results->at(name), expect->at(name), 1e-5, 1e-6), "")
        << name;
}

INSTANTIATE_TEST_SUITE_P(Folders, Models,
                         ::testing::Values("classes", "pictures"),
                         [](const auto& info) { return info.param; });

}  // namespace test_upgrade
}  // namespace pd
