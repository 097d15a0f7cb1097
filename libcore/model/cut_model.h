// SPDX-License-Identifier: Apache-2.0
// The beginning of a saved network, for a job that goes on from it.
#ifndef PD_LIBCORE_MODEL_CUT_MODEL_H_
#define PD_LIBCORE_MODEL_CUT_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/saved_networks.h"

namespace pd {

/// The ops that `cuts` need, with their values. A cut is a variable, or a layer
/// of a run: then its result; no cuts are the network's outputs. Parameters are
/// the floating-point variables that no op writes; where the file says which
/// are (runs, ONNX, our own models), those among them. InvalidArgument, which
/// names the file, for a model without a network, a cut that there is not (with
/// the nearest name and the last values), ops that run blocks but while and
/// conditional_block, and values that are missing. A network with parameters of
/// 16 bits is made one of float32, which is logged.
absl::StatusOr<SavedNetwork> CutModel(LoadedModel model,
                                      const std::vector<std::string>& cuts);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_CUT_MODEL_H_
