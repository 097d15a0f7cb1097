// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/http.h"

#include <dlfcn.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/printable.h"

namespace pd {
namespace serve {
namespace {

// The folder of libpd, in which libpd_http.so lies too.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 ||
      info.dli_fname == nullptr)
    return ".";
  return FolderOf(info.dli_fname);
}

}  // namespace

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
  const std::string path = absl::StrCat(OwnFolder(), "/libpd_http.so");
  if (!Exists(path))
    return Unavailable(
        "a server needs '%s', which is not there: this build of pdkit was made "
        "without cpp-httplib",
        path);
  void* const handle = dlopen(path.c_str(), RTLD_NOW);
  if (handle == nullptr)
    return Unavailable("cannot load '%s': %s", path, dlerror());
  void* const make = dlsym(handle, kMakeHttpServer);
  if (make == nullptr)
    return Unavailable("'%s' is not of this pdkit: it lacks %s", path,
                       kMakeHttpServer);
  absl::Status error;
  std::unique_ptr<HttpServer> server(reinterpret_cast<MakeHttpServerFn>(make)(
      options, handler, metrics, &error));
  if (server == nullptr) return error;
  return server;
}

}  // namespace serve
}  // namespace pd
