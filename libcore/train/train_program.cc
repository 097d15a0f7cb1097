// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/train_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/metric_results.h"
#include "libcore/optim/gradient_merge.h"
#include "libcore/optim/optimizer.h"
#include "libcore/passes/recompute.h"
#include "libcore/program/block_builder.h"
#include "libcore/train/copy_programs.h"
#include "libcore/train/forward_amp.h"
#include "libcore/train/job_newton.h"
#include "libcore/train/job_optimizer.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/phase_programs.h"
#include "libcore/train/saved_amp.h"
#include "libcore/train/saved_training.h"
#include "libcore/train/shard_programs.h"

namespace pd {
namespace {

MetricUse MetricOf(const LoadedJob& job, const job::Metric& metric,
                   const MetricInputs& inputs) {
  MetricUse use;
  use.metric = MakeMetric(metric);
  use.name = NameOf(metric);
  use.prediction = inputs.input;
  use.label_variable = !inputs.label.empty();
  use.label = use.label_variable ? inputs.label : metric.label();
  use.place = job.Where(metric);
  if (metric.has_length())
    use.more.push_back({MetricSlot::kLength, metric.length()});
  else
    use.more.push_back({MetricSlot::kLength,
                        absl::StrCat(metric.label(), "_length"),
                        /*variable=*/false, /*required=*/false});
  if (metric.has_input_length() || !inputs.input_length.empty()) {
    const bool variable = !inputs.input_length.empty();
    use.more.push_back({MetricSlot::kInputLength,
                        variable ? inputs.input_length : metric.input_length(),
                        variable});
  }
  if (metric.has_mean_average_precision()) {
    const job::MeanAveragePrecision& p = metric.mean_average_precision();
    use.more.push_back({MetricSlot::kBox, p.box()});
    if (p.has_difficult())
      use.more.push_back({MetricSlot::kDifficult, p.difficult()});
  }
  return use;
}

// Checks a metric's tensors, as far as known before there is a data set.
absl::Status CheckMetric(const LoadedJob& job, const BuiltModel& built,
                         const job::Metric& metric, const MetricUse& use) {
  MetricSpecs specs;
  const auto add = [&](MetricSlot slot, const std::string& name) {
    const VarDesc* var = built.test.global().FindVar(name);
    if (var != nullptr) specs[slot] = TensorSpec{var->dtype, var->shape};
  };
  add(MetricSlot::kInput, use.prediction);
  add(MetricSlot::kLabel, use.label);
  for (const MetricUse::More& more : use.more)
    if (more.required) add(more.slot, more.name);
  return job.At(Annotate(use.metric->Check(specs),
                         absl::StrCat("metric '", use.name, "'")),
                metric);
}

// A feed of sequences has levels without offsets: each batch has its own.
FeedSpec FeedOf(const VarDesc& var) {
  return {var.name, var.dtype, var.shape,
          LoD(static_cast<size_t>(std::max(var.lod_level, 0)))};
}

// The parts that the test and the training program have in common.
absl::StatusOr<TrainProgram> Common(const LoadedJob& job,
                                    const BuiltModel& built) {
  TrainProgram program;
  for (const VarDesc& var : built.inputs) {
    program.feeds.push_back(FeedOf(var));
    program.inputs.push_back(var.name);
  }
  for (const VarDesc& var : built.labels) program.feeds.push_back(FeedOf(var));
  program.loss = program.test_loss = built.loss;
  program.outputs = built.outputs;
  program.layers = built.layers;
  program.test_layers = built.test_layers;
  program.paddle_names = built.paddle_names;
  program.values = built.values;
  for (int i = 0; i < job.proto().metric_size(); ++i) {
    const job::Metric& metric = job.proto().metric(i);
    program.metrics.push_back(
        MetricOf(job, metric, built.metrics[static_cast<size_t>(i)]));
    PD_RETURN_IF_ERROR(CheckMetric(job, built, metric, program.metrics.back()));
  }
  return program;
}

// The network of the job's layers, or its saved program.
absl::StatusOr<BuiltModel> ModelOf(const OpRegistry& registry,
                                   const LoadedJob& job) {
  return job.proto().has_program() ? TakeSavedTraining(registry, job)
                                   : BuildModel(job, registry);
}

}  // namespace

absl::StatusOr<TrainProgram> BuildTestProgram(const OpRegistry& registry,
                                              const LoadedJob& job) {
  PD_ASSIGN_OR_RETURN(BuiltModel built, ModelOf(registry, job));
  PD_ASSIGN_OR_RETURN(TrainProgram program, Common(job, built));
  program.test = std::move(built.test);
  program.startup = std::move(built.startup);
  return program;
}

namespace {

absl::Status ApplyRecompute(const LoadedJob& job, const BuiltModel& built,
                            ProgramDesc* main) {
  if (!job.proto().optimizer().has_recompute()) return absl::OkStatus();
  const job::Recompute& recompute = job.proto().optimizer().recompute();
  std::vector<std::string> checkpoints;
  for (const std::string& name : recompute.checkpoint()) {
    const auto layer =
        std::find_if(built.layers.begin(), built.layers.end(),
                     [&](const LayerInfo& info) { return info.name == name; });
    if (layer == built.layers.end())
      return job.At(NotFound("there is no layer '%s'", name), recompute,
                    "checkpoint");
    checkpoints.push_back(layer->output);
  }
  const absl::Status status = Recompute(checkpoints, main);
  return status.ok() ? status : job.At(status, recompute, "checkpoint");
}

// Averages and slow parameters, after the optimizer.
absl::Status AppendAverages(const job::Optimizer& optimizer,
                            const std::vector<std::string>& params,
                            BlockBuilder* main, BlockBuilder* startup,
                            TrainProgram* program) {
  if (optimizer.has_look_ahead())
    PD_RETURN_IF_ERROR(AppendLookAhead(
        {optimizer.look_ahead().alpha(), optimizer.look_ahead().k()}, params,
        main, startup));
  if (optimizer.has_exponential_moving_average()) {
    PD_ASSIGN_OR_RETURN(
        program->averages,
        AppendEma({optimizer.exponential_moving_average().decay()}, params,
                  main, startup));
  }
  if (optimizer.has_model_average()) {
    const job::ModelAverage& average = optimizer.model_average();
    PD_ASSIGN_OR_RETURN(program->averages,
                        AppendModelAverage({average.average_window_rate(),
                                            average.min_average_window(),
                                            average.max_average_window()},
                                           params, main, startup));
  }
  return absl::OkStatus();
}

// Everything that a step does with the gradients. Gives the number of ops
// before the averages.
absl::StatusOr<size_t> AppendUpdates(OptimizerSpec spec, const ForwardAmp& amp,
                                     const job::Optimizer& optimizer,
                                     const OpRegistry& registry,
                                     std::vector<ParamGrad> pairs,
                                     TrainProgram* program) {
  std::vector<std::string> params;
  for (const ParamGrad& pair : pairs) params.push_back(pair.param);
  BlockBuilder main(&registry, &program->main);
  BlockBuilder startup(&registry, &program->startup);
  std::optional<GradientMerge> merge;
  if (optimizer.gradient_merge().k_steps() > 1) {
    const job::GradientMerge& wanted = optimizer.gradient_merge();
    PD_ASSIGN_OR_RETURN(
        merge, GradientMerge::Begin({wanted.k_steps(), wanted.avg()}, &pairs,
                                    &main, &startup));
  }
  PD_RETURN_IF_ERROR(Unscale(amp, pairs, &main, &spec));
  PD_ASSIGN_OR_RETURN(const OptimizerVars vars,
                      AppendOptimizer(spec, std::move(pairs), &main, &startup));
  program->learning_rate = vars.learning_rate;
  if (merge.has_value()) PD_RETURN_IF_ERROR(merge->Finish(&main));
  const size_t updated = program->main.global().ops.size();
  BlockBuilder rest(&registry, &program->main);
  PD_RETURN_IF_ERROR(AppendAverages(
      optimizer, params, merge.has_value() ? &rest : &main, &startup, program));
  return updated;
}

// The extents behind the batch but those of 1, which a data set and a network
// may count differently ([N] or [N, 1] labels).
Shape RecordEssence(const Shape& shape) {
  Shape essence;
  for (size_t i = 1; i < shape.size(); ++i)
    if (shape[i] != 1) essence.push_back(shape[i]);
  return essence;
}

// Whether every batch of fields of shape `field` can be fed as `feed`: what the
// feed leaves open may have any extent.
bool Fits(const Shape& feed, const Shape& field) {
  if (feed.empty() || field.empty()) return feed.size() == field.size();
  if (feed[0] >= 0 && feed[0] != field[0]) return false;
  const auto agree = [](const Shape& wanted, const Shape& given, size_t first) {
    bool fits = wanted.size() == given.size();
    for (size_t i = first; fits && i < wanted.size(); ++i)
      fits = wanted[i] < 0 || wanted[i] == given[i];
    return fits;
  };
  if (agree(feed, field, 1)) return true;
  const Shape wanted = RecordEssence(feed);
  if (feed.size() == field.size() && IsDynamic(wanted)) return false;
  return agree(wanted, RecordEssence(field), 0);
}

// The shape of the rows of a batch of sequences [records, longest, ...].
Shape RowsOf(const Shape& field) {
  Shape rows = field;
  if (rows.size() > 1) rows.erase(rows.begin() + 1);
  if (!rows.empty()) rows[0] = -1;
  return rows;
}

bool TakesField(const FeedSpec& feed, const BatchField& field) {
  if (field.dtype != feed.dtype) return false;
  if (feed.lod.empty()) return Fits(feed.shape, field.shape);
  return field.shape.size() > 1 && Fits(feed.shape, RowsOf(field.shape));
}

}  // namespace

absl::StatusOr<TrainProgram> BuildTrainProgram(const OpRegistry& registry,
                                               const LoadedJob& job) {
  PD_ASSIGN_OR_RETURN(BuiltModel built, ModelOf(registry, job));
  PD_ASSIGN_OR_RETURN(TrainProgram program, Common(job, built));
  PD_RETURN_IF_ERROR(CheckTakesShards(job));
  program.test = std::move(built.test);
  if (job.proto().has_program()) {
    program.main = std::move(built.main);
    program.startup = std::move(built.startup);
    PD_RETURN_IF_ERROR(FindUpdates(registry, job, &program));
    PD_RETURN_IF_ERROR(ApplySavedAmp(registry, job, &program));
    return program;
  }
  PD_RETURN_IF_ERROR(BuildCopies(registry, job, &built, &program));
  if (job.proto().phase_size() > 0) {
    PD_RETURN_IF_ERROR(BuildPhases(registry, job, std::move(built), &program));
    return program;
  }
  program.main = std::move(built.main);
  program.startup = std::move(built.startup);
  std::string target;
  PD_ASSIGN_OR_RETURN(const ForwardAmp amp,
                      ApplyAmp(job, registry, &program.main, &program.startup,
                               &program.loss, &target));
  program.loss_scaling = amp.scale();
  BackwardOptions backward;
  backward.targets[target] = "";
  const auto gradients = AppendBackward(registry, backward, &program.main);
  // Second gradients of a layer grad may be missing.
  if (!gradients.ok()) return job.At(gradients.status(), job.proto().model());
  std::vector<ParamGrad> pairs;
  for (const ParameterSettings& settings : built.parameters) {
    const auto gradient = gradients->find(settings.name);
    if (!settings.trainable || gradient == gradients->end()) continue;
    pairs.push_back(ParamGradOf(settings, gradient->second));
    program.gradients.emplace_back(settings.name, gradient->second);
  }
  if (pairs.empty())
    return job.At(InvalidArgument("the loss depends on no trainable parameter"),
                  job.proto().model());
  PD_RETURN_IF_ERROR(ApplyRecompute(job, built, &program.main));
  StepParts parts;
  parts.update = program.main.global().ops.size();
  const job::Optimizer& optimizer = job.proto().optimizer();
  PD_ASSIGN_OR_RETURN(program.rate, RateOf(job, optimizer));
  PD_ASSIGN_OR_RETURN(const auto newton, QuasiNewtonOf(job));
  if (newton.has_value()) {
    const absl::Status added = AddNewton(registry, *newton, pairs, &program);
    if (!added.ok()) return job.At(added, optimizer);
    return program;
  }
  PD_ASSIGN_OR_RETURN(const OptimizerSpec spec, OptimizerOf(job, optimizer));
  const absl::StatusOr<size_t> updated =
      AppendUpdates(spec, amp, optimizer, registry, std::move(pairs), &program);
  if (!updated.ok()) return job.At(updated.status(), optimizer);
  parts.averages = *updated;
  if (job.proto().has_distributed())
    PD_RETURN_IF_ERROR(CutForShards(job, parts, registry.world(), &program));
  return program;
}

Tensor* RateTensor(const std::string& learning_rate, Scope* scope) {
  if (learning_rate.empty()) return nullptr;
  Scope::Entry* rate = scope->Find(learning_rate);
  PD_INVARIANT(rate != nullptr);  // the startup program made it
  return &rate->tensor;
}

absl::Status SetFirstValues(const TrainProgram& program, Session* session) {
  for (const auto& [name, value] : program.values)
    PD_RETURN_IF_ERROR(
        Annotate(session->scope().Set(name, value),
                 absl::StrCat("the value of '", name, "' in a saved network")));
  return session->RunOnce(program.startup);
}

std::vector<FeedSpec> FeedsFor(const std::vector<FeedSpec>& feeds,
                               int64_t records) {
  std::vector<FeedSpec> concrete = feeds;
  for (FeedSpec& feed : concrete)
    if (!feed.shape.empty() && feed.shape[0] < 0) feed.shape[0] = records;
  return concrete;
}

absl::StatusOr<std::vector<size_t>> MatchFields(
    const std::vector<FeedSpec>& feeds, const std::vector<BatchField>& fields) {
  std::vector<size_t> numbers;
  for (const FeedSpec& feed : feeds) {
    size_t i = 0;
    while (i < fields.size() && fields[i].name != feed.name) ++i;
    if (i == fields.size()) {
      std::vector<std::string> names;
      for (const BatchField& field : fields)
        names.push_back(absl::StrCat("'", field.name, "'"));
      return InvalidArgument("the network is fed '%s'; the data set has %s",
                             feed.name, absl::StrJoin(names, ", "));
    }
    const BatchField& field = fields[i];
    const Shape wanted = FeedsFor({feed}, field.shape[0])[0].shape;
    if (!TakesField(feed, field))
      return InvalidArgument(
          "the network is fed '%s' as %s%s%s; the data set gives %s%s%s",
          feed.name, feed.lod.empty() ? "" : "sequences of ", Name(feed.dtype),
          ToString(feed.lod.empty() ? wanted : feed.shape), Name(field.dtype),
          ToString(field.shape),
          IsDynamic(field.shape) && !IsDynamic(wanted)
              ? " (pad { length: ... } gives all records one length)"
              : "");
    numbers.push_back(i);
  }
  return numbers;
}

}  // namespace pd
