// SPDX-License-Identifier: Apache-2.0
// Whole training programs that PaddlePaddle saved, run from the same state over
// the same batches: every loss and the final state must be PaddlePaddle's
// within the tolerance that each case measured. With the reference kernels
// alone, and with the fast ones in front: a wrong layout, a buffer given away
// too early or an update in the wrong order shows here.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"

namespace pd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Case {
  fs::path folder;
  Json info;
  std::vector<ProgramDesc> programs;
  NamedArrays batches;
  Array losses, rates;
  std::vector<std::string> losses_of;  // the loss of each program
};

std::vector<std::string> Names(const Json& json) {
  if (json.is_string()) return {json.get<std::string>()};
  return json.get<std::vector<std::string>>();
}

template <typename T>
T Take(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : T();
}

Case Load(const fs::path& folder) {
  Case c;
  c.folder = folder;
  std::ifstream(folder / "case.json") >> c.info;
  for (const std::string& name : Names(c.info.at("programs")))
    c.programs.push_back(Take(ReadProgram((folder / name).string())));
  c.batches = Take(ReadNpz((folder / "batches.npz").string()));
  c.losses = Take(ReadNpy((folder / "losses.npy").string()));
  if (fs::exists(folder / "lr.npy"))
    c.rates = Take(ReadNpy((folder / "lr.npy").string()));
  c.losses_of = Names(c.info.at("loss"));
  return c;
}

double At(const Array& array, int64_t i) {
  return array.dtype == DType::kFloat64
             ? array.data<double>()[i]
             : static_cast<double>(array.data<float>()[i]);
}

// Batch `step` of a feed that holds [steps, ...].
Array Slice(const Array& all, int64_t step) {
  Array slice = all;
  slice.shape.erase(slice.shape.begin());
  const size_t bytes = slice.size_bytes();
  slice.bytes = std::shared_ptr<const std::byte>(
      all.bytes, all.bytes.get() + static_cast<size_t>(step) * bytes);
  return slice;
}

// Fast kernels or the references alone; passes on or off.
class GoldenTraining : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  GoldenTraining() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    if (std::get<0>(GetParam())) EXPECT_TRUE(AttachAllKernels(&registry_).ok());
    if (!std::get<1>(GetParam()))
      for (const Pass& pass : AllPasses()) passes_.disabled.insert(pass.name);
  }

  void SetInitialState(const Case& c, Session* session) {
    for (const char* name : {"init.pdparams", "init.pdopt"}) {
      const StateDict state = Take(ReadStateDict((c.folder / name).string()));
      for (const auto& [variable, value] : state.tensors)
        ASSERT_TRUE(session->scope().Set(variable, value).ok());
    }
  }

  void SetRate(const Case& c, int64_t step, Session* session) {
    const std::string name = c.info.at("lr_var");
    Tensor& rate = session->scope().Find(name)->tensor;
    const double value = At(c.rates, step);
    if (rate.dtype() == DType::kFloat64)
      *rate.data<double>() = value;
    else
      *rate.data<float>() = static_cast<float>(value);
  }

  void CheckFinalState(const Case& c, const Session& session) {
    const Json& tolerances = c.info.at("final_atol");
    Session& s = const_cast<Session&>(session);
    for (const char* name : {"final.pdparams", "final.pdopt"}) {
      const StateDict state = Take(ReadStateDict((c.folder / name).string()));
      for (const auto& [variable, want] : state.tensors) {
        if (!tolerances.contains(variable) || !IsFloating(want.dtype)) continue;
        const Array got = Take(s.scope().Get(variable));
        double worst = 0;
        for (int64_t i = 0; i < want.size(); ++i) {
          const double d = std::fabs(At(got, i) - At(want, i));
          worst = std::isnan(d) ? INFINITY : std::max(worst, d);
        }
        EXPECT_LE(worst, tolerances.at(variable).get<double>()) << variable;
      }
    }
  }

  OpRegistry registry_;
  PassOptions passes_;
};

TEST_P(GoldenTraining, FollowsEveryLossCurve) {
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(PD_TESTDATA "/train")) {
    if (!entry.is_directory()) continue;
    ++cases;
    SCOPED_TRACE(entry.path().filename().string());
    const Case c = Load(entry.path());
    Session session(&registry_);
    PlanOptions options;
    options.poison = true;
    session.set_plan_options(options);
    session.set_pass_options(passes_);
    SetInitialState(c, &session);
    std::vector<std::unique_ptr<Plan>> plans;
    std::vector<std::vector<std::string>> fed;
    for (size_t p = 0; p < c.programs.size(); ++p) {
      fed.push_back(Names(c.info.at("program_feeds").at(p)));
      std::vector<FeedSpec> feeds;
      for (const std::string& name : fed.back()) {
        const Array batch = Slice(c.batches.at(name), 0);
        feeds.push_back({name, batch.dtype, batch.shape});
      }
      auto plan = session.Compile(c.programs[p], feeds, {c.losses_of[p]});
      ASSERT_TRUE(plan.ok()) << plan.status();
      plans.push_back(*std::move(plan));
    }
    const int64_t steps = c.info.at("steps");
    const double rtol = c.info.at("rtol"), atol = c.info.at("atol");
    for (int64_t step = 0; step < steps; ++step) {
      if (c.rates.size() > 1) SetRate(c, step, &session);
      for (size_t p = 0; p < plans.size(); ++p) {
        for (size_t i = 0; i < fed[p].size(); ++i)
          plans[p]->SetFeed(i,
                            Slice(c.batches.at(fed[p][i]), step).bytes.get());
        const absl::Status status = plans[p]->Run({});
        ASSERT_TRUE(status.ok()) << status;
        const double got = At(ToArray(plans[p]->fetch(0)), 0);
        const int64_t at =
            step * static_cast<int64_t>(plans.size()) + static_cast<int64_t>(p);
        const double want = At(c.losses, at);
        EXPECT_LE(std::fabs(got - want), atol + rtol * std::fabs(want))
            << "step " << step << ": got " << got << ", expected " << want;
      }
    }
    CheckFinalState(c, session);
  }
  EXPECT_EQ(cases, 17);
}

INSTANTIATE_TEST_SUITE_P(Kernels, GoldenTraining,
                         testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)
                                                  ? "Fast"
                                                  : "Reference") +
                                  (std::get<1>(info.param) ? "Fused" : "Plain");
                         });

}  // namespace
}  // namespace pd
