// SPDX-License-Identifier: Apache-2.0
// Libraries of the server that are loaded when it starts: libpd_http.so and
// libpd_grpc.so, which lie beside libpd.
#ifndef PD_LIBCORE_SERVE_ENGINE_LIBRARY_H_
#define PD_LIBCORE_SERVE_ENGINE_LIBRARY_H_

#include "absl/status/statusor.h"

namespace pd {
namespace serve {

/// The address of `function` in `file` ("libpd_http.so"). Unavailable where
/// there is none: the build was made without `package`.
absl::StatusOr<void*> EngineFunction(const char* file, const char* function,
                                     const char* package);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_ENGINE_LIBRARY_H_
