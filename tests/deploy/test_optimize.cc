// SPDX-License-Identifier: Apache-2.0
// A network that PaddlePaddle saved must give PaddlePaddle's answers after its
// batch norms are folded, to the last few bits. Its first batch norm is also
// given a reader of the convolution beside it: that one must stay.
#include "libcore/deploy/optimize.h"

#include <cmath>

#include "formats/npz.h"
#include "libcore/exec/session.h"
#include "tests/deploy/deploy_fixture.h"

namespace pd {
namespace {

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

}  // namespace
}  // namespace pd
