// SPDX-License-Identifier: Apache-2.0
// Sequence layers: what one step at a time gives is what all steps give; the
// field's loss against all sequences of tags counted out; what is said about
// what does not fit. testdata/layers compares them with PaddlePaddle.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_sequence_layers {

absl::StatusOr<BuiltModel> Build(const std::string& text) {
  const auto job = ParseJob(text, "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

std::string ErrorOf(const std::string& shape, const std::string& lines) {
  const auto built = Build(absl::StrCat(
      "model {\n  input { name: \"x\" shape: ", shape, " }\n", lines, "\n}\n"));
  return built.ok() ? "no error" : std::string(built.status().message());
}

Array Numbers(const Shape& shape, double seed) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>(std::sin(seed + 1.7 * static_cast<double>(i)));
  return MakeArray(shape, values);
}

// Step `t` of x [N, length, width].
Array StepOf(const Array& x, int64_t t) {
  const int64_t n = x.shape[0], length = x.shape[1], width = x.shape[2];
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < width; ++k)
      values.push_back(x.data<float>()[(i * length + t) * width + k]);
  return MakeArray({n, 1, width}, values);
}

std::string Inputs(const std::vector<std::string>& names,
                   const std::string& shape) {
  std::string lines;
  for (const std::string& name : names)
    absl::StrAppend(&lines, "input { name: \"", name, "\" shape: ", shape,
                    " }\n");
  return lines;
}

// A decoder with a causal mask over all steps; then the same network as a
// program of one step, whose caches are fed back, the first ones empty.
TEST(SequenceLayers, DecodingStepByStepGivesTheSame) {
  const std::string decoder =
      "transformer_decoder { decoder_layer { nhead: 2 dim_feedforward: 6 } "
      "num_layers: 2 norm {} ";
  const auto whole = Build(absl::StrCat(
      "model {\n", Inputs({"tgt", "memory"}, "[-1, -1, 4]"),
      "layer { name: \"later\" input: \"tgt\" square_subsequent_mask {} }\n"
      "layer { name: \"dec\" input: [\"tgt\", \"memory\"] ",
      decoder,
      "tgt_mask: \"later\" } }\noutput: [\"dec\", \"dec:static_k0\", "
      "\"dec:static_v0\", \"dec:static_k1\", \"dec:static_v1\"]\n}\n"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::vector<std::string> caches = {"k0", "v0", "k1", "v1"};
  const std::vector<std::string> fixed = {"sk0", "sv0", "sk1", "sv1"};
  const auto step = Build(absl::StrCat(
      "model {\n", Inputs({"tgt"}, "[-1, 1, 4]"),
      Inputs(caches, "[-1, 2, -1, 2]"), Inputs(fixed, "[-1, 2, -1, 2]"),
      "layer { name: \"dec\" input: \"tgt\" ", decoder,
      "cache: [\"k0\", \"v0\", \"k1\", \"v1\"] "
      "static_cache: [\"sk0\", \"sv0\", \"sk1\", \"sv1\"] } }\n"
      "output: [\"dec\", \"dec:k0\", \"dec:v0\", \"dec:k1\", \"dec:v1\"]\n"
      "}\n"));
  ASSERT_TRUE(step.ok()) << step.status();

  Session session(&ReferenceRegistry(), 3);
  ASSERT_TRUE(session.RunOnce(whole->startup).ok());
  const Array tgt = Numbers({2, 4, 4}, 0.3);
  const auto all = session.Run(
      whole->test, {{"tgt", tgt}, {"memory", Numbers({2, 3, 4}, 2)}},
      whole->outputs);
  ASSERT_TRUE(all.ok()) << all.status();
  NamedArrays feeds;
  for (size_t i = 0; i < 4; ++i) {
    feeds[caches[i]] = MakeArray({2, 2, 0, 2}, std::vector<float>());
    feeds[fixed[i]] = all->at(whole->outputs[i + 1]);
  }
  for (int64_t t = 0; t < 4; ++t) {
    feeds["tgt"] = StepOf(tgt, t);
    const auto one = session.Run(step->test, feeds, step->outputs);
    ASSERT_TRUE(one.ok()) << one.status();
    const Array want = StepOf(all->at(whole->outputs[0]), t);
    const Array& got = one->at(step->outputs[0]);
    ASSERT_EQ(got.shape, want.shape);
    for (size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(got.data<float>()[i], want.data<float>()[i], 1e-5)
          << "step " << t;
    for (size_t i = 0; i < 4; ++i)
      feeds[caches[i]] = one->at(step->outputs[i + 1]);
  }
}

// The sum over all sequences of 2 tags of exp(score), counted out.
double Cost(const std::vector<float>& w, const float* x,
            const std::vector<int>& tags) {
  const size_t length = tags.size();
  const auto score = [&](const std::vector<int>& path) {
    double sum = w[static_cast<size_t>(path[0])] +
                 w[2 + static_cast<size_t>(path[length - 1])];
    for (size_t k = 0; k < length; ++k)
      sum += x[2 * k + static_cast<size_t>(path[k])];
    for (size_t k = 1; k < length; ++k)
      sum += w[4 + 2 * static_cast<size_t>(path[k - 1]) +
               static_cast<size_t>(path[k])];
    return sum;
  };
  double total = 0;
  for (size_t all = 0; all < size_t{1} << length; ++all) {
    std::vector<int> path;
    for (size_t k = 0; k < length; ++k)
      path.push_back(static_cast<int>(all >> k & 1));
    total += std::exp(score(path));
  }
  return std::log(total) - score(tags);
}

// The loss and the layer share the weight.
TEST(SequenceLayers, ConditionalRandomField) {
  auto built = Build(
      "model {\n input { name: \"x\" shape: [-1, 3, 2] }\n"
      " input { name: \"n\" shape: [-1] dtype: int64 }\n"
      " layer { name: \"scores\" input: \"x\" identity {} }\n"
      " layer { name: \"tags\" crf_decoding { length: \"n\" "
      "param_attr { name: \"crfw\" } } }\n}\n"
      "loss { input: \"scores\" linear_chain_crf { sequence_length: \"n\" "
      "param_attr { name: \"crfw\" } } }\n");
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_EQ(built->parameters.size(), 1u);
  BackwardOptions options;
  options.targets[built->loss] = "";
  const auto gradients =
      AppendBackward(ReferenceRegistry(), options, &built->main);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  Session session(&ReferenceRegistry(), 3);
  const Array weight = Numbers({4, 2}, 1), x = Numbers({2, 3, 2}, 5);
  ASSERT_TRUE(session.scope().Set("crfw", weight).ok());
  const NamedArrays feeds = {
      {"x", x},
      {"n", MakeArray({2}, std::vector<int64_t>{3, 2})},
      {"label", MakeArray({2, 3}, std::vector<int64_t>{0, 1, 1, 1, 0, 0})}};
  const std::string& gradient = gradients->at("crfw");
  const auto results = session.Run(built->main, feeds, {built->loss, gradient});
  ASSERT_TRUE(results.ok()) << results.status();
  std::vector<float> w(weight.data<float>(), weight.data<float>() + 8);
  const auto mean = [&] {
    const float* at = x.data<float>();
    return (Cost(w, at, {0, 1, 1}) + Cost(w, at + 6, {1, 0})) / 2;
  };
  EXPECT_NEAR(results->at(built->loss).data<float>()[0], mean(), 1e-5);
  for (size_t i = 0; i < 8; ++i) {
    const float kept = w[i];
    w[i] = kept + 1e-2f;
    const double above = mean();
    w[i] = kept - 1e-2f;
    const double below = mean();
    w[i] = kept;
    EXPECT_NEAR(results->at(gradient).data<float>()[i], (above - below) / 2e-2,
                1e-4);
  }
}

// Only the rows that were looked up have a gradient.
TEST(SequenceLayers, SparseEmbedding) {
  auto built = Build(
      "model {\n input { name: \"x\" shape: [-1, 2] dtype: int64 }\n"
      " layer { name: \"e\" embedding { num_embeddings: 5 embedding_dim: 3 "
      "padding_idx: -1 sparse: true } }\n}\nloss { mse_loss {} }\n");
  ASSERT_TRUE(built.ok()) << built.status();
  BackwardOptions options;
  options.targets[built->loss] = "";
  const auto gradients =
      AppendBackward(ReferenceRegistry(), options, &built->main);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  const VarDesc* gradient =
      built->main.global().FindVar(gradients->at("e.weight"));
  ASSERT_NE(gradient, nullptr);
  EXPECT_EQ(gradient->kind, VarKind::kSelectedRows);
}

TEST(SequenceLayers, ExplainMisfits) {
  EXPECT_EQ(ErrorOf("[-1, 4]", "layer { lstm { hidden_size: 3 } }"),
            "job.pbtxt:3:1: layer 'lstm_0' (lstm) expects sequences [N, time, "
            "input_size]; input 'x' gives [-1, 4]");
  EXPECT_EQ(ErrorOf("[-1, 5, 4]",
                    "layer { name: \"r\" gru { hidden_size: 3 input_size: 5 } "
                    "}"),
            "job.pbtxt:3:1: layer 'r' (gru) expects 5 input features; input "
            "'x' gives [-1, 5, 4]");
  EXPECT_EQ(ErrorOf("[-1, 5, 4]",
                    "layer { name: \"r\" lstm { hidden_size: 3 "
                    "initial_states: \"x\" } }"),
            "job.pbtxt:3:1: 'initial_states' names 1; lstm has two states, h "
            "and c");
  EXPECT_EQ(ErrorOf("[-1, 5, 4]",
                    "layer { name: \"r\" gru { hidden_size: 3 "
                    "initial_states: \"x\" } }"),
            "job.pbtxt:3:1: layer 'r' (gru) expects float32 [1, -1, 3] for "
            "'initial_states'; input 'x' gives [-1, 5, 4]");
  EXPECT_EQ(ErrorOf("[-1, 5, 4]",
                    "layer { name: \"r\" gru { hidden_size: 3 "
                    "sequence_length: \"x\" } }"),
            "job.pbtxt:3:1: layer 'r' (gru) expects integers [-1] for "
            "'sequence_length', not float32; input 'x' gives [-1, 5, 4]");
  EXPECT_EQ(ErrorOf("[-1, 5, 4]",
                    "layer { name: \"r\" gru { hidden_size: 3 "
                    "sequence_length: \"y\" } }"),
            "job.pbtxt:3:1: 'sequence_length' of layer 'r' reads 'y'; no layer "
            "before it and no input has that name, did you mean 'x'?");
  EXPECT_EQ(ErrorOf("[-1, 5, 6]",
                    "layer { name: \"a\" multi_head_attention { num_heads: 4 } "
                    "}"),
            "job.pbtxt:3:1: 'num_heads' is 4; it must divide 'embed_dim', "
            "which is 6");
  EXPECT_EQ(ErrorOf("[-1, 5, 6]",
                    "layer { name: \"a\" transformer_encoder { num_layers: 2 "
                    "encoder_layer { nhead: 2 dim_feedforward: 3 d_model: 8 } "
                    "} }"),
            "job.pbtxt:3:1: layer 'a' (transformer_encoder) expects sequences "
            "[N, length, 8]; input 'x' gives [-1, 5, 6]");
  EXPECT_EQ(ErrorOf("[-1, 5, 6]",
                    "layer { name: \"a\" transformer_encoder { num_layers: 2 "
                    "encoder_layer { nhead: 2 dim_feedforward: 3 src_mask: "
                    "\"x\" } } }"),
            "job.pbtxt:3:1: 'src_mask' stands beside 'encoder_layer', not "
            "inside it");
  EXPECT_EQ(ErrorOf("[-1, 5, 6]",
                    "layer { transformer_decoder_layer { nhead: 2 "
                    "dim_feedforward: 3 } }"),
            "job.pbtxt:3:1: 'transformer_decoder_layer' reads two inputs, tgt "
            "and memory (with 'static_cache' memory is not needed); it names "
            "one");
}

}  // namespace test_sequence_layers
}  // namespace pd
