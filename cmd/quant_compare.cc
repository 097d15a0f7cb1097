// SPDX-License-Identifier: Apache-2.0
#include "cmd/quant_compare.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/progress.h"
#include "cmd/evaluation_spec.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/metric_results.h"
#include "libcore/train/open_data.h"
#include "libcore/train/run_vocabularies.h"

namespace pd {

LoadedModel AsLoaded(const InferenceModel& model, const std::string& path) {
  LoadedModel loaded;
  loaded.kind = LoadedModel::Kind::kInference;
  loaded.path = path;
  loaded.program = model.program;
  loaded.feeds = model.names.feeds;
  loaded.fetches = model.names.fetches;
  loaded.params = model.params;
  return loaded;
}

absl::StatusOr<std::unique_ptr<QuantJudge>> QuantJudge::Open(
    const OpRegistry* registry, const std::string& config,
    const std::string& metric) {
  PD_ASSIGN_OR_RETURN(LoadedJob job, ReadJobFor(config, {}, std::nullopt));
  const absl::Status needs = job.Require({"data.eval"}, "--compare");
  if (!needs.ok()) return UsageError(needs);
  std::unique_ptr<QuantJudge> judge(new QuantJudge(registry, std::move(job)));
  const std::vector<ResultInfo> results = ResultsOf(judge->job_.proto());
  if (results.empty())
    return UsageError(
        InvalidArgument("'%s' has neither metric nor loss: there is nothing "
                        "to compare",
                        config));
  const ResultInfo* found = FindResult(results, metric);
  if (metric.empty())
    found = &results[results.size() > 1 && results[0].name == "loss" ? 1 : 0];
  if (found == nullptr)
    return UsageError(NotFound("'%s' has no result '%s'; it has %s", config,
                               metric, NamesOf(results)));
  judge->metric_ = found->name;
  judge->larger_is_better_ = found->larger_is_better;
  RunVocabularies vocabularies(RunOfJobFile(config));
  PD_ASSIGN_OR_RETURN(
      judge->loader_,
      OpenLoader(judge->job_, judge->job_.proto().data().eval(),
                 judge->job_.proto().train().seed(), &vocabularies));
  auto built = BuildTestProgram(*registry, judge->job_);
  if (!built.ok()) return UsageError(built.status());
  judge->program_ = *std::move(built);
  return judge;
}

absl::StatusOr<double> QuantJudge::Evaluate(const InferenceModel& model,
                                            const std::string& label) {
  const LoadedModel loaded = AsLoaded(model, label);
  PD_ASSIGN_OR_RETURN(EvaluationSpec spec, SpecOfModel(program_, loaded));
  // It is not looked at; a model need not give what a loss reads.
  if (metric_ != "loss") spec.loss.clear();
  Session session(registry_, job_.proto().train().seed());
  PD_RETURN_IF_ERROR(FillScope(loaded, &session.scope()));
  auto evaluator = Evaluator::Create(&session, loader_.get(), std::move(spec));
  if (!evaluator.ok()) return MarkJobErrors(job_, evaluator.status());
  Progress progress(Progress::Standard());
  progress.Begin(label, loader_->batches());
  auto result = (*evaluator)->Run(false, [&](int64_t batches, int64_t records) {
    progress.Update(batches, records);
    return true;
  });
  progress.End();
  PD_RETURN_IF_ERROR(result.status());
  const auto value = result->Find(metric_);
  if (!value.has_value())
    return FailedPrecondition("the evaluation gave no '%s'", metric_);
  return *value;
}

double QuantJudge::Drop(double before, double after) const {
  return 100 * (larger_is_better_ ? before - after : after - before);
}

}  // namespace pd
