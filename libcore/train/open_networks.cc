// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/open_networks.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/pdmodel.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
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

std::string Absolute(const std::string& file) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(file, error);
  return error ? file : absolute.lexically_normal().string();
}

// The name of what a run keeps of `file`; of one `key` there is one.
std::string KeptName(const std::string& run, const std::string& file,
                     const std::string& key) {
  return absl::StrFormat("%s/networks/%s-%016x", run,
                         std::filesystem::path(file).stem().string(),
                         StreamOf(key));
}

// Where a run keeps the network: a prefix, the same for one file and cut.
std::string KeptPrefix(const std::string& run, const job::SavedModel& model) {
  job::SavedModel whole = model;
  whole.set_file(Absolute(model.file()));
  return KeptName(run, model.file(), NetworkKey(whole));
}

// Where a run keeps a program of the job's `program`.
std::string KeptProgram(const std::string& run, const std::string& file) {
  return absl::StrCat(KeptName(run, file, Absolute(file)), ".pdmodel");
}

absl::StatusOr<LoadedModel> LoadForAnyBatch(const std::string& file) {
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(file));
  if (!model.imported) return model;
  LoadOptions any_batch;
  for (const std::string& feed : model.feeds) {
    const VarDesc* var = model.program.global().FindVar(feed);
    if (var == nullptr || var->shape.empty() || var->shape[0] < 0) continue;
    Shape& shape = any_batch.shapes[feed];
    shape = var->shape;
    shape[0] = -1;
  }
  if (any_batch.shapes.empty()) return model;
  // A structure that hangs on the batch stays as it is.
  absl::StatusOr<LoadedModel> any = LoadModel(file, any_batch);
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

absl::StatusOr<ProgramDesc> OpenProgram(const std::string& file,
                                        const std::string& run) {
  if (!run.empty()) {
    const std::string kept = KeptProgram(run, file);
    if (Exists(kept)) return ReadProgram(kept);
  }
  return ReadProgram(file);
}

absl::StatusOr<LoadedJob> OpenPrograms(const LoadedJob& job,
                                       const std::string& run) {
  const job::SavedProgram& program = job.proto().program();
  SavedPrograms programs;
  PD_ASSIGN_OR_RETURN(programs.main, OpenProgram(program.main(), run));
  PD_ASSIGN_OR_RETURN(programs.startup, OpenProgram(program.startup(), run));
  return WithPrograms(job, std::move(programs));
}

absl::Status KeepProgram(const std::string& run, const std::string& file,
                         const ProgramDesc& program) {
  const std::string kept = KeptProgram(run, file);
  if (Exists(kept)) return absl::OkStatus();
  PD_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(run, "/networks")));
  return WriteProgram(kept, program);
}

}  // namespace

absl::StatusOr<LoadedJob> OpenNetworks(const LoadedJob& job,
                                       const std::string& run) {
  const std::string keeper = run.empty() ? RunOfJobFile(job.path()) : run;
  if (job.proto().has_program()) return OpenPrograms(job, keeper);
  const auto models = SavedModelsOf(job.proto());
  if (models.empty()) return job;
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
  if (const SavedPrograms* programs = job.programs(); programs != nullptr) {
    const job::SavedProgram& program = job.proto().program();
    PD_RETURN_IF_ERROR(KeepProgram(run, program.main(), programs->main));
    return KeepProgram(run, program.startup(), programs->startup);
  }
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
