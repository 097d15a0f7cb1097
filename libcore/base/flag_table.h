// SPDX-License-Identifier: Apache-2.0
// The rows behind flags.h.
#ifndef PD_LIBCORE_BASE_FLAG_TABLE_H_
#define PD_LIBCORE_BASE_FLAG_TABLE_H_

#include <vector>

#include "libcore/base/flags.h"

namespace pd {

/// Every flag, in name order.
std::vector<FlagInfo>& FlagTable();

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FLAG_TABLE_H_
