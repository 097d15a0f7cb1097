// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/run_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/nn/job.h"
#include "libcore/train/resolve_job.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace serve {

absl::StatusOr<LoadedModel> ModelOfRun(const LoadedModel& run) {
  PD_ASSIGN_OR_RETURN(const LoadedJob read,
                      ReadJob(absl::StrCat(run.run, "/job.pbtxt")));
  PD_ASSIGN_OR_RETURN(const LoadedJob job, ResolveJob(read, run.run));
  PD_ASSIGN_OR_RETURN(const auto registry, MakeRegistry());
  PD_ASSIGN_OR_RETURN(const TrainProgram built,
                      BuildTestProgram(*registry, job));
  FeedFetch names;
  names.fetches = built.outputs;
  PD_ASSIGN_OR_RETURN(names.feeds,
                      FeedsNeeded(built.test, built.inputs, built.outputs));
  PD_ASSIGN_OR_RETURN(InferenceModel frozen,
                      Freeze(built.test, names, run.params));
  LoadedModel model;
  model.kind = LoadedModel::Kind::kInference;
  model.path = run.path;
  model.format = run.format;
  model.run = run.run;
  model.classes = run.classes;
  model.program = std::move(frozen.program);
  model.feeds = std::move(frozen.names.feeds);
  model.fetches = std::move(frozen.names.fetches);
  model.params = std::move(frozen.params);
  return model;
}

}  // namespace serve
}  // namespace pd
