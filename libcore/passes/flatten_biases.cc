// SPDX-License-Identifier: Apache-2.0
// reshape2 of a vector of parameters -> elementwise_add
//   -> elementwise_add along an axis
//
//   bias [C] -> reshape2 [1, C, 1, 1] -> elementwise_add(x)
//   bias [C] -> elementwise_add(x), axis 1
//
// So PaddlePaddle saves the bias of a convolution since 2.5; it adds the same
// numbers. For inference: where a gradient op reads the reshaped bias, it
// stays.
#include <string>

#include "libcore/passes/pattern.h"

namespace pd {
namespace {

// The axis of [1, C, 1, 1] that has all of the elements; kNone where none has.
int LongAxis(const Shape& shape, int64_t elements) {
  int axis = kNone;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 && (elements != 1 || d != 1)) continue;
    if (shape[d] != elements || axis != kNone) return kNone;
    axis = static_cast<int>(d);
  }
  return axis;
}

// The axis along which the vector is added; kNone where it is no vector, may
// change, or is spread otherwise.
int AxisOf(const OpGraph& graph, const OpDesc& add, const OpDesc& reshape) {
  const VarDesc* vector = graph.Var(reshape.In("X"));
  const VarDesc* spread = graph.Var(add.In("Y"));
  const VarDesc* x = graph.Var(add.In("X"));
  if (vector == nullptr || spread == nullptr || x == nullptr ||
      !vector->persistable || vector->shape.size() != 1 ||
      !graph.IsUnwritten(vector->name) ||
      x->shape.size() != spread->shape.size() || add.Attr<int32_t>("axis") > 0)
    return kNone;
  return LongAxis(spread->shape, vector->shape[0]);
}

bool ReplaceFlatBias(const Match& match, Fusion* fusion) {
  const OpDesc &reshape = match.op("reshape"), &add = match.op("add");
  const int axis = AxisOf(match.graph(), add, reshape);
  if (match.HasGradients() || axis == kNone) return false;
  fusion->forward = add;
  fusion->forward.SetInput("Y", reshape.Input("X"));
  fusion->forward.attrs["axis"] = static_cast<int32_t>(axis);
  return true;
}

}  // namespace

absl::Status FlattenBiases(const PassContext& context, ProgramDesc* program) {
  static const auto* const kPattern =
      new Pattern{PatternOp{"reshape", {"reshape2"}, {"X"}, "Out"},
                  PatternOp{"add", {"elementwise_add"}, {"Y"}, "Out"}};
  return FuseMatches(context, {kPattern}, ReplaceFlatBias, program);
}

}  // namespace pd
