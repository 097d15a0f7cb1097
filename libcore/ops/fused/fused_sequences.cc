// SPDX-License-Identifier: Apache-2.0
// Ops on sequences that PaddlePaddle's passes fuse:
//   fused_seqpool_cvm: sequence_pool and cvm (show and click of the first two
//     columns) of each X; no gradient
//   fused_embedding_fc_lstm: an LSTM whose input is rows of Embeddings [words,
//     4 D], which have the input's weight and the biases in them; of Bias only
//     the peepholes are read
//   fusion_transpose_flatten_concat: each X transposed, made a matrix, and all
//     side by side
//   fused_conv2d_add_act: a(conv2d + ResidualData + Bias), or its channels in
//     parts
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/fused/post_ops.h"

namespace pd {
namespace {

using IntList = std::vector<int32_t>;

absl::Status ComposeSeqpoolCvm(Composition* parts) {
  if (parts->Attr<int32_t>("cvm_offset") != 2)
    return InvalidArgument(
        "attr 'cvm_offset' is %d; expected 2, show and click",
        parts->Attr<int32_t>("cvm_offset"));
  for (size_t i = 0; i < parts->op().Input("X").size(); ++i) {
    const std::string pooled =
        parts->Apply("sequence_pool", {{"X", {parts->In("X", i)}}},
                     {{"pooltype", parts->Attr<std::string>("pooltype")},
                      {"pad_value", parts->Attr<float>("pad_value")}});
    parts->Add("cvm", {{"X", {pooled}}, {"CVM", {parts->In("CVM")}}},
               {{"Y", {parts->Out("Out", i)}}},
               {{"use_cvm", parts->Attr<bool>("use_cvm")}});
  }
  return absl::OkStatus();
}

absl::Status ComposeEmbeddingLstm(Composition* parts) {
  const Shape& weight = parts->Meta("WeightH").shape;
  const Shape& bias = parts->Meta("Bias").shape;
  const bool peepholes = parts->Attr<bool>("use_peepholes");
  if (weight.size() != 2 || weight[0] < 1 || weight[0] > (1 << 28) ||
      bias.size() != 2 || bias[0] != 1 ||
      bias[1] != (peepholes ? 7 : 4) * weight[0])
    return InvalidArgument(
        "'WeightH' has shape %s, 'Bias' has %s; expected [D, 4 D] and [1, %d "
        "D]",
        ToString(weight), ToString(bias), peepholes ? 7 : 4);
  const auto gates = static_cast<int32_t>(4 * weight[0]);
  const std::string rows = parts->Apply(
      "lookup_table",
      {{"W", {parts->In("Embeddings")}}, {"Ids", {parts->In("Ids")}}});
  std::string b = parts->Apply(
      "fill_constant", {},
      {{"shape", std::vector<int64_t>{1, gates}},
       {"dtype", static_cast<int32_t>(parts->Meta("Bias").dtype)}});
  if (peepholes)
    b = parts->Apply(
        "concat",
        {{"X",
          {b, parts->Apply("slice", {{"Input", {parts->In("Bias")}}},
                           {{"axes", IntList{1}},
                            {"starts", IntList{gates}},
                            {"ends", IntList{gates / 4 * 7}}})}}},
        {{"axis", int32_t{1}}});
  Composition::Slots in = {
      {"Input", {rows}}, {"Weight", {parts->In("WeightH")}}, {"Bias", {b}}};
  for (const char* slot : {"H0", "C0"})
    if (parts->HasInput(slot)) in.push_back({slot, {parts->In(slot)}});
  Composition::Attrs attrs;
  for (const char* name : {"use_peepholes", "is_reverse", "gate_activation",
                           "cell_activation", "candidate_activation"})
    attrs[name] = *parts->op().FindAttr(name);
  parts->Add("lstm", in,
             {{"Hidden", {parts->Out("Hidden")}},
              {"Cell", {parts->Out("Cell")}},
              {"BatchGate", {parts->Temp()}},
              {"BatchCellPreAct", {parts->Temp()}}},
             std::move(attrs));
  return absl::OkStatus();
}

absl::Status ComposeTransposeFlatten(Composition* parts) {
  Composition::Names flat;
  for (size_t i = 0; i < parts->op().Input("X").size(); ++i)
    flat.push_back(
        parts->Apply("flatten2",
                     {{"X",
                       {AddTranspose(parts, parts->In("X", i),
                                     parts->Attr<IntList>("trans_axis"))}}},
                     {{"axis", parts->Attr<int32_t>("flatten_axis")}}));
  parts->Add("concat", {{"X", flat}}, {{"Out", {parts->Out("Out")}}},
             {{"axis", parts->Attr<int32_t>("concat_axis")}});
  return absl::OkStatus();
}

absl::Status ComposeConvAddAct(Composition* parts) {
  Composition::Attrs attrs;
  for (const char* name : {"strides", "paddings", "padding_algorithm",
                           "dilations", "groups", "data_format"})
    attrs[name] = *parts->op().FindAttr(name);
  const bool last = parts->Attr<std::string>("data_format") == "NHWC";
  std::string out = parts->Apply(
      "conv2d",
      {{"Input", {parts->In("Input")}}, {"Filter", {parts->In("Filter")}}},
      std::move(attrs), "Output");
  for (const char* slot : {"ResidualData", "Bias"}) {
    if (!parts->HasInput(slot)) continue;
    const bool channels = parts->Meta(slot).shape.size() == 1;
    out = parts->Apply("elementwise_add",
                       {{"X", {out}}, {"Y", {parts->In(slot)}}},
                       {{"axis", int32_t{channels && !last ? 1 : -1}}});
  }
  PD_ASSIGN_OR_RETURN(
      out, AddActivation(parts, out, parts->Attr<std::string>("activation"),
                         parts->Attr<float>("fuse_alpha"), 0));
  const auto& channels = parts->Attr<IntList>("split_channels");
  WriteTo(parts, out, parts->Out("Output"));
  if (channels.empty()) return absl::OkStatus();
  Composition::Names pieces;
  for (size_t i = 0; i < parts->op().Output("Outputs").size(); ++i)
    pieces.push_back(parts->Out("Outputs", i));
  if (pieces.size() != channels.size())
    return InvalidArgument(
        "attr 'split_channels' has %d numbers, and there are %d 'Outputs'",
        channels.size(), pieces.size());
  parts->Add("split", {{"X", {out}}}, {{"Out", pieces}},
             {{"sections", channels}, {"axis", int32_t{last ? 3 : 1}}});
  return absl::OkStatus();
}

absl::Status AddEmbeddingLstm(OpRegistry* registry) {
  OpDef op("fused_embedding_fc_lstm");
  for (const char* slot : {"Ids", "Embeddings", "WeightH", "Bias"})
    op.Input(slot);
  op.OptionalInput("H0").OptionalInput("C0").Output("Hidden").Output("Cell");
  for (const char* slot : {"XX", "BatchedInput", "BatchedHidden", "BatchedCell",
                           "ReorderedH0", "ReorderedC0"})
    op.IntermediateOutput(slot);
  op.Attr("use_peepholes", true).Attr("is_reverse", false);
  op.Attr("use_seq", true).Attr("gate_activation", std::string("sigmoid"));
  op.Attr("cell_activation", std::string("tanh"));
  op.Attr("candidate_activation", std::string("tanh"));
  return AddComposed<ComposeEmbeddingLstm>(registry, std::move(op));
}

absl::Status AddConvAddAct(OpRegistry* registry) {
  OpDef op("fused_conv2d_add_act");
  op.Input("Input").Input("Filter").OptionalInput("Bias");
  op.OptionalInput("ResidualData").Output("Output").OptionalOutputs("Outputs");
  op.Attr("strides", IntList{1, 1}).Attr("paddings", IntList{0, 0});
  op.Attr("padding_algorithm", std::string("EXPLICIT"));
  op.Attr("dilations", IntList{1, 1}).Attr("groups", int32_t{1});
  op.Attr("data_format", std::string("NCHW"));
  op.Attr("activation", std::string("relu"));
  op.Attr("split_channels", IntList()).Attr("exhaustive_search", false);
  op.Attr("workspace_size_MB", int32_t{32}).Attr("fuse_alpha", 0.0f);
  return AddComposed<ComposeConvAddAct>(registry, std::move(op));
}

}  // namespace

absl::Status RegisterFusedSequences(OpRegistry* registry) {
  OpDef pool("fused_seqpool_cvm");
  pool.Inputs("X").Input("CVM").Outputs("Out");
  pool.Attr("pooltype", std::string("SUM")).Attr("pad_value", 0.0f);
  pool.Attr("use_cvm", true).Attr("cvm_offset", int32_t{2});
  PD_RETURN_IF_ERROR(AddComposed<ComposeSeqpoolCvm>(registry, std::move(pool)));
  PD_RETURN_IF_ERROR(AddEmbeddingLstm(registry));
  OpDef flat("fusion_transpose_flatten_concat");
  flat.Inputs("X").Output("Out").RequiredAttr("trans_axis", AttrType::kInts);
  flat.RequiredAttr("flatten_axis", AttrType::kInt);
  flat.RequiredAttr("concat_axis", AttrType::kInt);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeTransposeFlatten>(registry, std::move(flat)));
  return AddConvAddAct(registry);
}

}  // namespace pd
