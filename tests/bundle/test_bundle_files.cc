// SPDX-License-Identifier: Apache-2.0
// Damaged bundles, and every mistake that a caller of pd_run.h can make. What
// is damaged is refused or answers something; it never reads beyond its bytes.
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/program/block_builder.h"
#include "tests/bundle/bundle_fixture.h"
#include "tests/deploy/deploy_fixture.h"
#include "tests/formats/format_test.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_bundle_files {

OpDesc MakeOp(const std::string& type,
              const std::vector<std::pair<std::string, std::string>>& inputs,
              const std::string& slot, const std::string& output,
              std::map<std::string, Attribute> attrs = {}) {
  OpDesc op;
  op.type = type;
  for (const auto& [name, variable] : inputs) op.SetInput(name, {variable});
  op.SetOutput(slot, {output});
  op.attrs = std::move(attrs);
  return op;
}

// A convolution with bias and relu, a pool, a reshape by the input's own
// extents, a product, a softmax: kernels of most families in a few hundred
// bytes.
InferenceModel SmallModel() {
  InferenceModel model;
  model.program.version = 2003000;
  model.program.blocks.emplace_back();
  BlockBuilder builder(&Registry(), &model.program);
  const auto add_var = [&](const std::string& name, Shape shape, bool param) {
    VarDesc var;
    var.name = name;
    var.shape = shape;
    var.persistable = param;
    builder.AddVar(var);
    if (!param) return;
    std::vector<float> values(static_cast<size_t>(NumElements(shape)));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 0.25f * static_cast<float>(i % 5) - 0.5f;
    model.params[name] = MakeArray(shape, values);
  };
  add_var("x", {-1, 1, 4, 4}, false);
  add_var("filter", {2, 1, 3, 3}, true);
  add_var("bias", {2}, true);
  add_var("w", {8, 3}, true);
  const std::vector<int32_t> ones = {1, 1}, twos = {2, 2};
  for (OpDesc& op : std::vector<OpDesc>{
           MakeOp("conv2d", {{"Input", "x"}, {"Filter", "filter"}}, "Output",
                  "c", {{"paddings", ones}}),
           MakeOp("elementwise_add", {{"X", "c"}, {"Y", "bias"}}, "Out", "d",
                  {{"axis", int32_t{1}}}),
           MakeOp("relu", {{"X", "d"}}, "Out", "e"),
           MakeOp("pool2d", {{"X", "e"}}, "Out", "f",
                  {{"ksize", twos},
                   {"strides", twos},
                   {"pooling_type", std::string("max")}}),
           MakeOp("flatten_contiguous_range", {{"X", "f"}}, "Out", "g",
                  {{"start_axis", int32_t{1}}, {"stop_axis", int32_t{3}}}),
           MakeOp("matmul_v2", {{"X", "g"}, {"Y", "w"}}, "Out", "h"),
           MakeOp("softmax", {{"X", "h"}}, "Out", "y")}) {
    const absl::Status status = builder.Append(std::move(op));
    EXPECT_TRUE(status.ok()) << status;
  }
  model.names = {{"x"}, {"y"}};
  return model;
}

std::string SmallBundle() {
  const auto graph = LowerModel(Registry(), SmallModel());
  EXPECT_TRUE(graph.ok()) << graph.status();
  const auto bytes = BundleBytes(*graph);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

NamedArrays SmallFeed(int64_t batch) {
  std::vector<float> values(static_cast<size_t>(batch * 16), 0.5f);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 7);
  return {{"x", MakeArray({batch, 1, 4, 4}, values)}};
}

TEST(BundleFiles, EveryDamage) {
  const std::string bytes = SmallBundle();
  size_t refused = 0, opened = 0;
  testing::ForEveryDamage(bytes, [&](const FileBytes& damaged) {
    constexpr size_t kMemory = size_t{64} << 20;
    const auto open = OpenBytes(damaged.view(), 1, kMemory);
    if (!open.ok()) {
      EXPECT_NE(open.status().message(), "");
      ++refused;
      return;
    }
    ++opened;
    RunAsItSays(open->model);
  });
  // Every prefix is refused, and most of what is changed in the weights is not.
  EXPECT_GE(refused, bytes.size());
  EXPECT_GT(opened, 0u);
}

TEST(BundleFiles, WholeModelsDamagedHereAndThere) {
  const auto model = ReadInferenceModel(DeployData("lenet"));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto graph = LowerModel(Registry(), *model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto bytes = BundleBytes(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  // The graph, which a few kilobytes hold.
  std::string damaged = *bytes;
  uint64_t graph_bytes = 0;
  std::memcpy(&graph_bytes, bytes->data() + 24, sizeof(graph_bytes));
  ASSERT_LT(graph_bytes, 4096u);
  for (size_t i = 0; i < 32 + graph_bytes; ++i) {
    damaged[i] = static_cast<char>(~damaged[i]);
    if (const auto open = OpenBytes(damaged, 1, size_t{64} << 20); open.ok())
      RunAsItSays(open->model);
    damaged[i] = (*bytes)[i];
  }
}

TEST(BundleFiles, Refusals) {
  const std::string bytes = SmallBundle();
  const auto refusal = [](const std::string& damaged) {
    return std::string(OpenBytes(damaged).status().message());
  };
  EXPECT_EQ(refusal("no bundle at all, but some text"),
            "the bundle is damaged: it does not begin as a bundle does");
  std::string other = bytes;
  other[8] = 9;
  EXPECT_EQ(refusal(other), "the bundle has version 9; this library reads 1");
  other = bytes;
  other.replace(other.find("softmax"), 7, "softmox");
  EXPECT_EQ(refusal(other), "the kernel 'softmox' is not built in");
  EXPECT_EQ(refusal(bytes + "x"),
            "the bundle is damaged: it does not have the size it says");
  pd_run_model* model = nullptr;
  EXPECT_EQ(pd_run_open("/no/such/file", nullptr, &model), PD_RUN_NO_FILE);
  EXPECT_TRUE(absl::StrContains(pd_run_error(), "cannot open '/no/such/file'"));
  EXPECT_EQ(pd_run_open("/", nullptr, &model), PD_RUN_BAD_FILE);
  EXPECT_EQ(model, nullptr);
}

TEST(BundleFiles, Mistakes) {
  const std::string bytes = SmallBundle();
  const auto open = OpenBytes(bytes);
  ASSERT_TRUE(open.ok()) << open.status();
  pd_run_model* const model = open->model;
  pd_run_tensor tensor;
  const int64_t dims[] = {2, 1, 4, 4};
  const auto wrong = [](pd_run_status status, const char* text) {
    EXPECT_EQ(status, PD_RUN_INVALID_ARGUMENT);
    EXPECT_STREQ(pd_run_error(), text);
  };
  pd_run_model* another = nullptr;
  wrong(pd_run_open(nullptr, nullptr, &another), "'path' is null");
  wrong(pd_run_open("x", nullptr, nullptr), "'model' is null");
  wrong(pd_run_open_memory(nullptr, 8, nullptr, &another), "'bytes' is null");
  wrong(pd_run_open_memory(static_cast<const char*>(open->bytes.get()) + 1, 8,
                           nullptr, &another),
        "'bytes' is not a multiple of 64");
  const pd_run_options many = {-1, 0};
  wrong(pd_run_open_memory(open->bytes.get(), bytes.size(), &many, &another),
        "-1 threads; expected 0 to 256");
  wrong(pd_run_clone(nullptr, &another), "'model' is null");
  wrong(pd_run_get(nullptr, PD_RUN_INPUT, 0, &tensor), "'model' is null");
  wrong(pd_run_get(model, PD_RUN_INPUT, 0, nullptr), "'tensor' is null");
  wrong(pd_run_get(model, PD_RUN_INPUT, 1, &tensor),
        "there is no input 1 of 1");
  wrong(pd_run_get(model, PD_RUN_OUTPUT, 0, &tensor),
        "input 'x' has shape [-1, 1, 4, 4]: pd_run_set_shape is to say the "
        "rest");
  wrong(pd_run_run(model),
        "input 'x' has shape [-1, 1, 4, 4]: pd_run_set_shape is to say the "
        "rest");
  wrong(pd_run_run(nullptr), "'model' is null");
  wrong(pd_run_set_shape(model, 0, 4, nullptr), "'dims' is null");
  wrong(pd_run_set_shape(model, 3, 4, dims), "there is no input 3 of 1");
  wrong(pd_run_set_shape(model, 0, 3, dims),
        "input 'x' has shape [-1, 1, 4, 4]; expected rank 4, not 3");
  const int64_t wide[] = {2, 1, 5, 4};
  wrong(pd_run_set_shape(model, 0, 4, wide),
        "input 'x' has shape [-1, 1, 4, 4]; extent 2 cannot be 5");
  EXPECT_EQ(pd_run_count(nullptr, PD_RUN_INPUT), 0u);
  EXPECT_EQ(pd_run_count(model, PD_RUN_OUTPUT), 1u);
  pd_run_close(nullptr);
  // After all this it works.
  EXPECT_TRUE(RunModel(model, SmallFeed(2)).ok());
}

TEST(BundleFiles, MemoryIsLimited) {
  const std::string bytes = SmallBundle();
  const auto open = OpenBytes(bytes, 1, 100000);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_TRUE(RunModel(open->model, SmallFeed(1)).ok());
  for (const auto& [batch, text] :
       {std::pair<int64_t, const char*>{1000, "the limit is 100000"},
        {100000, "no memory for the 6400000 bytes of 'x'"}}) {
    const int64_t dims[] = {batch, 1, 4, 4};
    ASSERT_EQ(pd_run_set_shape(open->model, 0, 4, dims), PD_RUN_OK);
    EXPECT_EQ(pd_run_run(open->model), PD_RUN_NO_MEMORY);
    EXPECT_TRUE(absl::StrContains(pd_run_error(), text)) << pd_run_error();
  }
  ASSERT_EQ(
      pd_run_set_shape(open->model, 0, 4, SmallFeed(2).at("x").shape.data()),
      PD_RUN_OK);
  EXPECT_TRUE(RunModel(open->model, SmallFeed(2)).ok());
}

// A clone answers the same, also after the first is closed, and each has its
// own shape.
TEST(BundleFiles, Clones) {
  const std::string bytes = SmallBundle();
  pd_run_model* clone = nullptr;
  NamedArrays want;
  std::shared_ptr<const void> kept;
  {
    const auto open = OpenBytes(bytes);
    ASSERT_TRUE(open.ok()) << open.status();
    kept = open->bytes;
    const auto answer = RunModel(open->model, SmallFeed(3));
    ASSERT_TRUE(answer.ok()) << answer.status();
    want = *answer;
    ASSERT_EQ(pd_run_clone(open->model, &clone), PD_RUN_OK);
    ASSERT_TRUE(RunModel(clone, SmallFeed(1)).ok());
    pd_run_tensor y;
    ASSERT_EQ(pd_run_get(open->model, PD_RUN_OUTPUT, 0, &y), PD_RUN_OK);
    EXPECT_EQ(y.dims[0], 3);
  }
  const auto got = RunModel(clone, SmallFeed(3));
  ASSERT_TRUE(got.ok()) << got.status();
  testing::ExpectSameArray(got->at("y"), want.at("y"), "y");
  pd_run_close(clone);
}

}  // namespace test_bundle_files
}  // namespace pd
