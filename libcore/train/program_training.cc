// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/program_training.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/file_set.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/train/pipeline_stage.h"

namespace pd {
namespace {

// Plans are kept for so many different shapes; sequences may bring a new one
// with every batch.
constexpr size_t kMaxPlans = 16;

std::string KeyOf(const NamedArrays& feeds) {
  std::string key;
  for (const auto& [name, array] : feeds) {
    absl::StrAppend(&key, name, Name(array.dtype), ToString(array.shape));
    for (const auto& level : array.lod) {
      absl::StrAppend(&key, "/");
      for (uint64_t offset : level) absl::StrAppend(&key, offset, ",");
    }
    absl::StrAppend(&key, ";");
  }
  return key;
}

absl::StatusOr<double> NumberOf(const std::string& name, const Array& array) {
  if (array.size() != 1)
    return InvalidArgument("loss '%s' has shape %s; expected one element", name,
                           ToString(array.shape));
  double number = 0;
  const auto read = [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    number = static_cast<double>(*array.data<T>());
    return absl::OkStatus();
  };
  const absl::Status status =
      DispatchTypes<float, double, Float16, BFloat16>(array.dtype, read);
  if (!status.ok()) return Annotate(status, absl::StrCat("loss '", name, "'"));
  return number;
}

// The reshaped view of a batch for a variable of another shape: [1] for [].
Array ViewAs(Array array, const Shape& shape) {
  if (!IsDynamic(shape) && NumElements(shape) == array.size())
    array.shape = shape;
  return array;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramTraining>> ProgramTraining::Create(
    const OpRegistry* registry, ProgramTrainingOptions options) {
  std::unique_ptr<ProgramTraining> training(
      new ProgramTraining(registry, std::move(options)));
  PD_RETURN_IF_ERROR(training->Prepare());
  return training;
}

bool ProgramTraining::Makes(size_t program, const std::string& name) const {
  for (const OpDesc& op : options_.programs[program].global().ops)
    for (const auto& [slot, names] : op.outputs)
      if (std::count(names.begin(), names.end(), name) > 0) return true;
  return false;
}

absl::Status ProgramTraining::Assign(const std::string& name,
                                     size_t* program) const {
  for (size_t p = options_.programs.size(); p-- > 0;) {
    if (!Makes(p, name)) continue;
    *program = p;
    return absl::OkStatus();
  }
  for (size_t p = options_.programs.size(); p-- > 0;) {
    if (options_.programs[p].global().FindVar(name) == nullptr) continue;
    *program = p;
    return absl::OkStatus();
  }
  return NotFound("variable '%s' does not exist in the program", name);
}

bool ProgramTraining::Knows(const std::string& name) const {
  return std::any_of(
      options_.programs.begin(), options_.programs.end(),
      [&](const auto& p) { return p.global().FindVar(name) != nullptr; });
}

// Each program becomes three, of which the second runs for each micro-batch.
absl::Status ProgramTraining::CutIntoStages() {
  if (options_.micro_batches == 1) {
    parts_.resize(options_.programs.size());
    return absl::OkStatus();
  }
  if (options_.guard != nullptr)
    return Unimplemented(
        "the search for NaN does not follow %d micro-batches; leave "
        "FLAGS_check_nan_inf out",
        options_.micro_batches);
  std::vector<ProgramDesc> programs;
  std::vector<std::string> paths;
  for (size_t p = 0; p < options_.programs.size(); ++p) {
    PipelineStage stage = CutPipelineStage(options_.programs[p]);
    for (ProgramDesc* part : {&stage.before, &stage.micro_batch, &stage.after})
      programs.push_back(std::move(*part));
    parts_.resize(programs.size());
    parts_[programs.size() - 2].micro_batches = options_.micro_batches;
    if (p < options_.paths.size())
      paths.insert(paths.end(), 3, options_.paths[p]);
  }
  options_.programs = std::move(programs);
  options_.paths = std::move(paths);
  return absl::OkStatus();
}

absl::Status ProgramTraining::Prepare() {
  PD_INVARIANT(!options_.programs.empty());
  given_ = options_.programs;
  if (session_.registry().world() != nullptr) {
    auto& losses = options_.losses;
    losses.erase(std::remove_if(losses.begin(), losses.end(),
                                [&](const auto& name) { return !Knows(name); }),
                 losses.end());
  }
  const bool one_each = options_.losses.size() == options_.programs.size();
  PD_RETURN_IF_ERROR(CutIntoStages());
  if (options_.guard != nullptr) BeginGuard();
  bool first = true;
  steps_ = options_.steps;
  for (const auto& [name, array] : options_.batches) {
    if (array.shape.empty())
      return InvalidArgument("batches: '%s' has no axis of steps", name);
    if (!first && array.shape[0] != steps_)
      return InvalidArgument("batches: '%s' has %d steps; others have %d", name,
                             array.shape[0], steps_);
    steps_ = array.shape[0];
    first = false;
  }
  if (!options_.lods.empty() &&
      static_cast<int64_t>(options_.lods.size()) != steps_)
    return InvalidArgument("sequence lengths for %d steps; batches have %d",
                           options_.lods.size(), steps_);
  for (const auto& [name, array] : options_.batches) {
    bool known = false;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const VarDesc* var = options_.programs[p].global().FindVar(name);
      if (var == nullptr) continue;
      if (!var->persistable)
        parts_[p].feeds.push_back(name);
      else if (!known)
        persistable_batches_.push_back(name);
      known = true;
    }
    if (!known)
      return NotFound("batches: no program has a variable '%s'", name);
  }
  for (size_t i = 0; i < options_.losses.size(); ++i) {
    size_t program = i;
    if (!one_each || options_.micro_batches > 1 ||
        !Makes(i, options_.losses[i]))
      PD_RETURN_IF_ERROR(Assign(options_.losses[i], &program));
    loss_program_.push_back(program);
    parts_[program].fetches.push_back(options_.losses[i]);
  }
  for (const std::string& name : options_.fetches) {
    size_t program = 0;
    PD_RETURN_IF_ERROR(Assign(name, &program));
    fetch_program_.push_back(program);
    auto& fetches = parts_[program].fetches;
    if (std::count(fetches.begin(), fetches.end(), name) == 0)
      fetches.push_back(name);
  }
  losses_.resize(options_.losses.size() *
                 static_cast<size_t>(options_.micro_batches));
  for (const ProgramDesc& program : options_.programs)
    for (FlatVariable& flat : FlatWeightsOfRnn(program))
      session_.scope().Share(std::move(flat));
  return absl::OkStatus();
}

absl::StatusOr<Array> ProgramTraining::BatchOf(const std::string& name,
                                               int64_t step) const {
  const Array& all = options_.batches.at(name);
  Array batch = all;
  batch.shape.erase(batch.shape.begin());
  batch.bytes = std::shared_ptr<const std::byte>(
      all.bytes,
      all.bytes.get() + static_cast<size_t>(step) * batch.size_bytes());
  if (options_.lods.empty()) return batch;
  const LoDs& lods = options_.lods[static_cast<size_t>(step)];
  const auto lod = lods.find(name);
  if (lod == lods.end() || lod->second.empty()) return batch;
  // Batches of fewer rows stand in front of an array for the most.
  const int64_t rows = static_cast<int64_t>(lod->second.back().back());
  if (batch.shape.empty() || rows > batch.shape[0])
    return InvalidArgument("the sequences of '%s' have %d rows; the batch %s",
                           name, rows, ToString(batch.shape));
  batch.shape[0] = rows;
  batch.lod = lod->second;
  return batch;
}

absl::Status ProgramTraining::SetPersistables(int64_t step) {
  for (const std::string& name : persistable_batches_) {
    PD_ASSIGN_OR_RETURN(Array value, BatchOf(name, step));
    if (const Scope::Entry* entry = session_.scope().Find(name))
      value = ViewAs(std::move(value), entry->tensor.shape());
    PD_RETURN_IF_ERROR(session_.scope().Set(name, value));
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan*> ProgramTraining::PlanFor(size_t program,
                                               const NamedArrays& feeds) {
  Part& part = parts_[program];
  const std::string key = KeyOf(feeds);
  const auto found = part.plans.find(key);
  if (found != part.plans.end()) return found->second.get();
  if (part.plans.size() >= kMaxPlans) part.plans.clear();
  std::vector<FeedSpec> specs;
  for (const auto& [name, array] : feeds)
    specs.push_back({name, array.dtype, array.shape, array.lod});
  const std::string label =
      parts_.size() == 1 ? "train" : absl::StrCat("train", program + 1);
  PD_ASSIGN_OR_RETURN(auto plan, session_.Compile(options_.programs[program],
                                                  specs, part.fetches, label));
  if (plan->nan_check() != nullptr && options_.guard != nullptr)
    plan->nan_check()->set_level(NanCheck::Level::kQuick);
  return (part.plans[key] = std::move(plan)).get();
}

absl::StatusOr<NamedArrays> ProgramTraining::FeedsOf(
    size_t program, int64_t step, int64_t micro_batch) const {
  const Part& part = parts_[program];
  NamedArrays feeds;
  for (const std::string& name : part.feeds) {
    PD_ASSIGN_OR_RETURN(Array batch, BatchOf(name, step));
    if (part.micro_batches > 1) {
      if (batch.shape.empty() || batch.shape[0] % part.micro_batches != 0 ||
          !batch.lod.empty())
        return InvalidArgument(
            "the batch of '%s', %s, cannot be cut into %d micro-batches", name,
            ToString(batch.shape), part.micro_batches);
      batch.shape[0] /= part.micro_batches;
      const size_t offset =
          static_cast<size_t>(micro_batch) * batch.size_bytes();
      batch.bytes = std::shared_ptr<const std::byte>(
          batch.bytes, batch.bytes.get() + offset);
    }
    feeds[name] = std::move(batch);
  }
  return feeds;
}

absl::Status ProgramTraining::RunProgram(size_t program, int64_t step,
                                         int64_t micro_batch) {
  const Part& part = parts_[program];
  PD_ASSIGN_OR_RETURN(const NamedArrays feeds,
                      FeedsOf(program, step, micro_batch));
  PD_ASSIGN_OR_RETURN(Plan * plan, PlanFor(program, feeds));
  size_t i = 0;
  for (const auto& [name, array] : feeds) plan->SetFeed(i++, array.bytes.get());
  step_plans_.push_back(plan);
  RunContext context;
  context.seed = options_.seed;
  context.step = static_cast<uint64_t>(step);
  PD_RETURN_IF_ERROR(plan->Run(context));
  NamedArrays results;
  for (size_t k = 0; k < part.fetches.size(); ++k) {
    if (plan->fetch(k).raw() == nullptr && plan->fetch(k).size() > 0)
      return FailedPrecondition("variable '%s' to fetch has no value",
                                part.fetches[k]);
    results[part.fetches[k]] = ToArray(plan->fetch(k));
  }
  for (size_t k = 0; k < options_.losses.size(); ++k) {
    if (loss_program_[k] != program) continue;
    const std::string& name = options_.losses[k];
    const size_t at = k * static_cast<size_t>(options_.micro_batches) +
                      static_cast<size_t>(micro_batch);
    PD_ASSIGN_OR_RETURN(losses_[at], NumberOf(name, results.at(name)));
  }
  for (size_t k = 0; k < options_.fetches.size(); ++k)
    if (fetch_program_[k] == program)
      fetched_[options_.fetches[k]] = results.at(options_.fetches[k]);
  return absl::OkStatus();
}

absl::Status ProgramTraining::RunPrograms(int64_t step, size_t count) {
  PD_RETURN_IF_ERROR(SetPersistables(step));
  step_plans_.clear();
  for (size_t p = 0; p < count; ++p) {
    absl::Status status;
    for (int64_t k = 0; k < parts_[p].micro_batches && status.ok(); ++k)
      status = RunProgram(p, step, k);
    if (status.ok() || IsNanFound(status) || p >= options_.paths.size()) {
      PD_RETURN_IF_ERROR(status);
    } else {
      return Annotate(status, absl::StrCat("'", options_.paths[p], "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramTraining::Run(int64_t step) {
  PD_INVARIANT(step >= 0 && step < steps_);
  NanGuard* guard = options_.guard;
  if (guard != nullptr) guard->BeforeStep(step, {});
  const absl::Status status = RunPrograms(step, parts_.size());
  if (guard == nullptr) return status;
  if (IsNanFound(status)) return TraceNan(step, status);
  if (status.ok()) guard->AfterStep(step, step_plans_);
  return status;
}

void ProgramTraining::BeginGuard() {
  GuardedPrograms guarded;
  guarded.losses.insert(options_.losses.begin(), options_.losses.end());
  for (const ProgramDesc& program : options_.programs) {
    guarded.programs.push_back(&program);
    for (const VarDesc& var : program.global().vars)
      if (var.is_parameter) guarded.gradients.insert(GradName(var.name));
  }
  options_.guard->Begin(&session_, std::move(guarded));
}

// Repeats the steps since the guard's copies; in the bad one, what comes before
// the bad program once more, so that it is explained from where it began.
absl::Status ProgramTraining::TraceNan(int64_t last,
                                       const absl::Status& found) {
  NanGuard* guard = options_.guard;
  int64_t step = guard->copied_step();
  guard->Rewind();
  for (; step <= last; ++step) {
    guard->BeforeStep(step, {});
    const absl::Status status = RunPrograms(step, parts_.size());
    if (status.ok()) continue;
    if (!IsNanFound(status)) return status;
    const size_t bad = step_plans_.size() - 1;
    guard->Rewind();
    PD_RETURN_IF_ERROR(RunPrograms(step, bad));
    PD_ASSIGN_OR_RETURN(const NamedArrays feeds, FeedsOf(bad, step, 0));
    PD_ASSIGN_OR_RETURN(Plan * plan, PlanFor(bad, feeds));
    std::vector<std::string> names;
    for (const auto& [name, array] : feeds) names.push_back(name);
    NanQuery query = QueryOf(*plan, names);
    query.program = &options_.programs[bad];
    query.fetches = parts_[bad].fetches;
    query.context.seed = options_.seed;
    query.context.step = static_cast<uint64_t>(step);
    query.place.phase = "train";
    query.place.step = step + 1;
    PD_RETURN_IF_ERROR(guard->Explain(*plan, std::move(query)));
    return status;
  }
  return found;  // it does not come again
}

absl::Status ProgramTraining::Save(const std::string& prefix) const {
  StateDict params, opt;
  for (const ProgramDesc& program : given_) {
    for (const VarDesc& var : program.global().vars) {
      if (!var.persistable) continue;
      const Scope& scope = const_cast<ProgramTraining*>(this)->session_.scope();
      const Scope::Entry* entry = scope.Find(var.name);
      if (entry == nullptr || !entry->tensor.has_value()) continue;
      PD_ASSIGN_OR_RETURN(Array value, scope.Get(var.name));
      (var.is_parameter ? params : opt).tensors[var.name] = std::move(value);
    }
  }
  PD_RETURN_IF_ERROR(CheckPrefix(prefix, "a training program"));
  FileSet files;
  PD_ASSIGN_OR_RETURN(const std::string program_path,
                      files.Add(absl::StrCat(prefix, ".pdmodel")));
  PD_RETURN_IF_ERROR(WriteProgram(program_path, given_.front()));
  PD_ASSIGN_OR_RETURN(const std::string params_path,
                      files.Add(absl::StrCat(prefix, ".pdparams")));
  PD_RETURN_IF_ERROR(WriteStateDict(params_path, params));
  PD_ASSIGN_OR_RETURN(const std::string opt_path,
                      files.Add(absl::StrCat(prefix, ".pdopt")));
  PD_RETURN_IF_ERROR(WriteStateDict(opt_path, opt));
  return files.Commit();
}

}  // namespace pd
