// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/checkpoint.h"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_remains.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kStateFile[] = "state.json";
constexpr const char* kDataFiles[] = {"model.pdmodel", "model.pdparams",
                                      "model.pdopt"};
constexpr char kExperienceFile[] = "experience.npz";
constexpr int kStateVersion = 1;

std::string Folder(const std::string& run) {
  return (fs::path(run) / "checkpoints").string();
}

uint32_t Checksum(const FileBytes& file) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(file.data.get()), file.size));
}

Json ToJson(const EarlyStoppingState& s) {
  return {{"best_value", s.best_value},
          {"best_step", s.best_step},
          {"wait", s.wait}};
}

// The state of a schedule; its arguments are the job's.
Json ToJson(const ReduceOnPlateau& s) {
  return {{"learning_rate", s.learning_rate},
          {"has_best", s.has_best},
          {"best", s.best},
          {"cooldown_counter", s.cooldown_counter},
          {"num_bad_epochs", s.num_bad_epochs}};
}

Json ToJson(const TrainState& s) {
  Json json = {{"version", kStateVersion},
               {"step", s.step},
               {"epoch", s.epoch},
               {"batch", s.batch},
               {"seed", s.seed},
               {"threads", s.threads},
               {"loss_sum", s.loss_sum},
               {"loss_records", s.loss_records},
               {"best_metric", s.best_metric},
               {"best_value", s.best_value},
               {"best_step", s.best_step},
               {"evaluated_step", s.evaluated_step},
               {"log_bytes", s.log_bytes},
               {"early_stopping", ToJson(s.early_stopping)},
               {"done", s.done}};
  if (s.plateau.has_value()) json["plateau"] = ToJson(*s.plateau);
  return json;
}

EarlyStoppingState EarlyStoppingFromJson(const Json& j) {
  EarlyStoppingState s;
  j.at("best_value").get_to(s.best_value);
  j.at("best_step").get_to(s.best_step);
  j.at("wait").get_to(s.wait);
  return s;
}

ReduceOnPlateau PlateauFromJson(const Json& j) {
  ReduceOnPlateau s;
  j.at("learning_rate").get_to(s.learning_rate);
  j.at("has_best").get_to(s.has_best);
  j.at("best").get_to(s.best);
  j.at("cooldown_counter").get_to(s.cooldown_counter);
  j.at("num_bad_epochs").get_to(s.num_bad_epochs);
  return s;
}

// Throws Json::exception on a missing or mistyped field.
TrainState FromJson(const Json& j) {
  TrainState s;
  j.at("step").get_to(s.step);
  j.at("epoch").get_to(s.epoch);
  j.at("batch").get_to(s.batch);
  j.at("seed").get_to(s.seed);
  j.at("threads").get_to(s.threads);
  j.at("loss_sum").get_to(s.loss_sum);
  j.at("loss_records").get_to(s.loss_records);
  j.at("best_metric").get_to(s.best_metric);
  j.at("best_value").get_to(s.best_value);
  j.at("best_step").get_to(s.best_step);
  j.at("evaluated_step").get_to(s.evaluated_step);
  j.at("log_bytes").get_to(s.log_bytes);
  j.at("done").get_to(s.done);
  // Checkpoints of before have neither.
  if (j.contains("early_stopping"))
    s.early_stopping = EarlyStoppingFromJson(j["early_stopping"]);
  if (j.contains("plateau")) s.plateau = PlateauFromJson(j["plateau"]);
  return s;
}

// The file that paddle.save writes of a network's state_dict, which
// paddle.static.load takes too.
absl::Status WriteParams(const std::string& path, const Checkpoint& c) {
  StateDict state;
  state.tensors = c.params;
  state.parameter_names = c.parameter_names;
  state.has_parameter_names = true;
  for (const auto& [variable, name] : c.parameter_names)
    state.order.push_back(variable);
  return WriteStateDict(path, state);
}

// The same of an optimizer's. Its states have one name only.
absl::Status WriteOpt(const std::string& path, const Checkpoint& c) {
  StateDict state;
  state.tensors = c.opt;
  state.has_parameter_names = true;
  for (const auto& [name, value] : c.opt)
    state.parameter_names.emplace_back(name, name);
  if (c.lr_scheduler.has_value())
    state.others.Add(std::string(kLRSchedulerKey),
                     PickleValue{*c.lr_scheduler});
  return WriteStateDict(path, state);
}

absl::Status WriteFiles(const std::string& folder, const Checkpoint& c) {
  PD_RETURN_IF_ERROR(
      WriteProgram(absl::StrCat(folder, "/", kDataFiles[0]), c.program));
  PD_RETURN_IF_ERROR(WriteParams(absl::StrCat(folder, "/", kDataFiles[1]), c));
  PD_RETURN_IF_ERROR(WriteOpt(absl::StrCat(folder, "/", kDataFiles[2]), c));
  std::vector<std::string> names(std::begin(kDataFiles), std::end(kDataFiles));
  if (!c.experience.empty()) {
    names.push_back(kExperienceFile);
    PD_RETURN_IF_ERROR(
        WriteNpz(absl::StrCat(folder, "/", kExperienceFile), c.experience));
  }
  Json state = ToJson(c.state);
  for (const std::string& name : names) {
    PD_ASSIGN_OR_RETURN(FileBytes file,
                        ReadFile(absl::StrCat(folder, "/", name)));
    state["files"][name] = {{"bytes", file.size}, {"crc32", Checksum(file)}};
  }
  return WriteFile(absl::StrCat(folder, "/", kStateFile),
                   DumpJson(state, 2) + "\n");
}

// One file of the checkpoint against what state.json says of it.
absl::Status CheckFile(const std::string& path, const Json& said) {
  PD_ASSIGN_OR_RETURN(FileBytes file, ReadFile(path));
  const size_t bytes = said.at("bytes").get<size_t>();
  if (file.size != bytes)
    return DataLoss("'%s' is damaged: it has %d bytes; %d were written", path,
                    file.size, bytes);
  const uint32_t crc = said.at("crc32").get<uint32_t>();
  if (Checksum(file) != crc)
    return DataLoss("'%s' is damaged: its checksum is %08x; %08x was written",
                    path, Checksum(file), crc);
  return absl::OkStatus();
}

// Calls `use` on what a checkpoint's state.json holds.
template <typename Use>
absl::StatusOr<TrainState> ReadStateFile(const std::string& folder,
                                         const Use& use) {
  const std::string path = absl::StrCat(folder, "/", kStateFile);
  PD_ASSIGN_OR_RETURN(FileBytes file, ReadFile(path));
  const absl::string_view text = file.view();
  try {
    const Json json = Json::parse(text.data(), text.data() + text.size());
    const int version = json.at("version").get<int>();
    if (version != kStateVersion)
      return Unimplemented("'%s' has version %d; this program reads %d", path,
                           version, kStateVersion);
    PD_RETURN_IF_ERROR(use(json));
    return FromJson(json);
  } catch (const Json::parse_error& error) {
    return DataLoss("'%s' is damaged: it is no JSON from byte %d on", path,
                    error.byte);
  } catch (const Json::exception&) {
    return DataLoss(
        "'%s' is damaged: a field is missing, or of another type than this "
        "program writes",
        path);
  }
}

// The state, and its files as it says that they are; `*experience` is whether
// there is that of environments.
absl::StatusOr<TrainState> ReadState(const std::string& folder,
                                     bool* experience) {
  const auto check = [&](const Json& json) -> absl::Status {
    std::vector<std::string> names(std::begin(kDataFiles),
                                   std::end(kDataFiles));
    *experience = json.at("files").contains(kExperienceFile);
    if (*experience) names.push_back(kExperienceFile);
    for (const std::string& name : names)
      PD_RETURN_IF_ERROR(CheckFile(absl::StrCat(folder, "/", name),
                                   json.at("files").at(name)));
    return absl::OkStatus();
  };
  return ReadStateFile(folder, check);
}

// Where a folder goes that is to be removed. Removing takes many steps, a
// rename one: whoever is killed meanwhile leaves nothing that looks like a
// checkpoint.
std::string RemovedName(const std::string& run, int64_t step) {
  return absl::StrCat(Folder(run), "/.step-", step, ".old");
}

void RemoveCheckpoint(const std::string& run, int64_t step) {
  const std::string removed = RemovedName(run, step);
  std::error_code error;
  fs::remove_all(removed, error);
  fs::rename(CheckpointPath(run, step), removed, error);
  if (!error) fs::remove_all(removed, error);
}

// Renames a folder. One that is there already (a resumed run reaches the same
// step again) changes places with the new one in a single move.
absl::Status MoveIntoPlace(const std::string& run, int64_t step,
                           const std::string& aside) {
  const std::string target = CheckpointPath(run, step);
  std::error_code error;
  if (fs::exists(target, error) &&
      ::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, target.c_str(),
                  RENAME_EXCHANGE) == 0) {
    fs::remove_all(aside, error);
    return absl::OkStatus();
  }
  RemoveCheckpoint(run, step);  // a file system that cannot exchange
  fs::rename(aside, target, error);
  if (error)
    return ErrnoToStatus(error.value(),
                         absl::StrCat("cannot make '", target, "'"));
  return absl::OkStatus();
}

// Folders that a killed run left half-written or half-removed.
void RemoveUnfinished(const std::string& run) {
  std::error_code ignored;  // folders that stay do no harm
  for (fs::directory_iterator it(Folder(run), ignored), end;
       !ignored && it != end; it.increment(ignored)) {
    std::error_code left;
    if (absl::StartsWith(it->path().filename().string(), ".step-"))
      fs::remove_all(it->path(), left);
  }
}

void RemoveOld(const std::string& run, const TrainState& state, int keep_last) {
  RemoveUnfinished(run);
  if (keep_last <= 0) return;
  std::vector<int64_t> steps = ListCheckpoints(run);
  const size_t keep = static_cast<size_t>(keep_last);
  for (size_t i = 0; i + keep < steps.size(); ++i)
    if (steps[i] != state.best_step && steps[i] != state.step &&
        steps[i] != state.early_stopping.best_step)
      RemoveCheckpoint(run, steps[i]);
}

}  // namespace

std::string CheckpointPath(const std::string& run, int64_t step) {
  return absl::StrCat(Folder(run), "/step-", step);
}

absl::Status WriteCheckpoint(const std::string& run,
                             const Checkpoint& checkpoint, int keep_last) {
  const std::string aside =
      absl::StrCat(Folder(run), "/.step-", checkpoint.state.step);
  PD_RETURN_IF_ERROR(MakeDirectories(Folder(run)));
  std::error_code error;
  fs::remove_all(aside, error);
  PD_RETURN_IF_ERROR(MakeDirectories(aside));
  absl::Status status = WriteFiles(aside, checkpoint);
  if (status.ok()) status = SyncDirectory(aside);
  if (!status.ok()) {
    fs::remove_all(aside, error);
    return Annotate(status, "cannot save a checkpoint");
  }
  PD_RETURN_IF_ERROR(MoveIntoPlace(run, checkpoint.state.step, aside));
  PD_RETURN_IF_ERROR(SyncDirectory(Folder(run)));
  PD_RETURN_IF_ERROR(
      WriteFile(absl::StrCat(run, "/latest"),
                absl::StrCat("step-", checkpoint.state.step, "\n")));
  RemoveOld(run, checkpoint.state, keep_last);
  return absl::OkStatus();
}

void RemoveRemainsOfRun(const std::string& run) {
  RemoveRemainsIn(run);
  RemoveRemainsIn(absl::StrCat(run, "/vocabularies"));
  RemoveUnfinished(run);
}

std::vector<int64_t> ListCheckpoints(const std::string& run) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(Folder(run), error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    int64_t step = 0;
    if (absl::ConsumePrefix(&number, "step-") &&
        absl::SimpleAtoi(number, &step) &&
        fs::exists(entry.path() / kStateFile, error))
      steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::StatusOr<std::string> NewestCheckpoint(const std::string& run) {
  auto latest = ReadFile(absl::StrCat(run, "/latest"));
  if (latest.ok()) {
    const std::string name(absl::StripAsciiWhitespace(latest->view()));
    int64_t step = 0;
    if (!absl::StartsWith(name, "step-") ||
        !absl::SimpleAtoi(absl::string_view(name).substr(5), &step))
      return DataLoss("'%s/latest' is damaged: it says '%s'; expected step-N",
                      run, name);
    return CheckpointPath(run, step);
  }
  // Killed between the renames of the first checkpoint and of `latest`.
  const std::vector<int64_t> steps = ListCheckpoints(run);
  if (steps.empty()) return NotFound("run '%s' holds no checkpoint", run);
  return CheckpointPath(run, steps.back());
}

absl::StatusOr<TrainState> ReadTrainState(const std::string& folder) {
  return ReadStateFile(folder, [](const Json&) { return absl::OkStatus(); });
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& folder) {
  Checkpoint c;
  bool experience = false;
  PD_ASSIGN_OR_RETURN(c.state, ReadState(folder, &experience));
  PD_ASSIGN_OR_RETURN(c.program,
                      ReadProgram(absl::StrCat(folder, "/", kDataFiles[0])));
  PD_ASSIGN_OR_RETURN(StateDict params,
                      ReadStateDict(absl::StrCat(folder, "/", kDataFiles[1])));
  PD_ASSIGN_OR_RETURN(StateDict opt,
                      ReadStateDict(absl::StrCat(folder, "/", kDataFiles[2])));
  c.params = std::move(params.tensors);
  c.opt = std::move(opt.tensors);
  if (experience) {
    PD_ASSIGN_OR_RETURN(c.experience,
                        ReadNpz(absl::StrCat(folder, "/", kExperienceFile)));
  }
  return c;
}

}  // namespace pd
