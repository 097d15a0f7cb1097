// SPDX-License-Identifier: Apache-2.0
// generate: with and without caches a decoder writes the same with the same
// scores, what is drawn follows the settings, and what is said about what does
// not fit. testdata/layers compares it with loops over PaddlePaddle's layers.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_generate {

// Line 2 holds the inputs, line 3 the blocks, line 4 and on `lines`.
constexpr char kModel[] =
    "model {\ninput { name: \"ids\" shape: [-1, -1] dtype: int64 } input { "
    "name: \"h\" shape: [-1, 3] } input { name: \"n\" shape: [-1] dtype: int64 "
    "}\nblock { name: \"lm\" input: \"ids\" optional_input: \"cache\" layer { "
    "name: \"gpt\" input: [\"ids\", \"cache\"] block { use: \"gpt_lm\" set: "
    "[\"vocab_size=13\", \"hidden_size=8\", \"num_hidden_layers=2\", "
    "\"num_attention_heads=2\", \"intermediate_size=16\", "
    "\"max_position_embeddings=40\"] } } output: [\"gpt\", "
    "\"gpt:gpt:decoder:cache\"] } "
    // Reads its mask in another layer before attention does.
    "block { name: \"own\" input: \"ids\" optional_input: \"cache\" "
    "layer { name: \"at\" input: \"ids\" positions { cache: \"cache\" } } "
    "layer { name: \"where\" embedding { num_embeddings: 40 embedding_dim: 8 } "
    "} layer { name: \"words\" input: \"ids\" embedding { num_embeddings: 13 "
    "embedding_dim: 8 } } layer { name: \"x\" input: [\"words\", \"where\"] "
    "add {} } layer { name: \"mask\" input: \"ids\" square_subsequent_mask { "
    "cache: \"cache\" } } layer { name: \"half\" scale { scale: 0.5 } } layer "
    "{ name: \"a\" input: \"x\" multi_head_attention { num_heads: 2 "
    "attn_mask: \"half\" cache: \"cache\" } } layer { name: "
    "\"head\" linear { out_features: 13 } } output: [\"head\", "
    "\"a:cache\"] }\n";

absl::StatusOr<BuiltModel> Build(const std::string& lines) {
  const auto job = ParseJob(absl::StrCat(kModel, lines, "\n}\n"), "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

std::string Layer(const std::string& settings,
                  const std::string& decoder = "lm") {
  return absl::StrCat(
      "layer { name: \"l\" input: \"ids\" generate { decoder { name: \"net\" "
      "block { use: \"",
      decoder, "\" } } ", settings, " } }");
}

std::string ErrorOf(const std::string& lines) {
  const auto built = Build(lines);
  return built.ok() ? "no error" : std::string(built.status().message());
}

template <typename T>
std::vector<T> Values(const Array& array) {
  std::vector<T> values(array.size_bytes() / sizeof(T));
  std::memcpy(values.data(), array.bytes.get(), array.size_bytes());
  return values;
}

struct Written {
  std::vector<int64_t> ids;
  Shape shape;
  std::vector<float> scores;
};

// Four beginnings of three ids, by parameters that are random and large enough
// that what comes next depends on what was before.
absl::StatusOr<Written> Write(const std::string& settings,
                              const std::string& decoder = "lm") {
  PD_ASSIGN_OR_RETURN(
      const BuiltModel built,
      Build(Layer(settings, decoder) + "\noutput: [\"l\", \"l:scores\"]"));
  Session session(&ReferenceRegistry(), 7);
  PD_RETURN_IF_ERROR(session.RunOnce(built.startup));
  for (const ParameterSettings& p : built.parameters) {
    PD_ASSIGN_OR_RETURN(const Array value, session.scope().Get(p.name));
    std::vector<float> larger = Values<float>(value);
    for (float& v : larger) v *= 8;
    PD_RETURN_IF_ERROR(
        session.scope().Set(p.name, MakeArray(value.shape, larger)));
  }
  const std::vector<int64_t> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<float> h(12);
  const std::vector<int64_t> n = {3, 1, 2, 3};
  NamedArrays feeds;
  feeds["ids"] = MakeArray(Shape{4, 3}, ids);
  if (settings.find("sequence_length") != std::string::npos)
    feeds["n"] = MakeArray(Shape{4}, n);
  PD_ASSIGN_OR_RETURN(const NamedArrays results,
                      session.Run(built.test, feeds, built.outputs));
  const Array& written = results.at(built.outputs[0]);
  return Written{Values<int64_t>(written), written.shape,
                 Values<float>(results.at(built.outputs[1]))};
}

void ExpectCachesChangeNothing(const std::string& decoder) {
  for (const char* settings :
       {"", "eos_token_id: 4", "sequence_length: \"n\"",
        "decode_strategy: sampling seed: 3 top_k: 9 top_p: 0.9",
        "decode_strategy: beam_search num_beams: 3 eos_token_id: 4",
        "decode_strategy: beam_search num_beams: 3 eos_token_id: 4 "
        "sequence_length: \"n\""}) {
    const std::string both = absl::StrCat("max_length: 8 ", settings);
    const auto cached = Write(both, decoder);
    ASSERT_TRUE(cached.ok()) << settings << ": " << cached.status();
    const auto plain = Write(both + " use_cache: false", decoder);
    ASSERT_TRUE(plain.ok()) << settings << ": " << plain.status();
    EXPECT_EQ(cached->shape, (Shape{4, 11}));
    EXPECT_EQ(cached->ids, plain->ids) << settings;
    ASSERT_EQ(cached->scores.size(), 4u);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(cached->scores[i], plain->scores[i], 1e-5) << settings;
  }
}

TEST(Generate, CachesChangeNothing) { ExpectCachesChangeNothing("lm"); }

// Attention with a mask of the filled keys reads no others.
TEST(Generate, CachesAreReadAsIfTheyGrew) { ExpectCachesChangeNothing("own"); }

// All shapes of a step are those of the last one: what it takes to make or to
// measure keys and values that grow is not in the loop.
TEST(Generate, CachesKeepTheirShape) {
  const auto built = Build(Layer("max_length: 8"));
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_EQ(built->test.blocks.size(), 2u);
  size_t written = 0;
  for (const OpDesc& op : built->test.blocks[1].ops) {
    for (const char* type : {"concat", "shape", "tril_triu", "slice"})
      if (op.type == type)
        EXPECT_EQ(op.AttrOr<std::vector<int32_t>>("axes", {}),
                  std::vector<int32_t>{1})  // of the logits
            << op.type << " that makes " << op.Out("Out");
    written += op.type == "put_along_axis";
  }
  EXPECT_EQ(written, 4u);
}

// One that begins earlier writes what stands alone would write.
TEST(Generate, ShortBeginningsAreGoneOnWith) {
  const auto written = Write("max_length: 4 sequence_length: \"n\"");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->shape, (Shape{4, 7}));
  EXPECT_EQ(written->ids[0], 1);
  EXPECT_EQ(written->ids[1], 2);
  EXPECT_EQ(written->ids[2], 3);
  EXPECT_EQ(written->ids[7], 4);   // the second has one id of its own
  EXPECT_EQ(written->ids[14], 7);  // the third has two
  EXPECT_EQ(written->ids[15], 8);
}

// The decoder has 40 positions, and what is written at last is not read.
TEST(Generate, EndsWherePositionsEnd) {
  for (const char* strategy :
       {"", "use_cache: false", "decode_strategy: beam_search num_beams: 3",
        "sequence_length: \"n\""}) {
    const auto to_the_end = Write(absl::StrCat("max_length: 38 ", strategy));
    ASSERT_TRUE(to_the_end.ok()) << to_the_end.status();
    EXPECT_EQ(to_the_end->shape, (Shape{4, 41}));
    const auto longer = absl::StrCat("max_length: 60 ", strategy);
    const auto beyond = Write(longer);
    ASSERT_FALSE(beyond.ok()) << strategy;
    EXPECT_NE(beyond.status().message().find("'Ids' holds 40"),
              std::string::npos)
        << beyond.status();
    const auto ended = Write(longer + " max_positions: 40");
    ASSERT_TRUE(ended.ok()) << strategy << ": " << ended.status();
    EXPECT_EQ(ended->shape, (Shape{4, 41})) << strategy;
    EXPECT_EQ(ended->ids, to_the_end->ids) << strategy;
    ASSERT_EQ(ended->scores.size(), 4u);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(ended->scores[i], to_the_end->scores[i], 1e-4) << strategy;
    // Room that is left is used.
    const auto early =
        Write(absl::StrCat("max_length: 8 max_positions: 40 ", strategy));
    ASSERT_TRUE(early.ok()) << early.status();
    EXPECT_EQ(early->shape, (Shape{4, 11})) << strategy;
  }
}

TEST(Generate, OneBeamAndOneWordAreGreedy) {
  const auto greedy = Write("max_length: 12");
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  for (const char* settings : {"decode_strategy: beam_search num_beams: 1",
                               "decode_strategy: sampling top_k: 1",
                               "decode_strategy: sampling top_p: 1e-6",
                               "decode_strategy: sampling temperature: 1e-4"}) {
    const auto other = Write(absl::StrCat("max_length: 12 ", settings));
    ASSERT_TRUE(other.ok()) << settings << ": " << other.status();
    EXPECT_EQ(other->ids, greedy->ids) << settings;
  }
}

// The likeliest sequence of several is at least as likely as the greedy one.
TEST(Generate, ASearchFindsLikelierSequences) {
  const auto greedy = Write("max_length: 12");
  const auto beams = Write("max_length: 12 decode_strategy: beam_search");
  ASSERT_TRUE(greedy.ok() && beams.ok()) << beams.status();
  double a = 0, b = 0;
  for (const float score : greedy->scores) a += score;
  for (const float score : beams->scores) b += score;
  EXPECT_GT(b, a);
}

TEST(Generate, ASeedDrawsTheSame) {
  const std::string sampling = "max_length: 12 decode_strategy: sampling ";
  const auto first = Write(sampling + "seed: 1");
  const auto again = Write(sampling + "seed: 1");
  const auto other = Write(sampling + "seed: 2");
  ASSERT_TRUE(first.ok() && again.ok() && other.ok()) << first.status();
  EXPECT_EQ(first->ids, again->ids);
  EXPECT_NE(first->ids, other->ids);
  // The numbers of two places, and of two rows, differ.
  EXPECT_GT(std::set<int64_t>(first->ids.begin(), first->ids.end()).size(), 3u);
}

TEST(Generate, WhatDoesNotFit) {
  EXPECT_EQ(ErrorOf(Layer("")), "no error");
  EXPECT_EQ(
      ErrorOf(Layer("eos_token_id: 13")),
      "job.pbtxt:4:1: 'eos_token_id' is 13; there are logits of 13 words");
  EXPECT_EQ(ErrorOf(Layer("seed: 4")),
            "job.pbtxt:4:1: 'seed' is for decode_strategy: sampling");
  EXPECT_EQ(
      ErrorOf(Layer("bos_token_id: 1")),
      "job.pbtxt:4:1: 'bos_token_id' stands for the beginnings; leave out "
      "'input', or it");
  EXPECT_EQ(ErrorOf("layer { name: \"l\" generate { decoder { block { use: "
                    "\"lm\" } } bos_token_id: 1 } }"),
            "job.pbtxt:4:1: with 'bos_token_id' the layer reads no beginnings; "
            "'kwargs' or 'inits' says how many sequences there are");
  EXPECT_EQ(
      ErrorOf("layer { name: \"l\" input: \"h\" generate { decoder { "
              "block { use: \"lm\" } } } }"),
      "job.pbtxt:4:1: layer 'l' (generate) expects ids int64 [N, length], "
      "not float32; input 'h' gives [-1, 3]");
  EXPECT_EQ(ErrorOf(Layer("sequence_length: \"h\"")),
            "job.pbtxt:4:1: layer 'l' (generate) expects int64 [N] for "
            "'sequence_length'; input 'h' gives [-1, 3]");
}

TEST(Generate, ADecoderGivesLogits) {
  const auto decoder = [](const std::string& block) {
    return ErrorOf(absl::StrCat("block { name: \"d\" ", block,
                                " }\nlayer { name: \"l\" input: \"ids\" "
                                "generate { decoder { block { use: \"d\" } } } "
                                "}"));
  };
  EXPECT_EQ(decoder("layer { identity {} }"),
            "job.pbtxt:5:1: the decoder gives int64[-1, -1]; expected logits "
            "float32 [N, length, words] or [N, words]");
}

}  // namespace test_generate
}  // namespace pd
