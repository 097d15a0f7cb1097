// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/data/experience.h"
#include "libcore/dist/world.h"
#include "libcore/nn/metric_results.h"
#include "libcore/train/fetched_number.h"
#include "libcore/train/shared_evaluation.h"

namespace pd {
namespace {

size_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) -
                             names.begin());
}

// A batch's field as a Tensor for the metrics.
Tensor View(const BatchField& field) {
  Tensor tensor(field.dtype, field.shape);
  tensor.Attach(field.data);
  return tensor;
}

const BatchField* FindField(const std::vector<BatchField>& fields,
                            const std::string& name) {
  for (const BatchField& field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

// The job's tables, or that of the first accuracy.
std::vector<ClassTable> TablesOf(const std::vector<MetricUse>& metrics,
                                 const Dataset& data) {
  std::vector<ClassTable> asked, other;
  for (const MetricUse& use : metrics) {
    const ConfusionMatrix* table = use.metric->Table();
    if (table == nullptr || table->classes() == 0) continue;
    const FieldSpec* label = data.FindField(use.label);
    (use.metric->names().empty() ? asked : other)
        .push_back(
            {use.name, *table,
             label != nullptr ? label->classes : std::vector<std::string>()});
  }
  if (!asked.empty() || other.empty()) return asked;
  other.resize(1);
  other[0].name = "confusion";
  return other;
}

}  // namespace

std::optional<double> EvaluationResult::Find(const std::string& name) const {
  if (name == "loss") return loss;
  for (const auto& [metric, value] : metrics)
    if (metric == name) return value;
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(
    Session* session, Loader* loader, EvaluationSpec spec) {
  std::unique_ptr<Evaluator> evaluator(new Evaluator);
  const auto add = [&](const std::string& name) {
    auto& fetches = evaluator->fetches_;
    if (!name.empty() && IndexOf(fetches, name) == fetches.size())
      fetches.push_back(name);
  };
  add(spec.loss);
  for (const MetricUse& use : spec.metrics) {
    add(use.prediction);
    if (use.label_variable) add(use.label);
    for (const MetricUse::More& more : use.more)
      if (more.variable) add(more.name);
  }
  for (const std::string& output : spec.outputs) add(output);
  evaluator->session_ = session;
  evaluator->loader_ = loader;
  evaluator->spec_ = std::move(spec);
  const EvaluationSpec& kept = evaluator->spec_;
  PD_RETURN_IF_ERROR(evaluator->CheckMetrics());
  PD_ASSIGN_OR_RETURN(
      evaluator->plans_,
      PlanCache::Create(session, &kept.program, kept.feeds, evaluator->fetches_,
                        loader->fields(), kept.label));
  return evaluator;
}

// The metrics against what the data set gives.
absl::Status Evaluator::CheckMetrics() const {
  for (const MetricUse& use : spec_.metrics) {
    const std::string place =
        absl::StrCat(use.place, ": metric '", use.name, "'");
    MetricSpecs specs;
    const auto add_field = [&](MetricSlot slot, const std::string& name,
                               bool required) -> absl::Status {
      const BatchField* field = FindField(loader_->fields(), name);
      if (field != nullptr)
        specs[slot] = TensorSpec{field->dtype, field->shape};
      if (field == nullptr && required)
        return Annotate(
            InvalidArgument(
                "the data set has no field '%s', which holds the %s%s", name,
                NameOf(slot),
                slot == MetricSlot::kLabel ? ", nor the network such a layer"
                                           : ""),
            place);
      return absl::OkStatus();
    };
    const auto add_variable = [&](MetricSlot slot, const std::string& name) {
      const VarDesc* var = spec_.program.global().FindVar(name);
      if (var != nullptr) specs[slot] = TensorSpec{var->dtype, var->shape};
    };
    add_variable(MetricSlot::kInput, use.prediction);
    if (use.label_variable)
      add_variable(MetricSlot::kLabel, use.label);
    else
      PD_RETURN_IF_ERROR(add_field(MetricSlot::kLabel, use.label, true));
    for (const MetricUse::More& more : use.more) {
      if (more.variable)
        add_variable(more.slot, more.name);
      else
        PD_RETURN_IF_ERROR(add_field(more.slot, more.name, more.required));
    }
    if (specs[MetricSlot::kInput].has_value())
      PD_RETURN_IF_ERROR(Annotate(use.metric->Check(specs), place));
  }
  return absl::OkStatus();
}

absl::Status Evaluator::ExplainNan(const Batch& batch, const Plan& plan) {
  std::vector<std::string> names;
  for (const FeedSpec& feed : spec_.feeds) names.push_back(feed.name);
  NanQuery query = QueryOf(plan, names);
  query.program = &spec_.program;
  query.fetches = fetches_;
  query.place.phase = "eval";
  query.place.batch = batch.index + 1;
  query.place.records = batch.records;
  return spec_.guard->Explain(plan, std::move(query));
}

absl::Status Evaluator::Explained(const Batch& batch,
                                  const absl::Status& status) const {
  return ExplainLabels(spec_.heads, batch, loader_->dataset(), status);
}

absl::StatusOr<EvaluationResult> Evaluator::Run(
    bool keep_outputs, const std::function<bool(int64_t, int64_t)>& progress) {
  EvaluationResult result;
  loss_sum_ = 0;
  kept_.clear();
  for (const MetricUse& use : spec_.metrics) use.metric->Reset();
  const double begin = SteadySeconds();
  if (spec_.observer != nullptr) spec_.observer->OnBegin();
  PD_RETURN_IF_ERROR(loader_->StartEpoch(0));
  PD_RETURN_IF_ERROR(loader_->stride() > 1
                         ? RunShared(keep_outputs, progress, &result)
                         : RunAlone(keep_outputs, progress, &result));
  if (result.records == 0)
    return InvalidArgument("the evaluation set holds no records");
  result.seconds = SteadySeconds() - begin;
  if (!spec_.loss.empty())
    result.loss = loss_sum_ / static_cast<double>(result.records);
  for (const MetricUse& use : spec_.metrics)
    for (auto& entry : use.metric->Results())
      result.metrics.push_back(std::move(entry));
  if (const Experience* experience = loader_->dataset().experience()) {
    const std::optional<double> mean = experience->returns.Mean();
    if (!mean.has_value())
      return InvalidArgument(
          "no episode ended in the evaluation; 'episodes' of its environment "
          "says how many are played");
    result.metrics.emplace_back(kEpisodeReturn, *mean);
  }
  result.tables = TablesOf(spec_.metrics, loader_->dataset());
  for (const auto& [name, kept] : kept_) {
    Shape shape = kept.shape;
    shape[0] = result.records;
    std::byte* bytes = nullptr;
    PD_ASSIGN_OR_RETURN(Array array,
                        NewArray(kept.dtype, std::move(shape), &bytes));
    PD_INVARIANT(array.size_bytes() == kept.bytes.size());
    std::copy(kept.bytes.begin(), kept.bytes.end(), bytes);
    result.outputs[name] = std::move(array);
  }
  return result;
}

absl::Status Evaluator::Compute(const Batch& batch, Plan* plan) {
  const absl::Status ran = plan->Run({});
  if (spec_.guard != nullptr && IsNanFound(ran))
    PD_RETURN_IF_ERROR(ExplainNan(batch, *plan));
  return Explained(batch, ran);
}

absl::Status Evaluator::RunAlone(bool keep_outputs, const Seen& progress,
                                 EvaluationResult* result) {
  for (;;) {
    PD_ASSIGN_OR_RETURN(const Batch* batch, loader_->Next());
    if (batch == nullptr) break;
    if (plans_->Find(batch->fields) != pending_.plan)
      PD_RETURN_IF_ERROR(CollectPending(result, keep_outputs));
    PD_ASSIGN_OR_RETURN(Plan * plan, plans_->Feed(batch->fields));
    if (spec_.guard == nullptr && plan->runs_ahead()) {
      PD_RETURN_IF_ERROR(plan->Start({}));
      PD_RETURN_IF_ERROR(CollectPending(result, keep_outputs));
      pending_.plan = plan;
      KeepPending(*batch);
    } else {
      PD_RETURN_IF_ERROR(Compute(*batch, plan));
      PD_RETURN_IF_ERROR(
          Collect(*batch, FetchesOf(*plan), result, keep_outputs));
    }
    if (progress != nullptr && !progress(batch->index + 1, result->records)) {
      PD_RETURN_IF_ERROR(CollectPending(result, keep_outputs));
      return absl::CancelledError("evaluation was stopped");
    }
  }
  PD_RETURN_IF_ERROR(CollectPending(result, keep_outputs));
  result->left_out = loader_->skipped();
  return absl::OkStatus();
}

absl::Status Evaluator::RunShared(bool keep_outputs, const Seen& progress,
                                  EvaluationResult* result) {
  const Communicator& processes = session_->registry().world()->all();
  // An observer sees whole batches, and any of the processes may have one.
  int32_t observed = spec_.observer != nullptr;
  PD_RETURN_IF_ERROR(processes.AllReduce(Reduction::kMax, DType::kInt32, 1,
                                         &observed, &observed));
  SharedEvaluation shared(&processes, [&](const std::string& field) {
    return observed != 0 || IsJudged(field);
  });
  const auto see = [&](const BatchOutcome& outcome) {
    std::vector<const Tensor*> fetched;
    for (const Tensor& output : outcome.outputs) fetched.push_back(&output);
    PD_RETURN_IF_ERROR(Collect(outcome.batch, fetched, result, keep_outputs));
    return progress == nullptr ||
                   progress(outcome.batch.index + 1, result->records)
               ? absl::OkStatus()
               : absl::CancelledError("evaluation was stopped");
  };
  for (bool more = true; more;) {
    PD_ASSIGN_OR_RETURN(const Batch* batch, loader_->Next());
    std::vector<const Tensor*> fetched;
    if (batch != nullptr && batch->size > 0) {
      PD_ASSIGN_OR_RETURN(Plan * plan, plans_->Feed(batch->fields));
      PD_RETURN_IF_ERROR(Compute(*batch, plan));
      fetched = FetchesOf(*plan);
    }
    PD_ASSIGN_OR_RETURN(more,
                        shared.Round(batch, fetched, loader_->skipped(), see));
  }
  result->left_out = shared.left_out();
  return absl::OkStatus();
}

std::vector<const Tensor*> Evaluator::FetchesOf(const Plan& plan) const {
  std::vector<const Tensor*> fetched;
  for (size_t i = 0; i < fetches_.size(); ++i)
    fetched.push_back(&plan.fetch(i));
  return fetched;
}

// The loader's batch is gone when its answers come.
void Evaluator::KeepPending(const Batch& batch) {
  pending_.batch = batch;
  std::vector<BatchField>& fields = pending_.batch.fields;
  if (spec_.observer == nullptr)
    fields.erase(std::remove_if(fields.begin(), fields.end(),
                                [this](const BatchField& field) {
                                  return !IsJudged(field.name);
                                }),
                 fields.end());
  pending_.bytes.resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t size = static_cast<size_t>(NumElements(fields[i].shape)) *
                        SizeOf(fields[i].dtype);
    pending_.bytes[i].assign(fields[i].data, fields[i].data + size);
    fields[i].data = pending_.bytes[i].data();
  }
}

bool Evaluator::IsJudged(const std::string& field) const {
  for (const MetricUse& use : spec_.metrics) {
    if (!use.label_variable && use.label == field) return true;
    for (const MetricUse::More& more : use.more)
      if (!more.variable && more.name == field) return true;
  }
  return false;
}

absl::Status Evaluator::CollectPending(EvaluationResult* result,
                                       bool keep_outputs) {
  Plan* const plan = std::exchange(pending_.plan, nullptr);
  if (plan == nullptr) return absl::OkStatus();
  PD_RETURN_IF_ERROR(plan->Wait());
  return Collect(pending_.batch, FetchesOf(*plan), result, keep_outputs);
}

absl::Status Evaluator::Collect(const Batch& batch,
                                const std::vector<const Tensor*>& values,
                                EvaluationResult* result, bool keep_outputs) {
  const auto fetched = [&](const std::string& name) -> const Tensor& {
    return *values[IndexOf(fetches_, name)];
  };
  result->records += batch.size;
  if (!spec_.loss.empty()) {
    PD_ASSIGN_OR_RETURN(const float loss,
                        FetchedNumber(spec_.loss, fetched(spec_.loss)));
    loss_sum_ += static_cast<double>(loss) * static_cast<double>(batch.size);
  }
  for (const MetricUse& use : spec_.metrics) {
    BySlot<Tensor> views;
    MetricBatch judged;
    const auto look_at = [&](MetricSlot slot, const std::string& name) {
      const BatchField* field = FindField(batch.fields, name);
      if (field == nullptr) return;  // not required: CheckMetrics saw to it
      views[slot] = View(*field);
      judged[slot] = &views[slot];
    };
    judged[MetricSlot::kInput] = &fetched(use.prediction);
    if (use.label_variable)
      judged[MetricSlot::kLabel] = &fetched(use.label);
    else
      look_at(MetricSlot::kLabel, use.label);
    for (const MetricUse::More& more : use.more) {
      if (more.variable)
        judged[more.slot] = &fetched(more.name);
      else
        look_at(more.slot, more.name);
    }
    PD_RETURN_IF_ERROR(
        Explained(batch, Annotate(use.metric->Update(judged),
                                  absl::StrCat("metric '", use.name,
                                               "', batch ", batch.index))));
  }
  if (spec_.observer != nullptr) {
    std::vector<const Tensor*> outputs;
    for (const std::string& name : spec_.outputs)
      outputs.push_back(&fetched(name));
    spec_.observer->OnBatch(batch, outputs);
  }
  if (!keep_outputs) return absl::OkStatus();
  for (const std::string& name : spec_.outputs)
    PD_RETURN_IF_ERROR(Keep(name, fetched(name), batch.size));
  return absl::OkStatus();
}

absl::Status Evaluator::Keep(const std::string& name, const Tensor& output,
                             int64_t records) {
  if (output.rank() == 0 || output.dim(0) != records)
    return Unimplemented(
        "output '%s' is %s%s; predictions are kept when they have one row a "
        "record",
        name, Name(output.dtype()), ToString(output.shape()));
  Kept& kept = kept_[name];
  if (!kept.shape.empty() &&
      !std::equal(kept.shape.begin() + 1, kept.shape.end(),
                  output.shape().begin() + 1, output.shape().end()))
    return Unimplemented(
        "output '%s' has rows of different shapes, %s and %s (pad { length: "
        "... } gives all records one length)",
        name, ToString(kept.shape), ToString(output.shape()));
  kept.dtype = output.dtype();
  kept.shape = output.shape();
  const auto* bytes = reinterpret_cast<const std::byte*>(output.raw());
  kept.bytes.insert(
      kept.bytes.end(), bytes,
      bytes + static_cast<size_t>(output.size()) * SizeOf(output.dtype()));
  return absl::OkStatus();
}

}  // namespace pd
