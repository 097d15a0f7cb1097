// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/shard_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/world.h"

namespace pd {
namespace {

// Parts begin at multiples of a cache line, as kernels like their operands.
constexpr int64_t kAlignment = 16;

// The seed of a shard's random numbers (the multiplier of SplitMix64).
uint64_t SeedOf(uint64_t seed, int64_t shard) {
  return seed ^ (static_cast<uint64_t>(shard + 1) * 0x9e3779b97f4a7c15ull);
}

}  // namespace

ShardRunner::ShardRunner(Session* session, const TrainProgram* program,
                         Loader* loader)
    : session_(session),
      program_(*program->shards),
      loss_(program->loss),
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
  int64_t at = kAlignment;  // the loss is the first number
  const auto add = [&at](int64_t size) {
    const Part part{at, size};
    at += (size + kAlignment - 1) / kAlignment * kAlignment;
    return part;
  };
  std::vector<std::string> fetches = {program->loss};
  for (const FeedSpec& gradient : shards.gradients) {
    fetches.push_back(gradient.name);
    runner->gradients_.push_back(add(NumElements(gradient.shape)));
  }
  for (const std::string& name : shards.statistics) {
    Scope::Entry* entry = session->scope().Find(name);
    PD_INVARIANT(entry != nullptr && entry->tensor.has_value());
    runner->values_.push_back(&entry->tensor);
    runner->statistics_.push_back(add(entry->tensor.size()));
    runner->before_.emplace_back(static_cast<size_t>(entry->tensor.size()));
  }
  runner->sum_ =
      std::make_unique<ShardSum>(shards.shards, at, runner->processes_);
  PD_ASSIGN_OR_RETURN(PlanCache plans,
                      PlanCache::Create(session, &shards.shard, program->feeds,
                                        std::move(fetches), loader->fields(),
                                        "train", on_plan));
  runner->plans_ = std::make_unique<PlanCache>(std::move(plans));
  return runner;
}

absl::Status ShardRunner::Compile(const std::vector<BatchField>& fields) {
  PD_RETURN_IF_ERROR(plans_->Feed(fields).status());
  if (update_ != nullptr) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(
      update_,
      session_->Compile(program_.update, program_.gradients, {}, "update"));
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i]->layout() != nullptr)
      return Unimplemented("'%s' has no plain layout", program_.statistics[i]);
  return absl::OkStatus();
}

absl::Status ShardRunner::RunShard(const Batch& shard, RunContext context,
                                   float* numbers) {
  context.seed = SeedOf(context.seed, shard.shard);
  for (size_t i = 0; i < values_.size(); ++i)
    std::copy(before_[i].begin(), before_[i].end(), values_[i]->data<float>());
  PD_ASSIGN_OR_RETURN(Plan * plan, plans_->Feed(shard.fields));
  PD_RETURN_IF_ERROR(plan->Run(context));
  // A mean over the batch is one over records.
  const auto weight = static_cast<float>(static_cast<double>(shard.size) /
                                         static_cast<double>(shard.whole));
  const auto take = [&](const float* from, const Part& part) {
    float* to = numbers + part.begin;
    for (int64_t i = 0; i < part.size; ++i) to[i] = from[i] * weight;
  };
  std::fill_n(numbers, kAlignment, 0.0f);
  take(plan->fetch(0).data<float>(), {0, 1});
  for (size_t i = 0; i < gradients_.size(); ++i)
    take(plan->fetch(i + 1).data<float>(), gradients_[i]);
  for (size_t i = 0; i < statistics_.size(); ++i)
    take(values_[i]->data<float>(), statistics_[i]);
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
  const Batch* at = &batch;
  const int64_t index = batch.index;
  for (int64_t shard = own_.begin; shard < own_.end; ++shard) {
    if (shard > own_.begin) {
      PD_ASSIGN_OR_RETURN(at, loader_->Next());
    }
    PD_INVARIANT(at != nullptr && at->index == index && at->shard == shard);
    float* numbers = sum_->NextShard();
    if (at->size > 0)
      PD_RETURN_IF_ERROR(Annotate(RunShard(*at, context, numbers),
                                  absl::StrCat("shard ", shard)));
    sum_->Add(at->size > 0);
  }
  const double begin = SteadySeconds();
  PD_ASSIGN_OR_RETURN(const float* means, sum_->Finish());
  if (processes_->size() > 1) exchange_seconds_ += SteadySeconds() - begin;
  PD_RETURN_IF_ERROR(Update(means, context));
  return means[0];
}

absl::Status ShardRunner::Update(const float* means,
                                 const RunContext& context) {
  for (size_t i = 0; i < statistics_.size(); ++i)
    std::copy_n(means + statistics_[i].begin, statistics_[i].size,
                values_[i]->data<float>());
  for (size_t i = 0; i < gradients_.size(); ++i)
    update_->SetFeed(i, means + gradients_[i].begin);
  return update_->Run(context);
}

}  // namespace pd
