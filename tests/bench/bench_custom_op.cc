// SPDX-License-Identifier: Apache-2.0
// A plug-in's custom_relu beside the built-in relu, its reference and its fast
// kernel, on 10^6 floats and one thread.
//
//   ninja bench_custom_op
//   taskset -c 1 bench_custom_op ./bent_identity.so [ROUNDS]
//
// Each run is measured by the thread's own CPU time, after one that is not, and
// the three take turns: on a machine with other work, the least of many rounds
// and the median of the ratios within a round still say the same.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "libcore/exec/plan.h"
#include "libcore/exec/scope.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/plugins.h"
#include "libcore/program/block_builder.h"

namespace {

constexpr int64_t kElements = 1000000;

double Microseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 +
         static_cast<double>(time.tv_nsec) * 1e-3;
}

double Quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part *
                                    static_cast<double>(values.size() - 1))];
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}
void Must(const absl::Status& status) {
  Must<int>(status.ok() ? absl::StatusOr<int>(0) : status);
}

std::unique_ptr<pd::Plan> PlanOf(const pd::OpRegistry& registry,
                                 const char* type, pd::Scope* scope) {
  pd::ProgramDesc program;
  program.blocks.emplace_back();
  pd::VarDesc var;
  var.name = "x";
  var.shape = {kElements};
  program.global().vars.push_back(var);
  pd::OpDesc op;
  op.type = type;
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"out"});
  Must(pd::BlockBuilder(&registry, &program).Append(std::move(op)));
  pd::FeedSpec feed;
  feed.name = "x";
  feed.dtype = pd::DType::kFloat32;
  feed.shape = {kElements};
  return Must(pd::Plan::Compile(registry, program, {feed}, {"out"}, scope));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_custom_op PLUGIN.so [ROUNDS]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 2000;
  Must(pd::LoadPlugin(argv[1]));
  pd::OpRegistry references;
  Must(pd::RegisterAllOps(&references));
  auto kernels = Must(pd::MakeRegistry(nullptr));
  Must(pd::AddPluginOps(kernels.get()));
  pd::Scope scope;
  std::vector<std::unique_ptr<pd::Plan>> plans;
  plans.push_back(PlanOf(*kernels, "custom_relu", &scope));
  plans.push_back(PlanOf(references, "relu", &scope));
  plans.push_back(PlanOf(*kernels, "relu", &scope));
  std::vector<float> x(kElements);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 7919 % 1000) - 500;
  std::vector<std::vector<double>> times(plans.size()), ratios(plans.size());
  const pd::RunContext context;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> now(plans.size());
    for (size_t turn = 0; turn < plans.size(); ++turn) {
      const size_t i = (turn + static_cast<size_t>(round)) % plans.size();
      plans[i]->SetFeed(0, x.data());
      Must(plans[i]->Run(context));
      const double begin = Microseconds();
      Must(plans[i]->Run(context));
      now[i] = Microseconds() - begin;
    }
    for (size_t i = 0; i < plans.size(); ++i) {
      times[i].push_back(now[i]);
      ratios[i].push_back(now[0] / now[i]);
    }
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    const pd::StepInfo& step = plans[i]->steps()[0];
    const std::string name =
        step.op_type + ", " + (i == 0 ? "plug-in" : step.implementation);
    std::printf(
        "%-26s least %6.1f us, median %6.1f us; custom_relu takes %.3f of it "
        "at least, %.3f in the median\n",
        name.c_str(), Quantile(times[i], 0), Quantile(times[i], 0.5),
        Quantile(times[0], 0) / Quantile(times[i], 0),
        Quantile(ratios[i], 0.5));
  }
}
