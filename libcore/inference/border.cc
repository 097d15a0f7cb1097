// SPDX-License-Identifier: Apache-2.0
#include "libcore/inference/border.h"

#include <mutex>
#include <set>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/plugin/convert.h"

namespace pd {
namespace inference {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  throw ErrorOf(status);
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
