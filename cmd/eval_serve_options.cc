// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_serve_options.h"

#include "cmd/common/exit_status.h"
#include "libcore/base/status_macros.h"
#include "libcore/serve/http.h"

namespace pd {

void BindServeOptions(OptionTable* table, ServeFlags* flags) {
  table->Group("Serving");
  table->Text({"--serve", "HOST:PORT",
               "answers requests over HTTP (KServe v2) until SIGTERM; port 0: "
               "any that is free"},
              &flags->address);
  table->Text({"--grpc", "HOST:PORT",
               "answers over gRPC (KServe v2) too, at this address"},
              &flags->grpc);
  table->Integer({"--max-batch", "N",
                  "rows of requests that are joined into one run; 1: none"},
                 {1, 1 << 16}, &flags->max_batch);
  table->Real({"--max-delay", "MS",
               "milliseconds that a request waits for others to be joined "
               "with; 0: those that are there, as far as that saves time"},
              {0, 60000}, &flags->max_delay);
  table->Integer({"--workers", "N",
                  "runs of a model side by side, which share --threads and the "
                  "weights"},
                 {1, 256}, &flags->workers);
  table->Integer({"--max-queue", "N",
                  "requests of a model that wait; more are answered with 429"},
                 {1, 1 << 20}, &flags->max_queue);
  table->Real({"--max-wait", "SECONDS",
               "a request that waited so long is answered with 503"},
              {0.001, 86400}, &flags->max_wait);
  table->Integer({"--max-request", "MIB",
                  "a larger body of a request is answered with 413"},
                 {1, 1 << 16}, &flags->max_request);
  table->Integer({"--connections", "N", "connections at a time; others wait"},
                 {1, 900}, &flags->connections);
  table->Integer({"--versions", "N",
                  "the newest versions of a model that are loaded; 0: all"},
                 {0, 1 << 20}, &flags->versions);
  table->Real({"--poll", "SECONDS",
               "how often to look for folders of new versions; 0: on SIGHUP "
               "only"},
              {0, 86400}, &flags->poll);
}

absl::Status ValidateServe(const OptionTable& table, const ServeFlags& flags) {
  for (const char* own :
       {"--grpc", "--max-batch", "--max-delay", "--workers", "--max-queue",
        "--max-wait", "--max-request", "--connections", "--versions", "--poll"})
    PD_RETURN_IF_ERROR(table.Needs(own, "--serve"));
  for (const char* other :
       {"--feed", "--bench", "--predict", "--config", "--out", "--expect",
        "--report", "--require", "--fetch", "--startup", "--check-nan-inf"})
    PD_RETURN_IF_ERROR(table.AtMostOne({"--serve", other}));
  if (!table.Given("--serve")) return absl::OkStatus();
  for (const std::string* text : {&flags.address, &flags.grpc}) {
    if (text == &flags.grpc && !table.Given("--grpc")) continue;
    const auto address = serve::ParseAddress(*text);
    if (!address.ok()) return CommandLineError(address.status().message());
  }
  return absl::OkStatus();
}

}  // namespace pd
