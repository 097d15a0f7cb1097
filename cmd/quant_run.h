// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_QUANT_RUN_H_
#define PD_CMD_QUANT_RUN_H_

#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/quant_options.h"

namespace pd {

/// Quantizes as the options say; tables go to `out`.
absl::Status RunQuant(const QuantOptions& options, std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_QUANT_RUN_H_
