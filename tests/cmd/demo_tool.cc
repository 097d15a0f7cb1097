// SPDX-License-Identifier: Apache-2.0
#include "tests/cmd/demo_tool.h"

#include <chrono>
#include <filesystem>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/print_error.h"
#include "cmd/common/progress.h"
#include "cmd/common/stop_signals.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

Manual DemoManual() {
  Manual manual;
  manual.name = "pd-demo";
  manual.summary = "take steps and print them";
  manual.synopsis = {
      "-c JOB [-o PATH=VALUE]... [--steps N] [--end done|no|job|work] "
      "[FILE...]",
      "--threshold X [--log]"};
  manual.description = {
      "`pd-demo` takes steps. Each prints a line; `--steps` says how many. "
      "A back slash \\ and a .dot are harmless, as is `-`.",
      "'Quoted' paragraphs too."};
  manual.files = {{"RUN/log.jsonl", "One line a step."}};
  manual.answer_no = "the threshold is missed";
  manual.stops_by_signal = true;
  manual.examples = {
      {"take two steps", "pd-demo -c job --steps 2 'a\"b' -", 0}};
  manual.see_also = {"pd-eval 1", "pd-train 1"};
  return manual;
}

absl::Status End(const std::string& ending) {
  if (ending == "no") return AnswerNo("2 of 3 arrays differ");
  if (ending == "job")
    return UsageError(InvalidArgument("job.pbtxt:12:9: unknown field 'x'"));
  if (ending == "memory") throw std::bad_alloc();
  // Exceptions of the standard library.
  if (ending == "length")
    std::vector<char>().resize(std::numeric_limits<size_t>::max());
  if (ending == "range") (void)std::string().at(1);
  if (ending == "folder") (void)std::filesystem::file_size("/nowhere/file");
  if (ending != "work") return absl::OkStatus();
  absl::Status status = InvalidArgument("attr 'axis' is 4\x1b[31m");
  status.SetPayload(kHintPayload, absl::Cord("Expected 4 < 2."));
  status.SetPayload(kOperatorPayload, absl::Cord("softmax"));
  return Annotate(status, "model.pdmodel");
}

}  // namespace

Tool DemoTool(DemoOptions* o) {
  Tool tool;
  tool.manual = DemoManual();
  tool.common = &o->common;
  tool.bind = [o](OptionTable* table) {
    table->Group("Job");
    table->Text({"-c,--config", "JOB", "the job file"}, &o->config);
    table->Require("--config");
    table->Texts({"-o,--override", "PATH=VALUE", "change a field of the job"},
                 &o->overrides);
    table->Integer({"--steps", "N", "number of steps"}, {1, 1000000},
                   &o->steps);
    table->Real({"--step-ms", "MS", "time of one step"}, {}, &o->step_ms);
    table->Real({"--threshold", "X", "what must be reached"}, {0, 1},
                &o->threshold);
    table->Choice(
        {"--end", "HOW", "how it ends"},
        {"done", "no", "job", "work", "memory", "length", "range", "folder"},
        &o->ending);
    table->Switch({"--log", "", "log a line now and then"}, &o->log);
    table->Positional({"", "FILE", "files to name"}, 2, &o->files);
    table->TakesStream("FILE", StandardStream::kInput);
  };
  tool.validate = [](const OptionTable& table) {
    return table.Needs("--log", "--steps");
  };
  return tool;
}

absl::Status RunDemo(const DemoOptions& options, std::ostream& out) {
  InstallStopSignals();
  Progress progress(Progress::Standard());
  constexpr int64_t kEpochs = 2;
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    progress.Begin(absl::StrCat("epoch ", epoch, "/", kEpochs), options.steps);
    for (int64_t step = 1; step <= options.steps; ++step) {
      std::this_thread::sleep_for(
          std::chrono::duration<double, std::milli>(options.step_ms));
      out << "step " << step << "\n";
      if (!out) return Unavailable("nobody reads the results");
      if (options.log && step % 100 == 0) LogInfo("note at step %d", step);
      const ProgressValue loss{"loss", 2.3 / static_cast<double>(step)};
      progress.Update(step, step * 64, {&loss, 1});
      if (const int signal = StopRequested())
        return StoppedBySignal(signal,
                               absl::StrCat("stopped by ", SignalName(signal),
                                            " after step ", step));
    }
    progress.End();
  }
  return End(options.ending);
}

}  // namespace pd
