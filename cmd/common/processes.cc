// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/processes.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/launcher.h"
#include "cmd/common/print_error.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/log_marks.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr int64_t kMostProcesses = 4096;

// The host's CPUs that this process may use, as text: launchers may have
// divided them already.
std::string Affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return "";
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) absl::StrAppend(&text, cpu, " ");
  return text;
}

// Processes of this host that have the same CPUs share them.
absl::Status DivideCores(const World& world) {
  const std::string own = absl::StrCat(
      world.hosts()[static_cast<size_t>(world.rank())], ":", Affinity());
  PD_ASSIGN_OR_RETURN(const auto all, world.all().GatherTexts(own));
  const auto sharing =
      static_cast<int>(std::count(all.begin(), all.end(), own));
  SetThreads(std::max(1, AvailableCpus() / sharing));
  return absl::OkStatus();
}

}  // namespace

void BindProcessOptions(OptionTable* table, ProcessOptions* options) {
  table->Group("Processes");
  table->Integer({"--processes", "N",
                  "starts N processes on this machine that work together; "
                  "mpirun, srun and others start them on several"},
                 {1, kMostProcesses}, &options->processes);
  table->Real({"--rendezvous-timeout", "SECONDS",
               "how long to wait at the start until all processes are there"},
              {0.1, 86400}, &options->rendezvous_timeout);
  table->Real({"--silence-timeout", "SECONDS",
               "a process that has shown no sign of life for so long is gone, "
               "and the others end"},
              {1, 86400}, &options->silence_timeout);
  table->Real({"--collective-timeout", "SECONDS",
               "how long an operation of all processes waits for one that "
               "lives and does not come to it"},
              {1, 604800}, &options->collective_timeout);
  table->Text(
      {"--log-dir", "DIR",
       "with --processes, the folder of `workerlog.N`, what the process "
       "of rank N writes to standard error, RUN/log where there is a RUN"},
      &options->log_dir);
  table->Texts({"--ring", "ID=RANKS",
                "the processes of a ring_id of saved programs, `7=0,2`; "
                "without any, and without a startup program that says it, each "
                "ring is all processes. May be given again"},
               &options->rings);
}

std::vector<Manual::Entry> ProcessEnvironment() {
  return {
      {"OMPI_COMM_WORLD_SIZE, PMI_SIZE, PMIX_RANK",
       "Set by mpirun and srun: the processes work together through MPI."},
      {"PADDLE_TRAINERS_NUM, PADDLE_TRAINER_ID, PADDLE_TRAINER_ENDPOINTS, "
       "PADDLE_CURRENT_ENDPOINT",
       "The number of processes, this one's, and the address HOST:PORT of "
       "each, as paddle.distributed.launch sets them: the processes work "
       "together through Gloo, and rank 0 listens at its address."},
      {"WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT",
       "The same, where the others are unset: the number of processes, this "
       "one's, and where rank 0 listens. Beside MASTER_ADDR, SLURM_NTASKS and "
       "SLURM_PROCID may stand for the first two."}};
}

absl::StatusOr<std::optional<LaunchedBy>> LaunchedHere(
    const ProcessOptions& options) {
  auto launch = LaunchOf([](const char* name) { return std::getenv(name); });
  if (!launch.ok()) return UsageError(launch.status());
  if (!launch->has_value()) return std::nullopt;
  Meeting& meeting = (*launch)->meeting;
  if (options.processes.has_value() && (*launch)->engine != "mpi" &&
      *options.processes != meeting.size)
    return UsageError(InvalidArgument(
        "--processes is %d, and the environment says that this is one of %d "
        "processes",
        *options.processes, meeting.size));
  meeting.rendezvous_seconds = options.rendezvous_timeout;
  meeting.silence_seconds = options.silence_timeout;
  meeting.operation_seconds = options.collective_timeout;
  return *std::move(launch);
}

absl::Status RequireOneProcess() {
  PD_ASSIGN_OR_RETURN(const auto launch, LaunchedHere({}));
  if (!launch.has_value()) return absl::OkStatus();
  return UsageError(Unimplemented(
      "the environment says that this is one of several processes, and this "
      "tool works alone; start one"));
}

absl::StatusOr<std::shared_ptr<World>> JoinProcesses(
    const std::string& tool, const ProcessOptions& options,
    const LaunchedBy& launch, bool threads_given) {
  PD_ASSIGN_OR_RETURN(const auto rings, RingsOfOptions(options));
  PD_ASSIGN_OR_RETURN(std::shared_ptr<World> world, World::Connect(launch));
  world->Watch([tool](const std::string& lost) {
    PrintError(tool, Unavailable("%s", lost));
    _exit(kExitFailed);
  });
  if (!threads_given) PD_RETURN_IF_ERROR(DivideCores(*world));
  PD_RETURN_IF_ERROR(
      world->ExpectSame("--ring", absl::StrJoin(options.rings, " ")));
  std::vector<RingClaim> own;
  for (const RingClaim& ring : rings)
    if (std::count(ring.ranks.begin(), ring.ranks.end(), world->rank()) > 0)
      own.push_back(ring);
  if (!rings.empty()) PD_RETURN_IF_ERROR(UsageError(world->DeclareRings(own)));
  // The process that started this one may file what it does not show.
  const bool filed = std::getenv(kFilesLines) != nullptr;
  if (world->rank() != 0 && filed)
    MarkLogLinesAbove(LogLevel::kWarning);
  else if (world->rank() != 0)
    SetLogLevel(std::min(GetLogLevel(), LogLevel::kWarning));
  LogInfo("processes: %d, through %s, %d on this machine", world->size(),
          launch.engine == "mpi" ? "MPI" : "Gloo", world->local_size());
  return world;
}

absl::StatusOr<std::vector<RingClaim>> RingsOfOptions(
    const ProcessOptions& options) {
  std::vector<RingClaim> rings;
  for (const std::string& text : options.rings) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    RingClaim ring;
    bool ok = absl::SimpleAtoi(parts.first, &ring.id);
    for (const auto word : absl::StrSplit(parts.second, ',')) {
      ring.ranks.push_back(0);
      ok = ok && absl::SimpleAtoi(word, &ring.ranks.back());
    }
    if (!ok)
      return CommandLineError(absl::StrCat("option '--ring': '", text,
                                           "' is not ID=RANK,RANK,..."));
    rings.push_back(std::move(ring));
  }
  return rings;
}

std::string ForRank(const std::string& text, const World* world) {
  const std::string rank = absl::StrCat(world == nullptr ? 0 : world->rank());
  return absl::StrReplaceAll(text, {{"%r", rank}});
}

absl::Status LeaveProcesses(World* world, absl::Status status) {
  const int exit = ExitCode(status);
  if (exit == kExitFailed || exit == kExitUsage) return world->Explain(status);
  // An answer of no and a stop by a signal are ends of a run that went well.
  const absl::Status left = world->Leave();
  return left.ok() ? status : world->Explain(left);
}

}  // namespace pd
