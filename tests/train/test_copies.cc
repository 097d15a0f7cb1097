// SPDX-License-Identifier: Apache-2.0
// Parameters that follow others, against the formula.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/step_runner.h"

namespace pd {
namespace test_copies {

// The online network learns what the target says of other records.
constexpr char kJob[] = R"(
model {
  input { name: "x" shape: [-1, 3] }
  layer { name: "online.fc" input: "x" linear { out_features: 2 } }
  layer { name: "online.norm" batch_norm1d {} }
  layer { name: "target.fc" input: "x" linear { out_features: 2 } }
  layer { name: "target.norm" batch_norm1d { use_global_stats: true } }
}
loss { input: "online.norm" label: "z" mse_loss {} }
loss { input: "online.norm" label: "target.norm" mse_loss {} }
optimizer { sgd { learning_rate: 0.1 } }
copy { from: "online.*" to: "target.*" tau: 0.25 every: 2 }
data { train { batch_size: 8 npz { path: "testdata/phases/shared.npz"
  field { name: "x" } field { name: "z" } } } }
)";

const OpRegistry& CopyOps() {
  static const OpRegistry* const registry = [] {
    auto* all = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(all).ok());
    return all;
  }();
  return *registry;
}

absl::StatusOr<TrainProgram> Build(const std::string& text) {
  const auto job = ParseJob(text, "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildTrainProgram(CopyOps(), *job);
}

using Values = std::map<std::string, std::vector<float>>;

// The values of the online or the target network in the session.
Values ValuesOf(const Session& session, const std::string& net) {
  Values values;
  for (const char* name : {".fc.weight", ".fc.bias", ".norm.weight",
                           ".norm.bias", ".norm._mean", ".norm._variance"}) {
    const auto value =
        const_cast<Session&>(session).scope().Get(absl::StrCat(net, name));
    EXPECT_TRUE(value.ok()) << value.status();
    if (value.ok())
      values[name] = {value->data<float>(),
                      value->data<float>() + NumElements(value->shape)};
  }
  return values;
}

TEST(Copies, FollowByTheFormula) {
  const auto job = ParseJob(kJob, "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto program = BuildTrainProgram(CopyOps(), *job);
  ASSERT_TRUE(program.ok()) << program.status();
  RunVocabularies vocabularies;
  auto loader = OpenLoader(*job, job->proto().data().train(), 1, &vocabularies);
  ASSERT_TRUE(loader.ok()) << loader.status();
  Session session(&CopyOps());
  ASSERT_TRUE(session.RunOnce(program->startup).ok());
  ASSERT_NE(ValuesOf(session, "online"), ValuesOf(session, "target"));
  ASSERT_TRUE(program->initial_copies.has_value());
  ASSERT_TRUE(session.RunOnce(*program->initial_copies).ok());
  EXPECT_EQ(ValuesOf(session, "online"), ValuesOf(session, "target"));
  StepRunnerOptions options;
  options.session = &session;
  options.program = &*program;
  options.loader = loader->get();
  options.rate = [](StepPosition) { return 0.1; };
  options.on_step = [](const StepReport&) { return absl::OkStatus(); };
  StepRunner runner(std::move(options));
  ASSERT_TRUE(runner.Prepare(7).ok());
  ASSERT_TRUE((*loader)->StartEpoch(0).ok());
  for (int64_t step = 0; step < 5; ++step) {
    Values expected = ValuesOf(session, "target");
    const auto batch = (*loader)->Next();
    ASSERT_TRUE(batch.ok() && *batch != nullptr);
    const absl::Status status = runner.Run(**batch, {step, 0}, false);
    ASSERT_TRUE(status.ok()) << status;
    const Values online = ValuesOf(session, "online");
    const Values target = ValuesOf(session, "target");
    EXPECT_NE(online, target);
    for (auto& [name, values] : expected)
      for (size_t i = 0; i < values.size(); ++i) {
        if (step % 2 == 1)
          values[i] = 0.25f * online.at(name)[i] + 0.75f * values[i];
        EXPECT_NEAR(target.at(name)[i], values[i], 1e-6)
            << "step " << step << " " << name;
      }
  }
}

TEST(Copies, AreNotTrained) {
  const auto program = Build(kJob);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->gradients.size(), 4u);
  for (const auto& [parameter, gradient] : program->gradients)
    EXPECT_TRUE(absl::StartsWith(parameter, "online.")) << parameter;
}

TEST(Copies, ErrorsHaveTheirPlace) {
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"from: \"online.*\"", "from: \"inline.*\"", "matches 'inline.*'"},
      {"to: \"target.*\"", "to: \"goal.*\"", "which the network does not have"},
      {"to: \"target.*\"", "to: \"target\"", "'online.*=>target'"},
      {"to: \"target.*\"", "to: \"online.*\"", "copied to itself"},
      {"from: \"online.*\" to: \"target.*\"",
       "from: \"online.fc.weight\" to: \"target.fc.bias\"",
       "cannot be copied to 'target.fc.bias'"},
      {"data {", "copy { from: \"online.fc.*\" to: \"target.fc.*\" } data {",
       "is already copied to (job.pbtxt:12:"},
  };
  for (const auto& c : cases) {
    const std::string text = absl::StrReplaceAll(kJob, {{c.from, c.to}});
    ASSERT_NE(text, kJob) << c.from;
    const auto program = Build(text);
    ASSERT_FALSE(program.ok()) << c.message;
    EXPECT_TRUE(absl::StrContains(program.status().message(), c.message))
        << program.status();
    EXPECT_TRUE(absl::StrContains(program.status().message(), "job.pbtxt:"))
        << program.status();
  }
}

}  // namespace test_copies
}  // namespace pd
