// SPDX-License-Identifier: Apache-2.0
// The primitives that PaddlePaddle's program transformations write
// (paddle.incubate.autograd), those that make, move and sum elements:
//   fill_constant_p, bernoulli_p, uniform_random_p: tensors of a shape
//   reshape_p, transpose_p, broadcast_p, concat_p, split_p
//   slice_select_p: a strided slice; slice_assign_p: X with Y in place of one
//   gather_p: X's parts at an index along an axis; scatter_add_p: X, with Y's
//     parts added there
//   reduce_sum_p: the sum over axes
// An index is the attribute, or IndexTensor where that is given. No gradient
// ops: PaddlePaddle differentiates by rules of its own.
#include <limits>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"

namespace pd {
namespace {

using Longs = std::vector<int64_t>;
using Ints = std::vector<int32_t>;

// Shapes, axes and indices of other ops have 32 bits.
absl::StatusOr<Ints> NarrowInts(const Composition& parts, const char* name) {
  Ints narrow;
  for (int64_t v : parts.Attr<Longs>(name)) {
    if (v != static_cast<int32_t>(v))
      return InvalidArgument("attr '%s' has a %d", name, v);
    narrow.push_back(static_cast<int32_t>(v));
  }
  return narrow;
}

absl::StatusOr<int32_t> NarrowInt(const Composition& parts, const char* name) {
  const int64_t v = parts.Attr<int64_t>(name);
  if (v != static_cast<int32_t>(v))
    return InvalidArgument("attr '%s' is %d", name, v);
  return static_cast<int32_t>(v);
}

absl::Status ComposeFillPrimitive(Composition* parts) {
  parts->Add("fill_constant", {}, {{"Out", {parts->Out("Y")}}},
             {{"shape", parts->Attr<Longs>("shape")},
              {"dtype", parts->Attr<int32_t>("dtype")},
              {"value", parts->Attr<float>("value")}});
  return absl::OkStatus();
}

absl::Status ComposeBernoulliPrimitive(Composition* parts) {
  const std::string p =
      parts->Apply("fill_constant", {},
                   {{"shape", parts->Attr<Longs>("shape")},
                    {"dtype", static_cast<int32_t>(DType::kFloat32)},
                    {"value", parts->Attr<float>("p")}});
  const std::string drawn = parts->Apply("bernoulli", {{"X", {p}}});
  parts->Add("cast", {{"X", {drawn}}}, {{"Out", {parts->Out("Y")}}},
             {{"in_dtype", static_cast<int32_t>(DType::kFloat32)},
              {"out_dtype", parts->Attr<int32_t>("dtype")}});
  return absl::OkStatus();
}

absl::Status ComposeUniformPrimitive(Composition* parts) {
  parts->Add("uniform_random", {}, {{"Out", {parts->Out("Out")}}},
             {{"shape", parts->Attr<Longs>("shape")},
              {"dtype", parts->Attr<int32_t>("dtype")},
              {"min", parts->Attr<float>("min")},
              {"max", parts->Attr<float>("max")},
              {"seed", parts->Attr<int32_t>("seed")}});
  return absl::OkStatus();
}

// reshape_p, broadcast_p, transpose_p: another op with a list.
absl::Status ComposeShapePrimitive(Composition* parts) {
  const std::string& type = parts->op().type;
  const bool transposes = type == "transpose_p";
  const char* attr = transposes ? "axis" : "shape";
  PD_ASSIGN_OR_RETURN(Ints list, NarrowInts(*parts, attr));
  parts->Add(transposes            ? "transpose2"
             : type == "reshape_p" ? "reshape2"
                                   : "expand_v2",
             {{"X", {parts->In("X")}}}, {{"Out", {parts->Out("Y")}}},
             {{attr, std::move(list)}});
  return absl::OkStatus();
}

absl::Status ComposeConcatPrimitive(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const int32_t axis, NarrowInt(*parts, "axis"));
  parts->Add("concat", {{"X", parts->Ins("XS")}}, {{"Out", {parts->Out("Y")}}},
             {{"axis", axis}});
  return absl::OkStatus();
}

absl::Status ComposeSplitPrimitive(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const int32_t axis, NarrowInt(*parts, "axis"));
  PD_ASSIGN_OR_RETURN(const Ints sizes, NarrowInts(*parts, "num_or_sections"));
  Composition::Names outs;
  for (size_t i = 0; i < parts->op().Output("YS").size(); ++i)
    outs.push_back(parts->Out("YS", i));
  // One number is how many parts of one size; a single part is all of X.
  const bool count = sizes.size() == 1;
  Composition::Attrs attrs = {{"axis", axis}};
  if (count)
    attrs["num"] = sizes[0];
  else
    attrs["sections"] = sizes;
  if (sizes.empty() ||
      outs.size() != (count ? static_cast<size_t>(sizes[0]) : sizes.size()))
    return InvalidArgument(
        "attr 'num_or_sections' has %d numbers%s, and there are %d outputs",
        sizes.size(), count ? ": " + std::to_string(sizes[0]) : std::string(),
        outs.size());
  parts->Add("split", {{"X", {parts->In("X")}}}, {{"Out", outs}},
             std::move(attrs));
  return absl::OkStatus();
}

absl::Status ComposeSlicePrimitive(Composition* parts) {
  Composition::Attrs attrs;
  const std::pair<const char*, const char*> names[] = {{"axis", "axes"},
                                                       {"starts", "starts"},
                                                       {"ends", "ends"},
                                                       {"strides", "strides"}};
  for (const auto& [ours, theirs] : names) {
    PD_ASSIGN_OR_RETURN(attrs[theirs], NarrowInts(*parts, ours));
  }
  parts->Add("strided_slice", {{"Input", {parts->In("X")}}},
             {{"Out", {parts->Out("Y")}}}, std::move(attrs));
  return absl::OkStatus();
}

absl::Status ComposeAssignPrimitive(Composition* parts) {
  parts->Add("set_value",
             {{"Input", {parts->In("X")}}, {"ValueTensor", {parts->In("Y")}}},
             {{"Out", {parts->Out("Z")}}},
             {{"axes", parts->Attr<Longs>("axis")},
              {"starts", parts->Attr<Longs>("starts")},
              {"ends", parts->Attr<Longs>("ends")},
              {"steps", parts->Attr<Longs>("strides")},
              {"dtype", static_cast<int32_t>(parts->Meta("X").dtype)}});
  return absl::OkStatus();
}

absl::StatusOr<std::string> IndexOf(Composition* parts) {
  if (parts->HasInput("IndexTensor")) return parts->In("IndexTensor");
  PD_ASSIGN_OR_RETURN(const Ints index, NarrowInts(*parts, "index"));
  return parts->Apply("assign_value", {},
                      {{"shape", Ints{static_cast<int32_t>(index.size())}},
                       {"dtype", static_cast<int32_t>(DType::kInt32)},
                       {"int32_values", index}});
}

absl::Status ComposeGatherPrimitive(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const int32_t axis, NarrowInt(*parts, "axis"));
  PD_ASSIGN_OR_RETURN(const std::string index, IndexOf(parts));
  parts->Add("gather", {{"X", {parts->In("X")}}, {"Index", {index}}},
             {{"Out", {parts->Out("Y")}}}, {{"axis", axis}});
  return absl::OkStatus();
}

absl::Status ComposeScatterPrimitive(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const int32_t axis, NarrowInt(*parts, "axis"));
  PD_ASSIGN_OR_RETURN(const std::string index, IndexOf(parts));
  parts->Add("index_add",
             {{"X", {parts->In("X")}},
              {"Index", {index}},
              {"AddValue", {parts->In("Y")}}},
             {{"Out", {parts->Out("Z")}}}, {{"axis", axis}});
  return absl::OkStatus();
}

absl::Status ComposeSumPrimitive(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const Ints axes, NarrowInts(*parts, "axis"));
  parts->Add("reduce_sum", {{"X", {parts->In("X")}}},
             {{"Out", {parts->Out("Y")}}},
             {{"dim", axes},
              {"keep_dim", parts->Attr<bool>("keepdim")},
              {"reduce_all", axes.empty()}});
  return absl::OkStatus();
}

OpDef OneOperand(const char* type) {
  OpDef op(type);
  op.Input("X").Output("Y");
  return op;
}

OpDef& WithSlice(OpDef&& op) {
  for (const char* name : {"axis", "starts", "ends", "strides"})
    op.RequiredAttr(name, AttrType::kLongs);
  return op;
}

absl::Status AddMakers(OpRegistry* registry) {
  OpDef fill("fill_constant_p"), bernoulli("bernoulli_p"),
      uniform("uniform_random_p");
  fill.Output("Y").RequiredAttr("value", AttrType::kFloat);
  bernoulli.Output("Y").RequiredAttr("p", AttrType::kFloat);
  for (OpDef* op : {&fill, &bernoulli})
    op->RequiredAttr("shape", AttrType::kLongs);
  uniform.Output("Out").Attr("shape", Longs());
  uniform.RequiredAttr("min", AttrType::kFloat);
  uniform.RequiredAttr("max", AttrType::kFloat);
  uniform.RequiredAttr("seed", AttrType::kInt);
  for (OpDef* op : {&fill, &bernoulli, &uniform})
    op->RequiredAttr("dtype", AttrType::kInt);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeFillPrimitive>(registry, std::move(fill)));
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeBernoulliPrimitive>(registry, std::move(bernoulli)));
  return AddComposed<ComposeUniformPrimitive>(registry, std::move(uniform));
}

absl::Status AddIndexed(OpRegistry* registry) {
  OpDef gather = OneOperand("gather_p"), scatter("scatter_add_p");
  scatter.Input("X").Input("Y").Output("Z");
  for (OpDef* op : {&gather, &scatter})
    op->OptionalInput("IndexTensor")
        .RequiredAttr("axis", AttrType::kLong)
        .Attr("index", Longs{0});
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeGatherPrimitive>(registry, std::move(gather)));
  return AddComposed<ComposeScatterPrimitive>(registry, std::move(scatter));
}

}  // namespace

absl::Status RegisterShapePrimitives(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddMakers(registry));
  PD_RETURN_IF_ERROR(AddIndexed(registry));
  for (const char* type : {"reshape_p", "broadcast_p", "transpose_p"}) {
    OpDef op = OneOperand(type);
    op.RequiredAttr(std::string(type) == "transpose_p" ? "axis" : "shape",
                    AttrType::kLongs);
    PD_RETURN_IF_ERROR(
        AddComposed<ComposeShapePrimitive>(registry, std::move(op)));
  }
  OpDef concat("concat_p"), split("split_p");
  concat.Inputs("XS").Output("Y").RequiredAttr("axis", AttrType::kLong);
  split.Input("X").Outputs("YS").RequiredAttr("axis", AttrType::kLong);
  split.RequiredAttr("num_or_sections", AttrType::kLongs);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeConcatPrimitive>(registry, std::move(concat)));
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeSplitPrimitive>(registry, std::move(split)));

  OpDef assign("slice_assign_p");
  assign.Input("X").Input("Y").Output("Z");
  PD_RETURN_IF_ERROR(AddComposed<ComposeSlicePrimitive>(
      registry, WithSlice(OneOperand("slice_select_p"))));
  PD_RETURN_IF_ERROR(AddComposed<ComposeAssignPrimitive>(
      registry, WithSlice(std::move(assign))));

  OpDef sum = OneOperand("reduce_sum_p");
  sum.RequiredAttr("axis", AttrType::kLongs).Attr("keepdim", false);
  return AddComposed<ComposeSumPrimitive>(registry, std::move(sum));
}

}  // namespace pd
