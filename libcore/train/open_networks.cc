// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/open_networks.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/paddle_export.h"
#include "libcore/model/cut_model.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/saved_networks.h"
#include "libcore/train/run_vocabularies.h"

namespace pd {
namespace {

// Where a run keeps the network: a prefix, the same for one file and cut.
std::string KeptPrefix(const std::string& run, const job::SavedModel& model) {
  namespace fs = std::filesystem;
  job::SavedModel whole = model;
  std::error_code error;
  const fs::path absolute = fs::absolute(model.file(), error);
  if (!error) whole.set_file(absolute.lexically_normal().string());
  return absl::StrFormat("%s/networks/%s-%016x", run,
                         fs::path(model.file()).stem().string(),
                         StreamOf(NetworkKey(whole)));
}

// Files of ONNX often say one record for a batch.
absl::StatusOr<LoadedModel> LoadForAnyBatch(const std::string& file) {
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(file));
  if (model.format != "onnx") return model;
  std::map<std::string, Shape> open;
  for (const std::string& feed : model.feeds) {
    const VarDesc* var = model.program.global().FindVar(feed);
    if (var == nullptr || var->shape.empty() || var->shape[0] < 0) continue;
    open[feed] = var->shape;
    open[feed][0] = -1;
  }
  if (open.empty()) return model;
  // A structure that hangs on the batch stays as it is.
  absl::StatusOr<LoadedModel> any = LoadModel(file, nullptr, open);
  if (any.ok()) return any;
  return model;
}

absl::StatusOr<SavedNetwork> OpenNetwork(const job::SavedModel& model,
                                         const std::string& run) {
  if (!run.empty()) {
    const std::string kept = absl::StrCat(KeptPrefix(run, model), ".pdmodel");
    if (Exists(kept)) {
      PD_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(kept));
      return CutModel(std::move(loaded), {});
    }
  }
  PD_ASSIGN_OR_RETURN(LoadedModel loaded, LoadForAnyBatch(model.file()));
  return CutModel(std::move(loaded), {model.cut().begin(), model.cut().end()});
}

}  // namespace

absl::StatusOr<LoadedJob> OpenNetworks(const LoadedJob& job,
                                       const std::string& run) {
  const auto models = SavedModelsOf(job.proto());
  if (models.empty()) return job;
  const std::string keeper = run.empty() ? RunOfJobFile(job.path()) : run;
  SavedNetworks networks;
  for (const job::SavedModel* model : models) {
    if (networks.count(NetworkKey(*model)) > 0) continue;
    auto network = OpenNetwork(*model, keeper);
    // A file that cannot be read is no mistake of the job.
    if (absl::IsInvalidArgument(network.status()))
      return job.At(network.status(), *model,
                    model->cut_size() > 0 ? "cut" : "file");
    PD_RETURN_IF_ERROR(network.status());
    networks[NetworkKey(*model)] = *std::move(network);
  }
  return WithNetworks(job, std::move(networks));
}

absl::Status KeepNetworks(const LoadedJob& job, const std::string& run) {
  for (const job::SavedModel* model : SavedModelsOf(job.proto())) {
    const std::string prefix = KeptPrefix(run, *model);
    const SavedNetwork& network = job.networks().at(NetworkKey(*model));
    if (network.path == absl::StrCat(prefix, ".pdmodel")) continue;
    InferenceModel kept;
    kept.program = network.program;
    kept.names.feeds = network.feeds;
    kept.names.fetches = network.outputs;
    kept.params = network.params;
    PD_RETURN_IF_ERROR(WritePaddleModel(kept, prefix));
  }
  return absl::OkStatus();
}

}  // namespace pd
