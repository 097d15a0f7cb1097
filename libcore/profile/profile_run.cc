// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/profile_run.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/world.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/copy_runner.h"
#include "libcore/train/open_data.h"
#include "libcore/train/phase_runner.h"
#include "libcore/train/plan_cache.h"
#include "libcore/train/run_vocabularies.h"
#include "libcore/train/shard_runner.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

absl::Status FirstError(const absl::Status& a, const absl::Status& b) {
  return a.ok() ? b : a;
}

// The training set's batches, epoch by epoch, until the job has enough.
class Batches {
 public:
  Batches(Loader* loader, int64_t epochs) : loader_(loader), epochs_(epochs) {}

  int64_t epoch() const { return epoch_; }

  // Null after the last epoch.
  absl::StatusOr<const Batch*> Next() {
    if (!begun_) PD_RETURN_IF_ERROR(loader_->StartEpoch(0));
    begun_ = true;
    bool empty = false;
    for (;;) {
      PD_ASSIGN_OR_RETURN(const Batch* batch, loader_->Next());
      if (batch != nullptr) return batch;
      if (++epoch_ >= epochs_) return nullptr;
      if (std::exchange(empty, true))
        return InvalidArgument("the training set gives no batch");
      PD_RETURN_IF_ERROR(loader_->StartEpoch(epoch_));
    }
  }

 private:
  Loader* loader_;
  const int64_t epochs_;
  int64_t epoch_ = 0;
  bool begun_ = false;
};

class TrainingLoop {
 public:
  TrainingLoop(const OpRegistry& registry, const LoadedJob& job,
               const ProfileRunOptions& options, Profiler* profiler)
      : job_(job),
        options_(options),
        profiler_(profiler),
        session_(&registry, job.proto().train().seed()) {
    session_.set_pass_options(options.passes);
  }

  absl::StatusOr<ProfileRunEnd> Run() {
    PD_RETURN_IF_ERROR(Prepare());
    PD_RETURN_IF_ERROR(profiler_->Start());
    ProfileRunEnd end;
    const absl::Status status = Loop(&end);
    PD_RETURN_IF_ERROR(FirstError(status, profiler_->Finish()));
    return end;
  }

 private:
  absl::Status Loop(ProfileRunEnd* end) {
    Batches batches(loader_.get(), job_.proto().train().epochs());
    const int64_t limit = job_.proto().train().steps();
    while (end->steps < options_.steps && end->stopped_by == 0) {
      if (limit > 0 && end->steps >= limit) {
        end->why = absl::StrCat("train.steps is ", limit);
        break;
      }
      profiler_->BeginReading();
      PD_ASSIGN_OR_RETURN(const Batch* batch, batches.Next());
      profiler_->EndReading();
      if (batch == nullptr) {
        end->why = absl::StrCat("train.epochs is ", batches.epoch());
        break;
      }
      PD_RETURN_IF_ERROR(Annotate(Step(*batch, end->steps, batches.epoch()),
                                  absl::StrCat("step ", end->steps + 1)));
      ++end->steps;
      PD_ASSIGN_OR_RETURN(end->stopped_by, StopSignal());
    }
    return absl::OkStatus();
  }

  absl::Status Prepare() {
    PD_ASSIGN_OR_RETURN(program_, BuildTrainProgram(session_.registry(), job_));
    OwnData own;
    if (program_.shards.has_value()) {
      PD_ASSIGN_OR_RETURN(own, OwnData::ShardsOf(job_, Processes()));
    }
    PD_ASSIGN_OR_RETURN(
        loader_, OpenLoader(job_, job_.proto().data().train(),
                            job_.proto().train().seed(), &vocabularies_, own));
    PD_RETURN_IF_ERROR(SetFirstValues(program_, &session_));
    rate_ = RateTensor(program_.learning_rate, &session_.scope());
    PD_RETURN_IF_ERROR(copies_.Compile(program_.copies, &session_));
    const auto forget = [this](int64_t, const Plan& plan) {
      profiler_->Forget(plan);
    };
    if (!program_.phases.empty()) {
      PD_ASSIGN_OR_RETURN(phases_, PhaseRunner::Create(&session_, &program_,
                                                       loader_.get(), forget));
      phases_->set_hooks(
          [this](const Plan& plan) { return profiler_->HookFor(plan); });
      return absl::OkStatus();
    }
    if (program_.shards.has_value()) {
      PD_ASSIGN_OR_RETURN(shards_, ShardRunner::Create(&session_, &program_,
                                                       loader_.get(), forget));
      shards_->set_hooks(
          [this](const Plan& plan) { return profiler_->HookFor(plan); });
      return shards_->Compile(loader_->fields());
    }
    PD_ASSIGN_OR_RETURN(
        plans_,
        PlanCache::Create(&session_, &program_.main, program_.feeds,
                          {program_.loss}, loader_->fields(), "train", forget));
    return absl::OkStatus();
  }

  // The phases of a step are one step of the profile.
  absl::Status Step(const Batch& batch, int64_t step, int64_t epoch) {
    int64_t records = batch.size;
    if (phases_.has_value()) {
      PD_ASSIGN_OR_RETURN(
          const PhasesDone done,
          phases_->Run(batch, job_.proto().train().seed(), step, epoch));
      records = done.records;
    } else if (shards_ != nullptr) {
      records = batch.whole;
      SetRate(step, epoch);
      PD_RETURN_IF_ERROR(
          shards_->Run(batch, job_.proto().train().seed(), step).status());
    } else {
      PD_RETURN_IF_ERROR(RunWhole(batch, step, epoch));
    }
    PD_RETURN_IF_ERROR(copies_.Run(step + 1));
    return profiler_->Step(records);
  }

  void SetRate(int64_t step, int64_t epoch) {
    if (rate_ != nullptr)
      *rate_->data<float>() = static_cast<float>(program_.rate(step, epoch));
  }

  // A signal that any of the processes has got ends the loop in all of them.
  absl::StatusOr<int> StopSignal() {
    int32_t signal = options_.stop != nullptr ? options_.stop() : 0;
    if (Processes() != nullptr)
      PD_RETURN_IF_ERROR(Processes()->all().AllReduce(
          Reduction::kMax, DType::kInt32, 1, &signal, &signal));
    return signal;
  }

  const World* Processes() const { return session_.registry().world(); }

  absl::Status RunWhole(const Batch& batch, int64_t step, int64_t epoch) {
    PD_ASSIGN_OR_RETURN(Plan * plan, plans_->Feed(batch.fields));
    SetRate(step, epoch);
    RunContext context;
    context.seed = job_.proto().train().seed();
    context.step = static_cast<uint64_t>(step);
    return plan->Run(context, profiler_->HookFor(*plan));
  }

  const LoadedJob& job_;
  const ProfileRunOptions& options_;
  Profiler* profiler_;
  Session session_;
  TrainProgram program_;
  RunVocabularies vocabularies_;
  std::unique_ptr<Loader> loader_;
  std::optional<PlanCache> plans_;
  std::optional<PhaseRunner> phases_;    // in place of plans_
  std::unique_ptr<ShardRunner> shards_;  // likewise
  CopyRunner copies_;
  Tensor* rate_ = nullptr;
};

// Records in a step: the first extent that the feeds agree on, else 1.
int64_t RecordsOf(const std::vector<FeedSpec>& feeds) {
  int64_t records = 0;
  for (const FeedSpec& feed : feeds) {
    const int64_t first = feed.shape.empty() ? 1 : feed.shape[0];
    if (records != 0 && records != first) return 1;
    records = first;
  }
  return records > 0 ? records : 1;
}

}  // namespace

absl::StatusOr<ProfileRunEnd> ProfileTraining(const OpRegistry& registry,
                                              const LoadedJob& job,
                                              const ProfileRunOptions& options,
                                              Profiler* profiler) {
  return TrainingLoop(registry, job, options, profiler).Run();
}

absl::StatusOr<ProfileRunEnd> ProfileInference(const OpRegistry& registry,
                                               const LoadedModel& model,
                                               const NamedArrays& feeds,
                                               const ProfileRunOptions& options,
                                               Profiler* profiler) {
  Session session(&registry, options.seed);
  session.set_pass_options(options.passes);
  session.set_plan_options(InferencePlans());
  PD_RETURN_IF_ERROR(FillScope(model, &session.scope()));
  std::vector<FeedSpec> specs;
  for (const std::string& name : model.feeds) {
    const auto fed = feeds.find(name);
    if (fed == feeds.end())
      return NotFound("input '%s' of '%s' is no array of the feed", name,
                      model.path);
    specs.push_back(
        {name, fed->second.dtype, fed->second.shape, fed->second.lod});
  }
  PD_ASSIGN_OR_RETURN(auto plan,
                      session.Compile(model.program, specs, model.fetches));
  for (size_t i = 0; i < specs.size(); ++i)
    plan->SetFeed(i, feeds.at(specs[i].name).bytes.get());
  const int64_t records = RecordsOf(specs);
  RunContext context;
  context.seed = options.seed;
  ProfileRunEnd end;
  PD_RETURN_IF_ERROR(profiler->Start());
  absl::Status status;
  while (status.ok() && end.steps < options.steps && end.stopped_by == 0) {
    status = plan->Run(context, profiler->HookFor(*plan));
    if (status.ok()) status = profiler->Step(records);
    if (status.ok()) ++end.steps;
    if (options.stop != nullptr) end.stopped_by = options.stop();
  }
  PD_RETURN_IF_ERROR(FirstError(status, profiler->Finish()));
  return end;
}

}  // namespace pd
