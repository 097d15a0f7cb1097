// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle 2.3's lists of op types for mixed precision: what gains and is
// safe (white), what would lose digits or range (black), and what follows its
// inputs (gray). The fake-quantize ops, which it has in the white list for
// GPUs, stay in float32 here: FindsRanges.
#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/passes/amp.h"

namespace pd {
namespace {

AmpLists BuiltIn(AmpSpec::Level level) {
  AmpLists lists;
  lists.white = {"conv2d", "matmul", "matmul_v2", "mul"};
  // Slower in half precision, or of indices: at either level.
  lists.black = {"lookup_table",      "lookup_table_v2",
                 "scatter",           "linear_interp_v2",
                 "nearest_interp_v2", "bilinear_interp_v2",
                 "bicubic_interp_v2", "trilinear_interp_v2"};
  if (level == AmpSpec::Level::kO1)
    lists.black.insert({"exp", "square", "log", "mean", "sum", "cos_sim",
                        "softmax", "softmax_with_cross_entropy",
                        "sigmoid_cross_entropy_with_logits",
                        "c_softmax_with_cross_entropy", "cross_entropy",
                        "cross_entropy2", "reduce_sum"});
  lists.gray = {"elementwise_add",
                "elementwise_sub",
                "elementwise_mul",
                "elementwise_div",
                "elementwise_max",
                "elementwise_min",
                "elementwise_pow",
                "elementwise_mod",
                "elementwise_floordiv",
                "batch_norm",
                "layer_norm",
                "tanh",
                "sigmoid",
                "top_k",
                "pool2d",
                "pool3d",
                "dropout",
                "relu",
                "relu6",
                "leaky_relu",
                "soft_relu",
                "flatten2",
                "stack",
                "unstack",
                "uniform_random",
                "uniform_random_batch_size_like",
                "gaussian_random",
                "gaussian_random_batch_size_like",
                "slice",
                "rank",
                "scale",
                "transpose2",
                "reshape2",
                "gather",
                "fill_constant",
                "get_tensor_from_selected_rows",
                "sign",
                "cast",
                "fused_bn_add_activation",
                "c_identity",
                "c_concat",
                "c_allreduce_sum",
                "concat",
                "split"};
  return lists;
}

bool IsKnown(const AmpLists& lists, const std::string& type) {
  return lists.white.count(type) > 0 || lists.black.count(type) > 0 ||
         lists.gray.count(type) > 0;
}

absl::Status CheckNames(const char* list, const std::set<std::string>& types,
                        const AmpLists& built_in, const OpRegistry& registry) {
  for (const std::string& type : types) {
    if (registry.Find(type) != nullptr || IsKnown(built_in, type)) continue;
    std::vector<std::string> names;
    for (const OpDef* def : registry.All()) names.push_back(def->type());
    const std::string nearest = Nearest(type, names);
    return NotFound("%s names the op '%s', which does not exist%s", list, type,
                    nearest.empty() ? "" : ", did you mean '" + nearest + "'?");
  }
  return absl::OkStatus();
}

}  // namespace

bool FindsRanges(absl::string_view op_type) {
  return absl::StartsWith(op_type, "fake_") ||
         op_type == "moving_average_abs_max_scale";
}

absl::StatusOr<AmpLists> ListsFor(const AmpSpec& spec,
                                  const OpRegistry& registry) {
  AmpLists lists = BuiltIn(spec.level);
  PD_RETURN_IF_ERROR(
      CheckNames("custom_white_list", spec.custom_white_list, lists, registry));
  PD_RETURN_IF_ERROR(
      CheckNames("custom_black_list", spec.custom_black_list, lists, registry));
  for (const std::string& type : spec.custom_white_list) {
    if (spec.custom_black_list.count(type) > 0)
      return InvalidArgument(
          "custom_white_list and custom_black_list both name the op '%s'",
          type);
    if (FindsRanges(type))
      return InvalidArgument(
          "custom_white_list names the op '%s', whose ranges are found in "
          "float32",
          type);
    lists.black.erase(type);
    lists.gray.erase(type);
    lists.white.insert(type);
  }
  for (const std::string& type : spec.custom_black_list) {
    lists.white.erase(type);
    lists.gray.erase(type);
    lists.black.insert(type);
  }
  return lists;
}

}  // namespace pd
