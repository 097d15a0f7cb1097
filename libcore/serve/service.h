// SPDX-License-Identifier: Apache-2.0
// The addresses of a server and what each of them answers: KServe's v2 and v1,
// the repository's, /metrics. Call is what gRPC shares with them.
#ifndef PD_LIBCORE_SERVE_SERVICE_H_
#define PD_LIBCORE_SERVE_SERVICE_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/serve/http.h"
#include "libcore/serve/metrics.h"
#include "libcore/serve/protocol.h"
#include "libcore/serve/repository.h"

namespace pd {
namespace serve {

class Service : public HttpHandler {
 public:
  /// `version` is pdkit's. All outlive the service.
  Service(Repository* repository, Metrics* metrics, std::string version)
      : repository_(repository),
        metrics_(metrics),
        version_(std::move(version)) {}

  /// Any thread may call it; it waits for answers of models.
  HttpResponse Answer(const HttpRequest& request) override;
  /// From now on it is not ready, so that no more is sent to it.
  void SetDraining() { draining_ = true; }
  bool draining() const { return draining_; }
  const std::string& version() const { return version_; }
  Repository* repository() const { return repository_; }
  Metrics* metrics() const { return metrics_; }

  /// A request for inference, whatever the protocol: finds the version
  /// ("": the newest), reads the request by its signature, waits for the
  /// answer, writes it, and counts. What `write` refuses is 422.
  using Read = std::function<absl::StatusOr<InferRequest>(const Signature&)>;
  using Write = std::function<absl::Status(
      const ServedModel&, const InferRequest&, const Outputs&)>;
  /// Runs `work` when few enough others do: a parsed text takes ten times the
  /// memory of the text. Its result.
  bool Parse(const std::function<bool()>& work);
  struct Outcome {
    int http_status = 200;
    absl::Status status;
  };
  Outcome Call(const std::string& model, const std::string& version,
               const Read& read, const Write& write);

 private:
  /// The parts of an address between its slashes.
  using Path = std::vector<std::string>;
  struct Asked;

  HttpResponse Route(const HttpRequest& request);
  HttpResponse RouteV2(const Path& path, const HttpRequest& request);
  HttpResponse RouteV1(const Path& path, const HttpRequest& request);
  HttpResponse RouteRepository(const Path& path, const HttpRequest& request);
  HttpResponse Metadata(const ServedModel& model) const;
  HttpResponse Index(const HttpRequest& request) const;
  HttpResponse Infer(const Asked& asked, const HttpRequest& request);
  Outcome CallOnce(const ServedModel& model, const Read& read,
                   const Write& write);

  Repository* const repository_;
  Metrics* const metrics_;
  const std::string version_;
  std::atomic<bool> draining_{false};
  std::mutex parsing_mutex_;
  std::condition_variable parsing_ended_;
  int parsing_ = 0;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_SERVICE_H_
