// SPDX-License-Identifier: Apache-2.0
// The convolutions of ResNet with the batch norms around them, channels last,
// which PaddlePaddle computes on GPUs:
//   fused_scale_bias_relu_conv_bn: out = conv2d of x, or with fuse_prologue of
//     relu(x scale + bias), by w; saved_mean and saved_var are the mean and 1 /
//     sqrt(variance + epsilon) of its channels, the running ones move by
//     1 - momentum towards theirs, and eq_scale out + eq_bias is the batch norm
//   fused_dconv_drelu_dbn: the gradients of conv2d(relu(n)), n = batch norm 1,
//     plus with fuse_shortcut a residual, with fuse_dual batch norm 2; what the
//     convolution saw is conv_input, or relu(bn1_input bn1_eqscale +
//     bn1_eqbias). With fuse_add grad_output_add is added to the gradient of
//     what it saw. grad_bn2_input is the residual's or batch norm 2's
// accumulation_count is told by the shapes.
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/fused/post_ops.h"

namespace pd {
namespace {

Composition::Attrs ConvAttrs(const Composition& parts) {
  Composition::Attrs attrs;
  for (const char* name : {"strides", "paddings", "dilations"})
    attrs[name] = parts.Attr<std::vector<int32_t>>(name);
  for (const char* name : {"padding_algorithm", "data_format"})
    attrs[name] = parts.Attr<std::string>(name);
  attrs["groups"] = parts.Attr<int32_t>("groups");
  return attrs;
}

std::string AddTwo(Composition* parts, const char* type, const std::string& x,
                   const std::string& y) {
  return parts->Apply(type, {{"X", {x}}, {"Y", {y}}});
}

// relu(x scale + bias)
std::string AddScaledRelu(Composition* parts, const char* x, const char* scale,
                          const char* bias) {
  const std::string scaled =
      AddTwo(parts, "elementwise_mul", parts->In(x), parts->In(scale));
  return parts->Apply(
      "relu",
      {{"X", {AddTwo(parts, "elementwise_add", scaled, parts->In(bias))}}});
}

absl::Status ExpectSlots(const Composition& parts, const char* attr,
                         const std::vector<const char*>& slots) {
  for (const char* slot : slots)
    if (!parts.HasInput(slot))
      return InvalidArgument("attr '%s' asks for input '%s', which is missing",
                             attr, slot);
  return absl::OkStatus();
}

absl::Status ComposeConvBn(Composition* parts) {
  std::string x = parts->In("x");
  if (parts->Attr<bool>("fuse_prologue")) {
    PD_RETURN_IF_ERROR(ExpectSlots(*parts, "fuse_prologue", {"scale", "bias"}));
    x = AddScaledRelu(parts, "x", "scale", "bias");
  }
  const std::string out = parts->Out("out"), mean = parts->Out("saved_mean"),
                    deviation = parts->Out("saved_var");
  parts->Add("conv2d", {{"Input", {x}}, {"Filter", {parts->In("w")}}},
             {{"Output", {out}}}, ConvAttrs(*parts));
  parts->Add("batch_norm",
             {{"X", {out}},
              {"Scale", {parts->In("bn_scale")}},
              {"Bias", {parts->In("bn_bias")}},
              {"Mean", {parts->In("input_running_mean")}},
              {"Variance", {parts->In("input_running_var")}}},
             {{"Y", {parts->Temp()}},
              {"MeanOut", {parts->Out("out_running_mean")}},
              {"VarianceOut", {parts->Out("out_running_var")}},
              {"SavedMean", {mean}},
              {"SavedVariance", {deviation}}},
             {{"momentum", parts->Attr<float>("momentum")},
              {"epsilon", parts->Attr<float>("epsilon")},
              {"data_layout", parts->Attr<std::string>("data_format")}});
  const std::string scale =
      AddTwo(parts, "elementwise_mul", parts->In("bn_scale"), deviation);
  WriteTo(parts, scale, parts->Out("eq_scale"));
  const std::string moved = AddTwo(parts, "elementwise_mul", mean, scale);
  WriteTo(parts, AddTwo(parts, "elementwise_sub", parts->In("bn_bias"), moved),
          parts->Out("eq_bias"));
  return absl::OkStatus();
}

// The gradients of batch norm 1 or 2 for that of its output.
void AddBnGradients(Composition* parts, const std::string& norm,
                    const std::string& gradient) {
  parts->Add("batch_norm_grad",
             {{"X", {parts->In(norm + "_input")}},
              {"Scale", {parts->In(norm + "_gamma")}},
              {"Bias", {parts->In(norm + "_beta")}},
              {"SavedMean", {parts->In(norm + "_mean")}},
              {"SavedVariance", {parts->In(norm + "_inv_std")}},
              {"Y@GRAD", {gradient}}},
             {{"X@GRAD", {parts->Out("grad_" + norm + "_input")}},
              {"Scale@GRAD", {parts->Out("grad_" + norm + "_gamma")}},
              {"Bias@GRAD", {parts->Out("grad_" + norm + "_beta")}}},
             {{"data_layout", parts->Attr<std::string>("data_format")}});
}

absl::Status ComposeConvBnGrad(Composition* parts) {
  const bool shortcut = parts->Attr<bool>("fuse_shortcut");
  const bool dual = parts->Attr<bool>("fuse_dual");
  if (shortcut && dual)
    return InvalidArgument(
        "attrs 'fuse_shortcut' and 'fuse_dual' are both true");
  std::string seen;
  if (shortcut || dual) {
    PD_RETURN_IF_ERROR(ExpectSlots(*parts, dual ? "fuse_dual" : "fuse_shortcut",
                                   {"conv_input"}));
    seen = parts->In("conv_input");
  } else {
    PD_RETURN_IF_ERROR(
        ExpectSlots(*parts, "fuse_shortcut", {"bn1_eqscale", "bn1_eqbias"}));
    seen = AddScaledRelu(parts, "bn1_input", "bn1_eqscale", "bn1_eqbias");
  }
  std::string gradient = parts->Temp();
  parts->Add("conv2d_grad",
             {{"Input", {seen}},
              {"Filter", {parts->In("weight")}},
              {"Output@GRAD", {parts->In("grad_output")}}},
             {{"Input@GRAD", {gradient}},
              {"Filter@GRAD", {parts->Out("grad_weight")}}},
             ConvAttrs(*parts));
  if (parts->Attr<bool>("fuse_add")) {
    PD_RETURN_IF_ERROR(ExpectSlots(*parts, "fuse_add", {"grad_output_add"}));
    gradient = AddTwo(parts, "elementwise_add", gradient,
                      parts->In("grad_output_add"));
  }
  gradient = parts->Apply(
      "relu_grad", {{"Out", {seen}}, {"Out@GRAD", {gradient}}}, {}, "X@GRAD");
  AddBnGradients(parts, "bn1", gradient);
  if (shortcut) WriteTo(parts, gradient, parts->Out("grad_bn2_input"));
  if (dual) {
    PD_RETURN_IF_ERROR(ExpectSlots(
        *parts, "fuse_dual",
        {"bn2_mean", "bn2_inv_std", "bn2_gamma", "bn2_beta", "bn2_input"}));
    AddBnGradients(parts, "bn2", gradient);
  }
  return absl::OkStatus();
}

void AddConvAttrs(OpDef* op) {
  for (const char* name : {"paddings", "dilations", "strides"})
    op->RequiredAttr(name, AttrType::kInts);
  op->RequiredAttr("padding_algorithm", AttrType::kString);
  op->RequiredAttr("groups", AttrType::kInt);
  op->RequiredAttr("data_format", AttrType::kString);
  op->RequiredAttr("exhaustive_search", AttrType::kBoolean);
}

}  // namespace

absl::Status RegisterFusedConvBn(OpRegistry* registry) {
  OpDef op("fused_scale_bias_relu_conv_bn");
  op.Input("x").Input("w").OptionalInput("scale").OptionalInput("bias");
  for (const char* slot :
       {"bn_scale", "bn_bias", "input_running_mean", "input_running_var"})
    op.Input(slot);
  for (const char* slot : {"out", "out_running_mean", "out_running_var",
                           "saved_mean", "saved_var", "eq_scale", "eq_bias"})
    op.Output(slot);
  AddConvAttrs(&op);
  op.RequiredAttr("momentum", AttrType::kFloat);
  op.RequiredAttr("epsilon", AttrType::kFloat);
  op.RequiredAttr("fuse_prologue", AttrType::kBoolean);
  op.Attr("accumulation_count", int64_t{0});
  PD_RETURN_IF_ERROR(AddComposed<ComposeConvBn>(registry, std::move(op)));

  OpDef grad("fused_dconv_drelu_dbn");
  grad.Input("grad_output").Input("weight");
  for (const char* slot : {"grad_output_add", "residual_input", "bn1_eqscale",
                           "bn1_eqbias", "conv_input"})
    grad.OptionalInput(slot);
  for (const char* slot :
       {"bn1_mean", "bn1_inv_std", "bn1_gamma", "bn1_beta", "bn1_input"})
    grad.Input(slot);
  for (const char* slot :
       {"bn2_mean", "bn2_inv_std", "bn2_gamma", "bn2_beta", "bn2_input"})
    grad.OptionalInput(slot);
  for (const char* slot :
       {"grad_weight", "grad_bn1_input", "grad_bn1_gamma", "grad_bn1_beta"})
    grad.Output(slot);
  for (const char* slot : {"grad_bn2_input", "grad_bn2_gamma", "grad_bn2_beta"})
    grad.OptionalOutput(slot);
  AddConvAttrs(&grad);
  for (const char* name : {"fuse_shortcut", "fuse_dual", "fuse_add"})
    grad.RequiredAttr(name, AttrType::kBoolean);
  return AddComposed<ComposeConvBnGrad>(registry, std::move(grad));
}

}  // namespace pd
