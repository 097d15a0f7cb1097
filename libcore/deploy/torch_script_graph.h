// SPDX-License-Identifier: Apache-2.0
// Networks of torch.jit.save on their way to Programs: TorchScript's methods
// are run with shapes instead of tensors (torch_script/), and the operators
// that they call become the graph that torch.export would have written.
#ifndef PD_LIBCORE_DEPLOY_TORCH_SCRIPT_GRAPH_H_
#define PD_LIBCORE_DEPLOY_TORCH_SCRIPT_GRAPH_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "formats/torch_export.h"
#include "formats/torch_script.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"

namespace pd {

/// An input of the network: traced archives say what it was when they were
/// made, scripted ones say nothing.
struct TorchScriptInput {
  Shape shape;  ///< an extent of -1 is the batch
  /// Else that of the trace, or int64 for what an embedding looks up, float32
  /// for others.
  std::optional<DType> dtype;
};

/// The graph of the network's forward for `inputs`, by the names of its
/// parameters; those of a trace that are not given are as they were then.
/// FailedPrecondition names inputs whose shape is not known;
/// Unimplemented: all operators that are not supported, or a branch, loop or
/// number that hangs on elements of tensors.
absl::StatusOr<TorchExport> TorchScriptGraph(
    const TorchScript& script,
    const std::map<std::string, TorchScriptInput>& inputs);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_SCRIPT_GRAPH_H_
