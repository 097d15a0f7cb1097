// SPDX-License-Identifier: Apache-2.0
// Biases, residuals and norms of transformers in one op, which PaddlePaddle
// computes on GPUs:
//   fused_bias_act: u(x + bias), times smooth after + shift; u is gelu, relu,
//     silu, or geglu and swiglu: u of the first half of the last axis times the
//     second
//   fused_bias_residual_layernorm: residual_out = x + bias + residual_alpha *
//     residual, out = layer_norm of that
//   rms_norm: residual_out = x + bias + residual, out = r / sqrt(mean(r^2) +
//     epsilon) * norm_weight + norm_bias over the axes from begin_norm_axis
//   fused_linear_param_grad_add: dweight_out = x^T dout + dweight, dbias_out =
//     sum of the rows of dout + dbias
//   batch_fc: for each slot Input W + Bias
//   fused_scale_bias_add_relu: relu(x1 scale1 + bias1 + x2), or with fuse_dual
//     x2 scale2 + bias2; channels last
// Quantized operands or results (scales given) are refused.
#include <numeric>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/fused/post_ops.h"

namespace pd {
namespace {

using Shape32 = std::vector<int32_t>;

std::string Sum(Composition* parts, const std::string& x,
                const std::string& y) {
  return parts->Apply("elementwise_add", {{"X", {x}}, {"Y", {y}}});
}
std::string Product(Composition* parts, const std::string& x,
                    const std::string& y) {
  return parts->Apply("elementwise_mul", {{"X", {x}}, {"Y", {y}}});
}

absl::Status RefuseQuantized(const Composition& parts) {
  if (parts.Attr<float>("quant_scale") > 0)
    return Unimplemented(
        "attr 'quant_scale' is %g: an 8-bit result; only results in floats "
        "are computed here",
        parts.Attr<float>("quant_scale"));
  return absl::OkStatus();
}

// u of one half times the other.
absl::StatusOr<std::string> AddGate(Composition* parts, const std::string& x,
                                    const char* act) {
  const Shape& shape = parts->Meta("x").shape;
  if (shape.empty() || (shape.back() >= 0 && shape.back() % 2 != 0))
    return InvalidArgument(
        "'x' has shape %s; expected a last axis of two halves",
        ToString(shape));
  const std::string first = parts->Temp(), second = parts->Temp();
  parts->Add(
      "split", {{"X", {x}}}, {{"Out", {first, second}}},
      {{"axis", static_cast<int32_t>(shape.size()) - 1}, {"num", int32_t{2}}});
  return Product(parts, parts->Apply(act, {{"X", {first}}}), second);
}

absl::Status ComposeBiasAct(Composition* parts) {
  PD_RETURN_IF_ERROR(RefuseQuantized(*parts));
  if (parts->HasInput("dequant_scales"))
    return Unimplemented(
        "'dequant_scales' are given: sums of 8-bit products; only floats are "
        "computed here");
  std::string x = parts->In("x");
  if (parts->HasInput("bias")) x = Sum(parts, x, parts->In("bias"));
  const std::string& act = parts->Attr<std::string>("act_method");
  if (act == "geglu" || act == "swiglu") {
    PD_ASSIGN_OR_RETURN(x, AddGate(parts, x, act == "geglu" ? "gelu" : "silu"));
  } else if (act == "gelu" || act == "relu" || act == "silu") {
    x = parts->Apply(act, {{"X", {x}}});
  } else {
    return InvalidArgument(
        "attr 'act_method' is '%s'; expected gelu, relu, silu, geglu or swiglu",
        act);
  }
  if (parts->HasInput("shift")) x = Sum(parts, x, parts->In("shift"));
  if (parts->HasInput("smooth")) x = Product(parts, x, parts->In("smooth"));
  WriteTo(parts, x, parts->Out("out"));
  return absl::OkStatus();
}

// x + bias + residual, and the name that the norm reads.
std::string AddResidual(Composition* parts, float alpha) {
  std::string x = parts->In("x");
  if (parts->HasInput("bias")) x = Sum(parts, x, parts->In("bias"));
  if (parts->HasInput("residual")) {
    x = Sum(parts, x, AddScale(parts, parts->In("residual"), alpha));
    WriteTo(parts, x, parts->Out("residual_out"));
  }
  return x;
}

absl::StatusOr<int32_t> FirstNormAxis(const Composition& parts) {
  const auto rank = static_cast<int32_t>(parts.Meta("x").shape.size());
  const auto axis = parts.Attr<int32_t>("begin_norm_axis");
  if (axis < 0 || axis >= rank)
    return InvalidArgument("attr 'begin_norm_axis' is %d; 'x' has rank %d",
                           axis, rank);
  return axis;
}

absl::Status ComposeBiasResidualLayerNorm(Composition* parts) {
  PD_RETURN_IF_ERROR(RefuseQuantized(*parts));
  PD_ASSIGN_OR_RETURN(const int32_t axis, FirstNormAxis(*parts));
  const std::string x =
      AddResidual(parts, parts->Attr<float>("residual_alpha"));
  if (!parts->HasInput("norm_weight")) {
    WriteTo(parts, x, parts->Out("out"));
    return absl::OkStatus();
  }
  Composition::Slots in = {{"X", {x}}, {"Scale", {parts->In("norm_weight")}}};
  if (parts->HasInput("norm_bias"))
    in.push_back({"Bias", {parts->In("norm_bias")}});
  parts->Add(
      "layer_norm", in,
      {{"Y", {parts->Out("out")}},
       {"Mean", {parts->Out("mean")}},
       {"Variance", {parts->Out("variance")}}},
      {{"epsilon", parts->Attr<float>("epsilon")}, {"begin_norm_axis", axis}});
  return absl::OkStatus();
}

absl::Status ComposeRmsNorm(Composition* parts) {
  PD_RETURN_IF_ERROR(RefuseQuantized(*parts));
  PD_ASSIGN_OR_RETURN(const int32_t axis, FirstNormAxis(*parts));
  const Shape& shape = parts->Meta("x").shape;
  Shape32 axes(shape.size() - static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), axis);
  Shape32 columns;
  for (size_t k = static_cast<size_t>(axis); k < shape.size(); ++k) {
    if (shape[k] != static_cast<int32_t>(shape[k]))
      return InvalidArgument("'x' has shape %s", ToString(shape));
    columns.push_back(static_cast<int32_t>(shape[k]));
  }
  const std::string x = AddResidual(parts, 1);
  std::string mean =
      parts->Apply("reduce_mean", {{"X", {Product(parts, x, x)}}},
                   {{"dim", axes}, {"keep_dim", true}});
  mean = AddScale(parts, mean, 1, parts->Attr<float>("epsilon"));
  std::string out = Product(parts, x, parts->Apply("rsqrt", {{"X", {mean}}}));
  out =
      Product(parts, out, AddReshape(parts, parts->In("norm_weight"), columns));
  if (parts->HasInput("norm_bias"))
    out = Sum(parts, out, AddReshape(parts, parts->In("norm_bias"), columns));
  WriteTo(parts, out, parts->Out("out"));
  return absl::OkStatus();
}

absl::Status ComposeLinearParamGrad(Composition* parts) {
  const Shape &x = parts->Meta("x").shape, &dout = parts->Meta("dout").shape;
  if (x.size() < 2 || x.size() != dout.size() ||
      x.back() != static_cast<int32_t>(x.back()) ||
      dout.back() != static_cast<int32_t>(dout.back()))
    return InvalidArgument("'x' has shape %s, 'dout' has %s", ToString(x),
                           ToString(dout));
  const auto rows = [&](const char* slot, int64_t width) {
    return AddReshape(parts, parts->In(slot),
                      {-1, static_cast<int32_t>(width)});
  };
  const std::string d = rows("dout", dout.back());
  const auto add = [&](std::string sum, const char* slot, const char* out) {
    if (parts->HasInput(slot)) {
      // The sum so far may be of another precision, which the result has too.
      const DType kept = parts->Meta(slot).dtype;
      if (kept != parts->Meta("x").dtype)
        sum = parts->Apply(
            "cast", {{"X", {sum}}},
            {{"in_dtype", static_cast<int32_t>(parts->Meta("x").dtype)},
             {"out_dtype", static_cast<int32_t>(kept)}});
      sum = Sum(parts, sum, parts->In(slot));
    }
    WriteTo(parts, sum, parts->Out(out));
  };
  add(parts->Apply("matmul_v2", {{"X", {rows("x", x.back())}}, {"Y", {d}}},
                   {{"trans_x", true}}),
      "dweight", "dweight_out");
  if (parts->Attr<bool>("has_bias"))
    add(parts->Apply("reduce_sum", {{"X", {d}}}, {{"dim", Shape32{0}}}),
        "dbias", "dbias_out");
  return absl::OkStatus();
}

absl::Status ComposeBatchFc(Composition* parts) {
  const Shape& bias = parts->Meta("Bias").shape;
  if (parts->Meta("Input").shape.size() != 3 ||
      parts->Meta("W").shape.size() != 3 || bias.size() != 2)
    return InvalidArgument(
        "'Input', 'W' and 'Bias' have shapes %s, %s and %s; expected [slots, "
        "rows, n], [slots, n, m] and [slots, m]",
        ToString(parts->Meta("Input").shape), ToString(parts->Meta("W").shape),
        ToString(bias));
  const std::string product = parts->Apply(
      "matmul_v2", {{"X", {parts->In("Input")}}, {"Y", {parts->In("W")}}});
  const std::string b = parts->Apply("unsqueeze2", {{"X", {parts->In("Bias")}}},
                                     {{"axes", Shape32{1}}});
  WriteTo(parts, Sum(parts, product, b), parts->Out("Out"));
  return absl::OkStatus();
}

absl::Status ComposeScaleBiasAddRelu(Composition* parts) {
  const auto scaled = [parts](const char* x, const char* scale,
                              const char* bias) {
    return Sum(parts, Product(parts, parts->In(x), parts->In(scale)),
               parts->In(bias));
  };
  const bool dual = parts->Attr<bool>("fuse_dual");
  if (dual && (!parts->HasInput("scale2") || !parts->HasInput("bias2")))
    return InvalidArgument(
        "attr 'fuse_dual' is true without 'scale2' and 'bias2'");
  const std::string second =
      dual ? scaled("x2", "scale2", "bias2") : parts->In("x2");
  const std::string sum = Sum(parts, scaled("x1", "scale1", "bias1"), second);
  parts->Add("relu", {{"X", {sum}}}, {{"Out", {parts->Out("out")}}});
  return absl::OkStatus();
}

void AddQuantAttrs(OpDef* op) {
  op->Attr("quant_scale", -1.0f).Attr("quant_round_type", int32_t{1});
  op->Attr("quant_max_bound", 127.0f).Attr("quant_min_bound", -127.0f);
}

absl::Status AddBiasAct(OpRegistry* registry) {
  OpDef op("fused_bias_act");
  op.Input("x").OptionalInput("bias").OptionalInput("dequant_scales");
  op.OptionalInput("shift").OptionalInput("smooth").Output("out");
  op.Attr("act_method", std::string("gelu"));
  op.Attr("compute_dtype", std::string("default"));
  AddQuantAttrs(&op);
  op.Expand(ExpandComposed<ComposeBiasAct>);
  return AddComposed<ComposeBiasAct>(registry, std::move(op));
}

absl::Status AddResidualNorms(OpRegistry* registry) {
  OpDef norm("fused_bias_residual_layernorm"), rms("rms_norm");
  for (OpDef* op : {&norm, &rms}) {
    op->Input("x").OptionalInput("bias").OptionalInput("residual");
    op == &rms ? op->Input("norm_weight") : op->OptionalInput("norm_weight");
    op->OptionalInput("norm_bias").Output("out").OptionalOutput("residual_out");
    op->RequiredAttr("epsilon", AttrType::kFloat);
    op->RequiredAttr("begin_norm_axis", AttrType::kInt);
    AddQuantAttrs(op);
  }
  norm.IntermediateOutput("mean").IntermediateOutput("variance");
  norm.RequiredAttr("residual_alpha", AttrType::kFloat);
  norm.Expand(ExpandComposed<ComposeBiasResidualLayerNorm>);
  rms.Expand(ExpandComposed<ComposeRmsNorm>);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeBiasResidualLayerNorm>(registry, std::move(norm)));
  return AddComposed<ComposeRmsNorm>(registry, std::move(rms));
}

}  // namespace

absl::Status RegisterFusedNorms(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddBiasAct(registry));
  PD_RETURN_IF_ERROR(AddResidualNorms(registry));

  OpDef linear("fused_linear_param_grad_add");
  linear.Input("x").Input("dout").OptionalInput("dweight");
  linear.OptionalInput("dbias").Output("dweight_out");
  linear.OptionalOutput("dbias_out");
  linear.Attr("multi_precision", true).Attr("has_bias", true);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeLinearParamGrad>(registry, std::move(linear)));

  OpDef relu("fused_scale_bias_add_relu");
  for (const char* slot : {"x1", "scale1", "bias1", "x2"}) relu.Input(slot);
  relu.OptionalInput("scale2").OptionalInput("bias2").Output("out");
  relu.RequiredAttr("fuse_dual", AttrType::kBoolean);
  relu.RequiredAttr("exhaustive_search", AttrType::kBoolean);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeScaleBiasAddRelu>(registry, std::move(relu)));

  OpDef fc("batch_fc");
  fc.Input("Input").Input("W").Input("Bias").Output("Out");
  fc.Infer(InferComposed<ComposeBatchFc>);
  fc.Reference(BindComposed<ComposeBatchFc>);
  return AddWithComposedGrad(registry, std::move(fc), {"Out"},
                             {"Input", "W", "Bias"},
                             BindComposedGrad<ComposeBatchFc>);
}

}  // namespace pd
