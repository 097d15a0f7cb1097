// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's own files are the measure: what it saved, read and written
// again, is the same. That PaddlePaddle runs ours, scripts/check_interop asks.
#include "libcore/deploy/paddle_export.h"

#include <set>

#include "formats/npz.h"
#include "formats/pickle.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/program/text_dump.h"
#include "tests/deploy/deploy_fixture.h"
#include "tests/program/small_program.h"

namespace pd {
namespace test_paddle_export {

namespace fs = std::filesystem;

NamedArrays SmallParams() {
  return {{"w", MakeArray({4, 3}, std::vector<float>(12, 0.5f))}};
}

TEST(Freeze, TakesTheInferencePart) {
  const auto model = Freeze(SmallProgram(), {{"x"}, {"prob"}}, SmallParams());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->program.global().ops.size(), 3u);
  EXPECT_EQ(model->params.size(), 1u);
  EXPECT_TRUE(model->program.global().ops[1].AttrOr("is_test", false));
}

TEST(Freeze, ParametersThatDoNotFit) {
  const FeedFetch names = {{"x"}, {"prob"}};
  EXPECT_EQ(Freeze(SmallProgram(), names, {}).status().message(),
            "no value for parameter 'w'");
  const NamedArrays doubles = {
      {"w", MakeArray({4, 3}, std::vector<double>(12, 0.5))}};
  EXPECT_EQ(Freeze(SmallProgram(), names, doubles).status().message(),
            "parameter 'w' is float64; the program declares float32");
  const NamedArrays small = {{"w", MakeArray({2}, std::vector<float>(2))}};
  EXPECT_EQ(Freeze(SmallProgram(), names, small).status().message(),
            "parameter 'w' has shape [2]; the program declares [4, 3]");
  EXPECT_EQ(Freeze(SmallProgram(), {{"x"}, {}}, {}).status().message(),
            "no output is named; expected at least one");
}

TEST(PaddleExport, SavedModelsComeBackTheSame) {
  const std::string folder = EmptyFolder();
  for (const std::string name : {"lenet", "cifar_resnet", "open_extents"}) {
    const auto model = ReadInferenceModel(DeployData(name));
    ASSERT_TRUE(model.ok()) << model.status();
    const std::string prefix = folder + "/new/" + name;
    ASSERT_TRUE(WritePaddleModel(*model, prefix).ok());
    EXPECT_EQ(Contents(prefix + ".pdiparams"),
              Contents(DeployData(name + ".pdiparams")));
    const auto was = ReadProgram(DeployData(name + ".pdmodel"));
    const auto is = ReadProgram(prefix + ".pdmodel");
    ASSERT_TRUE(was.ok() && is.ok());
    EXPECT_TRUE(DumpProgram(*is) == DumpProgram(*was)) << DumpProgram(*is);
    const auto again = ReadInferenceModel(prefix);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->names.feeds, model->names.feeds);
    EXPECT_EQ(again->names.fetches, model->names.fetches);
  }
}

// Instance norm's statistics have 3 elements a record, cumsum's result has 48:
// PaddlePaddle says [-3] and [-48].
TEST(PaddleExport, ExtentsBelowMinusOneAreNotKnownYet) {
  const auto program = ReadProgram(DeployData("open_extents.pdmodel"));
  const auto model = ReadInferenceModel(DeployData("open_extents"));
  ASSERT_TRUE(program.ok() && model.ok()) << program.status() << model.status();
  std::set<int64_t> extents;
  for (const VarDesc& var : program->global().vars)
    extents.insert(var.shape.begin(), var.shape.end());
  EXPECT_TRUE(extents.count(-3) == 1 && extents.count(-48) == 1);
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  ASSERT_TRUE(AttachAllKernels(&registry).ok());
  Session session(&registry);
  for (const auto& [name, value] : model->params)
    ASSERT_TRUE(session.scope().Set(name, value).ok());
  const auto feed = ReadNpz(DeployData("open_extents-feed.npz"));
  const auto want = ReadNpz(DeployData("open_extents-expect.npz"));
  ASSERT_TRUE(feed.ok() && want.ok());
  const auto got = session.Run(model->program, *feed, model->names.fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(want->size(), got->size());
  for (const auto& [name, array] : *want) {
    ASSERT_EQ(got->at(name).shape, array.shape) << name;
    for (int64_t i = 0; i < array.size(); ++i)
      EXPECT_NEAR(got->at(name).data<float>()[i], array.data<float>()[i], 2e-5)
          << name << " " << i;
  }
}

const char kJobWithGradients[] = R"(
model {
  input { name: "x" shape: [-1, 4, 6] }
  input { name: "n" shape: [-1, 4] dtype: int64 }
  layer { name: "rnn" input: "x" gru { hidden_size: 3 } }
  layer { name: "parts" split { num_or_sections: [1, -1] axis: -1 } }
  layer { name: "fc" linear { out_features: 2 weight_attr { weight_norm {} } } }
  layer { name: "c" input: "n" cast { dtype: float32 } }
  layer {
    name: "e"
    input: ["rnn", "rnn"]
    op { type: einsum attr { name: equation value: "bij,bkj->bik" } }
  }
  output: "e"
  output: "fc"
  output: "c"
})";

const OpDesc* FindOp(const ProgramDesc& program, const std::string& type) {
  for (const OpDesc& op : program.global().ops)
    if (op.type == type) return &op;
  ADD_FAILURE() << "there is no " << type;
  return nullptr;
}

// paddle.jit.load makes the gradients of what it loads, and refuses or crashes
// where an op lacks what only its gradient reads (scripts/interop/
// check_layers.py runs them).
TEST(PaddleExport, OpsHoldWhatTheirGradientsAskFor) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  const auto job = ParseJob(kJobWithGradients, "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto built = BuildModel(*job, registry);
  ASSERT_TRUE(built.ok()) << built.status();
  InferenceModel model;
  model.program = built->test;
  model.names = {{"x", "n"}, built->outputs};
  const std::string prefix = EmptyFolder() + "/m";
  ASSERT_TRUE(WritePaddleModel(model, prefix).ok());
  const auto written = ReadProgram(prefix + ".pdmodel");
  ASSERT_TRUE(written.ok()) << written.status();

  const OpDesc* rnn = FindOp(*written, "rnn");
  ASSERT_NE(rnn, nullptr);
  const bool has_lengths =
      std::any_of(rnn->inputs.begin(), rnn->inputs.end(), [](const auto& slot) {
        return slot.first == "SequenceLength" && slot.second.empty();
      });
  EXPECT_TRUE(has_lengths);
  const OpDesc* cast = FindOp(*written, "cast");
  const OpDesc* norm = FindOp(*written, "frobenius_norm");
  const OpDesc* split = FindOp(*written, "split");
  const OpDesc* einsum = FindOp(*written, "einsum");
  ASSERT_TRUE(cast != nullptr && norm != nullptr && split != nullptr &&
              einsum != nullptr);
  for (const char* slot : {"InnerCache", "XShape"}) {
    ASSERT_EQ(einsum->Output(slot).size(), 2u) << slot;
    for (const std::string& name : einsum->Output(slot))
      EXPECT_NE(written->global().FindVar(name), nullptr) << name;
  }
  EXPECT_NE(cast->FindAttr("use_mkldnn"), nullptr);
  EXPECT_NE(norm->FindAttr("out_dtype"), nullptr);
  EXPECT_EQ(split->AttrOr<int32_t>("axis", -1), 2);
  EXPECT_FALSE(written->global().FindVar("x")->stop_gradient);
}

TEST(PaddleExport, FeedsHaveANameScopeWhereOthersHave) {
  InferenceModel model;
  model.program = SmallProgram();
  model.names = {{"x"}, {"prob"}};
  const std::string prefix = EmptyFolder() + "/small";
  const auto scopes = [&] {
    EXPECT_TRUE(WritePaddleModel(model, prefix).ok());
    const auto written = ReadProgram(prefix + ".pdmodel");
    EXPECT_TRUE(written.ok());
    std::vector<std::string> all;
    for (const OpDesc& op : written->global().ops)
      all.push_back(op.AttrOr<std::string>("op_namescope", "none"));
    return all;
  };
  for (const std::string& scope : scopes()) EXPECT_EQ(scope, "none");
  model.program.global().ops[1].attrs["op_namescope"] = std::string("/head/");
  const std::vector<std::string> all = scopes();
  EXPECT_EQ(all.front(), "/");
  EXPECT_EQ(all[2], "/head/");
  EXPECT_EQ(all.back(), "/");
}

TEST(PaddleExport, LegacyFolder) {
  const auto model = ReadInferenceModel(DeployData("lenet"));
  ASSERT_TRUE(model.ok());
  const std::string folder = EmptyFolder() + "/legacy";
  ASSERT_TRUE(WritePaddleLegacyModel(*model, folder).ok());
  EXPECT_TRUE(fs::exists(folder + "/__model__"));
  for (const auto& [name, value] : model->params) {
    const auto read = ReadTensor(folder + "/" + name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->shape, value.shape);
  }
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    (void)entry;
    ++files;
  }
  EXPECT_EQ(files, model->params.size() + 1);
}

TEST(PaddleExport, NamesStayInTheFolder) {
  auto model = ReadInferenceModel(DeployData("lenet"));
  ASSERT_TRUE(model.ok());
  model->params["../escape"] = MakeArray({1}, std::vector<float>(1));
  const std::string folder = EmptyFolder() + "/legacy";
  EXPECT_FALSE(WritePaddleLegacyModel(*model, folder).ok());
  EXPECT_FALSE(fs::exists(folder));
}

TEST(PaddleExport, OldFilesSurviveAFailure) {
  const auto lenet = ReadInferenceModel(DeployData("lenet"));
  const auto resnet = ReadInferenceModel(DeployData("cifar_resnet"));
  ASSERT_TRUE(lenet.ok() && resnet.ok());
  const std::string prefix = EmptyFolder() + "/model";
  ASSERT_TRUE(WritePaddleModel(*lenet, prefix).ok());
  const std::string old = Contents(prefix + ".pdmodel");
  fs::remove(prefix + ".pdiparams");
  fs::create_directory(prefix + ".pdiparams");  // cannot be replaced
  const absl::Status status = WritePaddleModel(*resnet, prefix);
  EXPECT_NE(status.message().find("is a directory"), std::string::npos)
      << status;
  EXPECT_EQ(Contents(prefix + ".pdmodel"), old);
  for (const auto& entry :
       fs::directory_iterator(fs::path(prefix).parent_path()))
    EXPECT_NE(entry.path().extension(), ".pdkit-new") << entry.path();
}

TEST(PaddleExport, ModelWithoutParametersHasNoFileOfThem) {
  ProgramDesc p;
  p.blocks.emplace_back();
  AddVar(&p, "x", {-1, 4});
  AddVar(&p, "y", {-1, 4});
  AddOp(&p, "relu", {{"X", {"x"}}}, {{"Out", {"y"}}});
  const auto model = Freeze(p, {{"x"}, {"y"}}, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string prefix = EmptyFolder() + "/model";
  ASSERT_TRUE(WritePaddleModel(*model, prefix).ok());
  EXPECT_FALSE(fs::exists(prefix + ".pdiparams"));
  const auto written = ReadProgram(prefix + ".pdmodel");
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->version, 2003000);
}

// scripts/interop/check_methods.py asks paddle.jit.load.
TEST(PaddleExport, MethodsAndTheTableOfParameters) {
  const auto lenet = ReadInferenceModel(DeployData("lenet"));
  const auto resnet = ReadInferenceModel(DeployData("cifar_resnet"));
  ASSERT_TRUE(lenet.ok() && resnet.ok());
  const std::string folder = EmptyFolder(), prefix = folder + "/model";
  ASSERT_TRUE(WritePaddleModel(*resnet, prefix, {{"other", *lenet}}).ok());
  ASSERT_TRUE(WritePaddleModel(*lenet, folder + "/alone").ok());
  for (const char* end : {".pdmodel", ".pdiparams"})
    EXPECT_EQ(Contents(prefix + ".other" + end),
              Contents(folder + "/alone" + end));
  const auto info = ReadPickle(prefix + ".pdiparams.info");
  ASSERT_TRUE(info.ok()) << info.status();
  const auto* table = info->As<PickleDict>();
  ASSERT_NE(table, nullptr);
  std::set<std::string> names;
  for (const InferenceModel* model : {&*lenet, &*resnet})
    for (const auto& [name, value] : model->params) names.insert(name);
  EXPECT_EQ(table->items.size(), names.size());
  size_t buffers = 0;
  for (const std::string& name : names) {
    const PickleValue* entry = table->Find(name);
    ASSERT_NE(entry, nullptr) << name;
    // Means and variances of batch norms.
    const bool buffer = name.find("batch_norm") == 0 &&
                        (name.find(".w_1") != std::string::npos ||
                         name.find(".w_2") != std::string::npos);
    buffers += buffer ? 1 : 0;
    const auto* dict = entry->As<PickleDict>();
    ASSERT_NE(dict, nullptr) << name;
    EXPECT_EQ(*dict->Find("trainable")->As<bool>(), !buffer) << name;
    EXPECT_EQ(*dict->Find("stop_gradient")->As<bool>(), buffer) << name;
    EXPECT_EQ(*dict->Find("structured_name")->As<std::string>(), name);
  }
  EXPECT_GT(buffers, 0u);
}

TEST(PaddleExport, NamesOfMethods) {
  const auto model = ReadInferenceModel(DeployData("lenet"));
  ASSERT_TRUE(model.ok());
  const std::string prefix = EmptyFolder() + "/model";
  const auto refusal = [&](const std::vector<PaddleMethod>& methods) {
    return std::string(WritePaddleModel(*model, prefix, methods).message());
  };
  EXPECT_EQ(refusal({{"forward", *model}}), "two methods are named 'forward'");
  EXPECT_EQ(refusal({{"a/b", *model}}),
            "'a/b' cannot name a method: expected letters, digits and '_'");
  EXPECT_FALSE(fs::exists(prefix + ".pdmodel"));
}

}  // namespace test_paddle_export
}  // namespace pd
