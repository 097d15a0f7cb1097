// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/tool.h"

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cmd/common/devices.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/flag_list.h"
#include "cmd/common/help.h"
#include "cmd/common/launcher.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/print_error.h"
#include "cmd/common/standard_output.h"
#include "cmd/common/stop_signals.h"
#include "cmd/common/version.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/headroom.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Help and version are served whatever else the command line lacks; the form
// of the version is looked up by hand, since nothing is converted yet.
bool ServeEarly(const Tool& tool, const OptionTable& table, int argc,
                const char* const* argv, std::ostream& out) {
  if (table.Given("--help")) {
    out << HelpText(tool.manual, table.Describe());
    return true;
  }
  const bool devices = table.Given("--devices");
  const bool flags = table.Given("--list-flags");
  if (!devices && !flags && !table.Given("--version")) return false;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    json |= word == "--format=json" ||
            (word == "json" && absl::string_view(argv[i - 1]) == "--format");
  }
  // They say where libraries are looked for; mistakes are told when it runs.
  (void)SetFlagsFromEnvironment();
  if (flags) {
    out << FlagsText(json);
    return true;
  }
  const GpuList gpus = ListGpus();
  out << (devices ? DevicesText(gpus, table.WordsOf("--plugin"), json)
                  : VersionText(tool.manual.name, gpus, json));
  return true;
}

absl::Status RunBody(const OptionTable& table, const ToolBody& body,
                     std::ostream& out) {
  if (!table.WritesStandardOutput()) return body(out);
  OutputStream results(STDERR_FILENO, "standard error");
  const absl::Status status = body(results);
  (void)results.Finish();  // whoever closed it wants no results
  return status;
}

// The body in one of several processes, of which rank 0 prints results.
absl::Status RunTogether(const Tool& tool, const OptionTable& table,
                         const LaunchedBy& launch, const ToolBody& body,
                         std::ostream& out) {
  PD_ASSIGN_OR_RETURN(tool.common->world,
                      JoinProcesses(tool.manual.name, *tool.processes, launch,
                                    tool.common->threads.has_value()));
  World* world = tool.common->world.get();
  std::ostream nothing(nullptr);
  return LeaveProcesses(
      world, RunBody(table, body, world->rank() == 0 ? out : nothing));
}

absl::Status ParseAndRun(const Tool& tool, int argc, const char* const* argv,
                         const ToolBody& body, std::ostream& out) {
  OptionTable table;
  BindAll(tool, &table);
  bool served = false;
  PD_RETURN_IF_ERROR(table.Parse(argc, argv, [&] {
    served = ServeEarly(tool, table, argc, argv, out);
    return served;
  }));
  if (served) return absl::OkStatus();
  if (tool.validate) PD_RETURN_IF_ERROR(UsageError(tool.validate(table)));
  if (tool.processes != nullptr)
    PD_RETURN_IF_ERROR(UsageError(table.Needs("--log-dir", "--processes")));
  PD_RETURN_IF_ERROR(ApplyCommonOptions(table, *tool.common));
  PD_RETURN_IF_ERROR(PrepareForMemoryLimit());
  const std::string& device = tool.common->device;
  const bool idle = tool.computes && !tool.computes();
  std::optional<LaunchedBy> launch;
  if (tool.processes != nullptr && !idle) {
    PD_ASSIGN_OR_RETURN(launch, LaunchedHere(*tool.processes));
    const int64_t wanted = tool.processes->processes.value_or(1);
    if (!launch.has_value() && wanted > 1)
      return LaunchProcesses(*tool.processes, const_cast<char* const*>(argv));
  }
  if (!idle || (device != "auto" && device != "cpu")) {
    PD_RETURN_IF_ERROR(LoadPlugins(*tool.common));
    PD_ASSIGN_OR_RETURN(tool.common->place,
                        OpenDevice(device, tool.manual.name, tool.takes_gpu));
  }
  return launch.has_value() ? RunTogether(tool, table, *launch, body, out)
                            : RunBody(table, body, out);
}

// Messages of the standard library ("vector::_M_default_append") say nothing
// to anybody who has not written the program; -v -v shows them.
absl::Status Guarded(const std::function<absl::Status()>& work) {
  // Nothing of ours throws; a library's allocation can.
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory");
  } catch (const std::filesystem::filesystem_error& error) {
    return ErrnoToStatus(
        error.code().value(),
        absl::StrCat("cannot use '", error.path1().string(), "'"));
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again)
      return ErrnoToStatus(error.code().value(), "the system refused");
    return ResourceExhausted(
        "no further thread can be started: memory (ulimit -v) or the number "
        "of processes (ulimit -u) is used up");
  } catch (const std::length_error& error) {
    LogDebug("%s", error.what());
    return ResourceExhausted("something would be larger than any memory");
  } catch (const std::exception& error) {
    LogDebug("%s", error.what());
    return Internal(
        "a library failed in a way that nobody expected; "
        "this is a bug of pdkit");
  }
}

}  // namespace

void BindAll(const Tool& tool, OptionTable* table) {
  tool.bind(table);
  if (tool.processes != nullptr) BindProcessOptions(table, tool.processes);
  BindCommonOptions(table, tool.common);
}

int RunTool(const Tool& tool, int argc, const char* const* argv,
            const ToolBody& body) {
  OccupyClosedStreams();
  IgnoreWriteSignals();
  OutputStream out(STDOUT_FILENO, "standard output");
  absl::Status status =
      Guarded([&] { return ParseAndRun(tool, argc, argv, body, out); });
  const absl::Status written = out.Finish();
  // Results that did not arrive outweigh everything: a body that finds `out`
  // bad ends with whatever error, and this is the reason.
  if (!written.ok()) status = written;
  PrintError(tool.manual.name, status);
  return ExitCode(status);
}

}  // namespace pd
