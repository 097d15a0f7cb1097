// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/predict.h"

#include <memory>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/plan_cache.h"

namespace pd {
namespace {

// Plans are made for fields by their places.
bool SameFields(const std::vector<BatchField>& a,
                const std::vector<BatchField>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].dtype != b[i].dtype ||
        a[i].shape != b[i].shape)
      return false;
  return true;
}

absl::Status CheckRows(const std::string& name, const Tensor& output,
                       int64_t records) {
  if (output.rank() > 0 && output.dim(0) == records) return absl::OkStatus();
  return Unimplemented(
      "output '%s' is %s%s for %d records; predictions have one row a record "
      "(--feed runs such a network, --fetch chooses outputs)",
      name, Name(output.dtype()), ToString(output.shape()), records);
}

}  // namespace

absl::StatusOr<int64_t> Predict(const Predictor& predictor, Session* session,
                                PredictionData* data,
                                const PredictionSink& sink,
                                BadRecords* skipped) {
  std::optional<PlanCache> plans;
  std::vector<BatchField> fields;
  int64_t records = 0;
  RunContext run;  // each batch draws other numbers
  run.seed = session->seed();
  for (;;) {
    PD_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader, data->Next());
    if (loader == nullptr) break;
    if (!plans.has_value() || !SameFields(fields, loader->fields())) {
      PD_ASSIGN_OR_RETURN(
          plans,
          PlanCache::Create(session, &predictor.program, predictor.inputs,
                            predictor.outputs, loader->fields(), "predict"));
      fields = loader->fields();
    }
    PD_RETURN_IF_ERROR(loader->StartEpoch(0));
    for (;;) {
      PD_ASSIGN_OR_RETURN(const Batch* batch, loader->Next());
      if (batch == nullptr) break;
      PD_ASSIGN_OR_RETURN(Plan * plan, plans->Feed(batch->fields));
      PD_RETURN_IF_ERROR(plan->Run(run));
      ++run.step;
      std::vector<const Tensor*> outputs;
      for (size_t i = 0; i < predictor.outputs.size(); ++i) {
        outputs.push_back(&plan->fetch(i));
        if (predictor.counted[i]) continue;
        PD_RETURN_IF_ERROR(
            CheckRows(predictor.outputs[i], *outputs[i], batch->size));
      }
      PD_RETURN_IF_ERROR(sink(*batch, loader->dataset(), outputs));
      records += batch->size;
    }
    skipped->Add(loader->skipped());
  }
  skipped->Add(data->left_out());
  return records;
}

}  // namespace pd
