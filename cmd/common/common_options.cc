// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/common_options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cmd/common/devices.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/version.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr int64_t kMostThreads = 1024;

absl::Status SetFlags(const std::vector<std::string>& lists) {
  // The mark of a wrong command line stays, whatever the kind.
  const auto wrong = [](absl::string_view what, const absl::Status& status) {
    return CommandLineError(absl::StrCat(what, ": ", status.message()));
  };
  if (const absl::Status set = SetFlagsFromEnvironment(); !set.ok())
    return wrong("environment", set);
  for (const std::string& list : lists) {
    for (absl::string_view item : absl::StrSplit(list, ',')) {
      const size_t equals = item.find('=');
      if (equals == absl::string_view::npos)
        return CommandLineError(absl::StrCat("option '--flags': '", item,
                                             "' is not of the form "
                                             "name=value"));
      const absl::Status set =
          SetFlag(item.substr(0, equals), item.substr(equals + 1));
      if (!set.ok()) return wrong("option '--flags'", set);
    }
  }
  for (const std::string& text : FlagsWithoutEffect()) LogWarning("%s", text);
  return absl::OkStatus();
}

// "1073741824", "512M", "1.5G", "4GB": bytes, in powers of 1024.
absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  absl::string_view number = text;
  double unit = 1;
  if (absl::EndsWithIgnoreCase(number, "b")) number.remove_suffix(1);
  if (absl::EndsWithIgnoreCase(number, "i")) number.remove_suffix(1);
  const absl::string_view units = "kmgt";
  const size_t at = number.empty()
                        ? absl::string_view::npos
                        : units.find(absl::ascii_tolower(
                              static_cast<unsigned char>(number.back())));
  if (at != absl::string_view::npos) {
    unit = std::ldexp(1, 10 * (static_cast<int>(at) + 1));
    number.remove_suffix(1);
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !(value * unit >= 1) ||
      value * unit > static_cast<double>(kMostBytes))
    return CommandLineError(absl::StrCat(
        "option '--memory-limit': '", text,
        "' is not a size; expected bytes or a number with K, M, G or T"));
  return static_cast<int64_t>(value * unit);
}

// OMP_NUM_THREADS is what users of other programs know; "4,2" names one number
// for each level of nesting, and we have one level.
int ThreadsFromEnvironment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  const absl::string_view first = *absl::StrSplit(text, ',').begin();
  const auto threads = ParseInteger(first, 1, kMostThreads);
  return threads.ok() ? static_cast<int>(*threads) : 0;
}

// The limits of memory and threads that flags say, where no option does.
void ApplyFlags(const OptionTable& table, const CommonOptions& options) {
  const double share = GetFlag<double>("FLAGS_fraction_of_cpu_memory_to_use");
  if (!table.Given("--memory-limit") && share < 1)
    SetMemoryLimit(std::max<int64_t>(
        1, static_cast<int64_t>(share * static_cast<double>(MemoryLimit()))));
  if (options.threads.has_value())
    SetThreads(static_cast<int>(*options.threads));
  else if (FlagGiven("FLAGS_paddle_num_threads"))
    SetThreads(static_cast<int>(GetFlag<int64_t>("FLAGS_paddle_num_threads")));
  else
    SetThreads(ThreadsFromEnvironment());
}

std::string DefaultText(const FlagInfo& flag) {
  const std::string text = FlagText(flag.initial);
  return text.empty() ? "nothing" : text;
}

// "FLAGS_check_nan_inf=", for shells to go on from.
std::vector<std::string> FlagNames() {
  std::vector<std::string> names;
  for (const FlagInfo& flag : AllFlags())
    names.push_back(absl::StrCat(flag.name, "="));
  return names;
}

}  // namespace

void BindCommonOptions(OptionTable* table, CommonOptions* options) {
  table->Group("Common");
  table->Switch({"-h,--help", "", "print this help and exit"}, &options->help);
  table->Switch({"--version", "",
                 "print the version, what it was built with, the CPU's "
                 "features and the GPUs, and exit"},
                &options->version);
  table->Switch({"--devices", "",
                 "print the values of `--device` that this machine has, with "
                 "memory, compute capability, driver and libraries, and those "
                 "of plug-ins (`--plugin`, `CUSTOM_DEVICE_ROOT`), and exit"},
                &options->devices);
  table->Switch({"--list-flags", "",
                 "print every flag with its type, default and value, and what "
                 "it does or why there is nothing to switch, and exit"},
                &options->list_flags);
  table->Text(
      {"--device", "DEVICE",
       "where to compute: `auto`, `cpu`, `gpu`, `gpu:N` or `TYPE:N` of a "
       "plug-in"},
      &options->device);
  table->Suggest("--device", {"auto", "cpu", "gpu"});
  table->Integer({"--threads", "N", "number of compute threads"},
                 {1, kMostThreads}, &options->threads);
  table->DescribeDefault("--threads", "the CPUs that the process may use");
  table->Integer({"--seed", "N",
                  "seed of all random numbers; the same seed, job and thread "
                  "count give the same bits"},
                 {}, &options->seed);
  table->DescribeDefault("--seed", "the job's");
  table->Text({"--memory-limit", "SIZE",
               "memory that tensors may take together, in bytes or as `512M`, "
               "`4G`; what asks for more is refused by its name"},
              &options->memory_limit);
  table->DescribeDefault("--memory-limit",
                         "the machine's memory, or what its cgroup grants");
  table->Choice({"--format", "FORMAT",
                 "form of the results on standard output: `text` or `json`"},
                {"text", "json"}, &options->format);
  table->Texts({"--flags", "NAME=VALUE,...",
                "set FLAGS_* as their environment variables do"},
               &options->flags);
  table->Suggest("--flags", FlagNames());
  table->Count({"-q,--quiet", "",
                "no progress and no notes on standard error; twice: no "
                "warnings"},
               &options->quiet);
  table->Count({"-v,--verbose", "", "say more on standard error; twice: all"},
               &options->verbose);
}

std::vector<Manual::Entry> CommonEnvironment() {
  std::vector<Manual::Entry> entries;
  for (const FlagInfo& flag : AllFlags())
    if (flag.use == FlagUse::kWorks)
      entries.push_back({std::string(flag.name),
                         absl::StrCat("Flag, ", DefaultText(flag),
                                      " when not set: ", flag.help, ".")});
  entries.push_back({"FLAGS_*",
                     "The other flags of PaddlePaddle are listed by "
                     "`--list-flags`, with the reason why there is nothing to "
                     "switch."});
  entries.push_back({"OMP_NUM_THREADS",
                     "Number of compute threads where `--threads` is not "
                     "given."});
  entries.push_back({"GOMP_SPINCOUNT",
                     "How long a compute thread spins before it sleeps. Where "
                     "neither this nor `OMP_WAIT_POLICY` is set, a small "
                     "number is used, so that the tool slows down only in "
                     "proportion when other programs want the CPUs."});
  entries.push_back({"CUSTOM_DEVICE_ROOT",
                     "A folder whose shared libraries are loaded as plug-ins "
                     "where `--device` names a type of theirs, and for "
                     "`--devices`."});
  entries.push_back({"NO_COLOR", "When set, nothing is printed in colour."});
  entries.push_back({"COLUMNS", "Width of the progress line at most."});
  return entries;
}

absl::Status ApplyCommonOptions(const OptionTable& table,
                                const CommonOptions& options) {
  PD_RETURN_IF_ERROR(table.AtMostOne({"--quiet", "--verbose"}));
  const int level =
      static_cast<int>(LogLevel::kInfo) + options.verbose - options.quiet;
  SetLogLevel(static_cast<LogLevel>(
      std::clamp(level, static_cast<int>(LogLevel::kError),
                 static_cast<int>(LogLevel::kDebug))));
  PD_RETURN_IF_ERROR(SetFlags(options.flags));
  if (table.Given("--memory-limit")) {
    PD_ASSIGN_OR_RETURN(const int64_t limit, ParseSize(options.memory_limit));
    SetMemoryLimit(limit);
  }
  ApplyFlags(table, options);
  return absl::OkStatus();
}

}  // namespace pd
