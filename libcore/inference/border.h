// SPDX-License-Identifier: Apache-2.0
// The border between the library, whose functions give absl::Status, and the
// prediction API, whose functions throw.
#ifndef PD_LIBCORE_INFERENCE_BORDER_H_
#define PD_LIBCORE_INFERENCE_BORDER_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/guarded.h"

namespace pd {
namespace inference {

/// Throws phi::enforce::EnforceNotMet, with PaddlePaddle's kind, unless OK.
void Check(const absl::Status& status);

/// The result of `work`, which gives a Status or StatusOr and may run out of
/// memory; an error is thrown.
template <typename Work>
auto Border(const Work& work) {
  auto result = Guarded(work);
  if constexpr (std::is_same_v<decltype(result), absl::Status>) {
    Check(result);
  } else {
    Check(result.status());
    return *std::move(result);
  }
}

/// One line in the log, a warning, the first time that `call` is seen.
void SayOnce(absl::string_view call, absl::string_view what);

/// As SetFlag. A flag of PaddlePaddle's that nothing reads here is accepted and
/// said once.
absl::Status SetPaddleFlag(absl::string_view name, absl::string_view value);

/// "version: ...", "commit: ...", "branch: ...", a line each.
const char* VersionText();

}  // namespace inference
}  // namespace pd

#endif  // PD_LIBCORE_INFERENCE_BORDER_H_
