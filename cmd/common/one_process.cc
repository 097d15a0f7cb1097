// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/one_process.h"

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "cmd/common/exit_status.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"

namespace pd {

absl::Status RequireOneProcess() {
  for (const char* name :
       {"PADDLE_TRAINERS_NUM", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    int64_t processes = 0;
    if (!absl::SimpleAtoi(text, &processes) || processes < 1)
      return UsageError(InvalidArgument(
          "%s is %s in the environment; expected a number of processes", name,
          ShownText(text)));
    if (processes > 1)
      return UsageError(Unimplemented(
          "%s is %d in the environment: several processes cannot train "
          "together yet; start one, without %s",
          name, processes, name));
  }
  return absl::OkStatus();
}

}  // namespace pd
