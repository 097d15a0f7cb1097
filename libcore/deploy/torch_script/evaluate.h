// SPDX-License-Identifier: Apache-2.0
// Runs a method of TorchScript over values of which tensors are not known: what
// is known is computed, calls of methods are entered, and calls of operators
// are written down.
#ifndef PD_LIBCORE_DEPLOY_TORCH_SCRIPT_EVALUATE_H_
#define PD_LIBCORE_DEPLOY_TORCH_SCRIPT_EVALUATE_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/torch_script.h"
#include "libcore/deploy/torch_script/network.h"
#include "libcore/deploy/torch_script/parse.h"

namespace pd {

class ScriptEvaluator {
 public:
  /// Both outlive it.
  ScriptEvaluator(const TorchScript& script, ScriptNetwork* network);

  /// The network's forward.
  absl::StatusOr<const ScriptFunction*> Forward();
  /// The answer to `arguments`, of which the first is the network.
  absl::StatusOr<ScriptValue> Run(const ScriptFunction& function,
                                  ScriptArguments arguments);

 private:
  using Variables = std::map<std::string, ScriptValue>;
  enum class Flow { kNext, kReturn, kBreak, kContinue };

  absl::StatusOr<const ScriptFunction*> FunctionOf(const std::string& module,
                                                   const std::string& name);
  absl::StatusOr<Flow> Block(const std::vector<ScriptStatement>& block,
                             Variables* variables, ScriptValue* answer);
  absl::StatusOr<Flow> Statement(const ScriptStatement& statement,
                                 Variables* variables, ScriptValue* answer);
  absl::StatusOr<Flow> Loop(const ScriptStatement& statement,
                            Variables* variables, ScriptValue* answer);
  absl::Status Assign(const ScriptStatement& statement, ScriptValue value,
                      Variables* variables);
  absl::StatusOr<bool> Truth(const ScriptValue& value);
  absl::StatusOr<ScriptValue> Value(const ScriptExpr& expr,
                                    Variables* variables);
  absl::StatusOr<ScriptValue> Operation(const ScriptExpr& expr,
                                        Variables* variables);
  absl::StatusOr<ScriptValue> CallOf(const ScriptExpr& expr,
                                     Variables* variables);
  absl::StatusOr<ScriptValue> Method(const ScriptValue& self,
                                     const std::string& name,
                                     ScriptArguments arguments);
  absl::StatusOr<ScriptValue> Attribute(const ScriptValue& of,
                                        const std::string& name);
  absl::StatusOr<ScriptValue> Index(const ScriptValue& of,
                                    const ScriptValue& index);
  absl::StatusOr<ScriptValue> Constant(const std::string& name);
  absl::StatusOr<ScriptValue> ValueOf(const PickleValue& value,
                                      const std::string& name);
  absl::Status Count();

  const TorchScript& script_;
  ScriptNetwork* network_;
  std::map<std::string, ScriptFunctions> sources_;  // parsed when first used
  /// Names of weights by their elements: lists hold some once more.
  std::map<std::pair<const void*, std::string>, std::string> weight_names_;
  std::vector<std::string> paths_;  // of objects: "layer1.0."
  int depth_ = 0, levels_ = 0;
  int64_t steps_ = 0;
};

/// The answer of a function of numbers, lists and text, or of what is known of
/// a tensor; nothing where `name` ("torch.add", "int") is none such or has
/// tensors to compute with.
absl::StatusOr<std::optional<ScriptValue>> EvaluateKnown(
    const std::string& name, const ScriptArguments& arguments,
    const ScriptNetwork& network);

/// `a == b` of what is known.
absl::StatusOr<bool> SameScriptValues(const ScriptValue& a,
                                      const ScriptValue& b);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_SCRIPT_EVALUATE_H_
