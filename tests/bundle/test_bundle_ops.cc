// SPDX-License-Identifier: Apache-2.0
// A walk over PaddlePaddle's recorded cases of every operator that bundles
// have: each case is answered as recorded, or refused with a reason when the
// bundle is written. A bundle that opens and answers otherwise is a failure.
#include <cstring>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/path.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"
#include "tests/bundle/bundle_fixture.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_bundle_ops {

// Operators that no record of PaddlePaddle's proves here: the reference kernels
// answer. All ops of a model read `x`, float32 [2, 3, 4, 5].
void ExpectReference(const std::vector<OpDesc>& ops) {
  InferenceModel model;
  model.program.version = 2006000;
  model.program.blocks.emplace_back();
  BlockBuilder builder(&Registry(), &model.program);
  VarDesc x;
  x.name = "x";
  x.shape = {-1, 3, 4, 5};
  builder.AddVar(x);
  for (const OpDesc& op : ops) {
    model.names.fetches.push_back(op.Out("Out"));
    const absl::Status status = builder.Append(op);
    ASSERT_TRUE(status.ok()) << status;
  }
  model.names.feeds = {"x"};
  std::vector<float> values;
  for (int i = 0; i < 120; ++i)
    values.push_back(0.7f * static_cast<float>(i % 9));
  const NamedArrays feeds = {{"x", MakeArray({2, 3, 4, 5}, values)}};
  Session session(&ReferenceRegistry());
  const auto want = session.Run(model.program, feeds, model.names.fetches);
  ASSERT_TRUE(want.ok()) << want.status();
  const auto got = BundleAnswers(model, feeds);
  ASSERT_TRUE(got.ok()) << got.status();
  for (const auto& [name, array] : *want)
    EXPECT_EQ(Difference(got->at(name), array, 0, 0), "") << name;
}

OpDesc OpOf(const std::string& type, const std::string& in,
            const std::string& out, std::map<std::string, Attribute> attrs) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {in});
  op.SetOutput("Out", {out});
  op.attrs = std::move(attrs);
  return op;
}

TEST(BundleOps, Casts) {
  const DType types[] = {DType::kFloat32, DType::kInt64, DType::kInt32,
                         DType::kUInt8, DType::kBool};
  std::vector<OpDesc> ops;
  for (const DType first : types)
    for (const DType second : types) {
      const auto cast = [&](const std::string& in, const std::string& out,
                            DType from, DType to) {
        ops.push_back(OpOf("cast", in, out,
                           {{"in_dtype", static_cast<int32_t>(from)},
                            {"out_dtype", static_cast<int32_t>(to)}}));
      };
      const std::string name = absl::StrCat(Name(first), "_", Name(second));
      cast("x", "first_" + name, DType::kFloat32, first);
      cast("first_" + name, name, first, second);
    }
  ExpectReference(ops);
}

TEST(BundleOps, OlderForms) {
  std::vector<OpDesc> ops = {
      OpOf("reshape", "x", "reshaped",
           {{"shape", std::vector<int32_t>{0, -1, 2, 2, 1}}})};
  for (const int32_t axis : {0, 1, 2, 3})
    ops.push_back(
        OpOf("flatten2", "x", absl::StrCat("flat", axis), {{"axis", axis}}));
  for (const std::string mode : {"constant", "reflect", "edge"})
    ops.push_back(OpOf("pad2d", "x", mode,
                       {{"paddings", std::vector<int32_t>{1, 2, 0, 3}},
                        {"pad_value", 0.5f},
                        {"mode", mode}}));
  ExpectReference(ops);
}

// Variables that networks have as parameters, which the cases feed. With
// `weights` those of products, too.
std::set<std::string> ParametersOf(const ProgramDesc& program, bool weights) {
  std::set<std::string> names;
  const std::set<std::string> of_layers = {"Filter", "Mean",      "Variance",
                                           "Scale",  "Bias",      "Alpha",
                                           "W",      "WeightList"};
  // A shape has to be known before a bundle runs.
  const std::set<std::string> of_shapes = {"AxesTensor",
                                           "AxesTensorList",
                                           "EndsTensor",
                                           "EndsTensorList",
                                           "OutSize",
                                           "RepeatTimes",
                                           "Shape",
                                           "ShapeTensor",
                                           "ShapeTensorList",
                                           "SizeTensor",
                                           "StartsTensor",
                                           "StartsTensorList",
                                           "StridesTensor",
                                           "StridesTensorList",
                                           "expand_shapes_tensor",
                                           "repeat_times_tensor"};
  for (const OpDesc& op : program.global().ops) {
    const bool product = op.type == "mul" || op.type == "matmul" ||
                         op.type == "matmul_v2" || op.type == "bmm";
    const bool resizes = absl::StrContains(op.type, "_interp");
    for (const auto& [slot, variables] : op.inputs)
      if (of_shapes.count(slot) > 0 ||
          (of_layers.count(slot) > 0 && !resizes) ||
          (slot == "Y" && product && weights))
        names.insert(variables.begin(), variables.end());
  }
  return names;
}

// The recorded results but for those that only a gradient reads.
std::vector<std::string> Results(const ProgramDesc& program,
                                 const NamedArrays& recorded) {
  const std::set<std::string> intermediate = {
      "DropoutState", "Mask",          "Mean",     "MeanOut",     "Reserve",
      "SavedMean",    "SavedVariance", "Variance", "VarianceOut", "XShape"};
  std::set<std::string> left_out;
  for (const OpDesc& op : program.global().ops)
    for (const auto& [slot, variables] : op.outputs)
      if (intermediate.count(slot) > 0)
        left_out.insert(variables.begin(), variables.end());
  std::vector<std::string> results;
  for (const auto& [name, array] : recorded)
    if (!absl::EndsWith(name, "@GRAD") && left_out.count(name) == 0 &&
        program.global().FindVar(name) != nullptr)
      results.push_back(name);
  return results;
}

// Freezing makes the evaluation form, which answers otherwise.
bool IsTraining(const ProgramDesc& program) {
  for (const OpDesc& op : program.global().ops)
    if ((op.type == "dropout" || op.type == "batch_norm") &&
        !op.AttrOr("is_test", false) && !op.AttrOr("use_global_stats", false))
      return true;
  return false;
}

struct Prepared {
  InferenceModel model;
  NamedArrays feeds;
};

absl::StatusOr<Prepared> Prepare(const GoldenCase& golden, bool weights) {
  ProgramDesc program = golden.forward;
  Prepared prepared;
  NamedArrays params;
  FeedFetch names;
  const std::set<std::string> parameters = ParametersOf(program, weights);
  if (!golden.startup.blocks.empty()) {
    Session session(&Registry());
    const absl::Status ran = session.RunOnce(golden.startup);
    if (!ran.ok()) return ran;
    for (const VarDesc& var : program.global().vars)
      if (const auto value = session.scope().Get(var.name);
          var.persistable && value.ok())
        params[var.name] = *value;
  }
  for (const auto& [name, array] : golden.feed) {
    VarDesc* var = program.global().FindVar(name);
    if (var == nullptr) continue;
    if (parameters.count(name) > 0) {
      var->persistable = true;
      params[name] = array;
    } else if (params.count(name) > 0) {
      params[name] = array;
    } else {
      names.feeds.push_back(name);
      prepared.feeds[name] = array;
    }
  }
  names.fetches = Results(program, golden.expect);
  auto model = Freeze(program, names, params);
  if (!model.ok()) return model.status();
  prepared.model = *std::move(model);
  return prepared;
}

// Cases of one operator, by outcome.
struct Count {
  int answered = 0, refused = 0;
};

void Walk(const GoldenCase& golden, bool weights, Count* count) {
  const auto prepared = Prepare(golden, weights);
  if (!prepared.ok() || IsTraining(golden.forward)) return;
  const auto graph = LowerModel(Registry(), prepared->model);
  if (!graph.ok()) {
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kUnimplemented)
        << graph.status();
    ++count->refused;
    return;
  }
  const auto bytes = BundleBytes(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto open = OpenBytes(*bytes);
  ASSERT_TRUE(open.ok()) << open.status();
  const auto got = RunModel(open->model, prepared->feeds);
  if (!got.ok()) {
    // A feed says a shape.
    EXPECT_TRUE(absl::StrContains(got.status().message(),
                                  "data that is not known before it runs"))
        << got.status();
    ++count->refused;
    return;
  }
  for (const std::string& name : prepared->model.names.fetches)
    EXPECT_EQ(
        Difference(got->at(name), golden.expect.at(name),
                   std::max(golden.rtol, 1e-5), std::max(golden.atol, 1e-5)),
        "")
        << name;
  ++count->answered;
}

TEST(BundleOps, PaddlesCases) {
  Count all;
  std::vector<std::string> types = BundleOpTypes();
  for (const char* more :
       {"clip_forms", "linear", "pad3d_nn", "pad_nn", "range_struct",
        "reduce_forms", "scale_forms", "transformer_layers"})
    types.push_back(more);
  std::set<std::string> without;
  for (const std::string& type : types) {
    SCOPED_TRACE(type);
    const std::string path = absl::StrCat(PD_TESTDATA, "/ops/", type, ".zip");
    if (!IsFile(path)) {
      without.insert(type);
      continue;
    }
    const auto cases = ReadGoldenCases(path);
    ASSERT_TRUE(cases.ok()) << cases.status();
    Count count;
    for (const GoldenCase& golden : *cases)
      for (const bool weights : {false, true}) {
        SCOPED_TRACE(absl::StrCat(golden.name, weights ? ", weights" : ""));
        Walk(golden, weights, &count);
      }
    // The cases of cast go through float64 and float16.
    if (type != "cast") {
      EXPECT_GT(count.answered, 0);
    }
    all.answered += count.answered;
    all.refused += count.refused;
  }
  EXPECT_EQ(all.answered, 1334);
  EXPECT_EQ(all.refused, 414);
  // PaddlePaddle's layers have newer versions of these.
  EXPECT_EQ(without,
            (std::set<std::string>{"flatten2", "pad2d", "range", "reshape"}));
}

// A small bundle of every operator, each byte of its graph changed in two ways.
TEST(BundleOps, DamagedOperators) {
  constexpr size_t kMemory = size_t{1} << 20;
  size_t damages = 0, operators = 0;
  for (const std::string& type : BundleOpTypes()) {
    const std::string path = absl::StrCat(PD_TESTDATA, "/ops/", type, ".zip");
    if (!IsFile(path)) continue;
    const auto cases = ReadGoldenCases(path);
    ASSERT_TRUE(cases.ok()) << cases.status();
    for (const GoldenCase& golden : *cases) {
      const auto prepared = Prepare(golden, true);
      if (!prepared.ok()) continue;
      const auto graph = LowerModel(Registry(), prepared->model);
      if (!graph.ok() || graph->nodes.empty()) continue;
      const auto bytes = BundleBytes(*graph);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      uint64_t graph_bytes = 0;
      std::memcpy(&graph_bytes, bytes->data() + 24, sizeof(graph_bytes));
      std::string damaged = *bytes;
      for (size_t i = 32; i < 32 + graph_bytes; ++i)
        for (const int flip : {0x02, 0xff}) {
          damaged[i] = static_cast<char>((*bytes)[i] ^ flip);
          const auto open = OpenBytes(damaged, 1, kMemory);
          if (open.ok()) RunAsItSays(open->model);
          damaged[i] = (*bytes)[i];
          ++damages;
        }
      ++operators;
      break;  // one case of each
    }
  }
  EXPECT_GE(operators, 90u);
  EXPECT_GE(damages, 20000u);
}

}  // namespace test_bundle_ops
}  // namespace pd
