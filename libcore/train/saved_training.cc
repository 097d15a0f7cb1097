// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/saved_training.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/row_counts.h"
#include "libcore/nn/saved_networks.h"
#include "libcore/passes/amp.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/match_params.h"
#include "libcore/program/outer_names.h"
#include "libcore/program/prune.h"
#include "libcore/program/rename_variables.h"
#include "libcore/program/verifier.h"
#include "libcore/train/job_optimizer.h"

namespace pd {
namespace {

bool IsDeclared(const ProgramDesc& program, const std::string& name) {
  return std::any_of(
      program.blocks.begin(), program.blocks.end(),
      [&](const BlockDesc& block) { return block.FindVar(name) != nullptr; });
}

// The variables of block 0 that are read and that no op before has made, in the
// order of their declaration. Persistable ones have values, and tensor arrays
// and the like start empty.
std::vector<std::string> FedVariables(const ProgramDesc& program) {
  std::set<std::string> made, fed;
  for (const OpDesc& op : program.global().ops) {
    const OuterNames names = OuterNamesOf(program, op);
    for (const std::string& name : names.reads)
      if (made.count(name) == 0) fed.insert(name);
    made.insert(names.writes.begin(), names.writes.end());
  }
  std::vector<std::string> ordered;
  for (const VarDesc& var : program.global().vars)
    if (fed.count(var.name) > 0 && !var.persistable &&
        var.kind == VarKind::kLodTensor)
      ordered.push_back(var.name);
  return ordered;
}

// Makes `name` float32 by a cast at the program's end, where it is not.
absl::StatusOr<std::string> AsFloat32(const OpRegistry& registry,
                                      const std::string& name, int32_t role,
                                      ProgramDesc* program) {
  BlockBuilder builder(&registry, program);
  builder.set_role(role);
  const VarDesc* var = builder.FindVar(name);
  PD_INVARIANT(var != nullptr);
  if (var->dtype == DType::kFloat32) return name;
  const std::string wide = builder.UniqueTemporary("cast");
  PD_RETURN_IF_ERROR(
      builder.Append(CastOp(name, var->dtype, wide, DType::kFloat32)));
  return wide;
}

// Takes a saved program step by step.
class Taker {
 public:
  Taker(const OpRegistry& registry, const LoadedJob& job)
      : registry_(registry), job_(job), part_(job.proto().program()) {}

  absl::StatusOr<BuiltModel> Take() {
    PD_INVARIANT(job_.programs() != nullptr);
    built_.main = job_.programs()->main;
    built_.startup = job_.programs()->startup;
    PD_RETURN_IF_ERROR(Check(part_.main(), "main", &built_.main));
    PD_RETURN_IF_ERROR(Check(part_.startup(), "startup", &built_.startup));
    feeds_ = FedVariables(built_.main);
    DropOthers();
    PD_RETURN_IF_ERROR(CheckStates());
    PD_RETURN_IF_ERROR(BindFields());
    PD_RETURN_IF_ERROR(FindLoss());
    PD_RETURN_IF_ERROR(FindOutputs());
    for (const job::Metric& metric : job_.proto().metric())
      PD_RETURN_IF_ERROR(AddMetric(metric));
    PD_RETURN_IF_ERROR(MakeTest());
    return std::move(built_);
  }

 private:
  absl::Status Check(const std::string& file, const char* field,
                     ProgramDesc* program) const {
    absl::Status status = StripFeedFetch(program).status();
    if (status.ok()) status = VerifyProgram(registry_, *program);
    return job_.At(Annotate(status, absl::StrCat("'", file, "'")), part_,
                   field);
  }

  // Variables that no op names have a value, which belongs in a checkpoint,
  // only where the startup program makes one.
  void DropOthers() {
    std::vector<std::string> kept = feeds_;
    for (const VarDesc& var : built_.startup.global().vars)
      if (var.persistable) kept.push_back(var.name);
    DropUnused(kept, &built_.main);
  }

  // A checkpoint holds tensors.
  absl::Status CheckStates() const {
    for (const BlockDesc& block : built_.main.blocks)
      for (const VarDesc& var : block.vars)
        if (var.persistable && var.kind != VarKind::kLodTensor)
          return job_.At(Unimplemented("variable '%s' of the program outlives "
                                       "a step and is no tensor: checkpoints "
                                       "cannot hold it",
                                       var.name),
                         part_, "main");
    return absl::OkStatus();
  }

  // Gives fed variables the names of their fields, and declares inputs.
  absl::Status BindFields() {
    Renames names;
    for (const job::ProgramFeed& feed : part_.feed()) {
      if (std::count(feeds_.begin(), feeds_.end(), feed.name()) == 0)
        return job_.At(
            InvalidArgument("the program is not fed '%s'; it is fed %s",
                            feed.name(),
                            feeds_.empty() ? "nothing" : QuotedList(feeds_)),
            feed, "name");
      names[feed.name()] = feed.field();
    }
    for (const job::ProgramFeed& feed : part_.feed())
      if (feed.field() != feed.name() &&
          IsDeclared(built_.main, feed.field()) &&
          names.count(feed.field()) == 0)
        return job_.At(InvalidArgument("the program has a variable '%s' that "
                                       "this field does not feed; call the "
                                       "field otherwise",
                                       feed.field()),
                       feed, "field");
    RenameVariables(names, &built_.main);
    for (std::string& name : feeds_)
      if (names.count(name) > 0) name = names[name];
    for (const std::string& name : feeds_) {
      VarDesc& var = *built_.main.global().FindVar(name);
      var.need_check_feed = true;  // it stays in the form for evaluation
      if (var.lod_level > 1)
        return job_.At(
            Unimplemented("the program is fed sequences of sequences, '%s' of "
                          "LoD level %d, and a job's data have one level; "
                          "pd-train --program --lod trains it with arrays",
                          name, var.lod_level),
            part_, "main");
      if (var.lod_level == 1) PD_RETURN_IF_ERROR(CheckPadding(name));
    }
    return absl::OkStatus();
  }

  // Sequences are the first rows of padded records.
  absl::Status CheckPadding(const std::string& field) const {
    const job::Data& data = job_.proto().data();
    for (const job::DataSet* source : {&data.train(), &data.eval()})
      for (const job::FieldPadding& pad : source->pad())
        if (pad.field() == field && pad.side() == job::FieldPadding::left)
          return job_.At(
              InvalidArgument("the program is fed '%s' as sequences, whose "
                              "padding stands behind them",
                              field),
              pad, "side");
    return absl::OkStatus();
  }

  absl::Status FindLoss() {
    built_.loss = part_.loss();
    const auto there = Prune(built_.main, feeds_, {built_.loss});
    if (!there.ok()) return job_.At(there.status(), part_, "loss");
    const VarDesc& var = *built_.main.global().FindVar(built_.loss);
    if (var.kind != VarKind::kLodTensor || !IsFloating(var.dtype) ||
        !std::all_of(var.shape.begin(), var.shape.end(),
                     [](int64_t extent) { return extent == 1; }))
      return job_.At(
          InvalidArgument("the loss '%s' is %s%s; expected one "
                          "floating-point number, as a mean is",
                          built_.loss, Name(var.dtype), ToString(var.shape)),
          part_, "loss");
    PD_ASSIGN_OR_RETURN(built_.loss, AsFloat32(registry_, built_.loss,
                                               kRoleForward, &built_.main));
    return absl::OkStatus();
  }

  // A tensor of the forward part, which evaluation computes.
  absl::Status Want(const std::string& name) {
    PD_RETURN_IF_ERROR(
        Prune(CloneForTest(built_.main), feeds_, {name}).status());
    const VarDesc& var = *built_.main.global().FindVar(name);
    if (var.kind != VarKind::kLodTensor)
      return InvalidArgument("variable '%s' is no tensor", name);
    wanted_.insert(name);
    return absl::OkStatus();
  }

  absl::Status FindOutputs() {
    PD_RETURN_IF_ERROR(job_.At(Want(built_.loss), part_, "loss"));
    for (int i = 0; i < part_.fetch_size(); ++i) {
      PD_RETURN_IF_ERROR(
          job_.At(Want(part_.fetch(i)), part_, absl::StrCat("fetch[", i, "]")));
      built_.outputs.push_back(part_.fetch(i));
    }
    return absl::OkStatus();
  }

  absl::Status AddMetric(const job::Metric& metric) {
    MetricInputs inputs;
    if (metric.has_input()) {
      inputs.input = metric.input();
      PD_RETURN_IF_ERROR(job_.At(Want(inputs.input), metric, "input"));
    } else if (built_.outputs.size() == 1) {
      inputs.input = built_.outputs[0];
    } else {
      return job_.At(
          InvalidArgument("'program' fetches %d variables; say with 'input' "
                          "which one the metric takes",
                          built_.outputs.size()),
          metric);
    }
    const std::string& length = metric.input_length();
    if (metric.has_input_length() && IsDeclared(built_.main, length)) {
      inputs.input_length = length;
      PD_RETURN_IF_ERROR(job_.At(Want(length), metric, "input_length"));
    } else if (metric.has_mean_average_precision() &&
               !metric.has_input_length()) {
      inputs.input_length = RowCountsOf(built_.main, inputs.input);
      if (!inputs.input_length.empty()) wanted_.insert(inputs.input_length);
    }
    built_.metrics.push_back(std::move(inputs));
    return absl::OkStatus();
  }

  // The form for evaluation; inputs are what the answers depend on.
  absl::Status MakeTest() {
    PD_ASSIGN_OR_RETURN(built_.test, Prune(CloneForTest(built_.main), feeds_,
                                           {wanted_.begin(), wanted_.end()}));
    std::vector<std::string> inputs = feeds_;
    if (!built_.outputs.empty()) {
      PD_ASSIGN_OR_RETURN(inputs,
                          FeedsNeeded(built_.test, feeds_, built_.outputs));
    }
    for (const std::string& name : feeds_) {
      VarDesc var = *built_.main.global().FindVar(name);
      if (!var.shape.empty()) var.shape[0] = -1;
      const bool is_input = std::count(inputs.begin(), inputs.end(), name) > 0;
      (is_input ? built_.inputs : built_.labels).push_back(std::move(var));
    }
    for (const VarDesc& var : built_.main.global().vars)
      if (var.persistable && (var.is_parameter || built_.test.global().FindVar(
                                                      var.name) != nullptr))
        built_.paddle_names.emplace_back(var.name, var.name);
    return absl::OkStatus();
  }

  const OpRegistry& registry_;
  const LoadedJob& job_;
  const job::SavedProgram& part_;
  std::vector<std::string> feeds_;  // by their fields' names
  std::set<std::string> wanted_;    // what evaluation computes
  BuiltModel built_;
};

// The variable that Python would set: `rate`, or the persistable one that it is
// computed from, as that of a parameter with a rate of its own is. "" where
// operators make it.
std::string SourceOfRate(const ProgramDesc& program, std::string rate) {
  const std::vector<OpDesc>& ops = program.global().ops;
  for (size_t i = ops.size(); i-- > 0;) {
    const OuterNames names = OuterNamesOf(program, ops[i]);
    if (std::count(names.writes.begin(), names.writes.end(), rate) == 0)
      continue;
    if (ops[i].type != "scale" && ops[i].type != "cast") return "";
    rate = ops[i].In("X");
  }
  const VarDesc* var = program.global().FindVar(rate);
  return var != nullptr && var->persistable ? rate : "";
}

// The value that the startup program gives `rate`.
absl::StatusOr<double> FirstRate(const LoadedJob& job,
                                 const ProgramDesc& startup,
                                 const std::string& rate) {
  const job::SavedProgram& part = job.proto().program();
  if (part.has_learning_rate()) return part.learning_rate();
  for (const OpDesc& op : startup.global().ops) {
    if (op.type != "fill_constant" || op.Out("Out") != rate) continue;
    double value = 0;
    const auto text = op.AttrOr<std::string>("str_value", "");
    if (text.empty()) return double{op.AttrOr<float>("value", 0)};
    if (absl::SimpleAtod(text, &value)) return value;
  }
  return job.At(
      InvalidArgument("no fill_constant of the startup program tells the first "
                      "value of '%s'; say it with 'learning_rate'",
                      rate),
      part, "lr");
}

// The rate as the job's `lr` has it, in place of Python's scheduler.
absl::Status DriveRate(const LoadedJob& job,
                       const std::map<std::string, int>& rates,
                       TrainProgram* program) {
  const job::SavedProgram& part = job.proto().program();
  const char* field = part.has_lr() ? "lr" : "learning_rate";
  std::set<std::string> sources;
  for (const auto& [rate, parameters] : rates) {
    const std::string source = SourceOfRate(program->main, rate);
    if (source.empty())
      return job.At(InvalidArgument("the program's operators make its learning "
                                    "rate '%s' in each step; leave '%s' out",
                                    rate, field),
                    part, field);
    sources.insert(source);
  }
  if (sources.size() != 1)
    return job.At(
        InvalidArgument("the program has %d learning rates%s%s; expected one",
                        sources.size(), sources.empty() ? "" : ": ",
                        QuotedList({sources.begin(), sources.end()})),
        part, field);
  const std::string& rate = *sources.begin();
  const VarDesc& var = *program->main.global().FindVar(rate);
  const VarDesc* first = program->startup.global().FindVar(rate);
  if (var.dtype != DType::kFloat32 || NumElements(var.shape) != 1 ||
      first == nullptr || !first->persistable)
    return job.At(
        InvalidArgument("the learning rate '%s' is %s%s%s; expected one "
                        "float32 number that the startup program makes",
                        rate, Name(var.dtype), ToString(var.shape),
                        first == nullptr ? " without a first value" : ""),
        part, field);
  if (part.lr().has_reduce_on_plateau())
    return job.At(
        Unimplemented("a saved program's rate does not follow a plateau"), part,
        "lr");
  PD_ASSIGN_OR_RETURN(const double base,
                      FirstRate(job, program->startup, rate));
  PD_ASSIGN_OR_RETURN(program->rate, RateOf(job, part, part.lr(), base));
  program->learning_rate = rate;
  return absl::OkStatus();
}

// The job tells the learning rate of a step, else the program does.
absl::Status FindRate(const OpRegistry& registry, const LoadedJob& job,
                      const std::map<std::string, int>& rates,
                      TrainProgram* program) {
  const job::SavedProgram& part = job.proto().program();
  if (part.has_lr() || part.has_learning_rate())
    return DriveRate(job, rates, program);
  program->rate = [](int64_t, int64_t) {
    return std::numeric_limits<double>::quiet_NaN();
  };
  const auto most = std::max_element(
      rates.begin(), rates.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == rates.end()) return absl::OkStatus();
  const VarDesc& rate = *program->main.global().FindVar(most->first);
  if (!IsFloating(rate.dtype)) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(
      program->own_rate,
      AsFloat32(registry, most->first, kRoleOptimize, &program->main));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BuiltModel> TakeSavedTraining(const OpRegistry& registry,
                                             const LoadedJob& job) {
  return Taker(registry, job).Take();
}

absl::Status FindUpdates(const OpRegistry& registry, const LoadedJob& job,
                         TrainProgram* program) {
  std::map<std::string, int> rates;  // and how many parameters each is of
  const BlockDesc& global = program->main.global();
  for (const BlockDesc& block : program->main.blocks)
    for (const OpDesc& op : block.ops) {
      const std::vector<std::string>& params = op.Input("Param");
      const std::vector<std::string>& grads = op.Input("Grad");
      if (op.Output("ParamOut").empty() || grads.size() != params.size())
        continue;
      for (const std::string& rate : op.Input("LearningRate"))
        if (global.FindVar(rate) != nullptr) ++rates[rate];
      for (size_t i = 0; i < params.size(); ++i) {
        // The optimizer's own may be clipped, decayed or merged already.
        const std::string first = GradName(params[i]);
        const std::string& grad =
            global.FindVar(first) != nullptr ? first : grads[i];
        if (global.FindVar(grad) != nullptr)
          program->gradients.emplace_back(params[i], grad);
      }
    }
  const job::SavedProgram& part = job.proto().program();
  if (program->gradients.empty())
    return job.At(InvalidArgument("'%s' updates no parameter; expected a "
                                  "training program, as main_program is after "
                                  "minimize()",
                                  part.main()),
                  part, "main");
  return FindRate(registry, job, rates, program);
}

}  // namespace pd
