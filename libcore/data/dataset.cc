// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/dataset.h"

#include "libcore/base/error.h"

namespace pd {

absl::Status CheckLabel(int64_t label, int64_t classes, const std::string& path,
                        int64_t record) {
  if (classes == 0 || (label >= 0 && label < classes)) return absl::OkStatus();
  return OutOfRange("'%s' record %d: label is %d; expected 0 to %d", path,
                    record, label, classes - 1);
}

}  // namespace pd
