// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_RUN_NETWORK_H_
#define PD_CMD_RUN_NETWORK_H_

#include "absl/status/status.h"
#include "libcore/ops/registry.h"
#include "libcore/train/load_model.h"

namespace pd {

/// Turns a run directory's model, a training program, into the network that its
/// job describes, as evaluation runs it (losses included): program, inputs and
/// outputs. Other models stay as they are.
absl::Status UseNetworkOfRun(const OpRegistry& registry, LoadedModel* model);

}  // namespace pd

#endif  // PD_CMD_RUN_NETWORK_H_
