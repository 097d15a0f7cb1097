// SPDX-License-Identifier: Apache-2.0
#include "cmd/run_network.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/common/engine.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/train_program.h"

namespace pd {

absl::Status UseNetworkOfRun(const OpRegistry& registry, LoadedModel* model,
                             std::vector<LayerInfo>* layers) {
  if (model->kind != LoadedModel::Kind::kRun) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(
      const LoadedJob job,
      ReadJobFor(absl::StrCat(model->run, "/job.pbtxt"), {}, std::nullopt));
  PD_ASSIGN_OR_RETURN(TrainProgram built, BuildTestProgram(registry, job));
  if (layers != nullptr) *layers = std::move(built.layers);
  model->program = std::move(built.test);
  model->feeds = std::move(built.inputs);
  model->fetches = std::move(built.outputs);
  model->kind = LoadedModel::Kind::kInference;
  return absl::OkStatus();
}

}  // namespace pd
