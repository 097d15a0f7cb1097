// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's cases of operators, exported to ONNX, read back and run: the
// answers are PaddlePaddle's. ONNX's checker and shape inference see every file
// (ToOnnx runs them); ONNX Runtime is asked by scripts/check_interop.
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/onnx_file.h"
#include "formats/zip_archive.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/exec/session.h"
#include "tests/deploy/deploy_fixture.h"
#include "tests/ops/compare.h"
#include "tests/ops/registry.h"

namespace pd {
namespace {

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

// What a case is fed with and gives, forward.
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
  const auto bytes = ToOnnx(*model, opset);
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
// a part of the reason.
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
    const auto bytes = ToOnnx(model, opset);
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
    const auto bytes = ToOnnx(*model, kMaxOnnxOpset);
    const auto refused = op.refused.find(one.name);
    if (refused != op.refused.end()) {
      EXPECT_TRUE(absl::StrContains(bytes.status().message(), refused->second))
          << bytes.status();
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
  for (const Operator& op : std::vector<Operator>{{"while", 19},
                                                  {"conditional_block", 1},
                                                  {"select_input", 1},
                                                  {"tensor_array", 1}})
    ExpectOperator(op);
}

TEST(OnnxAnswers, Detection) {
  for (const Operator& op : std::vector<Operator>{{"multiclass_nms3", 1},
                                                  {"multiclass_nms2", 1},
                                                  {"matrix_nms", 1},
                                                  {"yolo_box", 4},
                                                  {"roi_align", 1}})
    ExpectOperator(op);
}

TEST(OnnxAnswers, Resizing) {
  for (const Operator& op : std::vector<Operator>{{"bicubic_interp_v2", 1},
                                                  {"bilinear_interp", 1},
                                                  {"linear_interp_v2", 1},
                                                  {"nearest_interp", 1},
                                                  {"trilinear_interp_v2", 1},
                                                  {"grid_sampler", 1}})
    ExpectOperator(op);
}

TEST(OnnxAnswers, Places) {
  for (const Operator& op : std::vector<Operator>{{"flip", 1},
                                                  {"roll", 1},
                                                  {"scatter", 1},
                                                  {"scatter_nd_add", 1},
                                                  {"put_along_axis", 1},
                                                  {"take_along_axis", 1},
                                                  {"set_value", 1},
                                                  {"einsum", 1}})
    ExpectOperator(op);
}

}  // namespace
}  // namespace pd
