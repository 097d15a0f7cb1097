// SPDX-License-Identifier: Apache-2.0
// The lists of PaddlePaddle's quant_config.
#include "libcore/quant/op_table.h"

#include <map>

#include "libcore/ops/linalg/product_attrs.h"

namespace pd {
namespace {

using Table = std::map<std::string, QuantSlots, std::less<>>;

// X -> Out.
constexpr const char* kUnary[] = {"pool2d",
                                  "concat",
                                  "softmax",
                                  "argmax",
                                  "transpose",
                                  "gather",
                                  "mean",
                                  "reshape",
                                  "reshape2",
                                  "transpose2",
                                  "nearest_interp",
                                  "trilinear_interp",
                                  "squeeze",
                                  "relu",
                                  "relu6",
                                  "leaky_relu",
                                  "tanh",
                                  "swish",
                                  "dropout",
                                  "sigmoid",
                                  "hard_swish",
                                  "hard_sigmoid",
                                  "pad2d",
                                  "pad3d",
                                  "flatten",
                                  "flatten2",
                                  "unsqueeze2",
                                  "flatten_contiguous_range",
                                  "split",
                                  "squeeze2",
                                  "nearest_interp_v2",
                                  "bilinear_interp",
                                  "bilinear_interp_v2",
                                  "arg_max",
                                  "abs",
                                  "assign",
                                  "cast",
                                  "clip",
                                  "crop",
                                  "cumsum",
                                  "expand_v2",
                                  "fill_any_like",
                                  "gelu",
                                  "p_norm",
                                  "pow",
                                  "reduce_mean",
                                  "logical_not",
                                  "meshgrid",
                                  "tile",
                                  "reduce_sum",
                                  "square",
                                  "softplus",
                                  "shuffle_channel",
                                  "reduce_max",
                                  "scale"};
// X, Y -> Out.
constexpr const char* kBinary[] = {"mul",
                                   "matmul",
                                   "matmul_v2",
                                   "elementwise_add",
                                   "elementwise_sub",
                                   "elementwise_mul",
                                   "elementwise_pow",
                                   "equal",
                                   "not_equal",
                                   "less_than",
                                   "less_equal",
                                   "greater_than",
                                   "greater_equal",
                                   "logical_and"};

Table MakeTable() {
  Table table = {
      {"conv2d", {{"Input", "Filter"}, {"Output"}}},
      {"depthwise_conv2d", {{"Input", "Filter"}, {"Output"}}},
      {"conv2d_transpose", {{"Input", "Filter"}, {"Output"}}},
      {"slice", {{"Input"}, {"Out"}}},
      {"strided_slice", {{"Input"}, {"Out"}}},
      {"fill_constant_batch_size_like", {{"Input"}, {"Out"}}},
      {"prelu", {{"X", "Alpha"}, {"Out"}}},
      {"batch_norm", {{"X"}, {"Y"}}},
      {"layer_norm", {{"X"}, {"Y"}}},
      {"instance_norm", {{"X"}, {"Y"}}},
      {"group_norm", {{"X"}, {"Y", "Mean", "Variance"}}},
      {"stack", {{"X"}, {"Y"}}},
      {"norm", {{"X"}, {"Norm"}}},
      {"gru", {{"Input", "Weight"}, {"Hidden"}}},
      {"lstm", {{"Input", "Weight"}, {"Hidden"}}},
      {"box_coder", {{"PriorBox"}, {"OutputBox"}}},
      {"fill_constant", {{}, {"Out"}}},
      {"lookup_table", {{"W", "Ids"}, {"Out"}}},
      {"lookup_table_v2", {{"W", "Ids"}, {"Out"}}},
      {"top_k_v2", {{"X"}, {"Out", "Indices"}}},
      {"roi_align", {{"X", "ROIs"}, {"Out"}}},
      {"where", {{"Condition", "X", "Y"}, {"Out"}}},
      {"grid_sampler", {{"X", "Grid"}, {"Output"}}},
  };
  for (const char* type : kUnary) table[type] = {{"X"}, {"Out"}};
  for (const char* type : kBinary) table[type] = {{"X", "Y"}, {"Out"}};
  return table;
}

std::vector<std::string> Names(const OpDesc& op,
                               const std::vector<std::string>& slots,
                               bool inputs) {
  std::vector<std::string> names;
  for (const std::string& slot : slots)
    for (const std::string& name : inputs ? op.Input(slot) : op.Output(slot))
      if (name != kEmptyVar) names.push_back(name);
  return names;
}

}  // namespace

const QuantSlots* FindQuantSlots(absl::string_view op_type) {
  static const Table* const kTable = new Table(MakeTable());
  const auto it = kTable->find(std::string(op_type));
  return it == kTable->end() ? nullptr : &it->second;
}

bool MayHoldWeight(absl::string_view op_type) {
  return IsProduct(op_type) || op_type == "conv2d" ||
         op_type == "depthwise_conv2d" || op_type == "conv2d_transpose";
}

std::vector<std::string> QuantInputs(const OpDesc& op) {
  const QuantSlots* slots = FindQuantSlots(op.type);
  return slots == nullptr ? std::vector<std::string>()
                          : Names(op, slots->inputs, true);
}

std::vector<std::string> QuantOutputs(const OpDesc& op) {
  const QuantSlots* slots = FindQuantSlots(op.type);
  return slots == nullptr ? std::vector<std::string>()
                          : Names(op, slots->outputs, false);
}

}  // namespace pd
