// SPDX-License-Identifier: Apache-2.0
// Networks of torch.export on their way to Programs: as graphs of ONNX's
// operators, which FromOnnx imports (torch_import/ has a function for each
// operator of ATen).
#ifndef PD_LIBCORE_DEPLOY_TORCH_GRAPH_H_
#define PD_LIBCORE_DEPLOY_TORCH_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/onnx_file.h"
#include "formats/torch_export.h"

namespace pd {

/// The graph of `exported`. Inputs and outputs are called as in PyTorch's
/// graph, weights as in the network's state_dict; the transposed weight of a
/// linear layer is NAME.T. Unimplemented names every operator that is not
/// supported at once.
absl::StatusOr<OnnxFile> TorchAsOnnx(const TorchExport& exported);

/// The operators that are read: "conv2d.default".
std::vector<std::string> TorchImportTypes();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_GRAPH_H_
