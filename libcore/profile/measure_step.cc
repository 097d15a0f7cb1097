// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/measure_step.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/run_vocabularies.h"
#include "libcore/train/shard_runner.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

constexpr int64_t kFewestSteps = 3;

double MiddleValue(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size()) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Each time is the median of its own.
StepTimeline MedianOf(const std::vector<StepTimeline>& steps) {
  const auto median = [&](const auto& value) {
    std::vector<double> values;
    for (const StepTimeline& step : steps) values.push_back(value(step));
    return MiddleValue(std::move(values));
  };
  StepTimeline all = steps[0];
  all.shard = median([](const StepTimeline& s) { return s.shard; });
  all.rest = median([](const StepTimeline& s) { return s.rest; });
  for (size_t b = 0; b < all.buckets.size(); ++b) {
    all.buckets[b].full =
        median([b](const StepTimeline& s) { return s.buckets[b].full; });
    all.buckets[b].update =
        median([b](const StepTimeline& s) { return s.buckets[b].update; });
  }
  return all;
}

// Seconds of a step that its shards and updates do not explain.
double RestOf(const StepTimeline& step, double seconds) {
  double known = static_cast<double>(step.shards) * step.shard;
  for (const StepTimeline::Bucket& bucket : step.buckets)
    known += bucket.update;
  return std::max(0.0, seconds - known);
}

}  // namespace

absl::StatusOr<MeasuredStep> MeasureStep(const OpRegistry& registry,
                                         const LoadedJob& job,
                                         const MeasureOptions& options) {
  const job::Train& train = job.proto().train();
  PD_ASSIGN_OR_RETURN(const TrainProgram program,
                      BuildTrainProgram(registry, job));
  PD_INVARIANT(program.shards.has_value());
  if (program.shards->stage > 0)
    return job.At(Unimplemented("what a step with sharded states exchanges is "
                                "not predicted"),
                  job.proto().distributed(), "sharding");
  const std::vector<uint8_t>& rows = program.shards->rows;
  if (program.shards->together ||
      std::count(rows.begin(), rows.end(), uint8_t{0}) <
          static_cast<int64_t>(rows.size()))
    LogWarning(
        "the prediction leaves out what sync_batch_norm and rows of sparse "
        "gradients exchange");
  Session session(&registry, train.seed());
  session.set_pass_options(options.passes);
  RunVocabularies vocabularies;
  PD_ASSIGN_OR_RETURN(const OwnData own, OwnData::ShardsOf(job, nullptr));
  PD_ASSIGN_OR_RETURN(const auto loader,
                      OpenLoader(job, job.proto().data().train(), train.seed(),
                                 &vocabularies, own));
  PD_RETURN_IF_ERROR(SetFirstValues(program, &session));
  Tensor* rate = RateTensor(program.learning_rate, &session.scope());
  PD_ASSIGN_OR_RETURN(
      const auto runner,
      ShardRunner::Create(&session, &program, loader.get(), nullptr));
  runner->TimeSteps();
  PD_RETURN_IF_ERROR(runner->Compile(loader->fields()));
  MeasuredStep measured;
  std::vector<StepTimeline> steps;
  const double begin = SteadySeconds();
  int64_t epoch = 0;
  PD_RETURN_IF_ERROR(loader->StartEpoch(epoch));
  const auto enough = [&](int64_t step) {
    if (step < kFewestSteps) return false;
    return step >= options.steps ||
           (options.seconds > 0 && SteadySeconds() - begin > options.seconds) ||
           (options.stop != nullptr && options.stop() != 0);
  };
  for (int64_t step = 0; !enough(step); ++step) {
    const double before = SteadySeconds();
    PD_ASSIGN_OR_RETURN(const Batch* batch, loader->Next());
    if (batch == nullptr) {
      PD_RETURN_IF_ERROR(loader->StartEpoch(++epoch));
      PD_ASSIGN_OR_RETURN(batch, loader->Next());
    }
    if (batch == nullptr)
      return InvalidArgument("the training set gives no batch");
    if (rate != nullptr)
      *rate->data<float>() = static_cast<float>(program.rate(step, epoch));
    measured.records = std::max(measured.records, batch->whole);
    PD_RETURN_IF_ERROR(
        Annotate(runner->Run(*batch, train.seed(), step).status(),
                 absl::StrCat("step ", step + 1)));
    steps.push_back(runner->timeline());
    steps.back().rest = RestOf(steps.back(), SteadySeconds() - before);
  }
  steps.erase(steps.begin(),
              steps.begin() + (static_cast<int64_t>(steps.size()) + 9) / 10);
  measured.steps = static_cast<int64_t>(steps.size());
  measured.timeline = MedianOf(steps);
  return measured;
}

}  // namespace pd
