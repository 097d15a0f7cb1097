// SPDX-License-Identifier: Apache-2.0
// HTTP as the server sees it. The code that talks to sockets is a library of
// its own, libpd_http.so, loaded when a server starts: cpp-httplib brings
// OpenSSL with it, which nothing else here needs.
#ifndef PD_LIBCORE_SERVE_HTTP_H_
#define PD_LIBCORE_SERVE_HTTP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/serve/metrics.h"

namespace pd {
namespace serve {

struct HttpRequest {
  std::string method;  ///< "GET", "POST", ...
  std::string path;    ///< decoded, without a query
  /// Inference-Header-Content-Length as it came; "" without one.
  std::string json_length;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// Called by a thread of each connection.
  virtual HttpResponse Answer(const HttpRequest& request) = 0;
};

struct HttpOptions {
  std::string host;
  int port = 0;  ///< 0: any that is free
  int max_connections = 256;
  int64_t max_body = int64_t{64} << 20;  ///< bytes
  double idle_seconds = 60;              ///< of a connection between requests
  double receive_seconds = 30;  ///< from a request's first byte to its last
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  /// The port that it listens on.
  virtual int port() const = 0;
  /// Ends: what has come is answered, with "Connection: close"; then no one is
  /// let in, and it returns when all connections are closed.
  virtual void Drain() = 0;
};

/// "HOST:PORT", "[::1]:8000". InvalidArgument.
absl::StatusOr<std::pair<std::string, int>> ParseAddress(
    const std::string& address);

/// Listens, and answers by `handler`, which outlives the server, as `metrics`
/// does. Unavailable where the address cannot be had, and in a build without
/// cpp-httplib.
absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const HttpOptions& options,
                                                   HttpHandler* handler,
                                                   Metrics* metrics);

/// The function that libpd_http.so exports under the name kMakeHttpServer; null
/// with the error.
using MakeHttpServerFn = HttpServer* (*)(const HttpOptions&, HttpHandler*,
                                         Metrics*, absl::Status*);
inline constexpr char kMakeHttpServer[] = "PdMakeHttpServer";

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_HTTP_H_
