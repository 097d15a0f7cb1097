// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/grpc.h"

#include "libcore/base/status_macros.h"
#include "libcore/serve/engine_library.h"

namespace pd {
namespace serve {

absl::StatusOr<std::unique_ptr<GrpcServer>> ListenGrpc(
    const GrpcOptions& options, Service* service) {
  PD_ASSIGN_OR_RETURN(void* const make,
                      EngineFunction("libpd_grpc.so", kMakeGrpcServer, "gRPC"));
  absl::Status error;
  std::unique_ptr<GrpcServer> server(
      reinterpret_cast<MakeGrpcServerFn>(make)(options, service, &error));
  if (server == nullptr) return error;
  return server;
}

}  // namespace serve
}  // namespace pd
