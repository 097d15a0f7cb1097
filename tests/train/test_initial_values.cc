// SPDX-License-Identifier: Apache-2.0
// A network that begins with another's parameters: which of PaddlePaddle's
// values in a .pdparams arrive where, which are left, and what is said of those
// that do not fit.
#include "libcore/train/initial_values.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "libcore/model/load_model.h"
#include "libcore/model/name_patterns.h"

namespace pd {
namespace test_initial_values {

using Strings = std::vector<std::string>;

constexpr char kFile[] = PD_TESTDATA "/formats/pickles/model.p2.pdparams";

class InitialValues : public ::testing::Test {
 protected:
  InitialValues() : session_(&registry_) {}
  void SetUp() override {
    const auto model = LoadModel(kFile);
    ASSERT_TRUE(model.ok()) << model.status();
    values_ = model->params;
  }

  // A network with the file's parameters by these names: (own, the file's).
  ProgramDesc Network(const std::map<std::string, std::string>& names) const {
    ProgramDesc program;
    program.blocks.emplace_back();
    for (const auto& [own, there] : names) {
      VarDesc var;
      var.name = own;
      var.persistable = true;
      var.shape = values_.at(there).shape;
      program.global().vars.push_back(std::move(var));
    }
    return program;
  }

  bool Holds(const std::string& own, const std::string& there) {
    const auto got = session_.scope().Get(own);
    const Array& want = values_.at(there);
    return got.ok() && got->dtype == want.dtype && got->shape == want.shape &&
           std::memcmp(got->bytes.get(), want.bytes.get(), want.size_bytes()) ==
               0;
  }

  OpRegistry registry_;
  Session session_;
  NamedArrays values_;
};

// The message of what was refused.
std::string Message(const absl::StatusOr<TakenParameters>& taken) {
  return std::string(taken.status().message());
}

TEST_F(InitialValues, SkipsAHead) {
  ProgramDesc network = Network({{"conv.weight", "conv.weight"},
                                 {"bn._mean", "bn._mean"},
                                 {"head.weight", "head.weight"},
                                 {"head.bias", "head.bias"}});
  for (VarDesc& var : network.global().vars)
    if (var.name.rfind("head.", 0) == 0) var.shape.back() += 2;
  // Both parameters and both shapes, and the remedy.
  const auto wrong = TakeParameters(network, {kFile}, &session_);
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(wrong).find("'head.weight' has shape "), std::string::npos);
  EXPECT_NE(Message(wrong).find("'head.bias' has shape "), std::string::npos);
  EXPECT_NE(
      Message(wrong).find(
          ToString(values_.at("head.bias").shape) + ", the network's has " +
          ToString(network.global().FindVar("head.bias")->shape)),
      std::string::npos)
      << Message(wrong);
  EXPECT_NE(Message(wrong).find("--init-skip 'head.*' keeps initial values"),
            std::string::npos);
  const auto taken =
      TakeParameters(network, {kFile, {}, {"head.*"}}, &session_);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->skipped, (Strings{"head.bias", "head.weight"}));
  EXPECT_TRUE(taken->initial.empty());
  EXPECT_EQ(taken->taken.size(), 2u);
  EXPECT_TRUE(Holds("conv.weight", "conv.weight"));
  EXPECT_TRUE(Holds("bn._mean", "bn._mean"));
  EXPECT_FALSE(session_.scope().Get("head.weight").ok());
}

TEST_F(InitialValues, Renames) {
  const ProgramDesc network =
      Network({{"net.stem.weight", "conv.weight"},
               {"net.0.blocks.weight", "blocks.0.weight"},
               {"net.1.blocks.bias", "blocks.1.bias"},
               {"other.scale", "scale"}});
  const auto taken = TakeParameters(
      network,
      {kFile, {"blocks.*.*=>net.*.blocks.*", "conv.*=>net.stem.*"}, {}},
      &session_);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(Holds("net.stem.weight", "conv.weight"));
  EXPECT_TRUE(Holds("net.0.blocks.weight", "blocks.0.weight"));
  EXPECT_TRUE(Holds("net.1.blocks.bias", "blocks.1.bias"));
  EXPECT_EQ(taken->initial, (Strings{"other.scale"}));
  EXPECT_EQ(taken->taken[2], (std::pair<std::string, std::string>{
                                 "net.stem.weight", "conv.weight"}));
  EXPECT_EQ(taken->left.front(), "bn._mean");
}

TEST_F(InitialValues, WhatMatchesNothing) {
  const ProgramDesc network = Network({{"conv.weight", "conv.weight"}});
  for (const auto& [from, part] :
       std::vector<std::pair<InitialParameters, std::string>>{
           {{kFile, {}, {"haed.*"}}, "--init-skip 'haed.*' matches nothing"},
           {{kFile, {"a.*=>b.*"}, {}},
            "--init-rename 'a.*=>b.*' matches nothing"},
           {{kFile, {"conv.weight=>head.weight"}, {}},
            "gives 'conv.weight' and 'head.weight'"},
           {{kFile, {"*=>x.*"}, {}}, "holds no parameter of this network"}}) {
    const auto taken = TakeParameters(network, from, &session_);
    EXPECT_EQ(taken.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(Message(taken).find(part), std::string::npos) << Message(taken);
  }
}

// A network of PyTorch's: linear weights are the other way round, of halves.
TEST(InitialValuesOfTorch, TransposesMatricesAndChangesTypes) {
  constexpr char kTorch[] = PD_TESTDATA "/formats/torch/checkpoint.pth";
  const auto model = LoadModel(kTorch);
  ASSERT_TRUE(model.ok()) << model.status();
  const Array there = model->params.at("module.mix.weight");
  ProgramDesc network;
  network.blocks.emplace_back();
  const auto declare = [&](const char* name, Shape shape) {
    VarDesc var;
    var.name = name;
    var.persistable = true;
    var.shape = std::move(shape);
    network.global().vars.push_back(std::move(var));
  };
  declare("fc.bias", {7});
  declare("fc.weight", {4, 7});
  declare("mix.weight", {4, 4});
  OpDesc product;
  product.type = "matmul_v2";
  product.SetInput("Y", {"mix.weight"});
  network.global().ops.push_back(product);

  OpRegistry registry;
  Session session(&registry);
  InitialParameters from{kTorch, {"module.*=>*"}};
  const auto wrong = TakeParameters(network, from, &session);
  EXPECT_NE(Message(wrong).find("'fc.weight' has shape [7, 4], the network's "
                                "has [4, 7]; --init-transpose 'fc.weight' "
                                "transposes it"),
            std::string::npos)
      << Message(wrong);
  from.transpose = {"fc.bias"};
  EXPECT_NE(Message(TakeParameters(network, from, &session))
                .find("--init-transpose 'fc.bias' matches no matrix"),
            std::string::npos);
  from.transpose = {"*"};
  const auto taken = TakeParameters(network, from, &session);
  ASSERT_TRUE(taken.ok()) << taken.status();
  const auto got = session.scope().Get("mix.weight");
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->dtype, DType::kFloat32);
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column)
      EXPECT_EQ(got->data<float>()[row * 4 + column],
                static_cast<float>(there.data<Float16>()[column * 4 + row]));
}

TEST_F(InitialValues, SeveralSources) {
  TrainProgram network;
  network.test = Network({{"conv.weight", "conv.weight"},
                          {"stem.weight", "conv.weight"},
                          {"other.scale", "scale"}});
  InitialParameters first{kFile}, second{kFile};
  second.rename = {"conv.*=>stem.*"};
  first.missing = InitialParameters::Missing::kFail;
  const absl::Status status =
      SetInitialParameters(network, {first, second}, {}, &session_);
  EXPECT_NE(status.message().find("none of the 2 sources has 'other.scale'"),
            absl::string_view::npos)
      << status;
  second.skip = {"other.*"};  // left as it is on purpose
  EXPECT_TRUE(
      SetInitialParameters(network, {first, second}, {}, &session_).ok());
  EXPECT_TRUE(Holds("conv.weight", "conv.weight"));
  EXPECT_TRUE(Holds("stem.weight", "conv.weight"));
}

// A network of one embedding [rows, 2] whose values are 0, 1, 2, ...
class InitialWords : public ::testing::Test {
 protected:
  InitialWords() : session_(&registry_) {
    auto words = Vocabulary::Make(
        {"<pad>", "<unk>", "<s>", "</s>", "whale", "Ship", "sea", "SHIP"});
    EXPECT_TRUE(words.ok()) << words.status();
    vocabularies_["text"] =
        std::make_shared<const Vocabulary>(*std::move(words));
    network_.test.blocks.emplace_back();
    VarDesc var;
    var.name = "words.weight";
    var.persistable = true;
    var.shape = {9, 2};
    network_.test.global().vars.push_back(std::move(var));
    std::vector<float> values(18);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i);
    EXPECT_TRUE(
        session_.scope().Set("words.weight", MakeArray({9, 2}, values)).ok());
    path_ = ::testing::TempDir() + "pd_words_" + std::to_string(::getpid());
  }
  ~InitialWords() override { std::remove(path_.c_str()); }

  absl::Status Set(
      const std::string& text, bool lower = false,
      InitialParameters::Missing missing = InitialParameters::Missing::kWarn) {
    std::ofstream(path_) << text;
    InitialParameters source;
    source.model = path_;
    source.missing = missing;
    source.words = {"words.weight", field_, lower};
    source.place = "job.pbtxt:3:1";
    return SetInitialParameters(network_, {source}, vocabularies_, &session_);
  }
  std::vector<float> Row(int64_t row) {
    const auto value = session_.scope().Get("words.weight");
    EXPECT_TRUE(value.ok()) << value.status();
    const float* numbers = value->data<float>() + 2 * row;
    return {numbers, numbers + 2};
  }
  void ExpectRefusal(const absl::Status& status, const std::string& what) {
    EXPECT_NE(status.message().find(what), absl::string_view::npos) << status;
  }

  OpRegistry registry_;
  Session session_;
  TrainProgram network_;
  FieldVocabularies vocabularies_;
  std::string path_, field_ = "text";
};

TEST_F(InitialWords, TakesRowsByWord) {
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Set("sea 0.5 -1\nship 3 4\nwhale 1e-3 7\nland 1 1\n").ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("has no vector for 2 of 4 words of field 'text': 'Ship', "
                     "'SHIP': their initial values are kept"),
            std::string::npos)
      << log;
  EXPECT_EQ(Row(4), (std::vector<float>{1e-3f, 7}));
  EXPECT_EQ(Row(6), (std::vector<float>{0.5f, -1}));
  for (const int64_t row : {0, 1, 2, 3, 5, 7, 8})  // these stay
    EXPECT_EQ(Row(row),
              (std::vector<float>{2.0f * static_cast<float>(row),
                                  2.0f * static_cast<float>(row) + 1}));
}

TEST_F(InitialWords, LooksInLowerCaseForWhatIsMissing) {
  ASSERT_TRUE(Set("4 2\nship 3 4\nShip 5 6\nwhale 1 7\nsea 8 9 \n", true,
                  InitialParameters::Missing::kFail)
                  .ok());
  EXPECT_EQ(Row(5), (std::vector<float>{5, 6}));  // its own
  EXPECT_EQ(Row(7), (std::vector<float>{3, 4}));  // of 'ship'
  EXPECT_EQ(Row(4), (std::vector<float>{1, 7}));
}

TEST_F(InitialWords, RefusesWhatDoesNotFit) {
  using Missing = InitialParameters::Missing;
  ExpectRefusal(Set("sea 1 2\n", false, Missing::kFail),
                "job.pbtxt:3:1: '" + path_ +
                    "' has no vector for 3 of 4 words of field 'text'");
  ExpectRefusal(Set("land 1 2\n"), "has none of the 4 words of field 'text'");
  ExpectRefusal(Set("sea 1 2 3\n"),
                "has 3 numbers for each word; parameter 'words.weight' has 2: "
                "an embedding_dim of 3 fits");
  ExpectRefusal(Set("sea 1 2\nwhale 1 x\n"), "line 2: 'x' is not a number");
  network_.test.global().vars[0].shape = {7, 2};
  ExpectRefusal(Set("sea 1 2\n"), "has 7 rows; field 'text' has 8 words");
  field_ = "label";
  ExpectRefusal(Set("sea 1 2\n"),
                "field 'label' of data.train has no vocabulary");
}

TEST(NamePatterns, Stars) {
  EXPECT_EQ(MatchStars("*", "a.b"), (Strings{"a.b"}));
  EXPECT_EQ(MatchStars("*.*", "a.b.c"), (Strings{"a", "b.c"}));
  EXPECT_EQ(MatchStars("a*a", "aa"), (Strings{""}));
  EXPECT_EQ(MatchStars("a*a", "a"), std::nullopt);
  EXPECT_EQ(MatchStars("fc", "fc"), Strings());
  EXPECT_EQ(MatchStars("fc", "fc.weight"), std::nullopt);
  EXPECT_EQ(MatchStars("l*.b*.w", "l1.x.b2.w"), (Strings{"1.x", "2"}));
}

TEST(NamePatterns, Changes) {
  const auto change = NameChange::Parse("layer*.bn*.g => stage*.norm*.weight");
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->Apply("layer1.0.bn2.g"), "stage1.0.norm2.weight");
  EXPECT_EQ(change->Apply("layer1.0.bn2.b"), std::nullopt);
  for (const char* bad : {"a", "a=>", "=>b", "a.*=>b", "a=>*"})
    EXPECT_FALSE(NameChange::Parse(bad).ok()) << bad;
}

}  // namespace test_initial_values
}  // namespace pd
