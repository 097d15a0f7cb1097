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
#include <utility>

#include "libcore/passes/op_graph.h"

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

// The reshape2 that makes the Y of the addition; kNone where it is another op
// or may not go.
int ReshapeOf(const OpGraph& graph, size_t add) {
  const std::string& y = graph.op(add).In("Y");
  const int i = graph.OnlyWriter(y);
  if (i == kNone || graph.op(At(i)).type != "reshape2" ||
      graph.OnlyReader(y) != static_cast<int>(add))
    return kNone;
  for (const std::string& shape : graph.op(At(i)).Output("XShape"))
    if (!graph.Readers(shape).empty() || graph.IsWanted(shape)) return kNone;
  return i;
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
      x->shape.size() != spread->shape.size() ||
      add.AttrOr<int32_t>("axis", -1) > 0)
    return kNone;
  return LongAxis(spread->shape, vector->shape[0]);
}

}  // namespace

absl::Status FlattenBiases(const PassContext& context, ProgramDesc* program) {
  OpGraph graph(context, program);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.op(i).type != "elementwise_add") continue;
    const int reshape = ReshapeOf(graph, i);
    if (reshape == kNone) continue;
    const OpDesc& bias = graph.op(At(reshape));
    const int axis = AxisOf(graph, graph.op(i), bias);
    if (axis == kNone) continue;
    OpDesc add = graph.op(i);
    add.SetInput("Y", bias.Input("X"));
    add.attrs["axis"] = static_cast<int32_t>(axis);
    graph.Replace(i, std::move(add), {At(reshape)});
  }
  graph.Finish();
  return absl::OkStatus();
}

}  // namespace pd
