// SPDX-License-Identifier: Apache-2.0
#include "libcore/check/nan_finder.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/base/status_macros.h"
#include "libcore/passes/pipeline.h"
#include "libcore/program/verifier.h"

namespace pd {
namespace {

// An op that has run and its variables.
struct SeenOp {
  int32_t block = 0;
  int64_t index = -1;
  OpDesc op;
  std::map<std::string, const Tensor*> inputs, outputs;
  std::map<std::string, Tensor> before;  // of inputs that it wrote over
  bool on_device = false;
};

// Keeps what an op is about to write over, and takes down the one that failed.
class Examiner : public StepHook {
 public:
  Examiner(const Plan* plan, NanCheck* check) : plan_(plan), check_(check) {}

  void Before(size_t step) override {
    const StepVariables& variables = plan_->variables(step);
    before_.clear();
    for (const auto& [name, in] : variables.inputs)
      for (const auto& [other, out] : variables.outputs)
        if (in->raw() != nullptr && in->raw() == out->raw()) {
          absl::StatusOr<Tensor> value = plan_->OnHost(*in);
          if (value.ok()) before_.emplace(name, CloneOf(*value));
        }
  }
  absl::Status After(size_t step) override {
    absl::Status status = check_->Finish(check_->After(step));
    if (status.ok() || seen_.index >= 0) return status;
    const StepVariables& variables = plan_->variables(step);
    seen_.index = variables.index;
    seen_.op = variables.op;
    seen_.on_device = plan_->steps()[step].on_device;
    PD_RETURN_IF_ERROR(See(variables.inputs, &seen_.inputs));
    PD_RETURN_IF_ERROR(See(variables.outputs, &seen_.outputs));
    seen_.before = std::move(before_);
    return status;
  }
  void BeforeInBlock(const BlockStep& step) override {
    block_before_.clear();
    for (const auto& [name, in] : *step.inputs)
      for (const auto& [other, out] : *step.outputs)
        if (in.tensor == out.tensor) {
          absl::StatusOr<Tensor> value = plan_->OnHost(*in.tensor);
          if (value.ok()) block_before_.emplace(name, CloneOf(*value));
        }
  }
  absl::Status AfterInBlock(const BlockStep& step) override {
    absl::Status status = check_->AfterInBlock(step);
    if (status.ok() || seen_.index >= 0) return status;
    seen_.block = step.block;
    seen_.index = static_cast<int64_t>(step.index);
    seen_.op = *step.op;
    // The block's frame goes with the run: what is wanted later is copied.
    for (const auto& [name, in] : *step.inputs) {
      if (block_before_.count(name) > 0) continue;
      PD_ASSIGN_OR_RETURN(const Tensor value, plan_->OnHost(*in.tensor));
      block_before_.emplace(name, CloneOf(value));
    }
    for (const auto& [name, out] : *step.outputs) {
      PD_ASSIGN_OR_RETURN(const Tensor value, plan_->OnHost(*out.tensor));
      kept_.push_back(std::make_unique<Tensor>(CloneOf(value)));
      seen_.outputs[name] = kept_.back().get();
    }
    seen_.before = std::move(block_before_);
    return status;
  }
  const SeenOp& seen() const { return seen_; }

 private:
  // The variables as the host can read them, until the next run.
  absl::Status See(const StepVariables::List& variables,
                   std::map<std::string, const Tensor*>* seen) {
    for (const auto& [name, tensor] : variables) {
      PD_ASSIGN_OR_RETURN(Tensor value, plan_->OnHost(*tensor));
      kept_.push_back(std::make_unique<Tensor>(std::move(value)));
      (*seen)[name] = kept_.back().get();
    }
    return absl::OkStatus();
  }

  const Plan* plan_;
  NanCheck* check_;
  std::map<std::string, Tensor> before_, block_before_;
  std::vector<std::unique_ptr<Tensor>> kept_;
  SeenOp seen_;
};

// The first element of an array, or the part of a sparse tensor or of selected
// rows, that matters.
Array PlainOf(const Tensor& tensor) {
  if (!tensor.is_array() && !tensor.is_sparse()) return ToArray(tensor);
  for (const Tensor& element : tensor.elements())
    if (!AllFinite(element)) return ToArray(element);
  return Array();
}

bool IsPlain(const Tensor& tensor) {
  return tensor.kind() == VarKind::kLodTensor && tensor.raw() != nullptr;
}

std::string SlotOf(const SlotList& slots, const std::string& name) {
  for (const auto& [slot, names] : slots)
    if (std::count(names.begin(), names.end(), name) > 0) return slot;
  return "";
}

// "x@GRAD@RENAME@block0@0" -> "x".
std::string WithoutGradient(const std::string& name) {
  return name.substr(0, name.find(kGradSuffix.data()));
}

void NameLayer(const std::vector<LayerInfo>* layers, NanFinding* finding) {
  if (layers == nullptr) return;
  const auto holds = [](const std::vector<std::string>& names,
                        const std::string& name) {
    return std::count(names.begin(), names.end(), name) > 0;
  };
  std::vector<std::string> names = {finding->output.name};
  for (const auto& slots : {finding->op.outputs, finding->op.inputs})
    for (const auto& [slot, list] : slots)
      names.insert(names.end(), list.begin(), list.end());
  for (const std::string& name : names) {
    const std::string forward = WithoutGradient(name);
    for (const LayerInfo& layer : *layers) {
      if (!holds(layer.variables, forward) && !holds(layer.parameters, forward))
        continue;
      finding->layer = layer.name;
      finding->kind = layer.kind;
      return;
    }
  }
}

// The innermost place of the script in PaddlePaddle's op_callstack that is not
// PaddlePaddle's own.
std::string SourceOf(const OpDesc& op) {
  const auto lines = op.AttrOr<std::vector<std::string>>("op_callstack", {});
  std::string source;
  for (const std::string& line : lines)
    if (absl::StrContains(line, "File \"") &&
        !absl::StrContains(line, "/paddle/") &&
        !absl::StrContains(line, "<decorator"))
      source = std::string(absl::StripAsciiWhitespace(line));
  return source;
}

// Rows of a bad output that has one for each record.
void NameRecords(const Array& output, NanFinding* finding) {
  const std::vector<int64_t>& records = finding->place.records;
  const auto n = static_cast<int64_t>(records.size());
  if (n == 0 || output.shape.empty() || output.shape[0] != n ||
      output.size() == 0)
    return;
  Array row = output;
  row.shape[0] = 1;
  const size_t bytes = row.size_bytes();
  for (int64_t i = 0; i < n; ++i) {
    row.bytes = std::shared_ptr<const std::byte>(
        output.bytes, output.bytes.get() + static_cast<size_t>(i) * bytes);
    if (FirstBad(row) >= 0)
      finding->bad_records.push_back(records[static_cast<size_t>(i)]);
  }
}

ValueOrigin OriginOf(const NanQuery& query, const std::string& name) {
  for (const FeedSpec& feed : query.feeds)
    if (feed.name == name)
      return query.labels.count(name) > 0 ? ValueOrigin::kLabel
                                          : ValueOrigin::kFed;
  const VarDesc* var = query.program->global().FindVar(name);
  return var != nullptr && var->persistable ? ValueOrigin::kVariable
                                            : ValueOrigin::kMade;
}

NanFinding FindingOf(const NanQuery& query, const NonFiniteOutput& found,
                     const SeenOp& seen) {
  NanFinding finding;
  finding.place = query.place;
  finding.block = seen.block;
  finding.index = seen.index;
  finding.op = seen.op;
  finding.source = SourceOf(seen.op);
  const Array output = PlainOf(*seen.outputs.at(found.variable));
  finding.output = InspectValue(found.variable, output);
  finding.output.slot = SlotOf(seen.op.outputs, found.variable);
  finding.samples = SamplesOf(output);
  if (seen.on_device) finding.device_blocks = DeviceBlocksOf(output);
  const auto add = [&](const std::string& slot, const std::string& name) {
    const auto before = seen.before.find(name);
    const auto input = seen.inputs.find(name);
    const Tensor* tensor = before != seen.before.end()  ? &before->second
                           : input != seen.inputs.end() ? input->second
                                                        : nullptr;
    if (tensor == nullptr || finding.input_values.count(name) > 0) return;
    if (!tensor->has_value() && tensor->size() > 0) return;
    const Array array = PlainOf(*tensor);
    InspectedValue look = InspectValue(name, array);
    look.slot = slot;
    look.origin = OriginOf(query, name);
    finding.inputs.push_back(std::move(look));
    if (IsPlain(*tensor))
      finding.input_values[name] = array;
    else
      finding.not_kept.push_back(name);
  };
  for (const auto& [slot, names] : seen.op.inputs)
    for (const std::string& name : names) add(slot, name);
  for (size_t i = 0; i < query.feeds.size(); ++i) {
    const FeedSpec& feed = query.feeds[i];
    Array array;
    array.dtype = feed.dtype;
    array.shape = feed.shape;
    array.bytes = std::shared_ptr<const std::byte>(
        std::shared_ptr<void>(), static_cast<const std::byte*>(query.data[i]));
    finding.fed.push_back(InspectValue(feed.name, array));
    finding.fed.back().origin = OriginOf(query, feed.name);
  }
  for (const auto& [name, tensor] : seen.outputs)
    if (IsPlain(*tensor)) finding.output_values[name] = ToArray(*tensor);
  finding.version = query.program->version;
  for (const auto* slots : {&seen.op.inputs, &seen.op.outputs})
    for (const auto& [slot, names] : *slots)
      for (const std::string& name : names)
        if (const VarDesc* var = query.program->FindVar(seen.block, name))
          finding.variables.push_back(*var);
  NameLayer(query.layers, &finding);
  NameRecords(output, &finding);
  return finding;
}

// Ops of `original` that are not in `rewritten` and lead from what `op` reads
// to what it writes.
std::vector<std::string> StandsFor(const ProgramDesc& original,
                                   const ProgramDesc& rewritten,
                                   const OpDesc& op) {
  std::set<std::pair<std::string, SlotList>> there;
  for (const OpDesc& other : rewritten.global().ops)
    there.insert({other.type, other.outputs});
  std::set<std::string> wanted;
  for (const auto& [slot, names] : op.outputs)
    wanted.insert(names.begin(), names.end());
  std::vector<std::string> parts;
  const auto& ops = original.global().ops;
  for (size_t i = ops.size(); i-- > 0;) {
    if (there.count({ops[i].type, ops[i].outputs}) > 0) continue;
    std::string makes;
    for (const auto& [slot, names] : ops[i].outputs)
      for (const std::string& name : names)
        if (makes.empty() && wanted.count(name) > 0) makes = name;
    if (makes.empty()) continue;
    for (const auto& [slot, names] : ops[i].inputs)
      wanted.insert(names.begin(), names.end());
    parts.insert(parts.begin(), absl::StrCat(ops[i].type, " -> ", makes));
  }
  return parts;
}

absl::StatusOr<std::unique_ptr<Plan>> CompileSeparate(
    const NanQuery& query, const ProgramDesc& program) {
  PlanOptions options;
  options.separate = true;
  options.place = query.session->place();
  PD_ASSIGN_OR_RETURN(
      auto plan,
      Plan::Compile(query.session->registry(), program, query.feeds,
                    query.fetches, &query.session->scope(), options));
  for (size_t i = 0; i < query.data.size(); ++i)
    plan->SetFeed(i, query.data[i]);
  return plan;
}

absl::StatusOr<std::optional<NanFinding>> Examine(const NanQuery& query,
                                                  const ProgramDesc& program) {
  PD_ASSIGN_OR_RETURN(auto plan, CompileSeparate(query, program));
  PD_ASSIGN_OR_RETURN(auto check, NanCheck::Create(plan.get(), query.rules));
  check->set_level(NanCheck::Level::kAll);
  Examiner examiner(plan.get(), check.get());
  const absl::Status status = plan->Run(query.context, &examiner);
  if (status.ok()) return std::optional<NanFinding>();
  if (!IsNanFound(status)) return status;
  return std::optional<NanFinding>(
      FindingOf(query, check->found(), examiner.seen()));
}

// Every value of every op.
class ObserverHook : public StepHook {
 public:
  using Look =
      std::function<void(const OpDesc&, const std::string&, const Tensor&)>;
  ObserverHook(const Plan* plan, ValueObserver look)
      : plan_(plan), look_(std::move(look)) {}
  void Before(size_t) override {}
  absl::Status After(size_t step) override {
    const StepVariables& variables = plan_->variables(step);
    for (const auto& [name, tensor] : variables.outputs) {
      PD_ASSIGN_OR_RETURN(const Tensor value, plan_->OnHost(*tensor));
      look_(variables.op, name, value);
    }
    return absl::OkStatus();
  }
  absl::Status AfterInBlock(const BlockStep& step) override {
    for (const auto& [name, variable] : *step.outputs) {
      PD_ASSIGN_OR_RETURN(const Tensor value, plan_->OnHost(*variable.tensor));
      look_(*step.op, name, value);
    }
    return absl::OkStatus();
  }

 private:
  const Plan* plan_;
  ValueObserver look_;
};

}  // namespace

NanQuery QueryOf(const Plan& plan, const std::vector<std::string>& names) {
  NanQuery query;
  for (size_t i = 0; i < plan.feeds(); ++i) {
    const Tensor& feed = plan.feed(i);
    query.feeds.push_back({names[i], feed.dtype(), feed.shape(), feed.lod()});
    query.data.push_back(feed.raw());
  }
  return query;
}

absl::StatusOr<NanQuery> QueryOf(Session* session, const ProgramDesc* program,
                                 const NamedArrays& feeds,
                                 std::vector<std::string> fetches) {
  NanQuery query;
  query.session = session;
  query.program = program;
  query.fetches = std::move(fetches);
  for (const auto& [name, array] : feeds) {
    const VarDesc* var = program->FindVar(0, name);
    if (var != nullptr && var->persistable) {
      PD_RETURN_IF_ERROR(session->scope().Set(name, array));
      continue;
    }
    query.feeds.push_back({name, array.dtype, array.shape, array.lod});
    query.data.push_back(array.bytes.get());
  }
  return query;
}

NanFinding BriefFinding(const NanQuery& query, const Plan& plan) {
  const NonFiniteOutput& found = plan.nan_check()->found();
  NanFinding finding;
  finding.place = query.place;
  finding.block = found.block;
  finding.index = static_cast<int64_t>(found.index);
  finding.op = found.op;
  finding.source = SourceOf(found.op);
  finding.output.name = found.variable;
  finding.output.slot = SlotOf(found.op.outputs, found.variable);
  finding.output.stats.nan = found.nan;
  finding.output.stats.inf = found.inf;
  // The numbers of a device's step are gone, as others have used its memory.
  const StepInfo& step = plan.steps()[found.step];
  if (found.block == 0 && (!step.on_device || step.implementation == "late")) {
    for (const auto& [name, tensor] : plan.variables(found.step).outputs) {
      if (name != found.variable) continue;
      const absl::StatusOr<Tensor> value = plan.OnHost(*tensor);
      if (!value.ok()) continue;
      const Array output = PlainOf(*value);
      finding.output = InspectValue(name, output);
      finding.output.slot = SlotOf(found.op.outputs, name);
      finding.samples = SamplesOf(output);
      NameRecords(output, &finding);
    }
  }
  NameLayer(query.layers, &finding);
  return finding;
}

absl::StatusOr<std::optional<NanFinding>> FindNan(const NanQuery& query) {
  std::map<std::string, Tensor> before;
  Scope& scope = query.session->scope();
  for (const std::string& name : scope.Names())
    before.emplace(name, CloneOf(scope.Find(name)->tensor));
  PD_ASSIGN_OR_RETURN(auto finding, Examine(query, *query.program));
  if (!finding.has_value()) {
    for (const auto& [name, value] : before) {
      Tensor* tensor = &scope.Find(name)->tensor;
      if (tensor->raw() != nullptr && tensor->bytes() == value.bytes())
        CopyElements(value, tensor);
    }
    ProgramDesc rewritten = *query.program;
    PD_RETURN_IF_ERROR(NormalizeOps(query.session->registry(), &rewritten));
    PassContext context;
    context.registry = &query.session->registry();
    context.keep.insert(query.fetches.begin(), query.fetches.end());
    PD_RETURN_IF_ERROR(RunPasses(context, {}, &rewritten));
    PD_ASSIGN_OR_RETURN(finding, Examine(query, rewritten));
    if (finding.has_value())
      finding->stands_for = StandsFor(*query.program, rewritten, finding->op);
  }
  if (finding.has_value()) ExplainCauses(&*finding);
  return finding;
}

std::unique_ptr<StepHook> MakeObserverHook(const Plan& plan,
                                           ValueObserver look) {
  return std::make_unique<ObserverHook>(&plan, std::move(look));
}

absl::Status ObserveValues(const NanQuery& query, const ValueObserver& look) {
  PD_ASSIGN_OR_RETURN(auto plan, CompileSeparate(query, *query.program));
  ObserverHook looker(plan.get(), look);
  return plan->Run(query.context, &looker);
}

}  // namespace pd
