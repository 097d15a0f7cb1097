// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/bench.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/copy_runner.h"
#include "libcore/train/synthetic_batch.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

constexpr size_t kBatches = 4;  // used in turn, as the peers' benchmarks do

double MedianOf(std::vector<double>* times) {
  std::sort(times->begin(), times->end());
  const size_t n = times->size();
  return n % 2 == 1 ? (*times)[n / 2]
                    : ((*times)[n / 2 - 1] + (*times)[n / 2]) / 2;
}

// Runs step(i), which gives the loss or an output, by the peers' rules: the
// first step; two steps and a fifth of the time to warm up; then the measure.
// With a check, as many steps without it in between: `plan` is told. A step is
// one of `records`.
absl::Status Measure(const std::function<absl::StatusOr<double>(size_t)>& step,
                     double seconds, Plan* plan, int64_t records,
                     BenchReport* report) {
  size_t i = 0;
  PD_ASSIGN_OR_RETURN(report->first_value, step(i++));
  report->first_step_s = SecondsSinceProcessStart();
  report->last_value = report->first_value;
  if (seconds > 0) {
    NanCheck* check = plan->nan_check();
    std::vector<double> times, unchecked;
    times.reserve(1 << 20);
    if (check != nullptr) unchecked.reserve(1 << 20);
    double end = SteadySeconds() + seconds / 5;
    while (i < 3 || SteadySeconds() < end) {
      PD_ASSIGN_OR_RETURN(report->last_value, step(i++));
    }
    end = SteadySeconds() + seconds;
    while (times.size() < 3 || SteadySeconds() < end) {
      const bool on = check == nullptr || i / kBatches % 2 == 0;
      if (check != nullptr)
        check->set_level(on ? NanCheck::Level::kQuick : NanCheck::Level::kOff);
      const double begin = SteadySeconds();
      PD_ASSIGN_OR_RETURN(report->last_value, step(i++));
      (on ? times : unchecked).push_back(SteadySeconds() - begin);
    }
    if (!unchecked.empty())
      report->unchecked_ms_median = MedianOf(&unchecked) * 1e3;
    const double median = MedianOf(&times);
    const size_t n = times.size();
    const size_t p90 =
        static_cast<size_t>(std::ceil(0.9 * static_cast<double>(n))) - 1;
    report->steps = static_cast<int64_t>(n);
    report->step_ms_median = median * 1e3;
    report->step_ms_p90 = times[std::min(n - 1, p90)] * 1e3;
    report->samples_per_s = static_cast<double>(records) / median;
  }
  report->peak_rss_mb = PeakRssMegabytes();
  if (plan->place() != nullptr)
    report->peak_device_mb =
        static_cast<double>(plan->place()->device->peak_bytes()) / (1 << 20);
  return absl::OkStatus();
}

// Runs of one plan. Where they go ahead, one is under way while the next is fed
// and started, so a step takes as long as the GPU computes.
class Runs {
 public:
  Runs(Plan* plan, StepHook* hook, bool may_go_ahead = true)
      : plan_(plan),
        hook_(hook),
        ahead_(may_go_ahead && plan->runs_ahead() && hook == nullptr) {}

  // The fetches are then the first run's, or where runs go ahead, those of the
  // run before.
  absl::Status Next(const RunContext& context) {
    if (!ahead_) return plan_->Run(context, hook_);
    PD_RETURN_IF_ERROR(plan_->Start(context, hook_));
    ++started_;
    return started_ == 2 ? absl::OkStatus() : plan_->Wait();
  }
  // Waits for the last one.
  absl::Status Finish() {
    return ahead_ && started_ > 1 ? plan_->Wait() : absl::OkStatus();
  }

 private:
  Plan* const plan_;
  StepHook* const hook_;
  const bool ahead_;
  int64_t started_ = 0;
};

double FirstElement(const Tensor& tensor) {
  if (tensor.size() == 0 || tensor.raw() == nullptr)
    return std::numeric_limits<double>::quiet_NaN();
  if (tensor.dtype() == DType::kFloat32) return *tensor.data<float>();
  if (tensor.dtype() == DType::kFloat64) return *tensor.data<double>();
  if (tensor.dtype() == DType::kInt64)
    return static_cast<double>(*tensor.data<int64_t>());
  return 0;
}

void SetFeeds(const std::vector<FeedSpec>& feeds, const NamedArrays& batch,
              Plan* plan) {
  for (size_t i = 0; i < feeds.size(); ++i)
    plan->SetFeed(i, batch.at(feeds[i].name).bytes.get());
}

}  // namespace

double SecondsSinceProcessStart() {
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)),
                   std::istreambuf_iterator<char>());
  const size_t close = text.rfind(')');
  if (close == std::string::npos) return 0;
  std::istringstream fields(text.substr(close + 1));
  std::string skipped;
  for (int i = 0; i < 19; ++i) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9 -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double PeakRssMegabytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  return 0;
}

namespace {

// A part of a step, of which parts run in turn: a phase, or the whole program.
struct Part {
  std::vector<FeedSpec> feeds;
  std::unique_ptr<Plan> plan;
  std::unique_ptr<StepTimes> times;
  std::unique_ptr<Runs> runs;
  std::vector<NamedArrays> batches;
  Tensor* rate = nullptr;
  std::function<double(int64_t step, int64_t epoch)> rate_at;
  int runs_per_step = 1;
};

// Steps of a job's training on made-up batches.
class TrainingSteps {
 public:
  TrainingSteps(const TrainProgram* program, const BenchOptions& options,
                int64_t records, Session* session)
      : program_(*program),
        options_(options),
        records_(records),
        session_(*session) {}

  absl::Status Prepare() {
    for (const PhaseProgram& phase : program_.phases) {
      PD_RETURN_IF_ERROR(Add(phase.main, phase.feeds, phase.loss, phase.name,
                             phase.learning_rate, phase.rate));
      parts_.back().runs_per_step = phase.steps;
    }
    if (parts_.empty())
      PD_RETURN_IF_ERROR(Add(program_.main, program_.feeds, program_.loss, "",
                             program_.learning_rate, program_.rate));
    return copies_.Compile(program_.copies, &session_);
  }

  // Runs all parts and copies of step `i`; the sum of the parts' losses.
  absl::StatusOr<double> Run(size_t i) {
    const auto number = static_cast<int64_t>(i);
    for (Part& part : parts_) {
      if (part.rate != nullptr)
        *part.rate->data<float>() = static_cast<float>(part.rate_at(number, 0));
      for (int run = 0; run < part.runs_per_step; ++run) {
        SetFeeds(part.feeds, part.batches[context_.step % kBatches],
                 part.plan.get());
        PD_RETURN_IF_ERROR(part.runs->Next(context_));
        ++context_.step;
      }
    }
    PD_RETURN_IF_ERROR(copies_.Run(number + 1));
    return Loss();
  }

  absl::Status Finish() {
    for (Part& part : parts_) PD_RETURN_IF_ERROR(part.runs->Finish());
    return absl::OkStatus();
  }

  double Loss() const {
    double sum = 0;
    for (const Part& part : parts_) sum += FirstElement(part.plan->fetch(0));
    return sum;
  }

  // The shares of all parts together, the largest first.
  std::vector<StepTimes::Share> Times() const {
    std::vector<StepTimes::Share> all;
    for (const Part& part : parts_)
      for (StepTimes::Share& share : part.times->ByOpType())
        all.push_back(std::move(share));
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.seconds > b.seconds;
    });
    return all;
  }

  // The last part's, which Measure asks for device and check: a job with
  // phases is not checked for NaN.
  Plan* plan() { return parts_.back().plan.get(); }

 private:
  absl::Status Add(const ProgramDesc& program,
                   const std::vector<FeedSpec>& feeds, const std::string& loss,
                   const std::string& name, const std::string& rate,
                   std::function<double(int64_t, int64_t)> rate_at) {
    Part part;
    part.feeds = FeedsFor(feeds, records_);
    PD_ASSIGN_OR_RETURN(
        part.plan, session_.Compile(
                       program, part.feeds, {loss},
                       name.empty() ? "train" : absl::StrCat("train ", name)));
    part.times = std::make_unique<StepTimes>(part.plan.get());
    // A copy, and the next phase, read what a run has written.
    part.runs = std::make_unique<Runs>(
        part.plan.get(), options_.times ? part.times.get() : nullptr,
        program_.phases.empty() && program_.copies.empty());
    for (size_t b = 0; b < kBatches; ++b) {
      PD_ASSIGN_OR_RETURN(
          part.batches.emplace_back(),
          SyntheticBatch(program, part.feeds, options_.seed, b));
    }
    part.rate = RateTensor(rate, &session_.scope());
    part.rate_at = std::move(rate_at);
    parts_.push_back(std::move(part));
    return absl::OkStatus();
  }

  const TrainProgram& program_;
  const BenchOptions& options_;
  const int64_t records_;
  Session& session_;
  RunContext context_;
  std::vector<Part> parts_;
  CopyRunner copies_;
};

}  // namespace

absl::StatusOr<BenchReport> BenchTraining(const OpRegistry& registry,
                                          const LoadedJob& job,
                                          const BenchOptions& options) {
  PD_ASSIGN_OR_RETURN(TrainProgram program, BuildTrainProgram(registry, job));
  if (program.newton.has_value())
    return job.At(InvalidArgument("--bench does not measure quasi-Newton "
                                  "methods, whose steps differ in length"),
                  job.proto().optimizer());
  BenchReport report;
  report.workload = job.proto().name();
  report.mode = "train";
  report.batch = options.batch > 0 ? options.batch
                                   : job.proto().data().train().batch_size();
  Session session(&registry, options.seed);
  session.set_pass_options(options.passes);
  PD_RETURN_IF_ERROR(SetFirstValues(program, &session));
  TrainingSteps steps(&program, options, report.batch, &session);
  PD_RETURN_IF_ERROR(steps.Prepare());
  PD_RETURN_IF_ERROR(Measure([&](size_t i) { return steps.Run(i); },
                             options.seconds, steps.plan(),
                             report.batch * program.batches_per_step, &report));
  PD_RETURN_IF_ERROR(steps.Finish());
  report.last_value = steps.Loss();
  if (options.times) report.times = steps.Times();
  return report;
}

absl::StatusOr<BenchReport> BenchInference(const OpRegistry& registry,
                                           const LoadedModel& model,
                                           const std::vector<FeedSpec>& shapes,
                                           const BenchOptions& options) {
  BenchReport report;
  report.workload = model.path;
  report.mode = "infer";
  report.batch = options.batch > 0 ? options.batch : 1;
  const std::vector<FeedSpec> feeds = FeedsFor(shapes, report.batch);
  Session session(&registry, options.seed);
  session.set_pass_options(options.passes);
  session.set_mixed_precision(options.amp);
  session.set_plan_options(InferencePlans());
  PD_RETURN_IF_ERROR(FillScope(model, &session.scope()));
  PD_ASSIGN_OR_RETURN(auto plan,
                      session.Compile(model.program, feeds, model.fetches));
  StepTimes times(plan.get());
  Runs runs(plan.get(), options.times ? &times : nullptr);
  std::vector<NamedArrays> batches;
  for (size_t b = 0; b < kBatches; ++b) {
    PD_ASSIGN_OR_RETURN(NamedArrays batch,
                        SyntheticBatch(model.program, feeds, options.seed, b));
    batches.push_back(std::move(batch));
  }
  const auto step = [&](size_t i) -> absl::StatusOr<double> {
    SetFeeds(feeds, batches[i % kBatches], plan.get());
    PD_RETURN_IF_ERROR(runs.Next({}));
    return FirstElement(plan->fetch(0));
  };
  PD_RETURN_IF_ERROR(
      Measure(step, options.seconds, plan.get(), report.batch, &report));
  PD_RETURN_IF_ERROR(runs.Finish());
  report.last_value = FirstElement(plan->fetch(0));
  if (options.times) report.times = times.ByOpType();
  return report;
}

}  // namespace pd
