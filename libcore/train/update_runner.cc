// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/update_runner.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/sharded_update.h"

namespace pd {

UpdateRunner::UpdateRunner(Session* session, const ShardPrograms* program,
                           const Communicator* processes)
    : session_(session),
      program_(*program),
      processes_(*processes),
      reads_(program->gradients.size(), 0),
      means_(program->gradients.size()) {}

absl::StatusOr<std::unique_ptr<UpdateRunner>> UpdateRunner::Create(
    Session* session, const TrainProgram* program,
    const Communicator* processes, const std::vector<size_t>& buckets,
    size_t count, bool by_bucket) {
  const ShardPrograms& shards = *program->shards;
  std::unique_ptr<UpdateRunner> runner(
      new UpdateRunner(session, &shards, processes));
  for (size_t i = 0; i < shards.rows.size(); ++i)
    if (shards.rows[i]) PD_RETURN_IF_ERROR(runner->MakeRoom(i, 1));
  std::vector<ProgramDesc>& parts = runner->programs_;
  parts.resize(count);
  // One process waits for nobody. Squares are there when all gradients are.
  if ((processes->size() == 1 && !by_bucket) ||
      (shards.sharding.has_value() && !shards.sharding->squares.empty())) {
    parts.back() = shards.update;
  } else {
    PD_ASSIGN_OR_RETURN(
        parts, SplitUpdate(shards.update, program->gradients, buckets, count));
  }
  PD_RETURN_IF_ERROR(runner->CompileAll());
  return runner;
}

absl::Status UpdateRunner::CompileAll() {
  if (program_.sharding.has_value()) PD_RETURN_IF_ERROR(CompileShare());
  updates_.clear();
  for (const ProgramDesc& part : programs_) {
    PD_ASSIGN_OR_RETURN(updates_.emplace_back(), Compile(part, "update", {}));
  }
  outgrown_ = false;
  return absl::OkStatus();
}

// Sparse gradients are variables of the session that have `rows` rows. Those
// that are left over have the number of one that is there, and zeros, which
// changes nothing: ops add up the rows of one number.
absl::Status UpdateRunner::MakeRoom(size_t gradient, size_t rows) {
  const FeedSpec& spec = program_.gradients[gradient];
  Shape shape = spec.shape;
  shape[0] = static_cast<int64_t>(rows);
  Scope::Entry* entry = session_->scope().Declare(spec.name);
  entry->tensor.Reset(spec.dtype, shape);
  PD_RETURN_IF_ERROR(entry->tensor.Allocate());
  entry->tensor.set_kind(VarKind::kSelectedRows);
  entry->tensor.set_height(spec.shape[0]);
  entry->tensor.rows().assign(rows, 0);
  outgrown_ = true;
  return absl::OkStatus();
}

absl::Status UpdateRunner::SetRows(size_t gradient, const TableRows& mean) {
  const std::string& name = program_.gradients[gradient].name;
  Scope::Entry* entry = session_->scope().Find(name);
  size_t room = entry->tensor.rows().size();
  if (room < mean.rows.size()) {
    // Plans of the old room go before its bytes do.
    updates_.clear();
    norms_ = Part();
    after_ = Part();
    while (room < mean.rows.size()) room *= 2;
    PD_RETURN_IF_ERROR(MakeRoom(gradient, room));
  }
  float* values = entry->tensor.data<float>();
  std::fill(std::copy(mean.values.begin(), mean.values.end(), values),
            values + entry->tensor.size(), 0.0f);
  std::vector<int64_t>& rows = entry->tensor.rows();
  std::fill(std::copy(mean.rows.begin(), mean.rows.end(), rows.begin()),
            rows.end(), mean.rows.empty() ? 0 : mean.rows[0]);
  return absl::OkStatus();
}

// The parts around a share of the update.
absl::Status UpdateRunner::CompileShare() {
  const ShardedUpdate& sharding = *program_.sharding;
  std::vector<std::string> own;
  for (const auto& [name, owner] : sharding.squares)
    if (owner == processes_.rank()) own.push_back(name);
  squares_.resize(sharding.squares.size());
  PD_ASSIGN_OR_RETURN(norms_, Compile(sharding.norms, "norms", own));
  PD_ASSIGN_OR_RETURN(after_, Compile(sharding.after, "averages", {}));
  if (!parameters_.has_value())
    parameters_.emplace(sharding.owners, &session_->scope(), &processes_);
  return absl::OkStatus();
}

absl::StatusOr<UpdateRunner::Part> UpdateRunner::Compile(
    ProgramDesc program, const char* label,
    const std::vector<std::string>& fetches) {
  Part part;
  if (program.blocks.empty() || program.global().ops.empty()) return part;
  const std::set<std::string> used = VariablesUsedBy(program);
  std::vector<FeedSpec> feeds;
  for (size_t i = 0; i < program_.gradients.size(); ++i) {
    if (used.count(program_.gradients[i].name) == 0) continue;
    if (program_.rows[i]) {
      VarDesc* var = program.global().FindVar(program_.gradients[i].name);
      var->persistable = true;
      var->shape[0] = -1;
      continue;
    }
    feeds.push_back(program_.gradients[i]);
    part.gradients.push_back(i);
    reads_[i] = 1;
  }
  if (fetches.empty() && program_.sharding.has_value()) {
    const auto& squares = program_.sharding->squares;
    for (size_t i = 0; i < squares.size(); ++i) {
      if (used.count(squares[i].first) == 0) continue;
      const VarDesc* var = program.global().FindVar(squares[i].first);
      PD_INVARIANT(var != nullptr);
      feeds.push_back({var->name, var->dtype, var->shape});
      part.squares.push_back(i);
    }
  }
  PD_ASSIGN_OR_RETURN(part.plan,
                      session_->Compile(program, feeds, fetches, label));
  return part;
}

absl::Status UpdateRunner::RunPart(const Part& part,
                                   const RunContext& context) {
  if (part.plan == nullptr) return absl::OkStatus();
  size_t feed = 0;
  for (const size_t gradient : part.gradients)
    part.plan->SetFeed(feed++, means_[gradient]);
  for (const size_t square : part.squares)
    part.plan->SetFeed(feed++, &squares_[square]);
  return part.plan->Run(context,
                        hooks_ != nullptr ? hooks_(*part.plan) : nullptr);
}

// Each process knows those of its own gradients.
absl::Status UpdateRunner::ExchangeSquares() {
  const auto& squares = program_.sharding->squares;
  const size_t count = squares.size();
  if (count == 0) return absl::OkStatus();
  size_t fetch = 0;
  for (size_t i = 0; i < count; ++i)
    if (squares[i].second == processes_.rank())
      squares_[i] = *norms_.plan->fetch(fetch++).data<float>();
  std::vector<float> all(count * static_cast<size_t>(processes_.size()));
  PD_RETURN_IF_ERROR(
      processes_.AllGather(squares_.data(), count * sizeof(float), all.data()));
  for (size_t i = 0; i < count; ++i)
    squares_[i] = all[static_cast<size_t>(squares[i].second) * count + i];
  return absl::OkStatus();
}

absl::Status UpdateRunner::Finish(const RunContext& context) {
  if (outgrown_) PD_RETURN_IF_ERROR(CompileAll());
  const Part& last = updates_.back();
  if (!program_.sharding.has_value()) return RunPart(last, context);
  PD_RETURN_IF_ERROR(RunPart(norms_, context));
  double begin = SteadySeconds();
  PD_RETURN_IF_ERROR(ExchangeSquares());
  exchange_seconds_ += SteadySeconds() - begin;
  PD_RETURN_IF_ERROR(RunPart(last, context));
  begin = SteadySeconds();
  PD_RETURN_IF_ERROR(parameters_->Run());
  exchange_seconds_ += SteadySeconds() - begin;
  return RunPart(after_, context);
}

}  // namespace pd
