// SPDX-License-Identifier: Apache-2.0
// The environment that launchers make.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/world.h"

namespace pd {
namespace {

using Getter = std::function<const char*(const char*)>;

constexpr int kMostProcesses = 1 << 20;

std::string Text(const Getter& get, const char* name) {
  const char* text = get(name);
  return text == nullptr ? "" : text;
}

absl::StatusOr<int> Number(const Getter& get, const char* name, int least,
                           int most) {
  const std::string text = Text(get, name);
  int value = 0;
  if (text.empty())
    return InvalidArgument(
        "%s is missing in the environment, which names several processes",
        name);
  if (!absl::SimpleAtoi(text, &value) || value < least || value > most)
    return InvalidArgument("%s is '%s' in the environment; expected %d to %d",
                           name, text.substr(0, 64), least, most);
  return value;
}

// The number of processes in one of `names`, 1 where none is there.
absl::StatusOr<int> Processes(const Getter& get,
                              const std::vector<const char*>& names,
                              const char** found) {
  for (const char* name : names) {
    if (Text(get, name).empty()) continue;
    *found = name;
    return Number(get, name, 1, kMostProcesses);
  }
  *found = nullptr;
  return 1;
}

absl::Status SplitEndpoint(const char* name, const std::string& endpoint,
                           std::string* host, int* port) {
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(endpoint.substr(colon + 1), port) || *port < 1 ||
      *port > 65535)
    return InvalidArgument("%s has '%s' in the environment; expected HOST:PORT",
                           name, endpoint.substr(0, 128));
  *host = endpoint.substr(0, colon);
  return absl::OkStatus();
}

absl::Status TakePaddle(const Getter& get, Meeting* meeting) {
  PD_ASSIGN_OR_RETURN(meeting->rank,
                      Number(get, "PADDLE_TRAINER_ID", 0, meeting->size - 1));
  const std::string list = Text(get, "PADDLE_TRAINER_ENDPOINTS");
  const std::vector<std::string> endpoints =
      absl::StrSplit(list, ',', absl::SkipEmpty());
  if (static_cast<int>(endpoints.size()) != meeting->size)
    return InvalidArgument(
        "PADDLE_TRAINER_ENDPOINTS has %d addresses in the environment and "
        "PADDLE_TRAINERS_NUM is %d",
        endpoints.size(), meeting->size);
  PD_RETURN_IF_ERROR(SplitEndpoint("PADDLE_TRAINER_ENDPOINTS", endpoints[0],
                                   &meeting->host, &meeting->port));
  const std::string& own = endpoints[static_cast<size_t>(meeting->rank)];
  const std::string current = Text(get, "PADDLE_CURRENT_ENDPOINT");
  if (!current.empty() && current != own)
    return InvalidArgument(
        "PADDLE_CURRENT_ENDPOINT is '%s' in the environment, and address %d "
        "of PADDLE_TRAINER_ENDPOINTS is '%s'",
        current.substr(0, 128), meeting->rank, own);
  int port = 0;
  return SplitEndpoint("PADDLE_TRAINER_ENDPOINTS", own, &meeting->own_address,
                       &port);
}

absl::Status TakeMaster(const Getter& get, Meeting* meeting) {
  const char* rank = Text(get, "RANK").empty() ? "SLURM_PROCID" : "RANK";
  PD_ASSIGN_OR_RETURN(meeting->rank, Number(get, rank, 0, meeting->size - 1));
  meeting->host = Text(get, "MASTER_ADDR");
  if (meeting->host.empty())
    return InvalidArgument(
        "MASTER_ADDR is missing in the environment, which names %d processes",
        meeting->size);
  PD_ASSIGN_OR_RETURN(meeting->port, Number(get, "MASTER_PORT", 1, 65535));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<LaunchedBy>> LaunchOf(const Getter& get) {
  LaunchedBy launch;
  Meeting& meeting = launch.meeting;
  const char* name = nullptr;
  // An MPI of another make may know its size only when it runs.
  PD_ASSIGN_OR_RETURN(
      meeting.size,
      Processes(get, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, &name));
  if (name == nullptr && !Text(get, "PMIX_RANK").empty() &&
      Text(get, "SLURM_NTASKS") != "1")
    meeting.size = 2;
  if (meeting.size > 1) {
    launch.engine = "mpi";
    return launch;
  }
  launch.engine = "gloo";
  PD_ASSIGN_OR_RETURN(meeting.size,
                      Processes(get, {"PADDLE_TRAINERS_NUM"}, &name));
  if (meeting.size > 1) {
    PD_RETURN_IF_ERROR(TakePaddle(get, &meeting));
    return launch;
  }
  PD_ASSIGN_OR_RETURN(meeting.size, Processes(get, {"WORLD_SIZE"}, &name));
  // Slurm's own variables stand in every batch job, and mean processes of
  // this program only beside the address where these meet.
  if (name == nullptr && !Text(get, "MASTER_ADDR").empty()) {
    PD_ASSIGN_OR_RETURN(meeting.size, Processes(get, {"SLURM_NTASKS"}, &name));
  }
  if (meeting.size == 1) return std::nullopt;
  PD_RETURN_IF_ERROR(TakeMaster(get, &meeting));
  return launch;
}

}  // namespace pd
