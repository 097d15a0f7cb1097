// SPDX-License-Identifier: Apache-2.0
// A network that PaddlePaddle saved must give PaddlePaddle's answers after its
// batch norms are folded, to the last few bits. Its first batch norm is also
// given a reader of the convolution beside it: that one must stay.
#include "libcore/deploy/optimize.h"

#include <cmath>

#include "absl/strings/match.h"
#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "tests/deploy/deploy_fixture.h"

namespace pd {
namespace test_optimize {

int Count(const InferenceModel& model, const std::string& type) {
  int count = 0;
  for (const OpDesc& op : model.program.global().ops) count += op.type == type;
  return count;
}

double LargestDifference(const InferenceModel& model) {
  OpRegistry registry;
  EXPECT_TRUE(RegisterAllOps(&registry).ok());
  Session session(&registry);
  for (const auto& [name, value] : model.params)
    EXPECT_TRUE(session.scope().Set(name, value).ok());
  const auto feed = ReadNpz(DeployData("cifar_resnet-feed.npz"));
  const auto expect = ReadNpz(DeployData("cifar_resnet-expect.npz"));
  EXPECT_TRUE(feed.ok() && expect.ok());
  const std::string& fetch = model.names.fetches[0];
  const auto result = session.Run(model.program, *feed, {fetch});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return INFINITY;
  const Array& got = result->at(fetch);
  const Array& want = expect->begin()->second;
  double largest = got.size() == want.size() ? 0 : INFINITY;
  for (int64_t i = 0; i < want.size(); ++i)
    largest = std::max(largest, std::fabs(double{got.data<float>()[i]} -
                                          want.data<float>()[i]));
  return largest;
}

TEST(FoldBatchNorms, AnswersStay) {
  auto model = ReadInferenceModel(DeployData("cifar_resnet"));
  ASSERT_TRUE(model.ok()) << model.status();
  const int norms = Count(*model, "batch_norm");
  ASSERT_GT(norms, 0);
  const auto folded = FoldBatchNorms(&*model);
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(*folded, norms);
  EXPECT_EQ(Count(*model, "batch_norm"), 0);
  EXPECT_LT(LargestDifference(*model), 1e-4);
  EXPECT_EQ(FoldBatchNorms(&*model).value(), 0);  // again changes nothing
}

TEST(OptimizeModel, RunsAndShowsEachPass) {
  for (const std::string off : {"", "fold_batch_norms"}) {
    auto model = ReadInferenceModel(DeployData("cifar_resnet"));
    ASSERT_TRUE(model.ok()) << model.status();
    const int norms = Count(*model, "batch_norm");
    PassOptions options;
    options.disabled.insert(off);
    std::vector<std::string> shown;
    options.observer = [&](const std::string& label, const std::string& pass,
                           const ProgramDesc& program) {
      EXPECT_EQ(label, "");
      EXPECT_EQ(program.global().ops.size(),
                model->program.global().ops.size());
      shown.push_back(pass);
      return absl::OkStatus();
    };
    ASSERT_TRUE(OptimizeModel(options, &*model).ok());
    std::vector<std::string> expected = {""};
    if (off.empty()) expected.push_back("fold_batch_norms");
    EXPECT_EQ(shown, expected);
    EXPECT_EQ(Count(*model, "batch_norm"), off.empty() ? 0 : norms);
  }
  EXPECT_EQ(ModelPassNames(), std::vector<std::string>{"fold_batch_norms"});
}

// The types of ops that a session's plans begin with, after the pass.
std::string TypesAfterFolding(const InferenceModel& model, bool frozen,
                              const NamedArrays& feed, Session* session) {
  std::string types;
  PassOptions passes;
  passes.observer = [&](const std::string&, const std::string& pass,
                        const ProgramDesc& program) {
    if (pass == "fold_batch_norms")
      for (const OpDesc& op : program.global().ops) types += op.type + " ";
    return absl::OkStatus();
  };
  session->set_pass_options(passes);
  if (frozen) session->set_plan_options(InferencePlans());
  for (const auto& [name, value] : model.params)
    EXPECT_TRUE(session->scope().Set(name, value).ok());
  EXPECT_TRUE(session->Run(model.program, feed, model.names.fetches).ok());
  session->set_pass_options({});
  return types;
}

TEST(FoldBatchNorms, InPlansWhoseWeightsStay) {
  const auto model = ReadInferenceModel(DeployData("cifar_resnet"));
  const auto feed = ReadNpz(DeployData("cifar_resnet-feed.npz"));
  const auto expect = ReadNpz(DeployData("cifar_resnet-expect.npz"));
  ASSERT_TRUE(model.ok() && feed.ok() && expect.ok());
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  Session open(&registry), frozen(&registry);
  EXPECT_TRUE(absl::StrContains(TypesAfterFolding(*model, false, *feed, &open),
                                "batch_norm"));
  EXPECT_FALSE(absl::StrContains(
      TypesAfterFolding(*model, true, *feed, &frozen), "batch_norm"));
  // Filters are there once, not twice; a second plan uses the same ones.
  for (const OpDesc& op : model->program.global().ops)
    if (op.type == "conv2d")
      EXPECT_FALSE(frozen.scope().Get(op.In("Filter")).ok());
  const auto again = frozen.Run(model->program, *feed, model->names.fetches);
  ASSERT_TRUE(again.ok());
  const Array& got = again->begin()->second;
  const Array& want = expect->begin()->second;
  ASSERT_EQ(got.size(), want.size());
  for (int64_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.data<float>()[i], want.data<float>()[i], 1e-4);
}

TEST(FoldBatchNorms, ThatLearnsOrSharesStays) {
  for (const bool learns : {false, true}) {
    auto model = ReadInferenceModel(DeployData("cifar_resnet"));
    ASSERT_TRUE(model.ok()) << model.status();
    std::vector<OpDesc*> norms;
    for (OpDesc& op : model->program.global().ops)
      if (op.type == "batch_norm") norms.push_back(&op);
    const int count = static_cast<int>(norms.size());
    if (learns)
      norms[0]->attrs["is_test"] = norms[0]->attrs["use_global_stats"] = false;
    else
      norms[1]->SetInput("Bias", norms[0]->Input("Bias"));
    EXPECT_EQ(FoldBatchNorms(&*model).value(), count - (learns ? 1 : 2));
  }
}

TEST(FoldBatchNorms, ConvolutionWithAnotherReaderStays) {
  auto model = ReadInferenceModel(DeployData("cifar_resnet"));
  ASSERT_TRUE(model.ok()) << model.status();
  const int norms = Count(*model, "batch_norm");
  for (const OpDesc& op : model->program.global().ops) {
    if (op.type != "batch_norm") continue;
    model->names.fetches.push_back(op.In("X"));
    break;
  }
  EXPECT_EQ(FoldBatchNorms(&*model).value(), norms - 1);
  EXPECT_EQ(Count(*model, "batch_norm"), 1);
  EXPECT_LT(LargestDifference(*model), 1e-4);
}

}  // namespace test_optimize
}  // namespace pd
