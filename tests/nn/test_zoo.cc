// SPDX-License-Identifier: Apache-2.0
// The zoo's networks against PaddlePaddle's: names and shapes of parameters,
// outputs, gradients. testdata/make/zoo_goldens.py made testdata/zoo and says
// how numbers come from names.
// Small networks run with each pass off too; with PD_EACH_PASS_OFF set all do.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/gzip.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/deploy/optimize.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job_model.pb.h"
#include "libcore/nn/zoo/zoo.h"
#include "tests/bundle/bundle_fixture.h"
#include "tests/ops/registry.h"
#include "tests/passes/pass_choices.h"

namespace pd {
namespace test_zoo {

using nlohmann::json;

// Numbers in [0, 1) that hang on a name: FNV-1a, then a mix of the place.
class Uniform {
 public:
  explicit Uniform(const std::string& name) {
    for (const char c : name)
      seed_ = (seed_ ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  double operator()(size_t place) const {
    uint32_t x = static_cast<uint32_t>(place) * 2654435761u + seed_;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return (x ^ (x >> 16)) / 4294967296.0;
  }

 private:
  uint32_t seed_ = 2166136261u;
};

Array Numbers(const std::string& name, const Shape& shape, double size) {
  const Uniform uniform(name);
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(size * (2 * uniform(i) - 1));
  return MakeArray(shape, values);
}

Array Parameter(const std::string& name, const Shape& shape, double gain) {
  if (absl::EndsWith(name, "_variance") ||
      (absl::EndsWith(name, "weight") && shape.size() == 1)) {
    const Uniform uniform(name);
    std::vector<float> values(static_cast<size_t>(shape[0]));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(0.5 + uniform(i));
    return MakeArray(shape, values);
  }
  if (shape.size() == 1) return Numbers(name, shape, 0.1);
  const int64_t fan_in =
      shape.size() == 2 ? shape[0] : NumElements(shape) / shape[0];
  return Numbers(name, shape, std::sqrt(gain / static_cast<double>(fan_in)));
}

// How far the norm of `values`, and their product with numbers made of a name,
// are from PaddlePaddle's, in units of the norm.
double Distance(const Array& values, const std::string& name,
                const json& golden) {
  const Uniform uniform(name);
  double norm = 0, product = 0;
  for (size_t i = 0; i < static_cast<size_t>(NumElements(values.shape)); ++i) {
    const double x = values.data<float>()[i];
    norm += x * x;
    product += x * (2 * uniform(i) - 1);
  }
  const double want = golden["norm"];
  const double worst =
      std::max(std::abs(std::sqrt(norm) - want),
               std::abs(product - golden["product"].get<double>()));
  return worst <= 0 ? 0 : worst / want;
}

absl::StatusOr<BuiltModel> BuildNetwork(const std::string& name,
                                        const Shape& image,
                                        const std::string& argument) {
  std::vector<std::string> names = {"\"block_0\""};
  const auto block = FindZooBlock(name);
  if (!block.ok()) return block.status();
  if (*block == nullptr) return absl::NotFoundError(name);
  for (int i = 1; i < (*block)->output_size(); ++i)
    names.push_back(absl::StrCat("\"block_0:", (*block)->output(i), "\""));
  const auto job = ParseJob(
      absl::StrCat("model { input { name: \"image\" shape: [-1, ", image[1],
                   ", ", image[2], ", ", image[3],
                   "] } layer { block { use: \"", name, "\" set: \"", argument,
                   "\" } } output: [", absl::StrJoin(names, ", "), "] }"),
      "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, Registry());
}

class Zoo : public ::testing::TestWithParam<std::string> {
 protected:
  void Load() {
    const auto bytes = ReadFileGunzip(
        absl::StrCat(PD_TESTDATA, "/zoo/", GetParam(), ".json.gz"));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    golden_ = json::parse(bytes->view().begin(), bytes->view().end());
    image_ = golden_["image"].get<Shape>();
    auto built =
        BuildNetwork(GetParam(), image_,
                     golden_.value("argument", std::string("num_classes=10")));
    ASSERT_TRUE(built.ok()) << built.status();
    built_ = *std::move(built);
  }

  // Against PaddlePaddle's.
  void CompareOutputs(const NamedArrays& results, double tolerance) const;
  void Compare(const NamedArrays& results,
               const std::map<std::string, std::string>& gradients) const;
  std::vector<std::string> InOrder() const;
  double Error(const Array& gradient, const std::string& name) const;

  bool EachPassOff() const {
    static const std::set<std::string> kSmall = {"lenet", "mobilenet_v2",
                                                 "squeezenet1_1"};
    return kSmall.count(GetParam()) > 0 ||
           std::getenv("PD_EACH_PASS_OFF") != nullptr;
  }

  json golden_;
  Shape image_;
  BuiltModel built_;
};

// Every entry of the state_dict is a variable of this name and shape, and no
// other variable is kept.
TEST_P(Zoo, StateDict) {
  ASSERT_NO_FATAL_FAILURE(Load());
  std::map<std::string, std::string> ours, theirs;
  for (const VarDesc& var : built_.main.global().vars)
    if (var.persistable) ours[var.name] = ToString(var.shape);
  for (const auto& [name, entry] : golden_["state"].items())
    theirs[name] = ToString(entry["shape"].get<Shape>());
  EXPECT_EQ(ours, theirs);
}

TEST_P(Zoo, OutputsAndGradients) {
  ASSERT_NO_FATAL_FAILURE(Load());
  ProgramDesc program = built_.test;
  // In evaluation a recurrent layer keeps nothing for a gradient; without
  // dropout training gives the same.
  for (OpDesc& op : program.global().ops)
    if (op.type == "rnn") op.attrs["is_test"] = false;
  NamedArrays feeds = {
      {"image", Numbers(golden_["picture"].get<std::string>(), image_, 1)}};
  BackwardOptions options;
  for (size_t i = 0; i < built_.outputs.size(); ++i) {
    VarDesc var = *program.global().FindVar(built_.outputs[i]);
    var.name = absl::StrCat("output", i);
    if (var.shape[0] < 0) var.shape[0] = image_[0];
    feeds[var.name] = Numbers(var.name, var.shape, 1);
    options.targets[built_.outputs[i]] = var.name;
    program.global().vars.push_back(std::move(var));
  }
  const auto gradients = AppendBackward(Registry(), options, &program);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  std::vector<std::string> fetches = built_.outputs;
  for (const auto& [name, gradient] : *gradients) fetches.push_back(gradient);
  Session session(&Registry(), 0);
  for (const VarDesc& var : program.global().vars)
    if (var.persistable)
      feeds[var.name] = Parameter(var.name, var.shape, golden_["gain"]);
  const auto results = session.Run(program, feeds, fetches);
  ASSERT_TRUE(results.ok()) << results.status();
  Compare(*results, *gradients);
  if (!EachPassOff()) return;
  for (const auto& [pass, choice] :
       WithOnePassOff(Registry(), program, fetches)) {
    SCOPED_TRACE("without " + pass);
    Session other(&Registry(), 0);
    other.set_pass_options(choice);
    const auto answers = other.Run(program, feeds, fetches);
    ASSERT_TRUE(answers.ok()) << answers.status();
    Compare(*answers, *gradients);
  }
}

// The program as it is deployed: its batch norms are in the filters, and what
// follows them in the convolutions.
TEST_P(Zoo, Inference) {
  ASSERT_NO_FATAL_FAILURE(Load());
  InferenceModel model;
  model.program = built_.test;
  for (const VarDesc& var : built_.test.global().vars)
    if (var.persistable)
      model.params[var.name] = Parameter(var.name, var.shape, golden_["gain"]);
  ASSERT_TRUE(FoldBatchNorms(&model).ok());
  NamedArrays feeds = model.params;
  feeds["image"] = Numbers(golden_["picture"].get<std::string>(), image_, 1);
  const auto expect_same = [&](const PassOptions& options) {
    Session session(&Registry(), 0);
    session.set_pass_options(options);
    const auto results = session.Run(model.program, feeds, built_.outputs);
    ASSERT_TRUE(results.ok()) << results.status();
    // Folded filters round otherwise.
    CompareOutputs(*results, 3e-5);
  };
  ASSERT_NO_FATAL_FAILURE(expect_same({}));
  if (!EachPassOff()) return;
  const auto choices =
      WithOnePassOff(Registry(), model.program, built_.outputs);
  for (const auto& [pass, choice] : choices) {
    SCOPED_TRACE("without " + pass);
    expect_same(choice);
  }
  // No training program has what this pass looks for.
  if (GetParam() == "mobilenet_v2") {
    EXPECT_EQ(choices.count("fuse_conv_residual"), 1u);
  }
}

// The same as a bundle, which libpd_run runs.
TEST_P(Zoo, Bundle) {
  ASSERT_NO_FATAL_FAILURE(Load());
  InferenceModel model;
  model.program = built_.test;
  model.names = {{"image"}, built_.outputs};
  for (const VarDesc& var : built_.test.global().vars)
    if (var.persistable)
      model.params[var.name] = Parameter(var.name, var.shape, golden_["gain"]);
  const NamedArrays feeds = {
      {"image", Numbers(golden_["picture"].get<std::string>(), image_, 1)}};
  const auto answers = BundleAnswers(model, feeds, 2);
  // These have operators that bundles have no kernel for.
  static const std::map<std::string, const char*> kRefused = {
      {"ssd_mobilenet_v1", "'prior_box'"}};
  if (const auto refused = kRefused.find(GetParam());
      refused != kRefused.end()) {
    EXPECT_TRUE(absl::StrContains(answers.status().message(), refused->second))
        << answers.status();
    return;
  }
  ASSERT_TRUE(answers.ok()) << answers.status();
  CompareOutputs(*answers, 3e-5);
}

void Zoo::CompareOutputs(const NamedArrays& results, double tolerance) const {
  for (size_t i = 0; i < built_.outputs.size(); ++i) {
    const auto want = golden_["outputs"][i].get<std::vector<double>>();
    const Array& got = results.at(built_.outputs[i]);
    ASSERT_EQ(golden_["outputs"].size(), built_.outputs.size());
    ASSERT_EQ(want.size(), static_cast<size_t>(NumElements(got.shape)));
    double largest = 0, worst = 0;
    for (size_t k = 0; k < want.size(); ++k) {
      largest = std::max(largest, std::abs(want[k]));
      worst = std::max(worst, std::abs(want[k] - got.data<float>()[k]));
    }
    EXPECT_LE(worst, tolerance * largest) << "output " << i;
  }
}

void Zoo::Compare(const NamedArrays& results,
                  const std::map<std::string, std::string>& gradients) const {
  CompareOutputs(results, 2e-5);
  // Where PaddlePaddle's own float32 is farther from float64, so may ours be.
  const double tolerance =
      std::max(1e-4, 3 * golden_["rounding"].get<double>());
  // An activation within the last bit of 0, or of another maximum, decides by
  // how a machine's convolutions round, and with it the gradients from there
  // down to the input. Each layer near the output must be right to the end.
  constexpr double kOtherDecision = 0.1;
  std::vector<double> errors;
  for (const std::string& name : InOrder()) {
    ASSERT_EQ(gradients.count(name), 1u) << name;
    errors.push_back(Error(results.at(gradients.at(name)), name));
    EXPECT_LE(errors.back(), kOtherDecision) << name;
  }
  size_t right = 0;
  while (right < errors.size() &&
         errors[errors.size() - 1 - right] <= tolerance)
    ++right;
  EXPECT_GE(16 * right, errors.size())
      << right << " of " << errors.size() << " gradients are right";
}

// The parameters as the forward pass reads them.
std::vector<std::string> Zoo::InOrder() const {
  std::vector<std::string> order;
  std::set<std::string> seen;
  for (const OpDesc& op : built_.test.global().ops)
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (golden_["state"].contains(name) &&
            golden_["state"][name].contains("norm") && seen.insert(name).second)
          order.push_back(name);
  EXPECT_EQ(order.size(),
            std::count_if(golden_["state"].begin(), golden_["state"].end(),
                          [](const json& e) { return e.contains("norm"); }));
  return order;
}

double Zoo::Error(const Array& g, const std::string& name) const {
  return Distance(g, name, golden_["state"][name]);
}

std::vector<std::string> Recorded() {
#ifdef PD_WITH_SANITIZER
  // One of each kind: the others only take longer.
  return {"googlenet",           "lenet",        "mobilenet_v2", "resnet18",
          "shufflenet_v2_x0_25", "squeezenet1_1"};
#endif
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(PD_TESTDATA "/zoo")) {
    const std::string file = entry.path().filename().string();
    if (absl::EndsWith(file, ".json.gz"))
      names.push_back(file.substr(0, file.size() - 8));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Without its classifier a network of each family gives what PaddlePaddle's
// does with num_classes=0, and has its parameters.
TEST(ZooHeadless, Outputs) {
  const auto bytes =
      ReadFileGunzip(PD_TESTDATA "/zoo_headless/headless.json.gz");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const json all = json::parse(bytes->view().begin(), bytes->view().end());
  const std::vector<std::string> recorded = Recorded();
  int compared = 0;
  for (const auto& [network, golden] : all.items()) {
    if (std::count(recorded.begin(), recorded.end(), network) == 0) continue;
    SCOPED_TRACE(network);
    const Shape image = golden["image"].get<Shape>();
    const auto built = BuildNetwork(network, image, "num_classes=0");
    ASSERT_TRUE(built.ok()) << built.status();
    NamedArrays feeds = {{"image", Numbers("image", image, 1)}};
    std::vector<std::string> names;
    for (const VarDesc& var : built->test.global().vars) {
      if (!var.persistable) continue;
      names.push_back(var.name);
      feeds[var.name] = Parameter(var.name, var.shape, golden["gain"]);
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, golden["names"].get<std::vector<std::string>>());
    Session session(&Registry(), 0);
    const auto results = session.Run(built->test, feeds, built->outputs);
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(built->outputs.size(), golden["outputs"].size());
    for (size_t i = 0; i < built->outputs.size(); ++i) {
      const json& want = golden["outputs"][i];
      const Array& got = results->at(built->outputs[i]);
      EXPECT_EQ(got.shape, want["shape"].get<Shape>());
      EXPECT_LE(Distance(got, "output", want), 2e-5) << "output " << i;
    }
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Networks, Zoo, ::testing::ValuesIn(Recorded()),
                         [](const auto& info) { return info.param; });

}  // namespace test_zoo
}  // namespace pd
