// SPDX-License-Identifier: Apache-2.0
// Parameters alone as a MODEL: PaddlePaddle's state dict under either of its
// names.
#include "libcore/model/load_model.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace pd {
namespace test_load_model {

constexpr char kFile[] = PD_TESTDATA "/formats/pickles/model.p2.pdparams";

// The file's table, in the order of names.
constexpr char kStructured[] =
    "blocks.0.bias blocks.0.weight blocks.1.bias blocks.1.weight bn._mean "
    "bn._variance bn.bias bn.weight conv.bias conv.weight head.bias "
    "head.weight scale";
constexpr char kOfPrograms[] =
    "batch_norm2d_0.b_0 batch_norm2d_0.w_0 batch_norm2d_0.w_1 "
    "batch_norm2d_0.w_2 conv2d_0.b_0 conv2d_0.w_0 generated_tensor_0 "
    "linear_0.b_0 linear_0.w_0 linear_1.b_0 linear_1.w_0 linear_2.b_0 "
    "linear_2.w_0";

std::string Names(const NamedArrays& arrays) {
  std::vector<std::string> names;
  for (const auto& entry : arrays) names.push_back(entry.first);
  return absl::StrJoin(names, " ");
}

ProgramDesc WithParameters(const std::vector<std::string>& names) {
  ProgramDesc program;
  program.blocks.emplace_back();
  for (const std::string& name : names) {
    VarDesc var;
    var.name = name;
    var.persistable = true;
    program.global().vars.push_back(std::move(var));
  }
  return program;
}

TEST(LoadModel, ParametersAlone) {
  const auto model = LoadModel(kFile);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, LoadedModel::Kind::kParameters);
  EXPECT_TRUE(model->program.blocks.empty());
  EXPECT_EQ(Names(model->params), kStructured);
}

TEST(LoadModel, NamesFitTheProgram) {
  auto model = LoadModel(kFile);
  ASSERT_TRUE(model.ok()) << model.status();
  LoadedModel structured = *model;
  FitNames(WithParameters({"conv.weight", "conv2d_0.b_0", "bn.weight"}),
           &structured);
  EXPECT_EQ(Names(structured.params), kStructured);
  FitNames(WithParameters({"conv2d_0.w_0", "conv2d_0.b_0", "bn.weight"}),
           &*model);
  EXPECT_EQ(Names(model->params), kOfPrograms);
}

// paddle.nn.LSTM's state_dict holds each parameter twice: `weight_ih_l0` and
// `0.cell_fw.weight_ih`.
TEST(LoadModel, OneParameterUnderTwoNames) {
  const auto model = LoadModel(PD_TESTDATA "/formats/pickles/lstm.pdparams");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->params.size(), 18u);
  std::vector<std::string> structured, of_programs;
  for (const auto& [name, of_program] : model->parameter_names) {
    if (name.find(".0.") != std::string::npos) continue;
    structured.push_back(name);
    of_programs.push_back(of_program);
  }
  for (auto* names : {&structured, &of_programs}) {
    std::sort(names->begin(), names->end());
    LoadedModel fitted = *model;
    FitNames(WithParameters(*names), &fitted);
    EXPECT_EQ(Names(fitted.params), absl::StrJoin(*names, " "));
  }
  // Names that nothing else stands for stay, to be told of.
  LoadedModel other = *model;
  FitNames(WithParameters({"fc.weight"}), &other);
  EXPECT_EQ(other.params.size(), 18u);
}

TEST(LoadModel, OtherFilesAreNone) {
  const auto model = LoadModel(PD_TESTDATA "/mnist/README.md");
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("is no model"), std::string::npos)
      << model.status();
}

constexpr char kModels[] = PD_TESTDATA "/formats/models/";

TEST(LoadModel, TheParametersOfAProgramInAnyFile) {
  const std::string program = absl::StrCat(kModels, "inference.pdmodel");
  const auto usual = LoadModel(program);
  ASSERT_TRUE(usual.ok()) << usual.status();
  const std::string folder = ::testing::TempDir() + "/load_model_params";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(program, folder + "/net",
                             std::filesystem::copy_options::overwrite_existing);
  LoadOptions options;
  options.params = absl::StrCat(kModels, "inference.pdiparams");
  const auto model = LoadModel(folder + "/net", options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Names(model->params), Names(usual->params));
  EXPECT_EQ(model->fetches, usual->fetches);
}

TEST(LoadModel, AFileThatIsNoneOfTheProgramsParametersIsNamed) {
  const std::string program = absl::StrCat(kModels, "inference.pdmodel");
  const auto message = [&](const std::string& model,
                           const std::string& params) {
    LoadOptions options;
    options.params = params;
    return std::string(LoadModel(model, options).status().message());
  };
  EXPECT_EQ(message(program, "missing.pdiparams"),
            absl::StrCat("'", program,
                         "': cannot open 'missing.pdiparams': No such file or "
                         "directory"));
  EXPECT_TRUE(absl::StrContains(message(program, program),
                                "holds no parameters of a program"))
      << message(program, program);
  EXPECT_TRUE(absl::StrContains(message(kFile, "x"),
                                "is of kind 'pickle', whose parameters lie in"))
      << message(kFile, "x");
}

}  // namespace test_load_model
}  // namespace pd
