// SPDX-License-Identifier: Apache-2.0
// Messages of gRPC as requests and answers of the server, and back. What
// clients send is hostile.
#ifndef PD_LIBCORE_SERVE_GRPC_MESSAGES_H_
#define PD_LIBCORE_SERVE_GRPC_MESSAGES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/serve/grpc/kserve.pb.h"
#include "libcore/serve/protocol.h"
#include "libcore/serve/signature.h"

namespace pd {
namespace serve {

namespace wire = ::inference;

/// InvalidArgument says what is wrong and what was expected.
absl::StatusOr<InferRequest> ReadMessage(const wire::ModelInferRequest& message,
                                         const Signature& signature);

/// The wanted outputs in the form of the request: raw where `raw`, or where one
/// of them has a datatype that only raw contents have. ResourceExhausted where
/// the message would be too long for Protobuf.
absl::Status WriteMessage(const AnswerHead& head, const Signature& signature,
                          const InferRequest& request, bool raw,
                          const Outputs& outputs,
                          wire::ModelInferResponse* message);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_GRPC_MESSAGES_H_
