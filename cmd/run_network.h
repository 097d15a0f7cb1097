// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_RUN_NETWORK_H_
#define PD_CMD_RUN_NETWORK_H_

#include <vector>

#include "absl/status/status.h"
#include "libcore/nn/build.h"
#include "libcore/ops/registry.h"
#include "libcore/train/load_model.h"

namespace pd {

/// Turns a run directory's model, a training program, into the network that its
/// job describes, as evaluation runs it (losses included): program, inputs and
/// outputs. Other models stay as they are. `layers`, where given, gets the
/// network's layers; none for other models.
absl::Status UseNetworkOfRun(const OpRegistry& registry, LoadedModel* model,
                             std::vector<LayerInfo>* layers = nullptr);

}  // namespace pd

#endif  // PD_CMD_RUN_NETWORK_H_
