// SPDX-License-Identifier: Apache-2.0
// Ops that PaddlePaddle's passes for oneDNN write into programs, in floats;
// with a the activation of post_ops.h and s = fused_output_scale:
//   fused_elementwise_add, _sub, _mul, _div: s a(X op Y), extents 1 put in at
//     fused_unsqueeze2_axes. Scales of 8 bits: X / scale_x, Y / scale_y, times
//     scale_out
//   fused_softplus: a(softplus(X))
//   fused_matmul: s a(matmul_alpha X' Y' + ResidualData), where X' and Y' are
//     reshaped and transposed first; the result is transposed and reshaped
//   fused_transpose: X without fused_squeeze2_axes, transposed; then reshaped,
//     or with extents put in
//   fused_conv3d: a(conv3d + Bias + ResidualData)
//   multi_gru: layers of a GRU forwards and one backwards, side by side
// 8-bit tensors belong to this library's own int8 ops; scales for them are
// refused. PaddlePaddle has no gradients of these.
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/fused/post_ops.h"

namespace pd {
namespace {

using AxisList = std::vector<int32_t>;

// Scales that only tensors of 8 bits have.
absl::Status ExpectNoScale(const Composition& parts,
                           std::initializer_list<const char*> names,
                           float neutral) {
  for (const char* name : names)
    if (parts.Attr<float>(name) != neutral)
      return Unimplemented(
          "attr '%s' is %g, a scale of 8-bit tensors; the op computes in "
          "floats, where it is %g",
          name, parts.Attr<float>(name), neutral);
  return absl::OkStatus();
}

absl::StatusOr<std::string> AddPostOps(Composition* parts,
                                       const std::string& x) {
  return AddActivation(parts, x, parts->Attr<std::string>("fuse_activation"),
                       parts->Attr<float>("fuse_alpha"),
                       parts->Attr<float>("fuse_beta"));
}

absl::Status ComposeFusedElementwise(Composition* parts) {
  const std::string part = parts->op().type.substr(sizeof("fused_") - 1);
  float x_scale = parts->Attr<float>("scale_x");
  float y_scale = parts->Attr<float>("scale_y");
  const float out_scale = parts->Attr<float>("scale_out");
  if (!(x_scale != 0) || !(y_scale != 0))
    return InvalidArgument("attrs 'scale_x' and 'scale_y' are %g and %g",
                           x_scale, y_scale);
  const std::string x = AddScale(parts, parts->In("X"), 1 / x_scale);
  const std::string y = AddScale(parts, parts->In("Y"), 1 / y_scale);
  std::string out = parts->Apply(part, {{"X", {x}}, {"Y", {y}}},
                                 {{"axis", parts->Attr<int32_t>("axis")}});
  out = AddScale(parts, out, out_scale);
  PD_ASSIGN_OR_RETURN(out, AddPostOps(parts, out));
  out = AddScale(parts, out, parts->Attr<float>("fused_output_scale"));
  const auto& axes = parts->Attr<AxisList>("fused_unsqueeze2_axes");
  if (!axes.empty())
    out = parts->Apply("unsqueeze2", {{"X", {out}}}, {{"axes", axes}});
  WriteTo(parts, out, parts->Out("Out"));
  return absl::OkStatus();
}

absl::Status ComposeFusedSoftplus(Composition* parts) {
  std::string out =
      parts->Apply("softplus", {{"X", {parts->In("X")}}},
                   {{"beta", parts->Attr<float>("beta")},
                    {"threshold", parts->Attr<float>("threshold")}});
  PD_ASSIGN_OR_RETURN(out, AddPostOps(parts, out));
  WriteTo(parts, out, parts->Out("Out"));
  return absl::OkStatus();
}

std::string MovedOperand(Composition* parts, const std::string& slot) {
  return AddTranspose(
      parts,
      AddReshape(parts, parts->In(slot),
                 parts->Attr<AxisList>("fused_reshape_" + slot)),
      parts->Attr<AxisList>("fused_transpose_" + slot));
}

absl::Status ComposeFusedMatmul(Composition* parts) {
  PD_RETURN_IF_ERROR(
      ExpectNoScale(*parts, {"Scale_x", "Scale_y", "Scale_out"}, 1));
  const std::string x = MovedOperand(parts, "X");
  const std::string y = MovedOperand(parts, "Y");
  std::string out = parts->Apply("matmul_v2", {{"X", {x}}, {"Y", {y}}},
                                 {{"trans_x", parts->Attr<bool>("trans_x")},
                                  {"trans_y", parts->Attr<bool>("trans_y")}});
  out = AddScale(parts, out, parts->Attr<float>("matmul_alpha"));
  if (parts->HasInput("ResidualData"))
    out = parts->Apply("elementwise_add",
                       {{"X", {out}}, {"Y", {parts->In("ResidualData")}}});
  PD_ASSIGN_OR_RETURN(out, AddPostOps(parts, out));
  out = AddScale(parts, out, parts->Attr<float>("fused_output_scale"));
  out = AddTranspose(parts, out, parts->Attr<AxisList>("fused_transpose_Out"));
  out = AddReshape(parts, out, parts->Attr<AxisList>("fused_reshape_Out"));
  WriteTo(parts, out, parts->Out("Out"));
  return absl::OkStatus();
}

absl::Status ComposeFusedTranspose(Composition* parts) {
  PD_RETURN_IF_ERROR(ExpectNoScale(*parts, {"scale"}, 1));
  PD_RETURN_IF_ERROR(ExpectNoScale(*parts, {"shift"}, 0));
  const std::string& type = parts->Attr<std::string>("output_data_type");
  if (!type.empty() && type != "fp32")
    return Unimplemented(
        "attr 'output_data_type' is '%s'; the op computes in floats", type);
  const auto& squeezed = parts->Attr<AxisList>("fused_squeeze2_axes");
  const auto& unsqueezed = parts->Attr<AxisList>("fused_unsqueeze2_axes");
  std::string out = parts->In("X");
  if (!squeezed.empty())
    out = parts->Apply("squeeze2", {{"X", {out}}}, {{"axes", squeezed}});
  out = AddTranspose(parts, out, parts->Attr<AxisList>("axis"));
  if (!unsqueezed.empty())
    out = parts->Apply("unsqueeze2", {{"X", {out}}}, {{"axes", unsqueezed}});
  out = AddReshape(parts, out, parts->Attr<AxisList>("fused_reshape2_shape"));
  WriteTo(parts, out, parts->Out("Out"));
  if (parts->HasOutput("XShape"))  // a view whose extents are all X's
    parts->Add("reshape2", {{"X", {parts->In("X")}}},
               {{"Out", {parts->Temp()}}, {"XShape", {parts->Out("XShape")}}},
               {{"shape", AxisList(parts->Meta("X").shape.size(), 0)}});
  return absl::OkStatus();
}

absl::Status ComposeFusedConv3d(Composition* parts) {
  Composition::Attrs attrs;
  for (const char* name : {"strides", "paddings", "padding_algorithm",
                           "dilations", "groups", "data_format"})
    attrs[name] = *parts->op().FindAttr(name);
  const std::string& format = parts->Attr<std::string>("data_format");
  // oneDNN's passes leave the two-dimensional names.
  const bool last = format == "NHWC" || format == "NDHWC";
  attrs["data_format"] = std::string(last ? "NDHWC" : "NCDHW");
  std::string out = parts->Apply(
      "conv3d",
      {{"Input", {parts->In("Input")}}, {"Filter", {parts->In("Filter")}}},
      std::move(attrs), "Output");
  if (parts->HasInput("Bias"))
    out = parts->Apply("elementwise_add",
                       {{"X", {out}}, {"Y", {parts->In("Bias")}}},
                       {{"axis", int32_t{last ? -1 : 1}}});
  if (parts->HasInput("ResidualData"))
    out = parts->Apply("elementwise_add",
                       {{"X", {out}}, {"Y", {parts->In("ResidualData")}}});
  PD_ASSIGN_OR_RETURN(
      out,
      AddActivation(parts, out, parts->Attr<std::string>("fuse_activation"),
                    parts->Attr<float>("fuse_alpha"),
                    parts->Attr<float>("fuse_beta")));
  WriteTo(parts, out, parts->Out("Output"));
  return absl::OkStatus();
}

absl::Status ComposeMultiGru(Composition* parts) {
  const int32_t layers = parts->Attr<int32_t>("layers");
  const size_t n = parts->op().Input("WeightX").size();
  const size_t biases = parts->op().Input("Bias").size();
  if (layers < 1 || n != 2 * static_cast<size_t>(layers) ||
      parts->op().Input("WeightH").size() != n || (biases != n && biases != 0))
    return InvalidArgument(
        "attr 'layers' is %d; 'WeightX', 'WeightH' and 'Bias' have %d, %d and "
        "%d variables; expected two a layer",
        layers, n, parts->op().Input("WeightH").size(), biases);
  if (!parts->op().Input("Scale_weights").empty() ||
      parts->Attr<float>("Scale_data") != 1)
    return Unimplemented("the scales of 8-bit weights; it computes in floats");
  std::string x = parts->In("X");
  for (size_t i = 0; i < n; i += 2) {
    Composition::Names both;
    for (const size_t k : {i, i + 1}) {
      Composition::Slots in = {{"X", {x}},
                               {"WeightX", {parts->In("WeightX", k)}},
                               {"WeightH", {parts->In("WeightH", k)}}};
      if (biases > 0) in.push_back({"Bias", {parts->In("Bias", k)}});
      both.push_back(parts->Apply(
          "fusion_gru", in,
          {{"activation", parts->Attr<std::string>("activation")},
           {"gate_activation", parts->Attr<std::string>("gate_activation")},
           {"origin_mode", parts->Attr<bool>("origin_mode")},
           {"is_reverse", k != i}},
          "Hidden"));
    }
    x = parts->Apply("concat", {{"X", both}}, {{"axis", int32_t{1}}});
  }
  WriteTo(parts, x, parts->Out("Hidden"));
  return absl::OkStatus();
}

void AddFuseAttrs(OpDef* op) {
  op->Attr("fuse_activation", std::string());
  op->Attr("fuse_alpha", 0.0f).Attr("fuse_beta", 0.0f);
}

absl::Status AddElementwise(OpRegistry* registry) {
  for (const char* name : {"add", "sub", "mul", "div"}) {
    OpDef op(std::string("fused_elementwise_") + name);
    op.Input("X").Input("Y").Output("Out").Attr("axis", int32_t{-1});
    AddFuseAttrs(&op);
    for (const char* scale :
         {"fused_output_scale", "scale_x", "scale_y", "scale_out"})
      op.Attr(scale, 1.0f);
    op.Attr("fused_unsqueeze2_axes", AxisList());
    PD_RETURN_IF_ERROR(
        AddComposed<ComposeFusedElementwise>(registry, std::move(op)));
  }
  OpDef softplus("fused_softplus");
  softplus.Input("X").Output("Out").Attr("beta", 1.0f).Attr("threshold", 20.0f);
  AddFuseAttrs(&softplus);
  return AddComposed<ComposeFusedSoftplus>(registry, std::move(softplus));
}

absl::Status AddMatmul(OpRegistry* registry) {
  OpDef op("fused_matmul");
  op.Input("X").Input("Y").OptionalInput("ResidualData").Output("Out");
  op.Attr("trans_x", false).Attr("trans_y", false).Attr("matmul_alpha", 1.0f);
  AddFuseAttrs(&op);
  op.Attr("fused_output_scale", 1.0f);
  for (const char* name :
       {"fused_reshape_X", "fused_transpose_X", "fused_reshape_Y",
        "fused_transpose_Y", "fused_reshape_Out", "fused_transpose_Out"})
    op.Attr(name, AxisList());
  for (const char* scale : {"Scale_x", "Scale_y", "Scale_out"})
    op.Attr(scale, 1.0f);
  op.Attr("Scale_in_eltwise", 0.0f).Attr("force_fp32_output", false);
  return AddComposed<ComposeFusedMatmul>(registry, std::move(op));
}

absl::Status AddTransposes(OpRegistry* registry) {
  OpDef op("fused_transpose");
  op.Input("X").Output("Out").IntermediateOutput("XShape");
  op.RequiredAttr("axis", AttrType::kInts);
  for (const char* name :
       {"fused_squeeze2_axes", "fused_unsqueeze2_axes", "fused_reshape2_shape"})
    op.Attr(name, AxisList());
  op.Attr("scale", 1.0f).Attr("shift", 0.0f);
  op.Attr("output_data_type", std::string());
  return AddComposed<ComposeFusedTranspose>(registry, std::move(op));
}

}  // namespace

absl::Status RegisterOnednnFused(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddElementwise(registry));
  PD_RETURN_IF_ERROR(AddMatmul(registry));
  PD_RETURN_IF_ERROR(AddTransposes(registry));

  OpDef conv("fused_conv3d");
  conv.Input("Input").Input("Filter").OptionalInput("Bias");
  conv.OptionalInput("ResidualData").Output("Output");
  conv.Attr("strides", AxisList{1, 1}).Attr("paddings", AxisList{0, 0});
  conv.Attr("padding_algorithm", std::string("EXPLICIT"));
  conv.Attr("dilations", AxisList{1, 1}).Attr("groups", int32_t{1});
  conv.Attr("data_format", std::string("NCHW"));
  AddFuseAttrs(&conv);
  conv.Attr("fuse_residual_connection", false).Attr("force_fp32_output", false);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeFusedConv3d>(registry, std::move(conv)));

  OpDef gru("multi_gru");
  gru.Input("X").Inputs("WeightX").Inputs("WeightH").OptionalInputs("Bias");
  gru.OptionalInputs("Scale_weights").Output("Hidden");
  gru.Attr("activation", std::string("tanh"));
  gru.Attr("gate_activation", std::string("sigmoid"));
  gru.Attr("layers", int32_t{1}).Attr("origin_mode", false);
  gru.Attr("Scale_data", 1.0f).Attr("Shift_data", 0.0f);
  gru.Attr("force_fp32_output", false);
  return AddComposed<ComposeMultiGru>(registry, std::move(gru));
}

}  // namespace pd
