// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/shard_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/world.h"
#include "libcore/trace/recorder.h"

namespace pd {
namespace {

// Parts begin at multiples of a cache line, as kernels like their operands.
constexpr int64_t kAlignment = 16;

// The first bucket of gradients is small, in bytes, so that it goes out early.
constexpr int64_t kFirstBucket = int64_t{1} << 20;

// The seed of a shard's random numbers (the multiplier of SplitMix64).
uint64_t SeedOf(uint64_t seed, int64_t shard) {
  return seed ^ (static_cast<uint64_t>(shard + 1) * 0x9e3779b97f4a7c15ull);
}

}  // namespace

ShardRunner::ShardRunner(Session* session, const TrainProgram* program,
                         Loader* loader)
    : session_(session),
      training_(*program),
      program_(*program->shards),
      loader_(loader),
      processes_(session->registry().world() == nullptr
                     ? &alone_
                     : &session->registry().world()->all()),
      own_(ShardRange::Of(program_.shards, processes_->rank(),
                          processes_->size())) {}

absl::StatusOr<std::unique_ptr<ShardRunner>> ShardRunner::Create(
    Session* session, const TrainProgram* program, Loader* loader,
    const std::function<void(int64_t, const Plan&)>& on_plan) {
  std::unique_ptr<ShardRunner> runner(
      new ShardRunner(session, program, loader));
  const ShardPrograms& shards = runner->program_;
  if (runner->processes_->size() > shards.shards)
    return InvalidArgument(
        "%d processes cannot share %d shards (distributed.shards)",
        runner->processes_->size(), shards.shards);
  std::vector<std::string> fetches = {program->loss};
  for (const FeedSpec& gradient : shards.gradients)
    fetches.push_back(gradient.name);
  runner->MakeBuckets();
  const auto make = [&](const auto& told) {
    return PlanCache::Create(session, &shards.shard, program->feeds, fetches,
                             loader->fields(), "train", told);
  };
  PD_ASSIGN_OR_RETURN(PlanCache first, make(on_plan));
  runner->plans_ = std::make_unique<PlanCache>(std::move(first));
  if (!shards.together) return runner;
  runner->team_ =
      std::make_unique<ShardTeam>(shards.shards, runner->processes_);
  const ShardRange& own = runner->own_;
  runner->together_.resize(static_cast<size_t>(own.end - own.begin));
  for (Together& shard : runner->together_) {
    PD_ASSIGN_OR_RETURN(PlanCache plans, make(nullptr));
    shard.plans = std::make_unique<PlanCache>(std::move(plans));
    shard.values = runner->before_;
  }
  return runner;
}

absl::Status ShardRunner::Compile(const std::vector<BatchField>& fields) {
  PD_ASSIGN_OR_RETURN(const Plan* const plan, plans_->Feed(fields));
  if (team_ != nullptr && plan->place() != nullptr)
    return Unimplemented(
        "sync_batch_norm over shards is computed by the CPU alone");
  // The first plan settles the layouts of weights, which may choose others'
  // kernels: those of shards all find them settled, in any number of processes.
  for (Together& shard : together_)
    PD_RETURN_IF_ERROR(shard.plans->Feed(fields).status());
  if (update_ != nullptr) return absl::OkStatus();
  std::vector<size_t> buckets;
  for (const Part& gradient : gradients_) buckets.push_back(gradient.bucket);
  PD_ASSIGN_OR_RETURN(
      update_, UpdateRunner::Create(session_, &training_, processes_, buckets,
                                    means_.size(), timed_));
  update_->set_hooks(hooks_);
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i]->layout() != nullptr)
      return Unimplemented("'%s' has no plain layout", program_.statistics[i]);
  return absl::OkStatus();
}

// Backward makes the gradients of the last parameters first.
std::vector<std::vector<size_t>> ShardRunner::GradientsByBucket() const {
  const auto numbers = static_cast<int64_t>(sizeof(float));
  int64_t most = std::min(kFirstBucket, program_.bucket_bytes) / numbers;
  std::vector<std::vector<size_t>> buckets(1);
  int64_t filled = 0;
  for (size_t i = program_.gradients.size(); i-- > 0;) {
    if (program_.rows[i]) continue;
    const int64_t size = NumElements(program_.gradients[i].shape);
    if (filled > 0 && filled + size > most) {
      buckets.emplace_back();
      filled = 0;
      most = program_.bucket_bytes / numbers;
    }
    buckets.back().push_back(i);
    filled += size;
  }
  return buckets;
}

// In stage 2 of sharding the gradients of a bucket stand by their process,
// which gets no others. What is there after all gradients, statistics and the
// loss, is in the last bucket.
void ShardRunner::MakeBuckets() {
  const bool divided =
      program_.sharding.has_value() && program_.sharding->stage >= 2;
  std::vector<int64_t> counts;
  std::vector<std::vector<int64_t>> parts;
  const auto add = [&](int64_t size) {
    const Part part{counts.size() - 1, counts.back(), size};
    counts.back() += (size + kAlignment - 1) / kAlignment * kAlignment;
    return part;
  };
  gradients_.resize(program_.gradients.size());
  const auto own = static_cast<size_t>(processes_->rank());
  for (const std::vector<size_t>& bucket : GradientsByBucket()) {
    counts.push_back(0);
    parts.emplace_back();
    for (int rank = 0; rank < (divided ? processes_->size() : 1); ++rank) {
      if (divided) parts.back().push_back(counts.back());
      for (const size_t i : bucket)
        if (!divided || program_.sharding->owners[i].second == rank)
          gradients_[i] = add(NumElements(program_.gradients[i].shape));
    }
    if (divided) parts.back().push_back(counts.back());
    means_begin_.push_back(divided ? parts.back()[own] : 0);
  }
  if (divided) {
    counts.push_back(0);
    parts.emplace_back();
    means_begin_.push_back(0);
  }
  for (const std::string& name : program_.statistics) {
    Scope::Entry* entry = session_->scope().Find(name);
    PD_INVARIANT(entry != nullptr && entry->tensor.has_value());
    values_.push_back(&entry->tensor);
    statistics_.push_back(add(entry->tensor.size()));
    before_.emplace_back(static_cast<size_t>(entry->tensor.size()));
  }
  loss_part_ = add(2);  // and whether a process has failed
  // Rows travel behind the buckets.
  rows_.resize(program_.gradients.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!program_.rows[i]) continue;
    const Shape& shape = program_.gradients[i].shape;
    gradients_[i] = {loss_part_.bucket, 0, 0};
    rows_[i] = std::make_unique<RowSums>(program_.shards, shape[0],
                                         NumElements(shape, 1, shape.size()),
                                         processes_);
  }
  sums_ =
      std::make_unique<BucketSums>(program_.shards, counts, parts, processes_);
  leaves_.resize(counts.size());
  means_.resize(counts.size());
  timeline_.shards = program_.shards;
  for (const int64_t count : counts) timeline_.buckets.push_back({count, 0, 0});
}

void ShardRunner::set_hooks(HookOf hooks) {
  hooks_ = std::move(hooks);
  sums_->set_around([](size_t bucket, const std::function<void()>& travel) {
    Recorder::NameThisThread("communication");
    const RecordEvent event(absl::StrCat("allreduce bucket ", bucket),
                            EventType::kCommunication);
    travel();
  });
}

// Gives buckets away as the run of a plan fills them; `inner`, which may be
// null, sees the steps as well.
class ShardRunner::LastShard : public StepHook {
 public:
  LastShard(ShardRunner* runner, const Plan& plan, StepHook* inner)
      : runner_(runner),
        plan_(plan),
        inner_(inner),
        left_(runner->leaves_.size(), 0) {
    std::unordered_map<const Tensor*, size_t> gradients;
    for (size_t i = 0; i < runner->gradients_.size(); ++i) {
      gradients[plan.ValueOf(&plan.fetch(i + 1))] = i;
      ++left_[runner->gradients_[i].bucket];
    }
    ++left_.back();  // the loss comes when all is done
    // The last step that writes a gradient makes it.
    makes_.resize(plan.steps().size());
    for (size_t step = makes_.size(); step-- > 0;)
      for (const auto& [name, tensor] : plan.variables(step).outputs) {
        const auto gradient = gradients.find(plan.ValueOf(tensor));
        if (gradient == gradients.end()) continue;
        makes_[step].push_back(gradient->second);
        gradients.erase(gradient);
      }
    for (const auto& [tensor, gradient] : gradients) rest_.push_back(gradient);
  }

  void Before(size_t step) override {
    if (inner_ != nullptr) inner_->Before(step);
  }
  absl::Status After(size_t step) override {
    if (inner_ != nullptr) PD_RETURN_IF_ERROR(inner_->After(step));
    for (const size_t gradient : makes_[step]) Take(gradient);
    return absl::OkStatus();
  }
  // Gradients that no step is known to make.
  void TakeRest() {
    for (const size_t gradient : rest_) Take(gradient);
  }

 private:
  void Take(size_t gradient) {
    runner_->TakeGradient(plan_, gradient);
    const size_t bucket = runner_->gradients_[gradient].bucket;
    if (--left_[bucket] == 0) runner_->Add(bucket, true);
  }

  ShardRunner* const runner_;
  const Plan& plan_;
  StepHook* const inner_;
  std::vector<int> left_;                   // gradients, by bucket
  std::vector<std::vector<size_t>> makes_;  // gradients, by step
  std::vector<size_t> rest_;
};

void ShardRunner::Take(const float* from, const Part& part) {
  float* to = leaves_[part.bucket] + part.begin;
  for (int64_t i = 0; i < part.size; ++i) to[i] = from[i] * weight_;
}

void ShardRunner::TakeGradient(const Plan& plan, size_t i) {
  const Tensor& gradient = plan.fetch(i + 1);
  if (rows_[i] == nullptr) return Take(gradient.data<float>(), gradients_[i]);
  rows_[i]->Add(gradient.rows().data(),
                static_cast<int64_t>(gradient.rows().size()),
                gradient.data<float>(), weight_);
}

void ShardRunner::Add(size_t bucket, bool present) {
  leaves_[bucket] = nullptr;
  if (timed_) timeline_.buckets[bucket].full = SteadySeconds() - shard_begin_;
  sums_->Add(bucket, present);
}

// The shard at hand has no records.
void ShardRunner::AddNone() {
  for (size_t bucket = 0; bucket < leaves_.size(); ++bucket) Add(bucket, false);
  for (const auto& rows : rows_)
    if (rows != nullptr) rows->AddNone();
}

// The buckets that are not full. Those of a process that has failed go out all
// the same, since the others wait for them, and say so.
void ShardRunner::AddRest(bool failed) {
  for (size_t bucket = 0; bucket < leaves_.size(); ++bucket) {
    if (leaves_[bucket] == nullptr) continue;
    if (failed && bucket == loss_part_.bucket)
      leaves_[bucket][loss_part_.begin + 1] = 1;
    Add(bucket, true);
  }
}

absl::Status ShardRunner::RunShard(const Batch& shard, RunContext context) {
  context.seed = SeedOf(context.seed, shard.shard);
  for (size_t i = 0; i < values_.size(); ++i)
    std::copy(before_[i].begin(), before_[i].end(), values_[i]->data<float>());
  PD_ASSIGN_OR_RETURN(Plan * plan, plans_->Feed(shard.fields));
  SetWeight(shard);
  // On a GPU gradients come to the host when all is done.
  shard_begin_ = SteadySeconds();
  if (shard.shard + 1 == own_.end && (processes_->size() > 1 || timed_) &&
      plan->place() == nullptr) {
    LastShard last(this, *plan, HookFor(*plan));
    PD_RETURN_IF_ERROR(plan->Run(context, &last));
    last.TakeRest();
  } else {
    PD_RETURN_IF_ERROR(plan->Run(context, HookFor(*plan)));
    for (size_t i = 0; i < gradients_.size(); ++i) TakeGradient(*plan, i);
  }
  TakeResults(*plan);
  timeline_.shard = SteadySeconds() - shard_begin_;
  return absl::OkStatus();
}

// A mean over the batch is one over records.
void ShardRunner::SetWeight(const Batch& shard) {
  weight_ = static_cast<float>(static_cast<double>(shard.size) /
                               static_cast<double>(shard.whole));
}

// The loss and the statistics.
void ShardRunner::TakeResults(const Plan& plan) {
  const float loss[] = {*plan.fetch(0).data<float>(), 0};
  Take(loss, loss_part_);
  for (size_t i = 0; i < statistics_.size(); ++i)
    Take(values_[i]->data<float>(), statistics_[i]);
}

// The shards of this process, from `batch` on. With the last one, failed or
// not, all buckets are handed out.
absl::Status ShardRunner::RunShards(const Batch& batch,
                                    const RunContext& context,
                                    bool* handed_out) {
  const Batch* at = &batch;
  const int64_t index = batch.index;
  for (int64_t shard = own_.begin; shard < own_.end; ++shard) {
    if (shard > own_.begin) {
      PD_ASSIGN_OR_RETURN(at, loader_->Next());
    }
    PD_INVARIANT(at != nullptr && at->index == index && at->shard == shard);
    for (size_t bucket = 0; bucket < leaves_.size(); ++bucket)
      leaves_[bucket] = sums_->NextShard(bucket);
    *handed_out = shard + 1 == own_.end;
    if (at->size == 0) {
      AddNone();
      continue;
    }
    const absl::Status ran = RunShard(*at, context);
    if (ran.ok() || *handed_out) AddRest(!ran.ok());
    if (!ran.ok()) return Annotate(ran, absl::StrCat("shard ", shard));
  }
  return absl::OkStatus();
}

// The loader gives its next shard in the place of this one.
absl::Status ShardRunner::KeepBatch(const Batch& batch, Together* shard) {
  shard->batch = batch;
  shard->fields.resize(batch.fields.size());
  for (size_t i = 0; i < batch.fields.size(); ++i) {
    BatchField& field = shard->batch.fields[i];
    Tensor& kept = shard->fields[i];
    // The bits of some kernels depend on how their operands are aligned.
    if (!kept.has_value() || kept.dtype() != field.dtype ||
        kept.shape() != field.shape) {
      kept.Reset(field.dtype, field.shape);
      PD_RETURN_IF_ERROR(kept.Allocate());
    }
    if (field.data == nullptr) continue;
    std::memcpy(kept.raw(), field.data, kept.bytes());
    field.data = kept.data<std::byte>();
  }
  return absl::OkStatus();
}

// Shards share the variables, so each finds its own statistics there when it
// goes on.
absl::Status ShardRunner::ComputeTogether(const RunContext& context) {
  const auto of = [this](int64_t shard) -> Together& {
    return together_[static_cast<size_t>(shard - own_.begin)];
  };
  ShardTurns turns;
  turns.run = [&](int64_t number, const World& shards) {
    RunContext own = context;
    own.seed = SeedOf(context.seed, number);
    own.world = &shards;
    return Annotate(of(number).plan->Run(own), absl::StrCat("shard ", number));
  };
  // In a profile turns stand for the operators in them: those of one shard go
  // on while others compute, so that their times would count twice.
  std::optional<RecordEvent> turn;
  turns.enter = [&](int64_t number) {
    turn.emplace("turn of a shard", EventType::kOperator);
    for (size_t i = 0; i < values_.size(); ++i)
      std::copy_n(of(number).values[i].begin(), values_[i]->size(),
                  values_[i]->data<float>());
  };
  turns.leave = [&](int64_t number) {
    for (size_t i = 0; i < values_.size(); ++i)
      std::copy_n(values_[i]->data<float>(), values_[i]->size(),
                  of(number).values[i].begin());
    turn.reset();
  };
  if (processes_->size() > 1)
    turns.around = [](const std::function<void()>& exchange) {
      const RecordEvent event("exchange of shards", EventType::kCommunication);
      exchange();
    };
  std::vector<int64_t> records;
  for (Together& shard : together_) {
    records.push_back(shard.batch.size);
    shard.values = before_;
    if (shard.batch.size == 0) continue;
    PD_ASSIGN_OR_RETURN(shard.plan, shard.plans->Feed(shard.batch.fields));
  }
  return team_->Run(records, turns);
}

// All shards of this process at once. Their gradients travel when all are
// there; where a shard has failed, all processes know it.
absl::Status ShardRunner::RunTogether(const Batch& batch,
                                      const RunContext& context,
                                      bool* handed_out) {
  const Batch* at = &batch;
  const int64_t index = batch.index;
  for (Together& shard : together_) {
    if (&shard != &together_.front()) {
      PD_ASSIGN_OR_RETURN(at, loader_->Next());
    }
    PD_INVARIANT(at != nullptr && at->index == index);
    PD_RETURN_IF_ERROR(KeepBatch(*at, &shard));
  }
  const double begin = SteadySeconds();
  PD_RETURN_IF_ERROR(ComputeTogether(context));
  // For the timeline, as if one shard had followed the other.
  const double end = SteadySeconds();
  timeline_.shard = (end - begin) / static_cast<double>(together_.size());
  shard_begin_ = end - timeline_.shard;
  for (const Together& shard : together_) {
    for (size_t bucket = 0; bucket < leaves_.size(); ++bucket)
      leaves_[bucket] = sums_->NextShard(bucket);
    if (shard.batch.size == 0) {
      AddNone();
      continue;
    }
    SetWeight(shard.batch);
    for (size_t i = 0; i < gradients_.size(); ++i) TakeGradient(*shard.plan, i);
    for (size_t i = 0; i < values_.size(); ++i)
      std::copy_n(shard.values[i].begin(), values_[i]->size(),
                  values_[i]->data<float>());
    TakeResults(*shard.plan);
    AddRest(false);
  }
  *handed_out = true;
  return absl::OkStatus();
}

absl::StatusOr<float> ShardRunner::Run(const Batch& batch, uint64_t seed,
                                       int64_t step) {
  RunContext context;
  context.seed = seed;
  context.step = static_cast<uint64_t>(step);
  for (size_t i = 0; i < values_.size(); ++i)
    std::copy_n(values_[i]->data<float>(), values_[i]->size(),
                before_[i].begin());
  bool handed_out = false;
  const absl::Status ran = team_ != nullptr
                               ? RunTogether(batch, context, &handed_out)
                               : RunShards(batch, context, &handed_out);
  if (!ran.ok() && !handed_out) return ran;
  absl::Status updated;
  const absl::Status exchanged = Collect(context, !ran.ok(), &updated);
  PD_RETURN_IF_ERROR(ran);
  PD_RETURN_IF_ERROR(exchanged);
  PD_RETURN_IF_ERROR(updated);
  const float* loss = means_[loss_part_.bucket] + loss_part_.begin;
  if (loss[1] != 0)
    return Unavailable("step %d: another process has failed", step + 1);
  for (size_t i = 0; i < statistics_.size(); ++i)
    std::copy_n(means_[statistics_[i].bucket] + statistics_[i].begin,
                statistics_[i].size, values_[i]->data<float>());
  PD_RETURN_IF_ERROR(CollectRows());
  const double begin = SteadySeconds();
  PD_RETURN_IF_ERROR(update_->Finish(context));
  timeline_.buckets.back().update += SteadySeconds() - begin;
  return loss[0];
}

// Takes the means of all buckets, and updates with those that are there while
// the others travel. After an error the rest is taken all the same; the run has
// ended then, so nobody sees what has been updated.
absl::Status ShardRunner::Collect(const RunContext& context, bool failed,
                                  absl::Status* updated) {
  absl::Status exchanged;
  for (size_t bucket = 0; bucket < means_.size(); ++bucket) {
    const double begin = SteadySeconds();
    std::optional<RecordEvent> waiting;
    if (processes_->size() > 1)
      waiting.emplace("wait", EventType::kCommunication);
    const absl::StatusOr<const float*> means = sums_->Finish(bucket);
    waiting.reset();
    const double end = SteadySeconds();
    if (processes_->size() > 1) exchange_seconds_ += end - begin;
    exchanged.Update(means.status());
    if (!means.ok()) continue;
    means_[bucket] = *means;
    SetMeans(bucket);
    if (bucket + 1 < means_.size() && !failed && exchanged.ok() &&
        updated->ok())
      *updated = update_->Begin(bucket, context);
    timeline_.buckets[bucket].update = SteadySeconds() - end;
  }
  return exchanged;
}

absl::Status ShardRunner::CollectRows() {
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i] == nullptr) continue;
    const double begin = SteadySeconds();
    PD_ASSIGN_OR_RETURN(const TableRows sums, rows_[i]->Finish());
    if (processes_->size() > 1) exchange_seconds_ += SteadySeconds() - begin;
    PD_RETURN_IF_ERROR(update_->SetRows(i, sums));
  }
  return absl::OkStatus();
}

void ShardRunner::SetMeans(size_t bucket) {
  for (size_t i = 0; i < gradients_.size(); ++i)
    if (gradients_[i].bucket == bucket && update_->Reads(i))
      update_->SetMean(
          i, means_[bucket] + gradients_[i].begin - means_begin_[bucket]);
}

absl::StatusOr<std::vector<HeldBytes>> ShardRunner::Held() const {
  HeldBytes own;
  for (const auto& [name, owner] : program_.sharding->states) {
    const Scope::Entry* entry = std::as_const(session_->scope()).Find(name);
    if (entry != nullptr)
      own.states += static_cast<int64_t>(entry->tensor.bytes());
  }
  own.gradients = sums_->held_bytes();
  std::vector<HeldBytes> all(static_cast<size_t>(processes_->size()));
  PD_RETURN_IF_ERROR(processes_->AllGather(&own, sizeof(own), all.data()));
  return all;
}

}  // namespace pd
