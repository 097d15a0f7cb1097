// SPDX-License-Identifier: Apache-2.0
// The bodies of requests and answers: the KServe v2 protocol over REST, with
// its extension for tensors as bytes, and the older v1 of "instances". What
// clients send is hostile.
#ifndef PD_LIBCORE_SERVE_PROTOCOL_H_
#define PD_LIBCORE_SERVE_PROTOCOL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/array.h"
#include "libcore/serve/runner.h"
#include "libcore/serve/signature.h"

namespace pd {
namespace serve {

struct WantedOutput {
  size_t index = 0;     ///< in the signature
  bool binary = false;  ///< as bytes after the JSON
};

struct InferRequest {
  std::string id;
  NamedArrays inputs;
  std::vector<WantedOutput> outputs;
};

struct Body {
  std::string bytes;
  /// Where bytes of tensors follow the JSON: how long that is.
  std::optional<size_t> json_length;
};

/// A v2 request. `json_length` is what Inference-Header-Content-Length says;
/// the bytes of tensors follow. InvalidArgument says what is wrong and what was
/// expected; ResourceExhausted where memory runs out.
absl::StatusOr<InferRequest> ReadInferRequest(absl::string_view body,
                                              std::optional<size_t> json_length,
                                              const Signature& signature);

/// A v1 request: {"instances": [row, ...]}, rows of the only input or objects
/// of all, or {"inputs": {name: array}}.
absl::StatusOr<InferRequest> ReadPredictRequest(absl::string_view body,
                                                const Signature& signature);

/// Elements as they lie in memory, little endian and row by row. `where` begins
/// messages: "input 'x'".
absl::StatusOr<Array> ArrayOfBytes(absl::string_view bytes, DType dtype,
                                   const Shape& shape,
                                   const std::string& where);

struct AnswerHead {
  std::string model;
  std::string version;
  std::string id;
};

/// InvalidArgument where a number is NaN or infinite, which JSON has no word
/// for, and the client wants JSON.
absl::StatusOr<Body> WriteInferAnswer(const AnswerHead& head,
                                      const Signature& signature,
                                      const std::vector<WantedOutput>& wanted,
                                      const Outputs& outputs);

/// {"predictions": rows of the only output, or {name: array}}.
absl::StatusOr<std::string> WritePredictAnswer(const Signature& signature,
                                               const Outputs& outputs);

/// {"error": "..."} with what `message` says, in printable characters.
std::string ErrorBody(absl::string_view message);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_PROTOCOL_H_
