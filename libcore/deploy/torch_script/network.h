// SPDX-License-Identifier: Apache-2.0
// The graph in the making: calls of ATen's operators become nodes as
// torch.export's graphs have them.
#ifndef PD_LIBCORE_DEPLOY_TORCH_SCRIPT_NETWORK_H_
#define PD_LIBCORE_DEPLOY_TORCH_SCRIPT_NETWORK_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/torch_export.h"
#include "libcore/deploy/torch_script/call.h"
#include "libcore/deploy/torch_script/value.h"

namespace pd {

/// Arguments of a call: by place, and by name.
struct ScriptArguments {
  std::vector<ScriptValue> places;
  std::vector<std::pair<std::string, ScriptValue>> names;
};

class ScriptNetwork {
 public:
  /// A value that is fed. Its dtype is that of indices if an embedding looks
  /// it up and `dtype_known` is not set.
  ScriptValue AddInput(const std::string& name, ScriptTensor tensor,
                       bool dtype_known);
  /// A weight under its name.
  absl::StatusOr<ScriptValue> AddWeight(const std::string& name,
                                        const Array& array);
  absl::Status AddOutput(const ScriptValue& value);

  /// The answer of an operator; of kind kUnknown where it is not supported.
  absl::StatusOr<ScriptValue> Call(const std::string& name,
                                   const ScriptArguments& arguments);
  const ScriptTensor& TensorOf(const ScriptValue& value) const {
    return tensors_.at(value.text);
  }
  /// The number that a weight without axes is; null for other tensors.
  const Array* NumberOf(const ScriptValue& value) const;
  /// Unimplemented, with all operators that are not supported; else OK.
  absl::Status Missing() const;

  TorchExport Take() { return std::move(graph_); }

 private:
  absl::StatusOr<ScriptValue> Emit(const ScriptOperator& op, bool in_place,
                                   std::map<std::string, ScriptValue> named);
  std::string FreeName(const std::string& name);
  void Say(const std::string& name, const ScriptTensor& tensor);
  bool Match(const ScriptOperator& op, const ScriptArguments& arguments,
             std::map<std::string, ScriptValue>* named) const;

  TorchExport graph_;
  std::map<std::string, ScriptTensor> tensors_;
  std::set<std::string> names_, open_inputs_;
  std::map<std::string, int64_t> missing_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_SCRIPT_NETWORK_H_
