// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_serve.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "cmd/common/amp_options.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/stop_signals.h"
#include "cmd/common/version.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/log.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/serve/grpc.h"
#include "libcore/serve/http.h"
#include "libcore/serve/repository.h"
#include "libcore/serve/service.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;

serve::RepositoryOptions RepositoryOptionsOf(const EvalOptions& options) {
  const ServeFlags& flags = options.serve;
  serve::RepositoryOptions repository;
  repository.batch.max_batch = flags.max_batch;
  repository.batch.max_delay = flags.max_delay / 1000;
  repository.batch.max_queue = flags.max_queue;
  repository.batch.max_wait_seconds = flags.max_wait;
  repository.batch.workers = static_cast<int>(flags.workers);
  repository.keep_versions = flags.versions;
  inference::ModelOptions& model = repository.model;
  model.threads = std::max(1, Threads() / static_cast<int>(flags.workers));
  // A plan for each number of rows that requests are joined to, and some more.
  model.kept_plans = 16;
  // Clients choose the shapes.
  model.kept_bytes = uint64_t{1} << 30;
  model.disabled_passes.insert(options.passes.disabled.begin(),
                               options.passes.disabled.end());
  model.dump_folder = options.passes.dump;
  model.amp = AmpSpecOf(options.amp);
  model.place = options.common.place;
  return repository;
}

// Loads what is new, while requests are answered; until `stop`.
void Watch(double poll_seconds, const std::atomic<bool>& stop,
           serve::Repository* repository) {
  auto last = Clock::now();
  while (!stop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (TakeHangup()) {
      LogInfo("SIGHUP: looking for new and changed models");
      repository->Reload();
    }
    const std::chrono::duration<double> passed = Clock::now() - last;
    if (poll_seconds <= 0 || passed.count() < poll_seconds) continue;
    repository->Poll();
    last = Clock::now();
  }
}

std::string UrlOf(const char* scheme, const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return absl::StrCat(scheme, "://", v6 ? "[" : "", host, v6 ? "]" : "", ":",
                      port);
}

// `grpc` is "" without it.
void PrintAddresses(const std::string& http, const std::string& grpc, bool json,
                    std::ostream& out) {
  if (json) {
    nlohmann::ordered_json addresses{{"address", http}};
    if (!grpc.empty()) addresses["grpc"] = grpc;
    out << DumpJson(addresses) << std::endl;
    return;
  }
  // In one piece: a script that waits for the first line gets both.
  out << absl::StrCat("serving on ", http, "\n",
                      grpc.empty() ? "" : absl::StrCat("and on ", grpc, "\n"))
      << std::flush;
}

// Null without --grpc.
absl::StatusOr<std::unique_ptr<serve::GrpcServer>> GrpcOf(
    const ServeFlags& flags, const serve::HttpOptions& http,
    serve::Service* service, std::string* url) {
  if (flags.grpc.empty()) return nullptr;
  PD_ASSIGN_OR_RETURN(const auto address, serve::ParseAddress(flags.grpc));
  serve::GrpcOptions options;
  options.host = address.first;
  options.port = address.second;
  options.max_calls = http.max_connections;
  options.max_message = http.max_body;
  PD_ASSIGN_OR_RETURN(auto server, serve::ListenGrpc(options, service));
  *url = UrlOf("grpc", address.first, server->port());
  return server;
}

}  // namespace

absl::Status ServeModels(const EvalOptions& options, std::ostream& out) {
  InstallServerSignals();
  PD_ASSIGN_OR_RETURN(const auto address,
                      serve::ParseAddress(options.serve.address));
  auto places = serve::PlacesOf(options.models);
  if (!places.ok()) return UsageError(places.status());
  serve::Metrics metrics;
  serve::Repository repository(*std::move(places), RepositoryOptionsOf(options),
                               &metrics);
  PD_RETURN_IF_ERROR(repository.Open());
  serve::Service service(&repository, &metrics, std::string(Version()));
  serve::HttpOptions http;
  http.host = address.first;
  http.port = address.second;
  http.max_connections = static_cast<int>(options.serve.connections);
  http.max_body = options.serve.max_request << 20;
  PD_ASSIGN_OR_RETURN(const auto server,
                      serve::Listen(http, &service, &metrics));
  std::string grpc_url;
  PD_ASSIGN_OR_RETURN(const auto grpc,
                      GrpcOf(options.serve, http, &service, &grpc_url));
  PrintAddresses(UrlOf("http", address.first, server->port()), grpc_url,
                 options.common.json(), out);
  std::atomic<bool> stop{false};
  std::thread watcher([&] { Watch(options.serve.poll, stop, &repository); });
  while (StopRequested() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  LogInfo("%s: answering what has come, then ending",
          std::string(SignalName(StopRequested())));
  service.SetDraining();
  if (grpc != nullptr) grpc->Drain();
  server->Drain();
  stop = true;
  watcher.join();
  repository.Close();
  return absl::OkStatus();
}

}  // namespace pd
