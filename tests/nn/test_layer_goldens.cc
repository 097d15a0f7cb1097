// SPDX-License-Identifier: Apache-2.0
// Every case of testdata/layers: a job's layers against PaddlePaddle's. Built
// from the job's text, they have PaddlePaddle's parameters (names, shapes, the
// ops of first values); with its values they give, in training and evaluation,
// by the reference kernels and by the fast ones (by these also with each pass
// off that changes the program), its results, its running statistics, and by
// our append_backward its gradients.
//   tests_nn --gtest_filter=*conv
// PD_LAYER_GOLDENS names another folder of such zips.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.pb.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"
#include "tests/passes/pass_choices.h"

namespace pd {
namespace test_layer_goldens {

struct LayerCase {
  std::string family, name, job;
  nlohmann::json about;
  NamedArrays values;  // "in/x", "state/l.weight", "train/0", "grad/x", ...

  // The arrays of "PREFIX/...", without the prefix.
  NamedArrays Part(const std::string& prefix) const {
    NamedArrays part;
    for (const auto& [name, array] : values)
      if (absl::StartsWith(name, prefix + "/"))
        part[name.substr(prefix.size() + 1)] = array;
    return part;
  }
};

std::string Folder() {
  const char* other = std::getenv("PD_LAYER_GOLDENS");
  return other != nullptr ? other : PD_TESTDATA "/layers";
}

std::vector<std::string> Families() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(Folder(), error))
    if (entry.path().extension() == ".zip")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<LayerCase>> ReadCases(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const auto folders, ReadZipFolders(path));
  std::vector<LayerCase> cases;
  for (const auto& [name, files] : folders) {
    LayerCase one;
    one.family = std::filesystem::path(path).stem().string();
    one.name = name;
    one.job = files.at("job.pbtxt");
    one.about = nlohmann::json::parse(files.at("case.json"), nullptr, false);
    if (one.about.is_discarded()) return DataLoss("%s: not JSON", name);
    PD_ASSIGN_OR_RETURN(one.values, ArraysOf(files, "values.npz"));
    cases.push_back(std::move(one));
  }
  return cases;
}

const OpRegistry& Registry(bool fast) {
  static const std::vector<OpRegistry>* registries = [] {
    auto* made = new std::vector<OpRegistry>(2);
    for (OpRegistry& registry : *made) {
      const absl::Status status = RegisterAllOps(&registry);
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_TRUE(AttachAllKernels(&made->back()).ok());
    return made;
  }();
  return (*registries)[fast ? 1 : 0];
}

// The built model is the case's: its parameters and statistics by name and
// shape, and how the first values are made.
absl::Status CheckParameters(const LayerCase& one, const BuiltModel& built) {
  const NamedArrays state = one.Part("state");
  for (const auto& [name, array] : state) {
    const VarDesc* var = built.main.global().FindVar(name);
    if (var == nullptr || !var->persistable)
      return NotFound("there is no parameter '%s'", name);
    if (var->shape != array.shape)
      return DataLoss("'%s' has shape %s; PaddlePaddle's has %s", name,
                      ToString(var->shape), ToString(array.shape));
  }
  for (const VarDesc& var : built.main.global().vars)
    if (var.persistable && state.count(var.name) == 0)
      return DataLoss("PaddlePaddle has no parameter '%s'", var.name);
  for (const auto& [name, initial] : one.about["init"].items()) {
    const OpDesc* made = nullptr;
    for (const OpDesc& op : built.startup.global().ops)
      if (op.Out("Out") == name) made = &op;
    if (made == nullptr || made->type != initial["op"])
      return DataLoss("'%s' starts with %s; PaddlePaddle's with %s", name,
                      made == nullptr ? "nothing" : made->type,
                      initial["op"].get<std::string>());
    for (const char* attr : {"value", "mean", "std", "min", "max"}) {
      if (!initial.contains(attr)) continue;
      const double want = initial[attr], got = made->AttrOr<float>(attr, NAN);
      if (!(std::abs(got - want) <= 1e-6 * std::abs(want)))
        return DataLoss("'%s' starts with %s %g; PaddlePaddle's with %g", name,
                        attr, got, want);
    }
  }
  return absl::OkStatus();
}

// names.txt: "FAMILY/CASE NAME" -> PaddlePaddle's own name.
std::map<std::string, std::string> ReadPaddleNames() {
  std::map<std::string, std::string> names;
  std::ifstream file(Folder() + "/names.txt");
  std::string one, name, paddle_name;
  while (file >> one >> name >> paddle_name)
    names[absl::StrCat(one, " ", name)] = paddle_name;
  return names;
}

absl::Status CheckPaddleNames(const LayerCase& one, const BuiltModel& built) {
  static const auto* const kNames =
      new std::map<std::string, std::string>(ReadPaddleNames());
  if (kNames->empty()) return NotFound("%s/names.txt is empty", Folder());
  std::map<std::string, std::string> ours(built.paddle_names.begin(),
                                          built.paddle_names.end());
  for (const auto& [name, array] : one.Part("state")) {
    const auto want =
        kNames->find(absl::StrCat(one.family, "/", one.name, " ", name));
    if (want != kNames->end() && ours[name] != want->second)
      return DataLoss("'%s' is '%s' in PaddlePaddle, not '%s'", name,
                      want->second, ours[name]);
  }
  return absl::OkStatus();
}

// Differences of each fetched variable and persistable from what is wanted.
absl::Status RunAndCompare(const LayerCase& one, const ProgramDesc& program,
                           const NamedArrays& feeds,
                           const std::map<std::string, std::string>& wanted,
                           bool fast, const PassOptions& passes) {
  Session session(&Registry(fast), 1);
  session.set_pass_options(passes);
  PlanOptions options;
  options.poison = true;
  session.set_plan_options(options);
  for (const auto& [name, array] : one.Part("state"))
    PD_RETURN_IF_ERROR(session.scope().Set(name, array));
  std::vector<std::string> fetches;
  for (const auto& [key, variable] : wanted) fetches.push_back(variable);
  PD_ASSIGN_OR_RETURN(const NamedArrays results,
                      session.Run(program, feeds, fetches));
  std::string wrong;
  const auto compare = [&](const std::string& key, const Array& got,
                           double factor) {
    const std::string difference =
        Difference(got, one.values.at(key), one.about.value("rtol", 1e-5),
                   factor * one.about.value("atol", 1e-5));
    if (!difference.empty())
      absl::StrAppend(&wrong, key, ": ", difference, "; ");
  };
  for (const auto& [key, variable] : wanted)
    compare(key, results.at(variable), key[0] == 'g' ? 10 : 1);
  if (!feeds.empty() && wanted.count("train/0") > 0) {
    for (const auto& [name, array] : one.Part("after")) {
      PD_ASSIGN_OR_RETURN(const Array got, session.scope().Get(name));
      compare("after/" + name, got, 1);
    }
  }
  return wrong.empty() ? absl::OkStatus() : DataLoss("%s", wrong);
}

// With every pass and, by the fast kernels, with each off that matters.
absl::Status RunChoices(const LayerCase& one, const ProgramDesc& program,
                        const NamedArrays& feeds,
                        const std::map<std::string, std::string>& wanted,
                        bool fast) {
  PD_RETURN_IF_ERROR(RunAndCompare(one, program, feeds, wanted, fast, {}));
#ifdef PD_WITH_SANITIZER
  fast = false;  // test_golden_training does that there, with fewer cases
#endif
  if (!fast) return absl::OkStatus();
  std::vector<std::string> fetches;
  for (const auto& [key, variable] : wanted) fetches.push_back(variable);
  for (const auto& [pass, options] :
       WithOnePassOff(Registry(fast), program, fetches))
    PD_RETURN_IF_ERROR(
        Annotate(RunAndCompare(one, program, feeds, wanted, fast, options),
                 "without " + pass));
  return absl::OkStatus();
}

// The training program with the gradients that the case has.
absl::Status RunTraining(const LayerCase& one, BuiltModel built, bool fast) {
  NamedArrays feeds = one.Part("in");
  std::map<std::string, std::string> wanted;
  for (size_t k = 0; k < built.outputs.size(); ++k)
    wanted[absl::StrCat("train/", k)] = built.outputs[k];
  BackwardOptions options;
  for (const auto& [index, array] : one.Part("ct")) {
    const std::string& output = built.outputs[std::stoul(index)];
    VarDesc var;
    var.name = output + "@CT";
    var.dtype = array.dtype;
    var.shape = array.shape;
    feeds[var.name] = array;
    options.targets[output] = var.name;
    built.main.global().vars.push_back(std::move(var));
  }
  if (!options.targets.empty()) {
    const NamedArrays expected = one.Part("grad");
    for (const auto& [name, array] : expected) options.wrt.push_back(name);
    PD_ASSIGN_OR_RETURN(const auto gradients,
                        AppendBackward(Registry(fast), options, &built.main));
    for (const auto& [name, array] : expected) {
      const auto it = gradients.find(name);
      if (it == gradients.end())
        return NotFound("append_backward made no gradient for '%s'", name);
      wanted["grad/" + name] = it->second;
    }
  }
  return RunChoices(one, built.main, feeds, wanted, fast);
}

absl::Status RunCase(const LayerCase& one, bool fast) {
  PD_ASSIGN_OR_RETURN(const LoadedJob job, ParseJob(one.job, "job.pbtxt"));
  PD_ASSIGN_OR_RETURN(BuiltModel built, BuildModel(job, Registry(fast)));
  if (one.about.value("loss", false)) built.outputs = {built.loss};
  PD_RETURN_IF_ERROR(CheckParameters(one, built));
  PD_RETURN_IF_ERROR(CheckPaddleNames(one, built));
  std::map<std::string, std::string> wanted;
  for (size_t k = 0; k < built.outputs.size(); ++k)
    wanted[absl::StrCat("eval/", k)] = built.outputs[k];
  PD_RETURN_IF_ERROR(Annotate(
      RunChoices(one, built.test, one.Part("in"), wanted, fast), "evaluation"));
  if (one.Part("train").empty()) return absl::OkStatus();
  return Annotate(RunTraining(one, built, fast), "training");
}

class LayerGoldens : public ::testing::TestWithParam<std::string> {};

TEST_P(LayerGoldens, MatchPaddlePaddle) {
  const auto cases = ReadCases(Folder() + "/" + GetParam() + ".zip");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_FALSE(cases->empty());
  for (const LayerCase& one : *cases) {
    for (const bool fast : {false, true}) {
      const absl::Status status = RunCase(one, fast);
      EXPECT_TRUE(status.ok()) << GetParam() << "/" << one.name
                               << (fast ? " fast: " : ": ") << status;
    }
  }
}

// Layers and losses that have no case here.
const std::set<std::string>& Plain() {
  static const auto* const kPlain =
      new std::set<std::string>{"linear",
                                "embedding",
                                "block",           // test_build
                                "model",           // test_saved_network
                                "nce",             // random: test_losses
                                "gumbel_softmax",  // test_random_layers
                                "normal",
                                "uniform",
                                "bernoulli",
                                "gumbel",
                                "linear_chain_crf",  // test_sequence_layers
                                "custom"};           // test_op_layer
  return *kPlain;
}

TEST(LayerKinds, EveryOtherHasACase) {
  std::string jobs;
  for (const std::string& family : Families()) {
    const auto cases = ReadCases(Folder() + "/" + family + ".zip");
    ASSERT_TRUE(cases.ok()) << cases.status();
    for (const LayerCase& one : *cases) absl::StrAppend(&jobs, one.job);
  }
  for (const auto* part : {job::Layer::descriptor(), job::Loss::descriptor()}) {
    const auto* kinds = part->FindOneofByName("kind");
    for (int i = 0; i < kinds->field_count(); ++i) {
      const std::string kind = kinds->field(i)->name();
      EXPECT_TRUE(Plain().count(kind) > 0 ||
                  absl::StrContains(jobs, absl::StrCat(" ", kind, " {")))
          << kind;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LayerGoldens);
INSTANTIATE_TEST_SUITE_P(Layers, LayerGoldens, ::testing::ValuesIn(Families()),
                         [](const auto& info) { return info.param; });

}  // namespace test_layer_goldens
}  // namespace pd
