// SPDX-License-Identifier: Apache-2.0
// The feed-forward half of a transformer's layer, as PaddlePaddle's
// FusedFeedForward appends it. With n = layer_norm(X) where pre_layer_norm is
// true, else X
//   Linear1Out = n Linear1Weight
//   Dropout1Out = dropout(act(Linear1Out + Linear1Bias)), act is gelu or relu
//   s = X + dropout(Dropout1Out Linear2Weight + Linear2Bias), without X where
//     add_residual is false
//   Out = s where pre_layer_norm is true, else layer_norm(s)
// Dropout2Out is s in front of a layer norm, else the term beside X.
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"
#include "libcore/ops/fused/head_parts.h"

namespace pd {
namespace {

absl::Status CheckFeedForward(const Composition& parts) {
  const std::string& act = parts.Attr<std::string>("act_method");
  if (act != "gelu" && act != "relu")
    return InvalidArgument("attr 'act_method' is '%s'; expected gelu or relu",
                           act);
  if (parts.Attr<int32_t>("ring_id") >= 0)
    return Unimplemented(
        "attr 'ring_id' is %d; weights split over processes are not computed "
        "by this op",
        parts.Attr<int32_t>("ring_id"));
  if (parts.HasInput("Dropout1Seed") || parts.HasInput("Dropout2Seed"))
    return Unimplemented(
        "'Dropout1Seed' or 'Dropout2Seed' is given; expected attrs");
  if (parts.Meta("X").shape.size() < 2)
    return InvalidArgument("'X' has shape %s; expected rows",
                           ToString(parts.Meta("X").shape));
  return absl::OkStatus();
}

// `x`, with a bias where the op has it.
std::string WithBias(Composition* parts, const std::string& x,
                     const char* bias) {
  return AddPart(parts, x, parts->HasInput(bias) ? parts->In(bias) : "");
}

absl::Status ComposeFeedForward(Composition* parts) {
  PD_RETURN_IF_ERROR(CheckFeedForward(*parts));
  const bool pre = parts->Attr<bool>("pre_layer_norm");
  std::string x = parts->In("X");
  if (pre) {
    x = parts->Out("Ln1Out");
    NormPart(parts, "Ln1", "ln1_epsilon", parts->In("X"), x);
  }
  const std::string linear1 = parts->Out("Linear1Out");
  parts->Add("matmul_v2", {{"X", {x}}, {"Y", {parts->In("Linear1Weight")}}},
             {{"Out", {linear1}}});
  const std::string active =
      parts->Apply(parts->Attr<std::string>("act_method"),
                   {{"X", {WithBias(parts, linear1, "Linear1Bias")}}});
  const std::string dropped = parts->Out("Dropout1Out");
  parts->Add("dropout", {{"X", {active}}},
             {{"Out", {dropped}}, {"Mask", {parts->Out("Dropout1Mask")}}},
             DropoutOf(*parts, "dropout1"));
  const std::string linear2 = WithBias(
      parts,
      parts->Apply("matmul_v2",
                   {{"X", {dropped}}, {"Y", {parts->In("Linear2Weight")}}}),
      "Linear2Bias");
  const bool residual = parts->Attr<bool>("add_residual");
  const std::string kept = parts->Out("Dropout2Out");
  const std::string out = parts->Out("Out");
  const std::string term = pre || !residual ? kept : parts->Temp();
  parts->Add("dropout", {{"X", {linear2}}},
             {{"Out", {term}}, {"Mask", {parts->Out("Dropout2Mask")}}},
             DropoutOf(*parts, "dropout2"));
  std::string sum = term;
  if (residual) {
    sum = pre ? out : kept;
    parts->Add("elementwise_add", {{"X", {parts->In("X")}}, {"Y", {term}}},
               {{"Out", {sum}}});
  }
  if (!pre)
    NormPart(parts, "Ln2", "ln2_epsilon", sum, out);
  else if (!residual)
    parts->Add("assign", {{"X", {sum}}}, {{"Out", {out}}});
  return absl::OkStatus();
}

// The gradient of a bias: the sum over all axes but the last.
void AddBiasGrad(Composition* parts, const char* bias,
                 const std::string& out_grad) {
  if (!parts->HasOutput(GradName(bias))) return;
  std::vector<int32_t> rows;
  for (size_t k = 0; k + 1 < parts->Meta("X").shape.size(); ++k)
    rows.push_back(static_cast<int32_t>(k));
  parts->Add("reduce_sum", {{"X", {out_grad}}},
             {{"Out", {parts->Out(GradName(bias))}}}, {{"dim", rows}});
}

// The gradient of the product x * weight: that of `x`.
std::string AddLinearGrad(Composition* parts, const std::string& x,
                          const char* weight, const std::string& out_grad) {
  const std::string x_grad = parts->Temp();
  parts->Add(
      "matmul_v2_grad",
      {{"X", {x}}, {"Y", {parts->In(weight)}}, {"Out@GRAD", {out_grad}}},
      {{"X@GRAD", {x_grad}}, {"Y@GRAD", {parts->Out(GradName(weight))}}});
  return x_grad;
}

std::string AddDropoutGrad(Composition* parts, const char* name,
                           const char* mask, const std::string& out_grad) {
  return parts->Apply("dropout_grad",
                      {{"Mask", {parts->In(mask)}}, {"Out@GRAD", {out_grad}}},
                      DropoutOf(*parts, name), "X@GRAD");
}

// From what the forward op has kept.
absl::Status ComposeFeedForwardGrad(Composition* parts) {
  PD_RETURN_IF_ERROR(CheckFeedForward(*parts));
  const bool pre = parts->Attr<bool>("pre_layer_norm");
  for (const char* slot :
       {pre ? "Ln1Out" : "Dropout2Out", pre ? "Ln1Mean" : "Ln2Mean",
        pre ? "Ln1Variance" : "Ln2Variance"})
    if (!parts->HasInput(slot))
      return InvalidArgument("'%s' is not given; pre_layer_norm is %s", slot,
                             pre ? "true" : "false");
  std::string sum_grad = parts->In("Out@GRAD");
  if (!pre) {
    const std::string before = parts->Temp();
    NormGradPart(parts, "Ln2", "ln2_epsilon", parts->In("Dropout2Out"),
                 sum_grad, before);
    sum_grad = before;
  }
  const std::string linear2_grad =
      AddDropoutGrad(parts, "dropout2", "Dropout2Mask", sum_grad);
  AddBiasGrad(parts, "Linear2Bias", linear2_grad);
  const std::string active_grad =
      AddDropoutGrad(parts, "dropout1", "Dropout1Mask",
                     AddLinearGrad(parts, parts->In("Dropout1Out"),
                                   "Linear2Weight", linear2_grad));
  const std::string& act = parts->Attr<std::string>("act_method");
  const std::string input =
      WithBias(parts, parts->In("Linear1Out"), "Linear1Bias");
  // relu_grad reads the output, gelu_grad the input.
  const Composition::Slots::value_type kept =
      act == "relu"
          ? Composition::Slots::value_type{"Out",
                                           {parts->Apply("relu",
                                                         {{"X", {input}}})}}
          : Composition::Slots::value_type{"X", {input}};
  const std::string linear1_grad = parts->Apply(
      act + "_grad", {kept, {"Out@GRAD", {active_grad}}}, {}, "X@GRAD");
  AddBiasGrad(parts, "Linear1Bias", linear1_grad);
  std::string x_grad = AddLinearGrad(parts, parts->In(pre ? "Ln1Out" : "X"),
                                     "Linear1Weight", linear1_grad);
  if (pre) {
    const std::string before = parts->Temp();
    NormGradPart(parts, "Ln1", "ln1_epsilon", parts->In("X"), x_grad, before);
    x_grad = before;
  }
  if (parts->Attr<bool>("add_residual"))
    parts->Add("elementwise_add", {{"X", {x_grad}}, {"Y", {sum_grad}}},
               {{"Out", {parts->Out("X@GRAD")}}});
  else
    parts->Add("assign", {{"X", {x_grad}}}, {{"Out", {parts->Out("X@GRAD")}}});
  return absl::OkStatus();
}

void AddFeedForwardAttrs(OpDef* op) {
  op->Attr("pre_layer_norm", false).Attr("add_residual", true);
  op->Attr("ln1_epsilon", 1e-5f).Attr("ln2_epsilon", 1e-5f);
  op->Attr("act_method", std::string("gelu")).Attr("is_test", false);
  for (const std::string name : {"dropout1", "dropout2"}) {
    op->Attr(name + "_rate", 0.5f).Attr(name + "_fix_seed", false);
    op->Attr(name + "_seed", int32_t{0});
    op->Attr(name + "_implementation", std::string("downgrade_in_infer"));
  }
  op->Attr("ring_id", int32_t{-1});
}

}  // namespace

absl::Status RegisterFusedFeedforward(OpRegistry* registry) {
  OpDef op("fused_feedforward"), grad("fused_feedforward_grad");
  op.Input("X").OptionalInput("Dropout1Seed").OptionalInput("Dropout2Seed");
  op.Input("Linear1Weight").OptionalInput("Linear1Bias");
  op.Input("Linear2Weight").OptionalInput("Linear2Bias").Output("Out");
  const GradSpec::Names inputs = {
      "X",           "Linear1Weight", "Linear1Bias", "Linear2Weight",
      "Linear2Bias", "Ln1Scale",      "Ln1Bias",     "Ln2Scale",
      "Ln2Bias"};
  const GradSpec::Names kept = {"Dropout1Mask", "Dropout2Mask", "Linear1Out",
                                "Dropout1Out",  "Dropout2Out",  "Ln1Out",
                                "Ln1Mean",      "Ln1Variance",  "Ln2Mean",
                                "Ln2Variance"};
  for (const char* slot : {"Ln1Scale", "Ln1Bias", "Ln2Scale", "Ln2Bias"})
    op.OptionalInput(slot);
  for (absl::string_view slot : kept) op.OptionalOutput(slot);
  AddFeedForwardAttrs(&op);
  op.Infer(InferComposed<ComposeFeedForward>);
  op.Reference(BindComposed<ComposeFeedForward>);
  op.Expand(ExpandComposed<ComposeFeedForward>);
  op.Grad(GradSpec{grad.type(), inputs, kept, {"Out"}, inputs});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  for (absl::string_view slot : inputs) {
    const bool needed =
        slot == "X" || slot == "Linear1Weight" || slot == "Linear2Weight";
    needed ? grad.Input(slot) : grad.OptionalInput(slot);
    grad.OptionalOutput(GradName(slot));
  }
  grad.Input("Out@GRAD");
  for (absl::string_view slot : kept) grad.OptionalInput(slot);
  AddFeedForwardAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad();
  grad.Reference(BindComposed<ComposeFeedForwardGrad>);
  grad.Expand(ExpandComposed<ComposeFeedForwardGrad>);
  return registry->Add(std::move(grad));
}

}  // namespace pd
