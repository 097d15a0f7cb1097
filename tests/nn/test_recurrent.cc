// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and beam search: whose parameters they share, how they stand
// in the table of layers, a decoder that evaluates with what another form of
// the network learned, and what is said about what does not fit.
// testdata/layers compares them with PaddlePaddle.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_recurrent {

absl::StatusOr<BuiltModel> Build(const std::string& text) {
  const auto job = ParseJob(text, "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

// Line 2 holds the inputs, line 3 the block, line 4 and on `lines`.
constexpr char kInputs[] =
    "input { name: \"x\" shape: [-1, 4, 2] } "
    "input { name: \"h\" shape: [-1, 3] } "
    "input { name: \"open\" shape: [-1, -1, 2] } "
    "input { name: \"many\" shape: [-1, 65537, 2] }\n"
    "block { name: \"cell\" input: [\"x\", \"h\"] layer { name: \"gru\" input: "
    "\"x\" gru_cell { hidden_size: 3 states: \"h\" } } layer { name: \"fc\" "
    "linear { out_features: 5 } } output: [\"fc\", \"gru\"] }\n";

std::string ErrorOf(const std::string& lines) {
  const auto built = Build(absl::StrCat("model {\n", kInputs, lines, "\n}\n"));
  return built.ok() ? "no error" : std::string(built.status().message());
}

std::string ParametersOf(const BuiltModel& built) {
  std::vector<std::string> names;
  for (const ParameterSettings& p : built.parameters) names.push_back(p.name);
  return absl::StrJoin(names, " ");
}

TEST(Recurrent, OneLineOfTheTableHoldsAllSteps) {
  const auto built = Build(absl::StrCat(
      "model {\n", kInputs,
      "layer { name: \"a\" input: \"x\" rnn { cell { block { use: \"cell\" } "
      "state_shape { shape: 3 } } } }\n",
      "layer { name: \"b\" input: \"x\" rnn { cell { gru_cell { hidden_size: 3 "
      "} } } }\n}\n"));
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_EQ(built->layers.size(), 2u);
  EXPECT_EQ(built->layers[0].name, "a");
  EXPECT_EQ(built->layers[0].kind, "rnn");
  EXPECT_EQ(absl::StrJoin(built->layers[0].parameters, " "),
            "a.cell.gru.weight_ih a.cell.gru.weight_hh a.cell.gru.bias_ih "
            "a.cell.gru.bias_hh a.cell.fc.weight a.cell.fc.bias");
  EXPECT_EQ(built->layers[1].parameters.size(), 4u);
}

// Numbered names go on as in PaddlePaddle's programs: one number a cell.
TEST(Recurrent, LayersWithoutNamesNumberTheirCells) {
  const auto built = Build(absl::StrCat(
      "model {\n", kInputs,
      "layer { input: \"x\" bi_rnn { cell_fw { gru_cell { hidden_size: 3 } } "
      "cell_bw { gru_cell { hidden_size: 3 } } } }\n"
      "layer { input: \"x\" rnn { cell { gru_cell { hidden_size: 3 } } } }\n"
      "}\n"));
  ASSERT_TRUE(built.ok()) << built.status();
  std::string wanted;
  for (int i = 0; i < 3; ++i)
    for (const char* name : {"w_0", "w_1", "b_0", "b_1"})
      absl::StrAppend(&wanted, wanted.empty() ? "" : " ", "gru_cell_", i, ".",
                      name);
  EXPECT_EQ(ParametersOf(*built), wanted);
}

// A network that learns to translate, and decodes with its parameters.
constexpr char kTranslation[] =
    "model {\n"
    "input { name: \"source\" shape: [-1, 4] dtype: int64 }\n"
    "input { name: \"target\" shape: [-1, 5] dtype: int64 }\n"
    "layer { name: \"words\" input: \"source\" embedding { num_embeddings: 9 "
    "embedding_dim: 3 } }\n"
    "layer { name: \"encoder\" gru { hidden_size: 3 } }\n"
    "layer { name: \"state\" input: \"encoder:h\" squeeze { axis: 0 } }\n"
    "layer { name: \"emb\" input: \"target\" embedding { num_embeddings: 7 "
    "embedding_dim: 3 } }\n"
    "layer { name: \"decoder\" rnn { cell { gru_cell { hidden_size: 3 } } "
    "initial_states: \"state\" } }\n"
    "layer { name: \"out\" linear { out_features: 7 } }\n"
    "layer { name: \"ids\" WHEN beam_search { cell { name: \"decoder.cell\" "
    "gru_cell { hidden_size: 3 } } embedding_fn { name: \"emb\" embedding { "
    "num_embeddings: 7 embedding_dim: 3 } } output_fn { name: \"NAME\" linear "
    "{ out_features: 7 } } start_token: 0 end_token: 1 beam_size: 2 "
    "max_step_num: 3 inits: \"state\" } }\n"
    "output: \"out\"\n"
    "}\n"
    "loss { label: \"next\" cross_entropy {} }\n";

absl::StatusOr<BuiltModel> Translation(const char* when, const char* name) {
  return Build(
      absl::StrReplaceAll(kTranslation, {{"WHEN", when}, {"NAME", name}}));
}

TEST(Recurrent, ADecoderDecodesWithWhatTheNetworkLearns) {
  const auto built = Translation("", "out");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(ParametersOf(*built),
            "words.weight encoder.weight_ih_l0 encoder.weight_hh_l0 "
            "encoder.bias_ih_l0 encoder.bias_hh_l0 emb.weight "
            "decoder.cell.weight_ih decoder.cell.weight_hh "
            "decoder.cell.bias_ih decoder.cell.bias_hh out.weight out.bias");
  EXPECT_EQ(absl::StrJoin(built->layers.back().parameters, " "),
            "emb.weight decoder.cell.weight_ih decoder.cell.weight_hh "
            "decoder.cell.bias_ih decoder.cell.bias_hh out.weight out.bias");
  const VarDesc* ids =
      built->test.global().FindVar(built->layers.back().output);
  ASSERT_NE(ids, nullptr);
  EXPECT_EQ(ids->shape, (Shape{-1, 4, 2}));
  EXPECT_EQ(ids->dtype, DType::kInt64);
  EXPECT_TRUE(Translation("when: eval", "out").ok());
}

TEST(Recurrent, APartThatNothingTrainsIsAnError) {
  const auto built = Translation("when: eval", "other");
  ASSERT_FALSE(built.ok());
  EXPECT_TRUE(absl::StrContains(built.status().message(),
                                "has 'other.weight' in evaluation only"))
      << built.status();
}

// Only a part with a name shares.
TEST(Recurrent, TwoCellsOfOneNameAreAnError) {
  const auto built = Build(absl::StrCat(
      "model {\n", kInputs,
      "layer { name: \"l.cell\" input: \"h\" gru_cell { hidden_size: 3 } }\n"
      "layer { name: \"l\" input: \"x\" rnn { cell { gru_cell { hidden_size: "
      "3 } } } }\n}\n"));
  ASSERT_FALSE(built.ok());
  EXPECT_TRUE(absl::StrContains(built.status().message(),
                                "would make the parameter 'l.cell.weight_ih', "
                                "which there is already"))
      << built.status();
}

// An argument of a block reaches a cell's block.
TEST(Recurrent, ArgumentsAreHandedOnToACell) {
  const auto built = Build(
      "model {\n"
      "input { name: \"x\" shape: [-1, 4, 2] }\n"
      "block { name: \"cell\" input: [\"x\", \"h\"] argument { name: "
      "\"words\" sets: \"fc.linear.out_features\" } layer { name: \"gru\" "
      "input: \"x\" gru_cell { hidden_size: 3 states: \"h\" } } layer { name: "
      "\"fc\" linear { out_features: 5 } } output: [\"fc\", \"gru\"] }\n"
      "block { name: \"net\" argument { name: \"classes\" sets: "
      "\"rnn.rnn.cell.block.set[words]\" } layer { name: \"rnn\" rnn { cell { "
      "block { use: \"cell\" } state_shape { shape: 3 } } } } }\n"
      "layer { name: \"l\" block { use: \"net\" set: \"classes=9\" } }\n"
      "}\n");
  ASSERT_TRUE(built.ok()) << built.status();
  const VarDesc* weight = built->main.global().FindVar("l.rnn.cell.fc.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (Shape{3, 9}));
}

TEST(Recurrent, WhatDoesNotFit) {
  const auto rnn = [](const std::string& arguments, const char* x = "x") {
    return ErrorOf(absl::StrCat("layer { name: \"l\" input: \"", x, "\" rnn { ",
                                arguments, " } }"));
  };
  EXPECT_EQ(rnn("cell { gru_cell { hidden_size: 3 } }", "open"), "no error");
  EXPECT_EQ(
      rnn("cell { gru_cell { hidden_size: 3 } }", "many"),
      "job.pbtxt:4:1: layer 'l' (rnn) expects sequences [N, time, ...] "
      "with 1 to 65536 steps, on axis 1; input 'many' gives [-1, 65537, 2]");
  EXPECT_EQ(rnn("cell { block { use: \"sell\" } state_shape { shape: 3 } }"),
            "job.pbtxt:4:36: there is no block 'sell', did you mean 'cell'?");
  EXPECT_EQ(rnn("cell { block { use: \"cell\" } }"),
            "job.pbtxt:4:1: 'cell' is the block 'cell', whose states nothing "
            "tells; name the first ones, or give their shapes with "
            "'state_shape' of 'cell'");
  EXPECT_EQ(rnn("cell { block { use: \"cell\" } } initial_states: [\"h\", "
                "\"h\"]"),
            "job.pbtxt:4:36: block 'cell' has 2 inputs; layer 'l/cell' names "
            "3");
  EXPECT_EQ(rnn("cell { lstm_cell { hidden_size: 3 } } initial_states: \"h\""),
            "job.pbtxt:4:1: 'initial_states' names 1; the cell has 2");
  EXPECT_EQ(rnn("cell { gru_cell { hidden_size: 4 } } initial_states: \"h\""),
            "job.pbtxt:4:36: layer 'l/cell' (gru_cell) expects float32 [-1, 4] "
            "for 'states'; a step of layer 'l' gives [-1, 3]");
  EXPECT_EQ(rnn("cell { gru_cell { hidden_size: 3 states: \"h\" } }"),
            "job.pbtxt:4:36: 'states' stands in 'cell', which reads what its "
            "layer hands it");
  EXPECT_EQ(rnn("cell { gru_cell { hidden_size: 3 } } kwargs: \"h\""),
            "job.pbtxt:4:1: 'kwargs' names 1; only a cell that is a block "
            "reads more than its input and states");
  EXPECT_EQ(rnn("cell { name: \"a/b\" gru_cell { hidden_size: 3 } }"),
            "job.pbtxt:4:36: a name is not empty and has no '/', '[', ']' or "
            "'='; got 'a/b'");
  EXPECT_TRUE(absl::StrContains(rnn("is_reverse: true"), "'cell'"))
      << rnn("is_reverse: true");
  EXPECT_TRUE(absl::StrContains(rnn("cell { linear { out_features: 3 } }"),
                                "unknown field 'linear'"));
}

TEST(Recurrent, ACellSaysItsNewStates) {
  EXPECT_EQ(
      ErrorOf("block { name: \"plain\" input: [\"x\", \"h\"] layer { input: "
              "\"h\" linear { out_features: 3 } } }\n"
              "layer { name: \"l\" input: \"x\" rnn { cell { block { use: "
              "\"plain\" } state_shape { shape: 3 } } } }"),
      "job.pbtxt:5:1: the block 'plain' reads 1 states and gives 0; 'output' "
      "of a cell's block names what the step gives, then its new states");
}

TEST(Recurrent, WhatABeamSearchCannotDo) {
  const auto search = [](const std::string& arguments) {
    return ErrorOf(
        absl::StrCat("layer { name: \"l\" beam_search { ", arguments, " } }"));
  };
  const std::string gru = "cell { gru_cell { hidden_size: 3 } } ";
  const std::string fns =
      "embedding_fn { embedding { num_embeddings: 7 embedding_dim: 2 } } "
      "output_fn { linear { out_features: 7 } } ";
  const std::string rest = "start_token: 0 max_step_num: 3 inits: \"h\" ";
  EXPECT_EQ(search(gru + fns + rest + "end_token: 1 beam_size: 2"), "no error");
  EXPECT_TRUE(
      absl::StrContains(search(gru + fns + rest + "end_token: 1 beam_size: 0"),
                        "'beam_size' is 0; it must be"))
      << search(gru + fns + rest + "end_token: 1 beam_size: 0");
  EXPECT_EQ(search(gru + fns + rest + "end_token: 7 beam_size: 2"),
            "job.pbtxt:4:1: 'end_token' is 7; there are logits of 7 words");
  EXPECT_EQ(search("cell { lstm_cell { hidden_size: 3 } } " + fns + rest +
                   "end_token: 1 beam_size: 2"),
            "job.pbtxt:4:1: 'inits' names 1; the cell has 2 states");
  EXPECT_TRUE(
      absl::StrContains(search(gru + fns +
                               "start_token: 0 inits: \"h\" end_token: 1 "
                               "beam_size: 2"),
                        "'max_step_num'"));
  EXPECT_TRUE(
      absl::StrContains(search(gru + fns +
                               "start_token: 0 max_step_num: 3 end_token: 1 "
                               "beam_size: 2"),
                        "'inits'"));
  // Without an embedding the cell reads the ids themselves.
  EXPECT_TRUE(absl::StrContains(
      search(gru + rest + "end_token: 1 beam_size: 2"),
      "layer 'l/cell' (gru_cell) expects one step [N, input_size]"))
      << search(gru + rest + "end_token: 1 beam_size: 2");
}

// No cell may make itself again without end.
TEST(Recurrent, ABlockThatUsesItself) {
  const std::string error = ErrorOf(
      "block { name: \"self\" input: [\"x\", \"s\"] layer { name: \"u\" input: "
      "\"x\" unsqueeze { axis: 1 } } layer { name: \"r\" rnn { cell { block { "
      "use: \"self\" } state_shape { shape: 3 } } } } output: [\"r\", \"s\"] "
      "}\n"
      "layer { name: \"l\" input: \"x\" rnn { cell { block { use: \"self\" } "
      "state_shape { shape: 3 } } } }");
  EXPECT_TRUE(absl::StrContains(error, "does 'self' use itself?")) << error;
}

}  // namespace test_recurrent
}  // namespace pd
