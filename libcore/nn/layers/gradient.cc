// SPDX-License-Identifier: Apache-2.0
// grad: gradients of layers that are there already, by append_backward. Its ops
// are forward ops to all that comes behind: what is learned through them are
// gradients of gradient ops.
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

absl::Status CheckRead(const char* field, const LayerContext& c) {
  const std::vector<LayerInput>& reads = c.AllNamed(field);
  if (reads.empty())
    return InvalidArgument("%s (grad) names no layer in '%s'", c.Called(),
                           field);
  std::set<std::string> seen;
  for (const LayerInput& read : reads) {
    const DType dtype = c.TypeOf(read.variable);
    if (!IsFloating(dtype))
      return InvalidArgument(
          "'%s': %s gives %s; expected floating-point "
          "numbers",
          field, read.maker, Name(dtype));
    if (!seen.insert(read.variable).second)
      return InvalidArgument("'%s' names %s twice", field, read.maker);
  }
  return absl::OkStatus();
}

// Whether weights of shape `b` can stand for elements of shape `a`.
bool CanWeigh(const Shape& a, const Shape& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = a[i] < 0 || b[i] < 0 || a[i] == b[i];
  return same;
}

// The outputs, each with its weights.
absl::Status SetTargets(const LayerContext& c, BackwardOptions* options) {
  const std::vector<LayerInput>& outputs = c.AllNamed("outputs");
  const std::vector<LayerInput>& weights = c.AllNamed("grad_outputs");
  if (!weights.empty() && weights.size() != outputs.size())
    return InvalidArgument(
        "'grad_outputs' names %d layers and 'outputs' %d; expected as many",
        weights.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string& weight = options->targets[outputs[i].variable];
    if (weights.empty()) continue;
    weight = weights[i].variable;
    const Shape &shape = c.ShapeOf(outputs[i].variable),
                &given = c.ShapeOf(weight);
    if (!CanWeigh(shape, given) ||
        c.TypeOf(weight) != c.TypeOf(outputs[i].variable))
      return InvalidArgument(
          "'grad_outputs': %s gives %s%s; expected %s%s, "
          "which %s gives",
          weights[i].maker, Name(c.TypeOf(weight)), ToString(given),
          Name(c.TypeOf(outputs[i].variable)), ToString(shape),
          outputs[i].maker);
  }
  return absl::OkStatus();
}

// Evaluation keeps these ops, and a gradient of theirs is one of forward ops.
void MakeForward(ProgramDesc* program) {
  for (BlockDesc& block : program->blocks)
    for (OpDesc& op : block.ops) {
      const auto role = op.attrs.find(std::string(kOpRoleAttr));
      if (role != op.attrs.end()) role->second = int32_t{kRoleForward};
    }
}

absl::StatusOr<std::string> BuildGrad(LayerContext* c) {
  BlockBuilder* main = c->main();
  if (main->block_index() != 0)
    return Unimplemented(
        "a layer grad cannot stand in a loop, a branch or a step of a "
        "recurrent layer");
  PD_RETURN_IF_ERROR(CheckRead("outputs", *c));
  PD_RETURN_IF_ERROR(CheckRead("inputs", *c));
  BackwardOptions options;
  options.parameters = false;
  PD_RETURN_IF_ERROR(SetTargets(*c, &options));
  const std::vector<LayerInput>& inputs = c->AllNamed("inputs");
  for (const LayerInput& input : inputs) options.wrt.push_back(input.variable);
  const auto gradients =
      AppendBackward(main->registry(), options, main->program());
  if (!gradients.ok()) return Annotate(gradients.status(), c->Described());
  MakeForward(main->program());
  main->Refresh();
  std::string first;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto gradient = gradients->find(inputs[i].variable);
    if (gradient == gradients->end())
      return InvalidArgument(
          "the gradient by %s would be zero: 'outputs' do not depend on it",
          inputs[i].maker);
    if (i == 0)
      first = gradient->second;
    else
      c->AddOutput(absl::StrCat(i), gradient->second);
  }
  return first;
}

}  // namespace

void AddGradientLayers(LayerTable* table) {
  (*table)[job::Layer::kGrad] = {BuildGrad, 0, 0};
}

}  // namespace pd
