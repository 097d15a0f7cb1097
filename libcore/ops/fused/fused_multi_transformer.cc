// SPDX-License-Identifier: Apache-2.0
// fused_multi_transformer: the layers of a transformer that generates, one
// after the other; no gradients. X is [batch, steps, embed]; layer i is, with
// the norms in front where pre_layer_norm is true, else behind the sums
//   qkv = norm(x) QKVW[i] + QKVBias[i], QKVW is [3, heads, width, embed], or
//     [embed, 3, heads, width] where trans_qkvw is false
//   x = residual_alpha x + attention(qkv, SrcMask) OutLinearW[i] +
//     OutLinearBias[i]
//   x = residual_alpha x + act(norm(x) FFN1Weight[i] + FFN1Bias[i])
//     FFN2Weight[i] + FFN2Bias[i]
// CacheKV[i], [2, batch, heads, most steps, width], gets the keys and values:
// of the steps of X as the first ones or, where TimeStep is given, of the one
// step of X as number TimeStep, which then attends to all before. Keys lie as
// values do. It is an inference op: PaddlePaddle drops nothing in it, whatever
// its attributes say. Rotary embeddings, beams, prefixes, rows of several
// lengths, shared heads of keys and 8 bits are refused.
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"
#include "libcore/ops/fused/head_parts.h"

namespace pd {
namespace {

using Axes = std::vector<int32_t>;

// One layer in the making.
class TransformerLayer {
 public:
  TransformerLayer(Composition* parts, size_t layer)
      : parts_(parts), layer_(layer) {}

  // The output, from the layer's input.
  absl::StatusOr<std::string> Add(const std::string& x) {
    PD_RETURN_IF_ERROR(ReadWeight());
    const bool pre = parts_->Attr<bool>("pre_layer_norm");
    const std::string rows = pre ? Norm("LnScale", "LnBias", x) : x;
    const std::string product =
        parts_->Apply("matmul_v2", {{"X", {rows}}, {"Y", {FlatWeight()}}},
                      {{"trans_y", transposed_}});
    const std::string values =
        parts_->HasInput("TimeStep") ? AttendOneStep(product) : Attend(product);
    std::string sum =
        Residual(x, Linear(values, "OutLinearW", "OutLinearBias"));
    if (!pre) sum = Norm("LnScale", "LnBias", sum);
    PD_ASSIGN_OR_RETURN(
        const std::string active,
        Activate(Linear(pre ? Norm("FFNLnScale", "FFNLnBias", sum) : sum,
                        "FFN1Weight", "FFN1Bias")));
    sum = Residual(sum, Linear(active, "FFN2Weight", "FFN2Bias"));
    return pre ? sum : Norm("FFNLnScale", "FFNLnBias", sum);
  }

 private:
  absl::Status ReadWeight() {
    const Shape& w = parts_->Meta("QKVW", layer_).shape;
    transposed_ = parts_->Attr<bool>("trans_qkvw");
    const size_t three = transposed_ ? 0 : 1;
    if (w.size() != 4 || w[three] != 3 || w[three + 1] <= 0 ||
        w[three + 2] <= 0)
      return InvalidArgument("'QKVW' %d has shape %s; expected %s", layer_,
                             ToString(w),
                             transposed_ ? "[3, heads, width, embed]"
                                         : "[embed, 3, heads, width]");
    heads_ = static_cast<int32_t>(w[three + 1]);
    width_ = static_cast<int32_t>(w[three + 2]);
    return absl::OkStatus();
  }

  // "" where the slot has no variable for this layer.
  std::string Own(const char* slot) const {
    return parts_->HasInput(slot) ? parts_->In(slot, layer_) : "";
  }

  std::string FlatWeight() {
    const int32_t columns = 3 * heads_ * width_;
    return ReshapePart(parts_, Own("QKVW"),
                       transposed_ ? Axes{columns, -1} : Axes{-1, columns});
  }

  std::string Norm(const char* scale, const char* bias, const std::string& x) {
    const bool rms = parts_->Attr<std::string>("norm_type") == "rmsnorm";
    Composition::Slots in = {{rms ? "x" : "X", {x}}};
    if (!Own(scale).empty())
      in.push_back({rms ? "norm_weight" : "Scale", {Own(scale)}});
    if (!Own(bias).empty())
      in.push_back({rms ? "norm_bias" : "Bias", {Own(bias)}});
    return parts_->Apply(rms ? "rms_norm" : "layer_norm", in,
                         {{"epsilon", parts_->Attr<float>("epsilon")},
                          {"begin_norm_axis", int32_t{2}}},
                         rms ? "out" : "Y");
  }

  std::string Linear(const std::string& x, const char* weight,
                     const char* bias) {
    return AddPart(
        parts_, parts_->Apply("matmul_v2", {{"X", {x}}, {"Y", {Own(weight)}}}),
        Own(bias));
  }

  std::string Residual(const std::string& x, const std::string& term) {
    const float alpha = parts_->Attr<float>("residual_alpha");
    return AddPart(
        parts_,
        alpha == 1 ? x
                   : parts_->Apply("scale", {{"X", {x}}}, {{"scale", alpha}}),
        term);
  }

  // Attention among the steps of X: [batch, steps, heads width].
  std::string Attend(const std::string& product) {
    const std::string unfolded =
        AddPart(parts_, ReshapePart(parts_, product, {0, 0, 3, heads_, width_}),
                Own("QKVBias"));
    const std::string all = parts_->Temp();
    TransposePart(parts_, unfolded, {2, 0, 3, 1, 4}, all);
    const std::string keys = ElementPart(parts_, all, 1);
    const std::string values = ElementPart(parts_, all, 2);
    const std::string queries = parts_->Apply(
        "scale", {{"X", {ElementPart(parts_, all, 0)}}}, HeadScale(width_));
    const std::string scores =
        AddPart(parts_,
                parts_->Apply("matmul_v2", {{"X", {queries}}, {"Y", {keys}}},
                              {{"trans_y", true}}),
                parts_->HasInput("SrcMask") ? parts_->In("SrcMask") : "");
    const std::string attended = parts_->Apply(
        "matmul_v2", {{"X", {parts_->Apply("softmax", {{"X", {scores}}})}},
                      {"Y", {values}}});
    if (parts_->HasInput("CacheKV"))
      KeepFirstSteps(parts_->Apply("stack", {{"X", {keys, values}}}, {}, "Y"));
    const std::string by_step = parts_->Temp();
    TransposePart(parts_, attended, {0, 2, 1, 3}, by_step);
    return ReshapePart(parts_, by_step, {0, 0, heads_ * width_});
  }

  // Into the cache, from its beginning.
  void KeepFirstSteps(const std::string& keys_and_values) {
    using Longs = std::vector<int64_t>;
    const std::string steps = parts_->Apply(
        "slice",
        {{"Input", {parts_->Apply("shape", {{"Input", {parts_->In("X")}}})}}},
        {{"axes", Axes{0}}, {"starts", Axes{1}}, {"ends", Axes{2}}});
    parts_->Add(
        "set_value",
        {{"Input", {Own("CacheKV")}},
         {"ValueTensor", {keys_and_values}},
         {"EndsTensorList", {steps}}},
        {{"Out", {parts_->Out("CacheKVOut", layer_)}}},
        {{"axes", Longs{3}}, {"starts", Longs{0}}, {"steps", Longs{1}}});
  }

  // The number of the step, for each row of the batch.
  std::string StepOfRows(const std::string& rows) {
    const auto dtype = static_cast<int32_t>(parts_->Meta("TimeStep").dtype);
    return AddPart(
        parts_,
        parts_->Apply("fill_constant_batch_size_like", {{"Input", {rows}}},
                      {{"shape", Axes{-1}}, {"dtype", dtype}}),
        ReshapePart(parts_, parts_->In("TimeStep"), {1}));
  }

  // Attention of one step to the steps in the cache.
  std::string AttendOneStep(const std::string& product) {
    const std::string rows =
        ReshapePart(parts_, product, {-1, 3 * heads_ * width_});
    Composition::Slots in = {{"x", {rows}},
                             {"cache_kv", {Own("CacheKV")}},
                             {"sequence_lengths", {StepOfRows(rows)}}};
    if (!Own("QKVBias").empty()) in.push_back({"bias", {Own("QKVBias")}});
    if (parts_->HasInput("SrcMask"))
      in.push_back({"src_mask", {parts_->In("SrcMask")}});
    const std::string values = parts_->Temp();
    parts_->Add("masked_multihead_attention", in,
                {{"out", {values}},
                 {"cache_kv_out", {parts_->Out("CacheKVOut", layer_)}}},
                {{"seq_len", int32_t{1}}, {"rotary_emb_dims", int32_t{0}}});
    return ReshapePart(parts_, values, {-1, 1, heads_ * width_});
  }

  absl::StatusOr<std::string> Activate(const std::string& x) {
    const std::string& act = parts_->Attr<std::string>("act_method");
    if (act == "none") return x;
    if (act == "gelu" || act == "relu") return parts_->Apply(act, {{"X", {x}}});
    if (act == "geglu" || act == "swiglu")
      return parts_->Apply("fused_bias_act", {{"x", {x}}},
                           {{"act_method", act}}, "out");
    return InvalidArgument(
        "attr 'act_method' is '%s'; expected gelu, relu, geglu, swiglu or none",
        act);
  }

  Composition* parts_;
  size_t layer_;
  bool transposed_ = true;
  int32_t heads_ = 0, width_ = 0;
};

absl::Status CheckTransformer(const Composition& parts) {
  for (const char* slot :
       {"PreCaches", "RotaryPosEmb", "BeamCacheOffset", "SeqLengths"})
    if (parts.HasInput(slot))
      return Unimplemented(
          "'%s' is given; the op is computed without rotary embeddings, beams, "
          "prefixes and rows of several lengths alone",
          slot);
  for (const char* name : {"cache_k_scale", "cache_v_scale",
                           "cache_k_out_scale", "cache_v_out_scale"})
    if (!parts.Attr<std::vector<float>>(name).empty())
      return Unimplemented(
          "attr '%s' is given; only caches of floats are "
          "computed",
          name);
  if (parts.Attr<int32_t>("ring_id") >= 0 ||
      parts.Attr<int32_t>("gqa_group_size") > 0)
    return Unimplemented(
        "attrs 'ring_id' and 'gqa_group_size' are %d and %d; expected -1",
        parts.Attr<int32_t>("ring_id"), parts.Attr<int32_t>("gqa_group_size"));
  const std::string& norm = parts.Attr<std::string>("norm_type");
  if (norm != "layernorm" && norm != "rmsnorm")
    return InvalidArgument(
        "attr 'norm_type' is '%s'; expected layernorm or rmsnorm", norm);
  const Shape& x = parts.Meta("X").shape;
  if (x.size() != 3)
    return InvalidArgument("'X' has shape %s; expected [batch, steps, embed]",
                           ToString(x));
  if (parts.HasInput("TimeStep") && !parts.HasInput("CacheKV"))
    return InvalidArgument("'TimeStep' is given without 'CacheKV'");
  if (parts.HasInput("TimeStep") && x[1] >= 0 && x[1] != 1)
    return InvalidArgument("'TimeStep' is given, and 'X' has %d steps", x[1]);
  return absl::OkStatus();
}

// Slots with a variable a layer have one for each.
absl::Status CheckLayers(const Composition& parts, size_t layers) {
  for (const auto& [slot, names] : parts.op().inputs) {
    const bool once = slot == "X" || slot == "SrcMask" || slot == "TimeStep";
    if (!once && !names.empty() && names.size() != layers)
      return InvalidArgument("'%s' has %d variables for %d layers", slot,
                             names.size(), layers);
  }
  for (size_t i = 0; parts.HasInput("CacheKV") && i < layers; ++i) {
    const Shape& cache = parts.Meta("CacheKV", i).shape;
    if (cache.size() != 5)
      return InvalidArgument(
          "'CacheKV' %d has shape %s; expected [2, batch, heads, steps, width]",
          i, ToString(cache));
  }
  return absl::OkStatus();
}

absl::Status ComposeTransformer(Composition* parts) {
  PD_RETURN_IF_ERROR(CheckTransformer(*parts));
  const size_t layers = parts->Ins("QKVW").size();
  PD_RETURN_IF_ERROR(CheckLayers(*parts, layers));
  std::string x = parts->In("X");
  for (size_t i = 0; i < layers; ++i) {
    PD_ASSIGN_OR_RETURN(x, TransformerLayer(parts, i).Add(x));
  }
  parts->Add("assign", {{"X", {x}}}, {{"Out", {parts->Out("Out")}}});
  return absl::OkStatus();
}

void AddTransformerAttrs(OpDef* op) {
  op->Attr("pre_layer_norm", true).Attr("rotary_emb_dims", int32_t{0});
  op->Attr("epsilon", 1e-5f).Attr("residual_alpha", 1.0f);
  op->Attr("dropout_rate", 0.5f).Attr("is_test", false);
  op->Attr("dropout_implementation", std::string("downgrade_in_infer"));
  op->Attr("act_method", std::string("gelu")).Attr("trans_qkvw", true);
  op->Attr("ring_id", int32_t{-1}).Attr("norm_type", std::string("layernorm"));
  op->Attr("use_neox_rotary_style", false);
  op->Attr("gqa_group_size", int32_t{-1});
  for (const char* name : {"cache_k_scale", "cache_v_scale",
                           "cache_k_out_scale", "cache_v_out_scale"})
    op->Attr(name, std::vector<float>());
  op->Attr("quant_round_type", int32_t{0}).Attr("quant_max_bound", 127.0f);
  op->Attr("quant_min_bound", -127.0f);
}

}  // namespace

absl::Status RegisterFusedMultiTransformer(OpRegistry* registry) {
  OpDef op("fused_multi_transformer");
  op.Input("X").Inputs("QKVW").Inputs("OutLinearW");
  op.Inputs("FFN1Weight").Inputs("FFN2Weight");
  for (const char* slot :
       {"LnScale", "LnBias", "QKVBias", "CacheKV", "PreCaches", "OutLinearBias",
        "FFNLnScale", "FFNLnBias", "FFN1Bias", "FFN2Bias"})
    op.OptionalInputs(slot);
  for (const char* slot :
       {"RotaryPosEmb", "BeamCacheOffset", "TimeStep", "SeqLengths", "SrcMask"})
    op.OptionalInput(slot);
  op.OptionalOutputs("CacheKVOut").Output("Out");
  AddTransformerAttrs(&op);
  op.Expand(ExpandComposed<ComposeTransformer>);
  return AddComposed<ComposeTransformer>(registry, std::move(op));
}

}  // namespace pd
