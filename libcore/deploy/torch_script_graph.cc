// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_script_graph.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/torch_script/evaluate.h"
#include "libcore/deploy/torch_script/network.h"

namespace pd {
namespace {

absl::StatusOr<ScriptArguments> ArgumentsFor(
    const TorchScript& script, const ScriptFunction& forward,
    const std::map<std::string, TorchScriptInput>& inputs,
    ScriptNetwork* network) {
  ScriptArguments arguments;
  ScriptValue self = ScriptValue::Of(ScriptValue::Kind::kObject);
  self.object = 0;
  arguments.places.push_back(self);
  std::vector<std::string> missing;
  for (size_t i = 1; i < forward.parameters.size(); ++i) {
    const auto& [name, type] = forward.parameters[i];
    TorchScriptInput input;
    const auto given = inputs.find(name);
    const Array* traced = i - 1 < script.traced.size()
                              ? script.traced[i - 1].As<Array>()
                              : nullptr;
    if (given != inputs.end()) input = given->second;
    if (traced != nullptr && given == inputs.end()) input.shape = traced->shape;
    if (traced != nullptr && !input.dtype.has_value())
      input.dtype = traced->dtype;
    if (given == inputs.end() && traced == nullptr) {
      if (forward.defaults.count(name) > 0) break;
      missing.push_back(name);
      continue;
    }
    if (type != "Tensor" && type != "Optional[Tensor]")
      return Unimplemented("input '%s' is of type '%s'; expected a tensor",
                           name, type);
    ScriptTensor tensor;
    tensor.dtype = input.dtype.value_or(DType::kFloat32);
    for (const int64_t extent : input.shape)
      tensor.dims.push_back({extent < 0 ? 1 : extent, extent < 0});
    arguments.places.push_back(
        network->AddInput(name, std::move(tensor), input.dtype.has_value()));
  }
  if (!missing.empty())
    return FailedPrecondition(
        "a scripted archive does not say the shapes of its inputs (%s); "
        "expected one for each, as 'pd-export --input %s=-1,3,224,224' gives "
        "it, -1 for the batch",
        absl::StrJoin(missing, ", "), missing[0]);
  return arguments;
}

}  // namespace

absl::StatusOr<TorchExport> TorchScriptGraph(
    const TorchScript& script,
    const std::map<std::string, TorchScriptInput>& inputs) {
  if (script.objects.empty()) return DataLoss("the archive has no module");
  ScriptNetwork network;
  ScriptEvaluator evaluator(script, &network);
  PD_ASSIGN_OR_RETURN(const ScriptFunction* forward, evaluator.Forward());
  PD_ASSIGN_OR_RETURN(ScriptArguments arguments,
                      ArgumentsFor(script, *forward, inputs, &network));
  const auto answer = evaluator.Run(*forward, std::move(arguments));
  // Operators that are missing come first: they may be why the rest fails.
  PD_RETURN_IF_ERROR(network.Missing());
  PD_RETURN_IF_ERROR(answer.status());
  PD_RETURN_IF_ERROR(network.AddOutput(*answer));
  TorchExport graph = network.Take();
  if (graph.outputs.empty()) return DataLoss("the network gives no tensor");
  return graph;
}

}  // namespace pd
