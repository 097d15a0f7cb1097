// SPDX-License-Identifier: Apache-2.0
// group_norm, instance_norm and sigmoid_cross_entropy_with_logits against the
// reference: odd sizes, with and without Scale and Bias, means far from zero,
// labels that are ignored, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_norms_and_losses {

KernelCase NormCase(const std::string& type, const Shape& shape, int32_t groups,
                    bool affine) {
  KernelCase c;
  Array x = RandomArray(shape, 1);
  auto* values = const_cast<float*>(x.data<float>());
  for (int64_t i = 0; i < x.size(); ++i) values[i] += 3.0f;
  Feed(&c, "x", std::move(x));
  OpDesc op;
  op.type = type;
  op.SetInput("X", {"x"});
  c.wrt = {"x"};
  if (affine) {
    Feed(&c, "scale", RandomArray({shape[1]}, 2));
    Feed(&c, "bias", RandomArray({shape[1]}, 3));
    op.SetInput("Scale", {"scale"});
    op.SetInput("Bias", {"bias"});
    c.wrt = {"x", "scale", "bias"};
  }
  const bool group = type == "group_norm";
  op.SetOutput("Y", {"y"});
  op.SetOutput(group ? "Mean" : "SavedMean", {"mean"});
  op.SetOutput(group ? "Variance" : "SavedVariance", {"variance"});
  if (group) op.attrs["groups"] = groups;
  Append(&c, op);
  c.fetches = {"y", "mean", "variance"};
  return c;
}

TEST(GroupNorms, AreTheReferences) {
  for (const Shape& shape :
       {Shape{2, 6, 5, 7}, Shape{1, 6, 1}, Shape{3, 12, 37, 31}, Shape{2, 6}})
    for (const int32_t groups : {1, 3, 6})
      for (const bool affine : {true, false}) {
        SCOPED_TRACE(groups + 10 * shape[1]);
        const KernelCase c = NormCase("group_norm", shape, groups, affine);
        const bool alone = shape[0] * groups == c.feeds.at("x").size();
        const std::string label = alone ? "reference" : "cpu:runs";
        ExpectLikeReference(
            c, {{"group_norm", label}, {"group_norm_grad", label}});
      }
}

TEST(GroupNorms, InstanceNormIsTheReferences) {
  for (const Shape& shape :
       {Shape{2, 6, 5, 7}, Shape{3, 12, 37, 31}, Shape{1, 3, 41}})
    for (const bool affine : {true, false})
      ExpectLikeReference(
          NormCase("instance_norm", shape, 1, affine),
          {{"instance_norm", "cpu:runs"}, {"instance_norm_grad", "cpu:runs"}});
}

TEST(GroupNorms, ChannelsLastAreTheReferenceKernels) {
  KernelCase c = NormCase("group_norm", {2, 6, 5, 6}, 3, true);
  c.program.global().ops.back().attrs["data_layout"] = std::string("NHWC");
  ExpectLikeReference(
      c, {{"group_norm", "reference"}, {"group_norm_grad", "reference"}});
}

// An empty region of a picture: the mean is the value, to the bit.
TEST(GroupNorms, ConstantRegionsGiveZero) {
  for (const std::string type : {"group_norm", "instance_norm"}) {
    KernelCase c = NormCase(type, {1, 2, 56, 56}, 2, false);
    Feed(&c, "x",
         MakeArray<float>({1, 2, 56, 56}, std::vector<float>(6272, 255.3f)));
    c.wrt = {};
    const KernelResult fast = RunCase(c, true);
    ASSERT_EQ(fast.labels.at(type), "cpu:runs");
    for (int i = 0; i < 6272; ++i)
      ASSERT_EQ(fast.values.at("y").data<float>()[i], 0) << type;
  }
}

const char kLogitLoss[] = "sigmoid_cross_entropy_with_logits";

// y of x and label.
void AppendLogitLoss(KernelCase* c) {
  OpDesc op;
  op.type = kLogitLoss;
  op.SetInput("X", {"x"});
  op.SetInput("Label", {"label"});
  op.SetOutput("Out", {"y"});
  Append(c, op);
  c->fetches = {"y"};
}

KernelCase LogitCase(const Shape& shape) {
  KernelCase c;
  Array x = RandomArray(shape, 1);
  auto* values = const_cast<float*>(x.data<float>());
  for (int64_t i = 0; i < x.size(); ++i) values[i] *= i % 5 == 0 ? 40.f : 1.f;
  Array label = RandomArray(shape, 2);
  auto* labels = const_cast<float*>(label.data<float>());
  for (int64_t i = 0; i < label.size(); ++i)
    labels[i] = i % 3 == 0 ? -100.f : 1 / (1 + std::exp(labels[i]));
  Feed(&c, "x", std::move(x));
  Feed(&c, "label", std::move(label));
  AppendLogitLoss(&c);
  c.wrt = {"x"};
  return c;
}

TEST(SigmoidCrossEntropy, IsTheReferences) {
  const std::string type = kLogitLoss;
  for (const Shape& shape : {Shape{1}, Shape{3, 17}, Shape{40, 301}})
    ExpectLikeReference(
        LogitCase(shape),
        {{type, "cpu:vectors"}, {type + "_grad", "cpu:vectors"}}, 1e-6);
}

TEST(SigmoidCrossEntropy, NormalizedIsTheReferenceKernels) {
  const std::string type = kLogitLoss;
  KernelCase c = LogitCase({3, 17});
  c.program.global().ops.back().attrs["normalize"] = true;
  ExpectLikeReference(c, {{type, "reference"}, {type + "_grad", "reference"}});
}

// log(1 + e^-x), which is small beside x.
TEST(SigmoidCrossEntropy, ConfidentAnswersKeepTheirLoss) {
  const std::vector<float> x = {6, 10, 13, 16, 20};
  KernelCase c;
  Feed(&c, "x", MakeArray<float>({5}, x));
  Feed(&c, "label", MakeArray<float>({5}, {1, 1, 1, 1, 1}));
  AppendLogitLoss(&c);
  const KernelResult fast = RunCase(c, true);
  ASSERT_EQ(fast.labels.at(kLogitLoss), "cpu:vectors");
  for (size_t i = 0; i < x.size(); ++i) {
    const double loss = std::log1p(std::exp(-double{x[i]}));
    EXPECT_NEAR(fast.values.at("y").data<float>()[i], loss, 1e-6 * loss)
        << x[i];
  }
}

TEST(SigmoidCrossEntropy, InfinitiesAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  KernelCase c;
  Feed(&c, "x",
       MakeArray<float>({5},
                        {infinity, -infinity, std::nanf(""), 100.f, -100.f}));
  Feed(&c, "label", MakeArray<float>({5}, {0.f, 0.f, 0.5f, 1.f, 1.f}));
  AppendLogitLoss(&c);
  const KernelResult fast = RunCase(c, true), slow = RunCase(c, false);
  ASSERT_EQ(fast.labels.at(kLogitLoss), "cpu:vectors");
  const float* a = fast.values.at("y").data<float>();
  const float* b = slow.values.at("y").data<float>();
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
                std::fabs(a[i] - b[i]) < 1e-37f)
        << i << ": " << a[i] << ", the reference " << b[i];
}

}  // namespace test_norms_and_losses
}  // namespace pd
