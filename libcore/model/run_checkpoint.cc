// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/run_checkpoint.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

bool IsRun(const std::string& folder) {
  return Exists(absl::StrCat(folder, "/latest")) ||
         Exists(absl::StrCat(folder, "/checkpoints"));
}

// The run that a checkpoint's folder lies in, or "".
std::string RunAround(const std::string& folder) {
  const auto above = [](const fs::path& path) -> std::string {
    const fs::path parent = path.parent_path();
    if (parent.filename() != "checkpoints") return "";
    const fs::path run = parent.parent_path();
    if (!Exists(((run.empty() ? "." : run) / "job.pbtxt").string())) return "";
    return run.empty() ? "." : run.string();
  };
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "step-5/"
  const std::string run = above(path);
  if (!run.empty()) return run;
  std::error_code error;
  path = fs::canonical(folder, error);  // a link, or "."
  return error ? "" : above(path);
}

std::string StepsOf(const std::string& run) {
  std::vector<std::string> names;
  for (const int64_t step : ListCheckpoints(run))
    names.push_back(absl::StrCat("step-", step));
  return names.empty() ? "no checkpoint" : absl::StrJoin(names, ", ");
}

absl::StatusOr<int64_t> BestStep(const std::string& run) {
  PD_ASSIGN_OR_RETURN(const std::string newest, NewestCheckpoint(run));
  PD_ASSIGN_OR_RETURN(const TrainState state, ReadTrainState(newest));
  const int64_t best =
      state.best_step >= 0 ? state.best_step : state.early_stopping.best_step;
  if (best < 0)
    return InvalidArgument(
        "'%s@best': the run has followed no result; train.checkpoint.best of "
        "its job says which. There are %s",
        run, StepsOf(run));
  return best;
}

}  // namespace

absl::StatusOr<std::optional<RunCheckpoint>> FindRunCheckpoint(
    const std::string& model) {
  std::optional<RunCheckpoint> found;
  if (IsFolder(model)) {
    if (Exists(absl::StrCat(model, "/state.json"))) {
      found = RunCheckpoint{model, RunAround(model), false};
    } else if (IsRun(model)) {
      PD_ASSIGN_OR_RETURN(const std::string newest, NewestCheckpoint(model));
      found = RunCheckpoint{newest, model, true};
    }
    return found;
  }
  const size_t at = model.rfind('@');
  if (at == std::string::npos || at == 0 || Exists(model)) return found;
  const std::string run = model.substr(0, at);
  if (!IsRun(run)) return found;
  absl::string_view which = absl::string_view(model).substr(at + 1);
  int64_t step = 0;
  if (which == "best") {
    PD_ASSIGN_OR_RETURN(step, BestStep(run));
  } else if (!absl::ConsumePrefix(&which, "step-") ||
             !absl::SimpleAtoi(which, &step) || step < 0) {
    return InvalidArgument(
        "'%s': expected '%s@best' or '%s@step-N'; there "
        "are %s",
        model, run, run, StepsOf(run));
  }
  const std::string folder = CheckpointPath(run, step);
  if (!Exists(absl::StrCat(folder, "/state.json")))
    return NotFound("'%s': run '%s' has no checkpoint of step %d; there are %s",
                    model, run, step, StepsOf(run));
  found = RunCheckpoint{folder, run, false};
  return found;
}

int64_t WholeCheckpointBefore(const std::string& run,
                              const std::string& folder) {
  const std::vector<int64_t> steps = ListCheckpoints(run);
  for (size_t i = steps.size(); i-- > 0;) {
    const std::string path = CheckpointPath(run, steps[i]);
    if (path != folder && ReadCheckpoint(path).ok()) return steps[i];
  }
  return -1;
}

absl::StatusOr<Checkpoint> ReadRunCheckpoint(const RunCheckpoint& chosen) {
  absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(chosen.folder);
  if (checkpoint.ok() || !chosen.newest) return checkpoint;
  const int64_t before = WholeCheckpointBefore(chosen.run, chosen.folder);
  if (before < 0) return checkpoint;
  return absl::Status(
      checkpoint.status().code(),
      absl::StrCat(checkpoint.status().message(), "; '", chosen.run, "@step-",
                   before, "' is the checkpoint before, and whole"));
}

}  // namespace pd
