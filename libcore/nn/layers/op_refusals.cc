// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/op_refusals.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pd {
namespace {

constexpr char kBlocks[] =
    "runs or chooses blocks of a program, and a layer is a single operator";
constexpr char kArrays[] =
    "works on tensor arrays or rank tables, and layers give tensors";
constexpr char kLod[] =
    "works on sequences with LoD, and layers give dense tensors; pad the "
    "sequences and use sequence_mask";
constexpr char kState[] =
    "keeps a state between steps, which a layer of its own or the optimizer "
    "does";
constexpr char kFiles[] =
    "reads or writes outside of the network, which a layer does not";
constexpr char kRows[] =
    "works on the rows of sparse gradients, and layers give tensors";

// Types whose schema does not tell.
const std::map<std::string, const char*>& Reasons() {
  static const auto* const kReasons = new std::map<std::string, const char*>{
      {"array_to_lod_tensor", kArrays},
      {"assert", kFiles},
      {"attention_lstm", kLod},
      {"average_accumulates", kState},
      {"beam_search", kLod},
      {"beam_search_decode", kArrays},
      {"check_finite_and_unscale", kState},
      {"coalesce_tensor", kState},
      {"conditional_block", kBlocks},
      {"delete_var", kFiles},
      {"fake_quantize_dequantize_moving_average_abs_max", kState},
      {"fake_quantize_moving_average_abs_max", kState},
      {"fake_quantize_range_abs_max", kState},
      {"feed", kFiles},
      {"fetch", kFiles},
      {"fused_embedding_fc_lstm", kLod},
      {"fused_embedding_seq_pool", kLod},
      {"fused_seqpool_cvm", kLod},
      {"fusion_gru", kLod},
      {"fusion_lstm", kLod},
      {"generate_mask_labels", kLod},
      {"get_tensor_from_selected_rows", kRows},
      {"gru", kLod},
      {"im2sequence", kLod},
      {"load", kFiles},
      {"load_combine", kFiles},
      {"lod_array_length", kArrays},
      {"lod_rank_table", kArrays},
      {"lod_reset", kLod},
      {"lod_tensor_to_array", kArrays},
      {"lstm", kLod},
      {"masked_multihead_attention", kState},
      {"match_matrix_tensor", kLod},
      {"max_sequence_len", kArrays},
      {"merge_lod_tensor", kBlocks},
      {"merge_lod_tensor_infer", kBlocks},
      {"merge_selected_rows", kRows},
      {"moving_average_abs_max_scale", kState},
      {"multi_gru", kLod},
      {"print", kFiles},
      {"py_func", kFiles},
      {"pyramid_hash", kLod},
      {"read_file", kFiles},
      {"read_from_array", kArrays},
      {"recurrent", kBlocks},
      {"reorder_lod_tensor_by_rank", kArrays},
      {"save", kFiles},
      {"save_combine", kFiles},
      {"select_input", kBlocks},
      {"select_output", kBlocks},
      {"shrink_rnn_memory", kArrays},
      {"split_lod_tensor", kBlocks},
      {"tensor_array_to_tensor", kArrays},
      {"update_loss_scaling", kState},
      {"var_conv_2d", kLod},
      {"while", kBlocks},
      {"write_to_array", kArrays},
  };
  return *kReasons;
}

}  // namespace

std::string ReasonAgainstLayer(const std::string& type,
                               const OpRegistry& registry) {
  if (const auto it = Reasons().find(type); it != Reasons().end())
    return it->second;
  if (absl::EndsWith(type, "_grad"))
    return "is the gradient of another, which training adds by itself";
  if ((absl::StartsWith(type, "sequence_") && type != "sequence_mask") ||
      absl::StartsWith(type, "fusion_seq"))
    return kLod;
  if (absl::StartsWith(type, "int8_"))
    return "computes in 8 bits, in models that pd-quant makes";
  const OpDef* def = registry.Find(type);
  if (def == nullptr) return "";
  if (def->runs_blocks()) return kBlocks;
  // "ParamOut", "MeanOut": the new value of the input "Param", "Mean".
  for (const SlotDef& input : def->inputs())
    if (def->FindOutput(input.name + "Out") != nullptr)
      return absl::StrCat("updates its input '", input.name,
                          "', which a layer of its own or the optimizer does");
  return "";
}

}  // namespace pd
