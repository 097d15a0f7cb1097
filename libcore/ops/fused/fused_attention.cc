// SPDX-License-Identifier: Apache-2.0
// fused_attention: the attention half of a transformer's layer, as
// PaddlePaddle's FusedMultiHeadAttention appends it. X is [batch, steps,
// embed]; with n = LnOut = layer_norm(X) where pre_layer_norm is true, else X
//   QKVOut = n QKVW, [batch, steps, 3, heads, width]; QKVW is [3, heads, width,
//     embed], or [embed, 3 embed] where transpose_qkv_wb is true
//   TransposeOut2 = QKVOut + QKVBias as [3, batch, heads, steps, width]: q, k,
//   v CacheKVOut = CacheKV with k and v behind its own steps; these are k and v
//     then
//   QKOut = q k^T / sqrt(width); SrcMaskOut = QKOut + SrcMask
//   AttnDropoutOut = dropout(softmax(SrcMaskOut)); QKTVOut = AttnDropoutOut v
//   OutLinearOut = QKTVOut OutLinearW, with the heads' values side by side
//   s = X + dropout(OutLinearOut + OutLinearBias), without X where add_residual
//     is false
//   Y = s where pre_layer_norm is true, else layer_norm(s)
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"
#include "libcore/ops/fused/head_parts.h"

namespace pd {
namespace {

using Ints = std::vector<int32_t>;

struct HeadShape {
  int32_t heads = 0, width = 0;
  bool transposed = false;  // QKVW is [embed, 3 embed]
};

absl::StatusOr<HeadShape> ReadHeads(const Composition& parts) {
  if (parts.Attr<int32_t>("ring_id") >= 0)
    return Unimplemented(
        "attr 'ring_id' is %d; weights split over processes are not computed "
        "by this op",
        parts.Attr<int32_t>("ring_id"));
  const Shape& x = parts.Meta("X").shape;
  const Shape& w = parts.Meta("QKVW").shape;
  HeadShape shape;
  shape.transposed = parts.Attr<bool>("transpose_qkv_wb");
  if (x.size() != 3 || w.size() != (shape.transposed ? 2u : 4u))
    return InvalidArgument(
        "'X' has shape %s and 'QKVW' %s; expected [batch, steps, embed] and "
        "%s",
        ToString(x), ToString(w),
        shape.transposed ? "[embed, 3 embed]" : "[3, heads, width, embed]");
  if (shape.transposed) {
    shape.heads = parts.Attr<int32_t>("num_heads");
    if (shape.heads <= 0 || w[1] <= 0 || w[1] % (3 * shape.heads) != 0)
      return InvalidArgument(
          "attr 'num_heads' is %d and 'QKVW' has shape %s; expected 3 * "
          "num_heads to divide the last extent",
          shape.heads, ToString(w));
    shape.width = static_cast<int32_t>(w[1] / 3 / shape.heads);
    return shape;
  }
  if (w[0] != 3 || w[1] <= 0 || w[2] <= 0 || w[3] <= 0)
    return InvalidArgument(
        "'QKVW' has shape %s; expected [3, heads, width, "
        "embed]",
        ToString(w));
  shape.heads = static_cast<int32_t>(w[1]);
  shape.width = static_cast<int32_t>(w[2]);
  return shape;
}

// The parts of one op, forward or backward.
class HeadParts {
 public:
  HeadParts(Composition* parts, HeadShape shape)
      : parts_(parts), shape_(shape) {}

  std::string Reshape(const std::string& x, Ints shape) {
    return ReshapePart(parts_, x, std::move(shape));
  }
  void Transpose(const std::string& x, Ints perm, const std::string& out) {
    TransposePart(parts_, x, std::move(perm), out);
  }
  // Part `i` of the q, k and v in TransposeOut2, or of a cache.
  std::string Part(const std::string& all, int32_t i) {
    return ElementPart(parts_, all, i);
  }
  // QKVW as a matrix, and whether a product transposes it.
  std::string FlatWeight() {
    return shape_.transposed ? parts_->In("QKVW")
                             : Reshape(parts_->In("QKVW"),
                                       {3 * shape_.heads * shape_.width, -1});
  }
  Composition::Attrs FlatProduct() const {
    return {{"trans_y", !shape_.transposed}};
  }
  // QKVOut from the rows of the product; the flat form stays as it is.
  Ints Unfolded() const { return {0, 0, 3, shape_.heads, shape_.width}; }
  Ints Folded() const { return {0, 0, 3 * shape_.heads * shape_.width}; }
  Composition::Attrs Scale() const { return HeadScale(shape_.width); }
  Composition::Attrs Dropout(const std::string& name) const {
    return DropoutOf(*parts_, name);
  }
  // The gradient of a bias that was added to [batch, steps, ...].
  void BiasGrad(const char* bias, const std::string& out_grad) {
    if (parts_->HasOutput(GradName(bias)))
      parts_->Add("reduce_sum", {{"X", {out_grad}}},
                  {{"Out", {parts_->Out(GradName(bias))}}},
                  {{"dim", Ints{0, 1}}});
  }
  // x y, where y may be transposed, has `out_grad`: the gradients of both.
  std::pair<std::string, std::string> ProductGrad(
      const std::string& x, const std::string& y, const std::string& out_grad,
      Composition::Attrs attrs = {}) {
    const std::string x_grad = parts_->Temp(), y_grad = parts_->Temp();
    parts_->Add("matmul_v2_grad",
                {{"X", {x}}, {"Y", {y}}, {"Out@GRAD", {out_grad}}},
                {{"X@GRAD", {x_grad}}, {"Y@GRAD", {y_grad}}}, std::move(attrs));
    return {x_grad, y_grad};
  }

 private:
  Composition* parts_;
  HeadShape shape_;
};

// TransposeOut2, and with it the outputs before.
std::string AddQueriesKeysValues(Composition* parts, HeadParts* heads,
                                 const std::string& x, bool transposed) {
  const std::string product =
      parts->Apply("matmul_v2", {{"X", {x}}, {"Y", {heads->FlatWeight()}}},
                   heads->FlatProduct());
  const std::string qkv = parts->Out("QKVOut");
  // The flat form of the weights leaves the rows flat.
  const auto keep = [&](const std::string& from, const std::string& to) {
    parts->Add("reshape2", {{"X", {from}}}, {{"Out", {to}}},
               {{"shape", transposed ? heads->Folded() : heads->Unfolded()}});
  };
  keep(product, qkv);
  std::string biased = qkv;
  if (parts->HasInput("QKVBias")) {
    biased = parts->Out("QKVBiasOut");
    parts->Add("elementwise_add", {{"X", {qkv}}, {"Y", {parts->In("QKVBias")}}},
               {{"Out", {biased}}});
  }
  const std::string out = parts->Out("TransposeOut2");
  heads->Transpose(heads->Reshape(biased, heads->Unfolded()), {2, 0, 3, 1, 4},
                   out);
  return out;
}

// `part`, behind the steps of the cache where there is one.
std::string WithCache(Composition* parts, HeadParts* heads,
                      const std::string& part, int32_t i) {
  if (!parts->HasInput("CacheKV")) return part;
  return parts->Apply("concat",
                      {{"X", {heads->Part(parts->In("CacheKV"), i), part}}},
                      {{"axis", int32_t{2}}});
}

// Y, from the values of the heads.
void AddOutput(Composition* parts, HeadParts* heads,
               const std::string& values) {
  const std::string side_by_side = parts->Out("FMHAOut");
  heads->Transpose(values, {0, 2, 1, 3}, side_by_side);
  const std::string linear = parts->Out("OutLinearOut");
  parts->Add("matmul_v2",
             {{"X", {heads->Reshape(side_by_side, {0, 0, -1})}},
              {"Y", {parts->In("OutLinearW")}}},
             {{"Out", {linear}}});
  std::string biased = linear;
  if (parts->HasInput("OutLinearBias"))
    biased =
        parts->Apply("elementwise_add",
                     {{"X", {linear}}, {"Y", {parts->In("OutLinearBias")}}});
  const bool pre = parts->Attr<bool>("pre_layer_norm");
  const bool residual = parts->Attr<bool>("add_residual");
  const std::string sum =
      pre ? parts->Out("Y") : parts->Out("BiasDropoutResidualOut");
  const std::string term = residual ? parts->Temp() : sum;
  parts->Add("dropout", {{"X", {biased}}},
             {{"Out", {term}}, {"Mask", {parts->Out("DropoutMaskOut")}}},
             heads->Dropout("dropout"));
  if (residual)
    parts->Add("elementwise_add", {{"X", {parts->In("X")}}, {"Y", {term}}},
               {{"Out", {sum}}});
  if (!pre) NormPart(parts, "Ln2", "ln_epsilon", sum, parts->Out("Y"));
}

absl::Status ComposeAttention(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const HeadShape shape, ReadHeads(*parts));
  HeadParts heads(parts, shape);
  std::string x = parts->In("X");
  if (parts->Attr<bool>("pre_layer_norm")) {
    x = parts->Out("LnOut");
    NormPart(parts, "Ln", "epsilon", parts->In("X"), x);
  }
  const std::string all =
      AddQueriesKeysValues(parts, &heads, x, shape.transposed);
  const std::string keys = WithCache(parts, &heads, heads.Part(all, 1), 0);
  const std::string values = WithCache(parts, &heads, heads.Part(all, 2), 1);
  if (parts->HasInput("CacheKV"))
    parts->Add("stack", {{"X", {keys, values}}},
               {{"Y", {parts->Out("CacheKVOut")}}});
  std::string scores = parts->Out("QKOut");
  parts->Add(
      "matmul_v2",
      {{"X",
        {parts->Apply("scale", {{"X", {heads.Part(all, 0)}}}, heads.Scale())}},
       {"Y", {keys}}},
      {{"Out", {scores}}}, {{"trans_y", true}});
  if (parts->HasInput("SrcMask")) {
    const std::string masked = parts->Out("SrcMaskOut");
    parts->Add("elementwise_add",
               {{"X", {scores}}, {"Y", {parts->In("SrcMask")}}},
               {{"Out", {masked}}});
    scores = masked;
  }
  const std::string weights = parts->Out("SoftmaxOut");
  parts->Add("softmax", {{"X", {scores}}}, {{"Out", {weights}}});
  const std::string dropped = parts->Out("AttnDropoutOut");
  parts->Add("dropout", {{"X", {weights}}},
             {{"Out", {dropped}}, {"Mask", {parts->Out("AttnDropoutMaskOut")}}},
             heads.Dropout("attn_dropout"));
  const std::string attended = parts->Out("QKTVOut");
  parts->Add("matmul_v2", {{"X", {dropped}}, {"Y", {values}}},
             {{"Out", {attended}}});
  AddOutput(parts, &heads, attended);
  return absl::OkStatus();
}

// The gradients of QKVW, its bias and the layer norm in front, from that of
// TransposeOut2; `sum_grad` is that of the residual.
void AddInputGrads(Composition* parts, HeadParts* heads, bool transposed,
                   const std::string& all_grad, const std::string& sum_grad) {
  const std::string qkv_grad = parts->Out("QKVOut@GRAD");
  const std::string unfolded = parts->Temp();
  heads->Transpose(all_grad, {1, 3, 0, 2, 4}, unfolded);
  parts->Add("reshape2", {{"X", {unfolded}}}, {{"Out", {qkv_grad}}},
             {{"shape", transposed ? heads->Folded() : heads->Unfolded()}});
  if (parts->HasOutput("QKVBiasOut@GRAD"))
    parts->Add("assign", {{"X", {qkv_grad}}},
               {{"Out", {parts->Out("QKVBiasOut@GRAD")}}});
  heads->BiasGrad("QKVBias", qkv_grad);
  const bool pre = parts->Attr<bool>("pre_layer_norm");
  const auto [row_grad, weight_grad] = heads->ProductGrad(
      parts->In(pre ? "LnOut" : "X"), heads->FlatWeight(),
      heads->Reshape(qkv_grad, heads->Folded()), heads->FlatProduct());
  Ints weight_shape;
  for (int64_t extent : parts->Meta("QKVW").shape)
    weight_shape.push_back(static_cast<int32_t>(extent));
  parts->Add("reshape2", {{"X", {weight_grad}}},
             {{"Out", {parts->Out("QKVW@GRAD")}}}, {{"shape", weight_shape}});
  std::string x_grad = row_grad;
  if (pre) {
    parts->Add("assign", {{"X", {row_grad}}},
               {{"Out", {parts->Out("LnOut@GRAD")}}});
    x_grad = parts->Temp();
    NormGradPart(parts, "Ln", "epsilon", parts->In("X"), row_grad, x_grad);
  }
  if (parts->Attr<bool>("add_residual"))
    parts->Add("elementwise_add", {{"X", {x_grad}}, {"Y", {sum_grad}}},
               {{"Out", {parts->Out("X@GRAD")}}});
  else
    parts->Add("assign", {{"X", {x_grad}}}, {{"Out", {parts->Out("X@GRAD")}}});
}

// The gradient of QKTVOut, from that of the sum at the end.
std::string AddOutputGrads(Composition* parts, HeadParts* heads,
                           const std::string& sum_grad) {
  const std::string linear_grad = parts->Out("OutLinearOut@GRAD");
  parts->Add(
      "dropout_grad",
      {{"Mask", {parts->In("DropoutMaskOut")}}, {"Out@GRAD", {sum_grad}}},
      {{"X@GRAD", {linear_grad}}}, heads->Dropout("dropout"));
  heads->BiasGrad("OutLinearBias", linear_grad);
  const auto [rows_grad, weight_grad] =
      heads->ProductGrad(heads->Reshape(parts->In("FMHAOut"), {0, 0, -1}),
                         parts->In("OutLinearW"), linear_grad);
  parts->Add("assign", {{"X", {weight_grad}}},
             {{"Out", {parts->Out("OutLinearW@GRAD")}}});
  const Ints unfolded = heads->Unfolded();
  const std::string values_grad = parts->Out("FMHAOut@GRAD");
  parts->Add("reshape2", {{"X", {rows_grad}}}, {{"Out", {values_grad}}},
             {{"shape", Ints{0, 0, unfolded[3], unfolded[4]}}});
  const std::string attended_grad = parts->Out("QKTVOut@GRAD");
  heads->Transpose(values_grad, {0, 2, 1, 3}, attended_grad);
  return attended_grad;
}

// From what the forward op has kept.
absl::Status ComposeAttentionGrad(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const HeadShape shape, ReadHeads(*parts));
  const bool pre = parts->Attr<bool>("pre_layer_norm");
  for (const char* slot :
       {pre ? "LnOut" : "BiasDropoutResidualOut", pre ? "LnMean" : "Ln2Mean",
        pre ? "LnVariance" : "Ln2Variance"})
    if (!parts->HasInput(slot))
      return InvalidArgument("'%s' is not given; pre_layer_norm is %s", slot,
                             pre ? "true" : "false");
  HeadParts heads(parts, shape);
  std::string sum_grad = parts->In("Y@GRAD");
  if (!pre) {
    const std::string before = parts->Out("BiasDropoutResidualOut@GRAD");
    NormGradPart(parts, "Ln2", "ln_epsilon",
                 parts->In("BiasDropoutResidualOut"), sum_grad, before);
    sum_grad = before;
  }
  const std::string attended_grad = AddOutputGrads(parts, &heads, sum_grad);
  const std::string all = parts->In("TransposeOut2");
  const auto [dropped_grad, values_grad] = heads.ProductGrad(
      parts->In("AttnDropoutOut"), heads.Part(all, 2), attended_grad);
  parts->Add("assign", {{"X", {dropped_grad}}},
             {{"Out", {parts->Out("AttnDropoutOut@GRAD")}}});
  const std::string weights_grad = parts->Out("SoftmaxOut@GRAD");
  parts->Add("dropout_grad",
             {{"Mask", {parts->In("AttnDropoutMaskOut")}},
              {"Out@GRAD", {dropped_grad}}},
             {{"X@GRAD", {weights_grad}}}, heads.Dropout("attn_dropout"));
  const std::string scores_grad = parts->Out("QKOut@GRAD");
  parts->Add("softmax_grad",
             {{"Out", {parts->In("SoftmaxOut")}}, {"Out@GRAD", {weights_grad}}},
             {{"X@GRAD", {scores_grad}}});
  if (parts->HasOutput("SrcMaskOut@GRAD"))
    parts->Add("assign", {{"X", {scores_grad}}},
               {{"Out", {parts->Out("SrcMaskOut@GRAD")}}});
  const auto [scaled_grad, keys_grad] = heads.ProductGrad(
      parts->Apply("scale", {{"X", {heads.Part(all, 0)}}}, heads.Scale()),
      heads.Part(all, 1), scores_grad, {{"trans_y", true}});
  const std::string queries_grad =
      parts->Apply("scale", {{"X", {scaled_grad}}}, heads.Scale());
  const std::string all_grad = parts->Out("TransposeOut2@GRAD");
  parts->Add("stack", {{"X", {queries_grad, keys_grad, values_grad}}},
             {{"Y", {all_grad}}});
  AddInputGrads(parts, &heads, shape.transposed, all_grad, sum_grad);
  return absl::OkStatus();
}

void AddAttentionAttrs(OpDef* op) {
  op->Attr("num_heads", int32_t{0}).Attr("transpose_qkv_wb", false);
  op->Attr("pre_layer_norm", false).Attr("epsilon", 1e-5f);
  op->Attr("ln_epsilon", 1e-5f).Attr("is_test", false);
  op->Attr("attn_dropout_rate", 0.5f).Attr("attn_dropout_fix_seed", true);
  op->Attr("attn_dropout_seed", int32_t{0});
  op->Attr("attn_dropout_implementation", std::string("upscale_in_train"));
  op->Attr("dropout_rate", 0.5f).Attr("dropout_fix_seed", true);
  op->Attr("dropout_seed", int32_t{0});
  op->Attr("dropout_implementation", std::string("downgrade_in_infer"));
  op->Attr("add_residual", true).Attr("ring_id", int32_t{-1});
}

}  // namespace

absl::Status RegisterFusedAttention(OpRegistry* registry) {
  OpDef op("fused_attention"), grad("fused_attention_grad");
  const GradSpec::Names inputs = {
      "X",       "QKVW",          "OutLinearW", "LnScale", "LnBias",
      "QKVBias", "OutLinearBias", "Ln2Scale",   "Ln2Bias"};
  const GradSpec::Names read = {
      "X",       "QKVW",          "OutLinearW", "LnScale", "LnBias",
      "QKVBias", "OutLinearBias", "Ln2Scale",   "Ln2Bias", "SrcMask"};
  const GradSpec::Names kept = {
      "LnMean",     "LnVariance",     "LnOut",
      "QKVOut",     "QKVBiasOut",     "TransposeOut2",
      "QKOut",      "QKTVOut",        "SoftmaxOut",
      "SrcMaskOut", "AttnDropoutOut", "AttnDropoutMaskOut",
      "FMHAOut",    "OutLinearOut",   "DropoutMaskOut",
      "Ln2Mean",    "Ln2Variance",    "BiasDropoutResidualOut"};
  const auto needed = [](absl::string_view slot) {
    return slot == "X" || slot == "QKVW" || slot == "OutLinearW";
  };
  for (absl::string_view slot : inputs)
    needed(slot) ? op.Input(slot) : op.OptionalInput(slot);
  op.OptionalInput("CacheKV").OptionalInput("SrcMask").Output("Y");
  for (absl::string_view slot : kept) op.OptionalOutput(slot);
  op.OptionalOutput("CacheKVOut");
  AddAttentionAttrs(&op);
  op.Infer(InferComposed<ComposeAttention>);
  op.Reference(BindComposed<ComposeAttention>);
  op.Expand(ExpandComposed<ComposeAttention>);
  op.Grad(GradSpec{grad.type(), read, kept, {"Y"}, inputs});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  for (absl::string_view slot : inputs) {
    needed(slot) ? grad.Input(slot) : grad.OptionalInput(slot);
    grad.OptionalOutput(GradName(slot));
  }
  grad.OptionalInput("SrcMask").Input("Y@GRAD");
  for (absl::string_view slot : kept) {
    grad.OptionalInput(slot);
    grad.OptionalOutput(GradName(slot));
  }
  AddAttentionAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad();
  grad.Reference(BindComposed<ComposeAttentionGrad>);
  grad.Expand(ExpandComposed<ComposeAttentionGrad>);
  return registry->Add(std::move(grad));
}

}  // namespace pd
