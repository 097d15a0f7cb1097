// SPDX-License-Identifier: Apache-2.0
// KServe's v2 protocol over gRPC, beside HTTP and over the same Service. The
// code is a library of its own, libpd_grpc.so, loaded when it is asked for: a
// machine without gRPC runs everything else.
#ifndef PD_LIBCORE_SERVE_GRPC_H_
#define PD_LIBCORE_SERVE_GRPC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/serve/service.h"

namespace pd {
namespace serve {

struct GrpcOptions {
  std::string host;
  int port = 0;                             ///< 0: any that is free
  int max_calls = 256;                      ///< at a time; more wait
  int64_t max_message = int64_t{64} << 20;  ///< bytes
  /// From a call's head to its whole message, and until a client has taken an
  /// answer.
  double receive_seconds = 30;
  double idle_seconds = 60;  ///< of a connection without calls
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  /// The port that it listens on.
  virtual int port() const = 0;
  /// Ends: no call is let in; returns when those that have come are answered.
  virtual void Drain() = 0;
};

/// Listens, and answers by `service`, which outlives the server. Unavailable
/// where the address cannot be had, and in a build without gRPC.
absl::StatusOr<std::unique_ptr<GrpcServer>> ListenGrpc(
    const GrpcOptions& options, Service* service);

/// The function that libpd_grpc.so exports under the name kMakeGrpcServer; null
/// with the error.
using MakeGrpcServerFn = GrpcServer* (*)(const GrpcOptions&, Service*,
                                         absl::Status*);
inline constexpr char kMakeGrpcServer[] = "PdMakeGrpcServer";

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_GRPC_H_
