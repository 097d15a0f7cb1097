// SPDX-License-Identifier: Apache-2.0
#include "libcore/inference/border.h"

#include <mutex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/inference/api/paddle_infer_error.h"

namespace phi {
namespace enforce {

EnforceNotMet::EnforceNotMet(std::string kind, const std::string& message)
    : kind_(std::move(kind)), text_(absl::StrCat(kind_, ": ", message)) {}
EnforceNotMet::~EnforceNotMet() = default;

}  // namespace enforce
}  // namespace phi

namespace pd {
namespace inference {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  // PaddlePaddle has no kind of its own for damaged files.
  const absl::StatusCode code = absl::IsDataLoss(status)
                                    ? absl::StatusCode::kInvalidArgument
                                    : status.code();
  throw phi::enforce::EnforceNotMet(std::string(ErrorKindName(code)),
                                    std::string(status.message()));
}

void SayOnce(absl::string_view call, absl::string_view what) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const said = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (said->emplace(call).second)
    LogWarning("%s: %s", std::string(call), std::string(what));
}

absl::Status SetPaddleFlag(absl::string_view name, absl::string_view value) {
  const absl::Status status = SetFlag(name, value);
  if (!absl::IsUnimplemented(status)) return status;
  SayOnce(name, status.message());
  return absl::OkStatus();
}

const char* VersionText() {
  return "version: " PD_VERSION "\ncommit: pdkit\nbranch: pdkit\n";
}

}  // namespace inference
}  // namespace pd
