// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's cases of operators, exported to ONNX, read back and run: the
// answers are PaddlePaddle's. ONNX's checker and shape inference see every file
// (ToOnnx runs them); ONNX Runtime is asked by scripts/check_interop.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/onnx_file.h"
#include "formats/zip_archive.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"
#include "tests/deploy/deploy_fixture.h"
#include "tests/ops/compare.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_onnx_answers {

struct Case {
  std::string name;
  ProgramDesc program;
  NamedArrays feed, expect;
};

std::vector<Case> CasesOf(const std::string& zip_name) {
  std::vector<Case> cases;
  const auto file = ReadFile(absl::StrCat(PD_TESTDATA, "/ops/", zip_name));
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return cases;
  auto zip = ZipArchive::Open(*file);
  EXPECT_TRUE(zip.ok()) << zip.status();
  std::set<std::string> names;
  for (int64_t i = 0; zip.ok() && i < zip->count(); ++i) {
    const auto entry = zip->Name(i);
    if (entry.ok()) names.insert(entry->substr(0, entry->find('/')));
  }
  for (const std::string& name : names) {
    const auto program = zip->Read(name + "/forward.pdmodel");
    const auto whole = zip->Read(name + "/program.pdmodel");
    const auto feed = zip->Read(name + "/feed.npz");
    const auto expect = zip->Read(name + "/expect.npz");
    EXPECT_TRUE(whole.ok() && feed.ok() && expect.ok()) << name;
    if (!whole.ok() || !feed.ok() || !expect.ok()) continue;
    auto parsed = ParseProgram((program.ok() ? *program : *whole).view());
    auto fed = ParseNpz(*feed);
    auto expected = ParseNpz(*expect);
    EXPECT_TRUE(parsed.ok() && fed.ok() && expected.ok()) << name;
    if (parsed.ok() && fed.ok() && expected.ok())
      cases.push_back({name, *parsed, *fed, *expected});
  }
  return cases;
}

// Weights as parameters, which the program does not declare them to be.
void MakeParameters(Case* one, NamedArrays* params) {
  for (VarDesc& var : one->program.global().vars) {
    if (var.name[0] != 'w' || one->feed.count(var.name) == 0) continue;
    var.persistable = true;
    params->insert(one->feed.extract(var.name));
  }
}

// The inputs and outputs of a case, forward.
FeedFetch Ends(const Case& one, NamedArrays* fed) {
  FeedFetch names;
  for (const auto& [name, array] : one.feed)
    if (!absl::EndsWith(name, "@CT")) {
      names.feeds.push_back(name);
      (*fed)[name] = array;
    }
  for (const auto& [name, array] : one.expect)
    if (!absl::EndsWith(name, "@GRAD")) names.fetches.push_back(name);
  return names;
}

// Reads an exported model back and runs it.
void ExpectRead(const std::string& bytes, const Case& one,
                const FeedFetch& names, const NamedArrays& fed) {
  const auto file = ParseOnnx(bytes, ".");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto back = ImportOnnx(Registry(), *file, &fed);
  ASSERT_TRUE(back.ok()) << back.status();
  Session session(&Registry());
  for (const auto& [name, value] : back->params)
    ASSERT_TRUE(session.scope().Set(name, value).ok());
  const auto got = session.Run(back->program, fed, names.fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  for (const std::string& name : names.fetches)
    EXPECT_EQ(Difference(got->at(name), one.expect.at(name), 1e-5, 1e-5), "")
        << name;
}

// Exports, reads back, runs.
void ExpectAnswers(Case one, int opset, bool parameters) {
  SCOPED_TRACE(absl::StrCat(one.name, ", opset ", opset,
                            parameters ? ", weights are parameters" : ""));
  NamedArrays params, fed;
  if (parameters) MakeParameters(&one, &params);
  const FeedFetch names = Ends(one, &fed);
  const auto model = Freeze(one.program, names, params);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto bytes = ToOnnx(Registry(), *model, opset);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ExpectRead(*bytes, one, names, fed);
}

TEST(OnnxAnswers, RecurrentLayers) {
  const std::vector<Case> cases = CasesOf("rnn.zip");
  EXPECT_EQ(cases.size(), 20u);
  for (const Case& one : cases)
    for (const bool parameters : {true, false})
      for (const int opset : {9, 13, 17}) ExpectAnswers(one, opset, parameters);
}

TEST(OnnxAnswers, ShuffledChannels) {
  size_t count = 0;
  for (const char* zip : {"channel_shuffle.zip", "shuffle_channel.zip"})
    for (Case one : CasesOf(zip)) {
      ExpectAnswers(one, 9, false);
      // Extents that are known only when it runs.
      for (VarDesc& var : one.program.global().vars)
        if (var.shape.size() == 4) var.shape[0] = -1;
      ExpectAnswers(one, 13, false);
      ++count;
    }
  EXPECT_GE(count, 3u);
}

// The recorded cases of an operator, but those that ONNX cannot say: these have
// a part of the reason, or "" where only running shows it.
struct Operator {
  const char* zip;
  size_t cases;
  std::map<std::string, const char*> refused = {};
};

// At an older opset an operator either answers, too, or says which it needs.
void ExpectOlder(const Case& one, const InferenceModel& model,
                 const FeedFetch& names, const NamedArrays& fed) {
  for (const int opset : {9, 11, 13}) {
    SCOPED_TRACE(absl::StrCat("opset ", opset));
    const auto bytes = ToOnnx(Registry(), model, opset);
    if (bytes.ok())
      ExpectRead(*bytes, one, names, fed);
    else
      EXPECT_TRUE(
          absl::StrContains(bytes.status().message(), "it needs opset >= "))
          << bytes.status();
  }
}

void ExpectOperator(const Operator& op) {
  size_t answered = 0;
  for (const Case& one : CasesOf(absl::StrCat(op.zip, ".zip"))) {
    SCOPED_TRACE(absl::StrCat(op.zip, "/", one.name));
    NamedArrays fed;
    const FeedFetch names = Ends(one, &fed);
    if (names.fetches.empty()) continue;
    const auto model = Freeze(one.program, names, {});
    ASSERT_TRUE(model.ok()) << model.status();
    const auto bytes = ToOnnx(Registry(), *model, kMaxOnnxOpset);
    const auto refused = op.refused.find(one.name);
    if (refused != op.refused.end()) {
      if (*refused->second != '\0') {
        EXPECT_TRUE(
            absl::StrContains(bytes.status().message(), refused->second))
            << bytes.status();
      }
      continue;
    }
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ExpectRead(*bytes, one, names, fed);
    ExpectOlder(one, *model, names, fed);
    ++answered;
  }
  EXPECT_EQ(answered, op.cases) << op.zip;
}

TEST(OnnxAnswers, ControlFlow) {
  ExpectOperator({"while", 18, {{"collatz", "ONNX names each value once"}}});
  ExpectOperator({"conditional_block", 15});
  ExpectOperator({"select_input", 2});
}

// Lists of tensors are sequences, which our reader does not take through loops:
// that ONNX Runtime does, scripts/check_interop asks it.
TEST(OnnxAnswers, ListsOfTensorsAreWritten) {
  size_t written = 0;
  for (const Case& one : CasesOf("tensor_array.zip")) {
    NamedArrays fed;
    const auto model = Freeze(one.program, Ends(one, &fed), {});
    ASSERT_TRUE(model.ok()) << model.status();
    const auto bytes = ToOnnx(Registry(), *model, kMaxOnnxOpset);
    if (bytes.ok())
      ++written;
    else
      EXPECT_TRUE(absl::StrContains(bytes.status().message(),
                                    "it cannot be exported to ONNX"))
          << one.name << ": " << bytes.status();
  }
  EXPECT_EQ(written, 10u);
}

TEST(OnnxAnswers, Detection) {
  ExpectOperator(
      {"multiclass_nms3", 5, {{"pixels_eta", "attr 'nms_eta' is 0.9"}}});
  ExpectOperator({"generate_proposals_v2", 2});
  ExpectOperator({"multiclass_nms2", 3});
  ExpectOperator({"matrix_nms", 3});
  ExpectOperator({"yolo_box", 4});
  ExpectOperator({"anchor_generator", 2});
  ExpectOperator({"box_coder", 5});
  ExpectOperator({"density_prior_box", 2});
  ExpectOperator({"prior_box", 4});
  ExpectOperator({"roi_align", 4});
}

TEST(OnnxAnswers, BoxesOfCellsNeedKnownExtents) {
  for (const char* zip : {"anchor_generator.zip", "prior_box.zip"})
    for (Case one : CasesOf(zip)) {
      SCOPED_TRACE(absl::StrCat(zip, "/", one.name));
      NamedArrays fed;
      const FeedFetch names = Ends(one, &fed);
      VarDesc* map =
          one.program.global().FindVar(one.program.global().ops[0].In("Input"));
      ASSERT_NE(map, nullptr);
      map->shape[3] = -1;
      const auto model = Freeze(one.program, names, {});
      ASSERT_TRUE(model.ok()) << model.status();
      const auto bytes = ToOnnx(Registry(), *model, kMaxOnnxOpset);
      EXPECT_TRUE(absl::StrContains(bytes.status().message(),
                                    "needs known heights and widths"))
          << bytes.status();
    }
}

TEST(OnnxAnswers, Resizing) {
  ExpectOperator({"bicubic_interp_v2", 4});
  ExpectOperator({"bilinear_interp", 3});
  ExpectOperator({"bilinear_interp_v2", 12});
  ExpectOperator({"linear_interp_v2", 4});
  ExpectOperator({"nearest_interp", 3});
  ExpectOperator({"nearest_interp_v2", 8});
  ExpectOperator({"trilinear_interp_v2", 4});
  ExpectOperator({"grid_sampler", 12, {{"five_d", "ONNX samples pictures"}}});
}

TEST(OnnxAnswers, Places) {
  const char* kReduce = "attr 'Reduce' is";
  ExpectOperator({"flip", 5});
  ExpectOperator({"roll", 4});
  ExpectOperator({"scatter", 4});
  ExpectOperator({"scatter_nd_add", 3});
  // Our reader multiplies into no part of a tensor.
  ExpectOperator({"put_along_axis",
                  3,
                  {{"multiply", ""},
                   {"mode_add_noself", kReduce},
                   {"mode_amax", kReduce},
                   {"mode_amin", kReduce},
                   {"mode_mean", kReduce},
                   {"mode_mul_noself", kReduce}}});
  ExpectOperator({"take_along_axis", 4});
  ExpectOperator({"index_sample", 2});
  // Our reader wants to know how many places there are.
  ExpectOperator({"index_put", 4, {{"bool", ""}}});
  ExpectOperator({"set_value", 11, {{"bool_index", ""}}});
}

TEST(OnnxAnswers, Others) {
  ExpectOperator({"argsort", 5});
  ExpectOperator({"assign_value", 5});
  ExpectOperator({"broadcast_tensors", 2});
  ExpectOperator({"einsum", 8});
  ExpectOperator({"expand_as_v2", 2});
  ExpectOperator({"masked_select", 3});
  ExpectOperator({"meshgrid", 2});
  ExpectOperator({"range_struct", 5});
  ExpectOperator({"repeat_interleave", 2, {{"tensor", "repeats for each"}}});
  ExpectOperator({"sequence_mask", 3});
  ExpectOperator({"unbind", 2});
  ExpectOperator({"where_index", 4});
}

// Random numbers differ by who draws them: shapes, means and bounds are held
// against what was asked for.
TEST(OnnxAnswers, RandomNumbers) {
  InferenceModel model;
  model.program.version = 2003000;
  model.program.blocks.emplace_back();
  BlockBuilder builder(&Registry(), &model.program);
  VarDesc x;
  x.name = "x";
  x.shape = {-1, 3};
  builder.AddVar(x);
  model.names.feeds = {"x"};
  const auto add = [&](const std::string& type, const char* in, const char* out,
                       std::map<std::string, Attribute> attrs) {
    OpDesc op;
    op.type = type;
    if (*in != '\0') op.SetInput(in, {"x"});
    op.SetOutput(out, {type});
    for (auto& [name, value] : attrs) op.attrs[name] = value;
    ASSERT_TRUE(builder.Append(std::move(op)).ok()) << type;
    model.names.fetches.push_back(type);
  };
  const auto f32 = static_cast<int32_t>(DType::kFloat32);
  const std::map<std::string, Attribute> uniform = {{"min", 2.0f},
                                                    {"max", 4.0f}};
  const std::map<std::string, Attribute> normal = {{"mean", 3.0f},
                                                   {"std", 0.1f}};
  const auto with = [&](std::map<std::string, Attribute> all, const char* name,
                        Attribute value) {
    all[name] = std::move(value);
    all["dtype"] = f32;
    return all;
  };
  add("uniform_random_inplace", "X", "Out", uniform);
  add("gaussian_inplace", "x", "out", normal);
  const std::vector<int64_t> wide = {400, 3};
  add("uniform_random", "", "Out", with(uniform, "shape", wide));
  add("gaussian_random", "", "Out", with(normal, "shape", wide));
  const std::vector<int32_t> like = {-1, 3};
  add("uniform_random_batch_size_like", "Input", "Out",
      with(uniform, "shape", like));
  add("gaussian_random_batch_size_like", "Input", "Out",
      with(normal, "shape", like));
  const NamedArrays fed = {
      {"x", MakeArray({400, 3}, std::vector<float>(1200, 7))}};
  for (const int opset : {9, 13, kMaxOnnxOpset}) {
    SCOPED_TRACE(opset);
    const auto bytes = ToOnnx(Registry(), model, opset);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto file = ParseOnnx(*bytes, ".");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto back = ImportOnnx(Registry(), *file, &fed);
    ASSERT_TRUE(back.ok()) << back.status();
    Session session(&Registry());
    for (const auto& [name, value] : back->params)
      ASSERT_TRUE(session.scope().Set(name, value).ok());
    const auto got = session.Run(back->program, fed, model.names.fetches);
    ASSERT_TRUE(got.ok()) << got.status();
    for (const std::string& name : model.names.fetches) {
      const Array& drawn = got->at(name);
      ASSERT_EQ(ToString(drawn.shape), "[400, 3]") << name;
      const float* data = drawn.data<float>();
      const auto [low, high] = std::minmax_element(data, data + 1200);
      EXPECT_NEAR(std::accumulate(data, data + 1200, 0.0) / 1200, 3, 0.1)
          << name;
      const bool bounded = absl::StartsWith(name, "uniform");
      EXPECT_GE(*low, 2) << name;
      EXPECT_LE(*high, 4) << name;
      EXPECT_GT(*high - *low, bounded ? 1.5f : 0.3f) << name;
      EXPECT_LT(*high - *low, bounded ? 2.01f : 1.2f) << name;
    }
  }
}

}  // namespace test_onnx_answers
}  // namespace pd
