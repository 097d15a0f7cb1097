// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/trainer.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/experience.h"
#include "libcore/data/loader.h"
#include "libcore/dist/world.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/data_fit.h"
#include "libcore/train/heads.h"
#include "libcore/train/job_amp.h"
#include "libcore/train/monitors.h"
#include "libcore/train/open_data.h"
#include "libcore/train/open_networks.h"
#include "libcore/train/policy.h"
#include "libcore/train/resume_checkpoint.h"
#include "libcore/train/resumed_job.h"
#include "libcore/train/run_log.h"
#include "libcore/train/run_vocabularies.h"
#include "libcore/train/state_exchange.h"
#include "libcore/train/take_checkpoint.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

// Whether something that is due every `every` (0: never) is due at `now`.
bool Due(int64_t every, int64_t now) { return every > 0 && now % every == 0; }

}  // namespace

class Trainer::Impl {
 public:
  Impl(const OpRegistry* registry, const LoadedJob& job,
       const TrainerOptions& options, TrainObserver* observer)
      : job_(job),
        train_(job.proto().train()),
        options_(options),
        observer_(observer),
        monitors_(job),
        session_(registry, train_.seed()) {
    session_.set_pass_options(options.passes);
  }

  absl::Status Prepare();
  absl::StatusOr<TrainOutcome> Run();

 private:
  absl::Status OpenData();
  absl::Status AttachPolicies();
  absl::Status SetInitialValues();
  StepRunnerOptions RunnerOptions();
  absl::Status ReportSkipped(const BadRecords& bad, absl::string_view set,
                             int64_t epoch);
  BadRecords TrainSkipped() const {
    return AllSkipped(loader_->dataset(), loader_->skipped());
  }

  absl::StatusOr<std::string> CheckpointToResume() const;
  absl::Status TakeRun();
  absl::Status OpenRun();

  // The processes that train together; null: this one alone. All hold the same
  // state, so that each decides the same; rank 0 writes.
  const World* world() const { return session_.registry().world(); }
  bool writes() const { return !options_.read_only && Leads(world()); }
  // How they divide the update; null: they do not.
  const ShardedUpdate* sharding() const {
    return program_.shards.has_value() && program_.shards->sharding.has_value()
               ? &*program_.shards->sharding
               : nullptr;
  }
  absl::StatusOr<bool> DueByTime();
  absl::StatusOr<int> StopSignal();
  absl::Status ShareEvaluation();

  absl::Status RunEpoch();
  absl::Status Step(const Batch& batch);
  absl::Status TakeStep(const StepReport& report);
  absl::Status AfterStep();
  absl::Status StopBySignal();
  absl::Status AfterEpoch();
  absl::Status Evaluate(bool planned = true);
  absl::Status RunEvaluator();
  absl::Status Save();
  absl::Status Log(const std::string& line);
  absl::Status Finish();
  bool ReachedLimit() const;

  const LoadedJob job_;
  const job::Train& train_;
  const TrainerOptions options_;
  TrainObserver* observer_;
  const Monitors monitors_;
  TrainProgram program_;
  Session session_;
  RunVocabularies vocabularies_;
  std::unique_ptr<Loader> loader_, eval_loader_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<RunLog> log_;
  std::optional<StepRunner> runner_;
  std::unique_ptr<Policy> policy_, eval_policy_;
  ResumedChanges changes_;
  TrainState state_;
  TrainOutcome outcome_;
  int64_t saved_step_ = -1;
  double saved_at_ = 0;
  bool stop_ = false;
  bool best_ = false;  // this state is the best so far
};

absl::Status Trainer::Impl::Prepare() {
  if (options_.resume && !options_.read_only && CheckpointToResume().ok()) {
    PD_ASSIGN_OR_RETURN(
        changes_, ChangesSince(options_.run, job_, options_.weights_only));
  }
  PD_ASSIGN_OR_RETURN(program_, BuildTrainProgram(session_.registry(), job_));
  if (options_.guard != nullptr && program_.shards.has_value())
    return job_.At(Unimplemented("the search for NaN and Inf "
                                 "(--check-nan-inf) does not follow shards"),
                   job_.proto().distributed());
  if (options_.guard != nullptr && program_.newton.has_value())
    return job_.At(Unimplemented("the search for NaN and Inf "
                                 "(--check-nan-inf) does not follow the steps "
                                 "of quasi-Newton methods"),
                   job_.proto().optimizer());
  PD_RETURN_IF_ERROR(OpenData());  // may go on loading in the background
  if (options_.guard != nullptr && loader_->dataset().experience() != nullptr)
    return job_.At(InvalidArgument("what a network does in environments cannot "
                                   "be repeated, as the check for NaN and Inf "
                                   "does (--check-nan-inf)"),
                   job_.proto().data().train(), "environment");
  PD_RETURN_IF_ERROR(CheckDataFits(job_, program_, *loader_, "train"));
  if (eval_loader_ != nullptr)
    PD_RETURN_IF_ERROR(CheckDataFits(job_, program_, *eval_loader_, "eval"));
  state_.seed = train_.seed();
  runner_.emplace(RunnerOptions());
  PD_RETURN_IF_ERROR(TakeRun());
  PD_RETURN_IF_ERROR(SetInitialValues());
  outcome_.nothing_left = state_.done && ReachedLimit();
  if (!outcome_.nothing_left) ForgetChanged(changes_, &state_);
  monitors_.Begin(program_.rate(0, 0), options_.weights_only, &state_);
  if (writes()) PD_RETURN_IF_ERROR(OpenRun());
  PD_ASSIGN_OR_RETURN(const auto amp, AmpOf(job_));
  if (amp.has_value())
    WarnOfSlowHalves(session_.registry(), amp->precision.dtype);
  PD_RETURN_IF_ERROR(runner_->Prepare(state_.seed));
  PD_RETURN_IF_ERROR(AttachPolicies());
  if (eval_loader_ != nullptr) {
    EvaluationSpec spec;
    spec.program = program_.test;
    spec.feeds = program_.feeds;
    spec.loss = program_.test_loss;
    spec.metrics = program_.metrics;
    spec.heads = HeadsOf(program_);
    spec.label = "eval";
    spec.observer = observer_->BatchObserver();
    if (spec.observer != nullptr) spec.outputs = program_.outputs;
    spec.guard = options_.guard;
    PD_ASSIGN_OR_RETURN(
        evaluator_,
        Evaluator::Create(&session_, eval_loader_.get(), std::move(spec)));
  }
  return observer_->OnStart({&job_, &program_, &session_, loader_.get(),
                             eval_loader_.get(), options_.run, state_.step});
}

absl::Status Trainer::Impl::TakeRun() {
  if (writes()) {
    PD_RETURN_IF_ERROR(MakeDirectories(options_.run));
    PD_ASSIGN_OR_RETURN(lock_, FolderLock::Take(options_.run));
    RemoveRemainsOfRun(options_.run);
  }
  // The others read what is there now.
  return world() == nullptr ? absl::OkStatus() : world()->all().Barrier();
}

// A finished run is not written to.
absl::Status Trainer::Impl::OpenRun() {
  if (outcome_.nothing_left)
    return KeepJobAtEnd(options_.run, state_.step, changes_);
  ReportChanges(changes_);
  for (const std::string& text : WarningsOf(job_, program_, *loader_))
    LogWarning("%s", text);
  PD_RETURN_IF_ERROR(vocabularies_.Write(options_.run));
  PD_RETURN_IF_ERROR(KeepNetworks(job_, options_.run));
  PD_RETURN_IF_ERROR(WriteFile(absl::StrCat(options_.run, "/job.pbtxt"),
                               job_.EffectiveText()));
  PD_ASSIGN_OR_RETURN(log_, RunLog::Open(options_.run, state_.log_bytes));
  if (changes_.rates.empty()) return absl::OkStatus();
  return Log(ChangesLine(state_.step, state_.epoch + 1, changes_.rates));
}

absl::StatusOr<std::string> Trainer::Impl::CheckpointToResume() const {
  if (options_.from_step >= 0)
    return CheckpointPath(options_.run, options_.from_step);
  if (options_.run.empty()) return NotFound("there is no run");
  return NewestCheckpoint(options_.run);
}

absl::Status Trainer::Impl::OpenData() {
  const job::Data& data = job_.proto().data();
  // A resumed run keeps its vocabularies: the numbers of its words.
  if (options_.resume && CheckpointToResume().ok())
    vocabularies_ = RunVocabularies(options_.run);
  OwnData own;
  if (program_.shards.has_value()) {
    PD_ASSIGN_OR_RETURN(own, OwnData::ShardsOf(job_, world()));
  }
  PD_ASSIGN_OR_RETURN(loader_, OpenLoader(job_, data.train(), train_.seed(),
                                          &vocabularies_, own));
  loader_->set_interrupted([this] { return observer_->StopSignal() != 0; });
  if (data.has_eval()) {
    PD_ASSIGN_OR_RETURN(
        eval_loader_, OpenLoader(job_, data.eval(), train_.seed(),
                                 &vocabularies_, OwnData::BatchesOf(world())));
  }
  return absl::OkStatus();
}

absl::Status Trainer::Impl::AttachPolicies() {
  const job::Data& data = job_.proto().data();
  PD_ASSIGN_OR_RETURN(policy_, Policy::Attach(job_, data.train(), program_,
                                              &session_, loader_.get()));
  if (eval_loader_ == nullptr) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(eval_policy_,
                      Policy::Attach(job_, data.eval(), program_, &session_,
                                     eval_loader_.get()));
  return absl::OkStatus();
}

absl::Status Trainer::Impl::SetInitialValues() {
  const absl::StatusOr<std::string> newest = CheckpointToResume();
  if (newest.ok() && !options_.resume)
    return AlreadyExists(
        "'%s' holds checkpoints: --resume goes on from the newest, another "
        "--out starts anew",
        options_.run);
  PD_RETURN_IF_ERROR(SetFirstValues(program_, &session_));
  // A run that goes on has its values, and may outlive the files of its job.
  if (!newest.ok())
    PD_RETURN_IF_ERROR(SetInitialParameters(
        program_,
        options_.init.empty() ? InitialParametersOf(job_) : options_.init,
        loader_->dataset().vocabularies(), &session_));
  if (newest.ok()) {
    PD_ASSIGN_OR_RETURN(state_, ResumeFrom(program_, *newest,
                                           {train_.seed(), options_.threads,
                                            options_.weights_only,
                                            loader_->dataset().experience()},
                                           &session_));
    saved_step_ = state_.step;
    outcome_.checkpoint = *newest;
    return absl::OkStatus();
  }
  if (newest.status().code() != absl::StatusCode::kNotFound)
    return newest.status();
  return program_.initial_copies.has_value()
             ? session_.RunOnce(*program_.initial_copies, "copies")
             : absl::OkStatus();
}

StepRunnerOptions Trainer::Impl::RunnerOptions() {
  StepRunnerOptions runner;
  runner.session = &session_;
  runner.program = &program_;
  runner.loader = loader_.get();
  runner.guard = options_.guard;
  runner.rate = [this](StepPosition at) {
    return monitors_.Rate(state_).value_or(program_.rate(at.step, at.epoch));
  };
  runner.on_step = [this](const StepReport& report) {
    return TakeStep(report);
  };
  runner.on_plan = [this](int64_t records, const Plan& plan) {
    observer_->OnPlan(records, plan);
  };
  return runner;
}

bool Trainer::Impl::ReachedLimit() const {
  return (train_.steps() > 0 && state_.step >= train_.steps()) ||
         state_.epoch >= train_.epochs() || monitors_.Stops(state_);
}

absl::StatusOr<TrainOutcome> Trainer::Impl::Run() {
  outcome_.steps = state_.step;
  outcome_.best = monitors_.Best(state_);
  if (outcome_.nothing_left) return outcome_;
  state_.done = false;
  const double begin = saved_at_ = SteadySeconds();
  while (!ReachedLimit() && !stop_) PD_RETURN_IF_ERROR(RunEpoch());
  if (!stop_) PD_RETURN_IF_ERROR(Finish());
  if (!stop_ && monitors_.Stops(state_))
    outcome_.stopped_early = monitors_.StopReason(state_);
  outcome_.steps = state_.step;
  outcome_.best = monitors_.Best(state_);
  outcome_.seconds = SteadySeconds() - begin;
  outcome_.wait_seconds = loader_->stats().wait_seconds;
  outcome_.exchange_seconds = runner_->exchange_seconds();
  outcome_.communication_seconds = runner_->communication_seconds();
  PD_ASSIGN_OR_RETURN(outcome_.held, runner_->Held());
  return outcome_;
}

absl::Status Trainer::Impl::RunEpoch() {
  const bool inside = state_.batch > 0 && (loader_->batches() == 0 ||
                                           state_.batch < loader_->batches());
  if (inside && policy_ != nullptr)
    LogWarning(
        "the run was stopped inside epoch %d and its environments begin new "
        "episodes: it does not go on to the bits of one that was not stopped",
        state_.epoch + 1);
  PD_RETURN_IF_ERROR(loader_->StartEpoch(state_.epoch, state_.batch));
  const auto no_batch = [this] {
    return InvalidArgument("the training set gives no batch of %d records",
                           job_.proto().data().train().batch_size());
  };
  if (loader_->batches() == 0 && !loader_->is_stream()) return no_batch();
  if (loader_->is_stream() && program_.batches_per_step > 1)
    return job_.At(
        InvalidArgument("the phases of one step draw %d batches, of records "
                        "whose number is not known before they end; give every "
                        "phase 'new_batch: false'",
                        program_.batches_per_step),
        job_.proto().phase(0));
  if (!loader_->is_stream() && loader_->batches() < program_.batches_per_step)
    return InvalidArgument(
        "the training set gives %d batches of %d records; the phases of one "
        "step draw %d",
        loader_->batches(), job_.proto().data().train().batch_size(),
        program_.batches_per_step);
  observer_->OnEpoch(state_.epoch, train_.epochs(), loader_->batches(),
                     state_.batch);
  for (;;) {
    const absl::StatusOr<const Batch*> next = loader_->Next();
    if (absl::IsCancelled(next.status()) && observer_->StopSignal() != 0) {
      outcome_.stopped_by = observer_->StopSignal();
      return StopBySignal();
    }
    PD_ASSIGN_OR_RETURN(const Batch* batch, next);
    if (loader_->is_stream() && batch == nullptr && state_.batch == 0)
      return no_batch();
    // Null before the last batch: none of the rest could be read, or a stream
    // has ended.
    if (batch != nullptr) PD_RETURN_IF_ERROR(Step(*batch));
    const bool last =
        batch == nullptr ||
        (!loader_->is_stream() &&
         state_.batch + program_.batches_per_step > loader_->batches());
    if (last) {
      PD_RETURN_IF_ERROR(
          ReportSkipped(TrainSkipped(), "train", state_.epoch + 1));
      PD_RETURN_IF_ERROR(AfterEpoch());
    }
    PD_RETURN_IF_ERROR(AfterStep());
    if (stop_ || last || ReachedLimit()) return absl::OkStatus();
  }
}

absl::Status Trainer::Impl::Step(const Batch& batch) {
  const bool gradients = program_.phases.empty() &&
                         !program_.shards.has_value() &&
                         !program_.newton.has_value() &&
                         observer_->WantsGradients(state_.step + 1);
  PD_RETURN_IF_ERROR(
      runner_->Run(batch, {state_.step, state_.epoch}, gradients));
  ++state_.step;
  state_.batch = runner_->batches_done();
  if (gradients) observer_->OnGradients(state_.step, runner_->Gradients());
  return absl::OkStatus();
}

absl::Status Trainer::Impl::TakeStep(const StepReport& report) {
  state_.loss_sum +=
      static_cast<double>(report.loss) * static_cast<double>(report.records);
  state_.loss_records += report.records;
  outcome_.records += report.records;
  observer_->OnStep(report);
  if (!Due(train_.log().every_steps(), report.step)) return absl::OkStatus();
  return Log(StepLine(report));
}

// All evaluations of a step come before its checkpoint (AfterStep), so that a
// checkpoint knows what they gave.
absl::Status Trainer::Impl::AfterEpoch() {
  PD_RETURN_IF_ERROR(runner_->Complete());
  runner_->ForgetCopies();
  ++state_.epoch;
  state_.batch = 0;
  const double mean =
      state_.loss_sum / static_cast<double>(state_.loss_records);
  PD_RETURN_IF_ERROR(
      Log(EpochLine(state_.step, state_.epoch, state_.loss_records, mean,
                    loader_->dataset().experience())));
  best_ |= monitors_.OnEpoch(mean, &state_);
  state_.loss_sum = 0;
  state_.loss_records = 0;
  if (Due(train_.evaluation().every_epochs(), state_.epoch)) return Evaluate();
  return absl::OkStatus();
}

absl::Status Trainer::Impl::AfterStep() {
  if (Due(train_.evaluation().every_steps(), state_.step))
    PD_RETURN_IF_ERROR(Evaluate());
  const job::Checkpoint& when = train_.checkpoint();
  const bool epoch_done = state_.batch == 0;
  PD_ASSIGN_OR_RETURN(const bool by_time, DueByTime());
  if (best_ || by_time || Due(when.every_steps(), state_.step) ||
      (epoch_done && Due(when.every_epochs(), state_.epoch)))
    PD_RETURN_IF_ERROR(Save());
  PD_RETURN_IF_ERROR(observer_->Failure());
  PD_ASSIGN_OR_RETURN(outcome_.stopped_by, StopSignal());
  return outcome_.stopped_by == 0 ? absl::OkStatus() : StopBySignal();
}

// Clocks differ; where all processes work at a checkpoint, all begin it.
absl::StatusOr<bool> Trainer::Impl::DueByTime() {
  const double minutes = train_.checkpoint().every_minutes();
  if (minutes <= 0) return false;
  int32_t due = (SteadySeconds() - saved_at_) / 60 >= minutes ? 1 : 0;
  if (sharding() != nullptr)  // by the clock of the process that writes
    PD_RETURN_IF_ERROR(world()->all().Broadcast(0, &due, sizeof(due)));
  return due != 0;
}

// A signal that any of the processes has got: they stop after the same step.
absl::StatusOr<int> Trainer::Impl::StopSignal() {
  int32_t signal = observer_->StopSignal();
  if (world() != nullptr)
    PD_RETURN_IF_ERROR(world()->all().AllReduce(Reduction::kMax, DType::kInt32,
                                                1, &signal, &signal));
  return signal;
}

absl::Status Trainer::Impl::StopBySignal() {
  stop_ = true;
  return Save();
}

// Says which records were left out of the epoch that ended.
absl::Status Trainer::Impl::ReportSkipped(const BadRecords& bad,
                                          absl::string_view set,
                                          int64_t epoch) {
  if (bad.count == 0) return absl::OkStatus();
  LogWarning("%s", SkippedText(bad, set));
  return Log(SkippedLine(state_.step, epoch, bad, set));
}

absl::Status Trainer::Impl::Evaluate(bool planned) {
  PD_RETURN_IF_ERROR(runner_->Complete());
  if (evaluator_ == nullptr || state_.evaluated_step == state_.step)
    return absl::OkStatus();
  runner_->ForgetCopies();
  PD_RETURN_IF_ERROR(RunEvaluator());
  state_.evaluated_step = state_.step;
  PD_RETURN_IF_ERROR(
      Log(EvaluationLine(state_.step, state_.epoch, outcome_.evaluation)));
  observer_->OnEvaluation(state_.step, outcome_.evaluation);
  best_ |= monitors_.OnEvaluation(outcome_.evaluation, planned, &state_);
  return absl::OkStatus();
}

absl::Status Trainer::Impl::RunEvaluator() {
  const auto progress = [&](int64_t batches, int64_t) {
    observer_->OnEvaluationStep(batches, eval_loader_->batches());
    return true;
  };
  const bool averaged = program_.averages.has_value() && state_.step > 0;
  if (averaged)
    PD_RETURN_IF_ERROR(
        session_.RunOnce(program_.averages->apply, "apply_averages"));
  auto evaluation = evaluator_->Run(false, progress);
  if (averaged)
    PD_RETURN_IF_ERROR(
        session_.RunOnce(program_.averages->restore, "restore_averages"));
  PD_RETURN_IF_ERROR(evaluation.status());
  outcome_.evaluation = *std::move(evaluation);
  if (Leads(world()))
    PD_RETURN_IF_ERROR(ReportSkipped(
        AllSkipped(eval_loader_->dataset(), outcome_.evaluation.left_out),
        "eval", state_.epoch));
  return ShareEvaluation();
}

// All processes decide by the numbers of an evaluation: they are rank 0's.
absl::Status Trainer::Impl::ShareEvaluation() {
  if (world() == nullptr) return absl::OkStatus();
  EvaluationResult& result = outcome_.evaluation;
  std::vector<double> numbers = {result.loss.value_or(0)};
  for (const auto& [name, value] : result.metrics) numbers.push_back(value);
  PD_RETURN_IF_ERROR(world()->all().Broadcast(0, numbers.data(),
                                              numbers.size() * sizeof(double)));
  if (result.loss.has_value()) result.loss = numbers[0];
  size_t i = 1;
  for (auto& [name, value] : result.metrics) value = numbers[i++];
  return absl::OkStatus();
}

absl::Status Trainer::Impl::Save() {
  PD_RETURN_IF_ERROR(runner_->Complete());
  if (saved_step_ == state_.step || options_.read_only) return absl::OkStatus();
  best_ = false;
  saved_step_ = state_.step;
  saved_at_ = SteadySeconds();
  NamedArrays of_others;
  if (sharding() != nullptr) {
    PD_ASSIGN_OR_RETURN(of_others,
                        GatherAtFirst(sharding()->states, program_.main,
                                      session_.scope(), world()->all()));
  }
  if (!writes()) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(state_.log_bytes, log_->Sync());
  state_.threads = options_.threads;
  PD_ASSIGN_OR_RETURN(
      Checkpoint checkpoint,
      TakeCheckpoint(job_, program_, state_, session_.scope(), of_others));
  if (const Experience* experience = loader_->dataset().experience())
    checkpoint.experience = experience->ToArrays();
  PD_RETURN_IF_ERROR(WriteCheckpoint(options_.run, checkpoint,
                                     train_.checkpoint().keep_last()));
  saved_at_ = SteadySeconds();
  outcome_.checkpoint = CheckpointPath(options_.run, state_.step);
  observer_->OnCheckpoint(outcome_.checkpoint);
  return absl::OkStatus();
}

absl::Status Trainer::Impl::Log(const std::string& line) {
  observer_->OnLog(line);
  return log_ == nullptr ? absl::OkStatus() : log_->Append(line);
}

absl::Status Trainer::Impl::Finish() {
  if (state_.batch > 0)  // train.steps ended it inside an epoch
    PD_RETURN_IF_ERROR(
        ReportSkipped(TrainSkipped(), "train", state_.epoch + 1));
  PD_RETURN_IF_ERROR(Evaluate(/*planned=*/false));
  // Evaluated and logged by the process that was stopped here.
  if (evaluator_ != nullptr && outcome_.evaluation.records == 0)
    PD_RETURN_IF_ERROR(RunEvaluator());
  state_.done = true;
  saved_step_ = -1;
  return Save();
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::~Trainer() = default;

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const OpRegistry* registry, const LoadedJob& job,
    const TrainerOptions& options, TrainObserver* observer) {
  auto impl = std::make_unique<Impl>(registry, job, options, observer);
  PD_RETURN_IF_ERROR(impl->Prepare());
  return std::unique_ptr<Trainer>(new Trainer(std::move(impl)));
}

absl::StatusOr<TrainOutcome> Trainer::Run() { return impl_->Run(); }

}  // namespace pd
