// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/http.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"
#include "libcore/serve/engine_library.h"

namespace pd {
namespace serve {

absl::StatusOr<std::pair<std::string, int>> ParseAddress(
    const std::string& address) {
  const size_t at = address.rfind(':');
  std::string host = address.substr(0, at == std::string::npos ? 0 : at);
  int port = -1;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string::npos)
    host.clear();
  if (host.empty() || !absl::SimpleAtoi(address.substr(at + 1), &port) ||
      port < 0 || port > 65535 || address.substr(at + 1) != absl::StrCat(port))
    return InvalidArgument(
        "'%s' is no address; expected HOST:PORT, as in 127.0.0.1:8000 or "
        "[::1]:8000 (port 0: any that is free)",
        Printable(address));
  return std::make_pair(host, port);
}

absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const HttpOptions& options,
                                                   HttpHandler* handler,
                                                   Metrics* metrics) {
  PD_ASSIGN_OR_RETURN(
      void* const make,
      EngineFunction("libpd_http.so", kMakeHttpServer, "cpp-httplib"));
  absl::Status error;
  std::unique_ptr<HttpServer> server(reinterpret_cast<MakeHttpServerFn>(make)(
      options, handler, metrics, &error));
  if (server == nullptr) return error;
  return server;
}

}  // namespace serve
}  // namespace pd
