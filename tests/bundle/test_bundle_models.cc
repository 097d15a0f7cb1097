// SPDX-License-Identifier: Apache-2.0
// Whole models. The answers are PaddlePaddle's, recorded in testdata; those of
// other batches and of networks without a record are those of the reference
// kernels of libcore/ops.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/pdparams.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "tests/bundle/bundle_fixture.h"
#include "tests/deploy/deploy_fixture.h"
#include "tests/ops/compare.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_bundle_models {

NamedArrays MustReadNpz(const std::string& path) {
  auto arrays = ReadNpz(absl::StrCat(PD_TESTDATA, "/", path));
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  return arrays.ok() ? *std::move(arrays) : NamedArrays();
}

// Answers by name, or the only one.
void ExpectAnswers(const absl::StatusOr<NamedArrays>& got,
                   const NamedArrays& want, double tolerance = 1e-5) {
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->size(), want.size());
  for (const auto& [name, array] : want) {
    const Array& answer =
        want.size() == 1 ? got->begin()->second : got->at(name);
    EXPECT_EQ(Difference(answer, array, tolerance, tolerance), "") << name;
  }
}

// The first `count` records.
Array Records(const Array& array, int64_t count) {
  Array some = array;
  some.shape[0] = count;
  return some;
}

NamedArrays FirstRecords(const NamedArrays& arrays, int64_t count) {
  NamedArrays some;
  for (const auto& [name, array] : arrays) some[name] = Records(array, count);
  return some;
}

TEST(BundleModels, PaddlesAnswers) {
  for (const std::string name : {"lenet", "cifar_resnet", "open_extents"}) {
    SCOPED_TRACE(name);
    const auto model = ReadInferenceModel(DeployData(name));
    ASSERT_TRUE(model.ok()) << model.status();
    const NamedArrays feed = MustReadNpz("deploy/" + name + "-feed.npz");
    const NamedArrays want = MustReadNpz("deploy/" + name + "-expect.npz");
    for (const int threads : {1, 3})
      ExpectAnswers(BundleAnswers(*model, feed, threads), want,
                    name == "open_extents" ? 2e-5 : 1e-5);
  }
}

// One open model answers batches of other sizes, each as the whole batch is.
TEST(BundleModels, OtherBatches) {
  const auto model = ReadInferenceModel(DeployData("cifar_resnet"));
  ASSERT_TRUE(model.ok()) << model.status();
  const NamedArrays feed = MustReadNpz("deploy/cifar_resnet-feed.npz");
  const NamedArrays want = MustReadNpz("deploy/cifar_resnet-expect.npz");
  const auto graph = LowerModel(Registry(), *model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto bytes = BundleBytes(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto open = OpenBytes(*bytes);
  ASSERT_TRUE(open.ok()) << open.status();
  for (const int64_t batch : {1, 3, 2})
    ExpectAnswers(RunModel(open->model, FirstRecords(feed, batch)),
                  FirstRecords(want, batch));
}

TEST(BundleModels, InvertedResidualsOfPaddle) {
  const std::string prefix = absl::StrCat(PD_TESTDATA, "/saved_network/mobile");
  auto model = ReadInferenceModel(prefix);
  ASSERT_TRUE(model.ok()) << model.status();
  FeedFetch names = model->names;
  names.fetches = {"flatten_0.tmp_0"};
  model = Freeze(model->program, names, model->params);
  ASSERT_TRUE(model.ok()) << model.status();
  const NamedArrays data = MustReadNpz("saved_network/data.npz");
  const NamedArrays want = MustReadNpz("saved_network/expected.npz");
  ExpectAnswers(
      BundleAnswers(*model, {{names.feeds[0], Records(data.at("image"), 4)}}),
      {{"flatten_0.tmp_0", want.at("paddle/cut")}});
}

// A transformer encoder after PaddlePaddle's training: embeddings, attention
// with a mask of paddings, two outputs.
TEST(BundleModels, TransformerEncoderOfPaddle) {
  const std::string folder =
      absl::StrCat(PD_TESTDATA, "/train/bert_encoder_adamw/");
  const auto program = ReadProgram(folder + "test.pdmodel");
  const auto state = ReadStateDict(folder + "final.pdparams");
  ASSERT_TRUE(program.ok() && state.ok()) << program.status() << state.status();
  const NamedArrays batches =
      MustReadNpz("train/bert_encoder_adamw/batches.npz");
  const NamedArrays want =
      MustReadNpz("train/bert_encoder_adamw/test_expect.npz");
  FeedFetch names;
  for (const auto& [name, array] : want) names.fetches.push_back(name);
  const auto feeds = FeedsNeeded(*program, {"ids", "mask", "mlm", "nsp", "seg"},
                                 names.fetches);
  ASSERT_TRUE(feeds.ok()) << feeds.status();
  names.feeds = *feeds;
  NamedArrays feed;
  for (const std::string& name : names.feeds) {
    Array first = batches.at(name);  // of the batches
    first.shape.erase(first.shape.begin());
    feed[name] = first;
  }
  const auto model = Freeze(*program, names, state->tensors);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectAnswers(BundleAnswers(*model, feed), want);
}

// The zoo's BERT with its first values, small, answered by the reference
// kernels: sequences of two lengths through one open model.
TEST(BundleModels, BertOfTheZoo) {
  const auto job = ParseJob(R"(model {
    input { name: "ids" shape: [-1, -1] dtype: int64 }
    input { name: "segments" shape: [-1, -1] dtype: int64 }
    layer {
      input: ["ids", "segments"]
      block {
        use: "bert"
        set: ["vocab_size=50", "hidden_size=32", "num_hidden_layers=2",
              "num_attention_heads=4", "intermediate_size=64",
              "max_position_embeddings=16"]
      }
    }
    output: ["block_0", "block_0:pooled"]
  })",
                            "job");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto built = BuildModel(*job, Registry());
  ASSERT_TRUE(built.ok()) << built.status();
  Session session(&ReferenceRegistry(), 7);
  ASSERT_TRUE(session.RunOnce(built->startup).ok());
  NamedArrays params;
  for (const VarDesc& var : built->test.global().vars)
    if (var.persistable) params[var.name] = *session.scope().Get(var.name);
  const auto model =
      Freeze(built->test, {{"ids", "segments"}, built->outputs}, params);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto graph = LowerModel(Registry(), *model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto bytes = BundleBytes(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto open = OpenBytes(*bytes, 2);
  ASSERT_TRUE(open.ok()) << open.status();
  for (const Shape& shape : {Shape{2, 5}, Shape{3, 12}, Shape{1, 1}}) {
    std::vector<int64_t> ids, segments;
    for (int64_t i = 0; i < NumElements(shape); ++i) {
      ids.push_back(i * 7 % 50);
      segments.push_back(i % 2);
    }
    const NamedArrays feeds = {{"ids", MakeArray(shape, ids)},
                               {"segments", MakeArray(shape, segments)}};
    const auto want = session.Run(model->program, feeds, model->names.fetches);
    ASSERT_TRUE(want.ok()) << want.status();
    ExpectAnswers(RunModel(open->model, feeds), *want);
  }
}

// Operators without a kernel are told together, each with its place.
TEST(BundleModels, WhatHasNoKernelIsToldAtOnce) {
  const auto job = ParseJob(R"(model {
    input { name: "x" shape: [-1, 4, 6] }
    layer { name: "inverse" op { type: "erfinv" } }
    layer { name: "gamma" op { type: "lgamma" } }
    output: "gamma"
  })",
                            "job");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto built = BuildModel(*job, Registry());
  ASSERT_TRUE(built.ok()) << built.status();
  Session session(&Registry());
  ASSERT_TRUE(session.RunOnce(built->startup).ok());
  NamedArrays params;
  for (const VarDesc& var : built->test.global().vars)
    if (var.persistable) params[var.name] = *session.scope().Get(var.name);
  const auto model = Freeze(built->test, {{"x"}, built->outputs}, params);
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::Status status = LowerModel(Registry(), *model).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  for (const char* part :
       {"2 operators cannot be in a bundle", "'erfinv', which makes '",
        "'lgamma', which makes '", "bundles have no kernel for it"})
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
}

}  // namespace test_bundle_models
}  // namespace pd
