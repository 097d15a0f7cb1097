// SPDX-License-Identifier: Apache-2.0
#include "cmd/run_check.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/stop_signals.h"
#include "libcore/base/child_process.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/gpu_list.h"
#include "libcore/report/run_history.h"

namespace pd {
namespace {

constexpr int kSteps = 3, kRows = 16, kColumns = 3;
constexpr double kRate = 0.25, kWeight = 0.5;
// Products on a GPU may round their factors to 10 bits (TF32).
constexpr double kTolerance = 1e-5, kGpuTolerance = 5e-3;

// One way to compute, and what came of it.
struct Part {
  std::string name;       // "cpu", "gpu:0", "2 processes"
  std::string arguments;  // of pd-train, besides those that all have
  double tolerance = kTolerance;
  bool works = false;
  std::vector<double> losses;
  std::string problem;
};

struct Row {
  std::array<double, kColumns> x;
  double y;
};

// Quarters and halves, which float32 has exactly.
std::vector<Row> Table() {
  std::vector<Row> rows;
  for (int i = 0; i < kRows; ++i) {
    Row row{{i % 4 * 0.25, i / 4 * 0.25, i % 2 * 0.5}, 0};
    row.y = 2 * row.x[0] - row.x[1] + row.x[2] + 0.25;
    rows.push_back(row);
  }
  return rows;
}

// The losses before each step of gradient descent on the mean squared error of
// y = w x + b.
std::vector<double> ExpectedLosses() {
  std::array<double, kColumns> w;
  w.fill(kWeight);
  double b = 0;
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    double loss = 0, gradient_b = 0;
    std::array<double, kColumns> gradient_w{};
    for (const Row& row : Table()) {
      double error = b - row.y;
      for (int i = 0; i < kColumns; ++i) error += w[i] * row.x[i];
      loss += error * error / kRows;
      gradient_b += 2 * error / kRows;
      for (int i = 0; i < kColumns; ++i)
        gradient_w[i] += 2 * error * row.x[i] / kRows;
    }
    losses.push_back(loss);
    b -= kRate * gradient_b;
    for (int i = 0; i < kColumns; ++i) w[i] -= kRate * gradient_w[i];
  }
  return losses;
}

std::string TableText() {
  std::string text = "x1,x2,x3,y\n";
  for (const Row& row : Table())
    absl::StrAppend(&text, absl::StrJoin(row.x, ","), ",", row.y, "\n");
  return text;
}

std::string JobText() {
  return absl::StrFormat(
      R"(name: "run_check"
model {
  input { name: "x" shape: [-1, %d] }
  layer {
    linear {
      out_features: 1
      weight_attr { initializer { constant { value: %g } } }
    }
  }
}
loss { label: "y" mse_loss {} }
optimizer { sgd { learning_rate: %g } }
data {
  train {
    csv {
      path: "table.csv"
      field { name: "x" column: ["x1", "x2", "x3"] }
      field { name: "y" column: "y" }
    }
    batch_size: %d
  }
}
train { epochs: %d log { every_steps: 1 } }
distributed { shards: 2 }
)",
      kColumns, kWeight, kRate, kRows, kSteps);
}

// A folder for the runs, which goes with its owner.
class ScratchFolder {
 public:
  static absl::StatusOr<ScratchFolder> Make() {
    std::error_code error;
    const auto base = std::filesystem::temp_directory_path(error);
    std::string path =
        (error ? std::filesystem::path("/tmp") : base) / "pd-run-check-XXXXXX";
    if (mkdtemp(path.data()) == nullptr)
      return ErrnoToStatus(errno, absl::StrCat("cannot make '", path, "'"));
    return ScratchFolder(path);
  }
  ScratchFolder(ScratchFolder&& other)
      : path_(std::exchange(other.path_, "")) {}
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Runs pd-train for `part` in `folder`; the losses of its log.
absl::StatusOr<std::vector<double>> Train(const std::string& folder,
                                          const std::string& run,
                                          const Part& part) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return ErrnoToStatus(error.value(), "cannot read the link /proc/self/exe");
  ChildProcessOptions options;
  options.folder = folder;
  options.timeout = 120;
  options.interrupted = [] { return StopRequested() != 0; };
  options.command =
      absl::StrCat("exec ", ShellQuoted(program.string()),
                   " -q -c job.pbtxt --out ", run, " ", part.arguments);
  PD_ASSIGN_OR_RETURN(const auto child, ChildProcess::Start(options));
  for (char text[4096];;) {
    PD_ASSIGN_OR_RETURN(const size_t size, child->Read(text, sizeof text));
    if (size == 0) break;
  }
  PD_RETURN_IF_ERROR(child->Finish());
  RunHistory history;
  PD_RETURN_IF_ERROR(history.Read(absl::StrCat(folder, "/", run)));
  std::vector<double> losses;
  const auto logged = history.series().find("train/loss");
  if (logged != history.series().end())
    for (const RunHistory::Point& point : logged->second)
      losses.push_back(point.value);
  return losses;
}

std::string LossText(const std::vector<double>& losses) {
  return absl::StrJoin(losses, " ", [](std::string* text, double loss) {
    absl::StrAppendFormat(text, "%.6g", loss);
  });
}

void Judge(const absl::StatusOr<std::vector<double>>& losses, Part* part) {
  if (!losses.ok()) {
    part->problem = std::string(losses.status().message());
    return;
  }
  part->losses = *losses;
  const std::vector<double> expected = ExpectedLosses();
  part->works = losses->size() == expected.size();
  for (size_t i = 0; part->works && i < expected.size(); ++i)
    part->works = std::abs((*losses)[i] - expected[i]) <=
                  part->tolerance * std::abs(expected[i]);
  if (!part->works)
    part->problem =
        absl::StrCat("the losses of ", kSteps, " steps are ", LossText(*losses),
                     "; right are ", LossText(expected));
}

std::vector<Part> Parts(const GpuList& gpus) {
  std::vector<Part> parts = {{"cpu", "--device cpu"}};
  for (const GpuInfo& gpu : gpus.gpus) {
    const std::string name = absl::StrCat("gpu:", gpu.index);
    parts.push_back({name, "--device " + name, kGpuTolerance});
  }
  parts.push_back({"2 processes", "--device cpu --threads 1 --processes 2"});
  return parts;
}

void Print(const std::vector<Part>& parts, bool json, std::ostream& out) {
  if (json) {
    auto object = nlohmann::ordered_json::object();
    for (const Part& part : parts) {
      auto& entry = object[part.name];
      entry["works"] = part.works;
      if (!part.losses.empty()) entry["losses"] = part.losses;
      if (!part.works) entry["problem"] = part.problem;
    }
    out << DumpJson(object) << "\n";
    return;
  }
  for (const Part& part : parts)
    out << absl::StrFormat(
        "%-13s%s\n", part.name,
        part.works
            ? absl::StrCat("works: the losses of ", kSteps,
                           " steps are right (", LossText(part.losses), ")")
            : absl::StrCat("does not work: ", part.problem));
}

}  // namespace

absl::Status RunCheck(bool json, std::ostream& out) {
  InstallStopSignals();
  PD_ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Make());
  PD_RETURN_IF_ERROR(WriteFile(folder.path() + "/job.pbtxt", JobText()));
  PD_RETURN_IF_ERROR(WriteFile(folder.path() + "/table.csv", TableText()));
  std::vector<Part> parts = Parts(ListGpus());
  std::vector<std::string> failed;
  for (size_t i = 0; i < parts.size(); ++i) {
    Judge(Train(folder.path(), absl::StrCat("run", i), parts[i]), &parts[i]);
    if (StopRequested() != 0)
      return StoppedBySignal(StopRequested(), "stopped; nothing was kept");
    if (!parts[i].works) failed.push_back(parts[i].name);
  }
  Print(parts, json, out);
  if (failed.empty()) return absl::OkStatus();
  return AnswerNo(
      absl::StrCat("this does not work here: ", absl::StrJoin(failed, ", ")));
}

}  // namespace pd
