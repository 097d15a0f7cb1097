// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/non_finite.h"

#include <algorithm>

namespace pd {
namespace {

// The op takes the mean of all elements of its input.
bool TakesStatistics(const OpDesc& op) {
  return !op.Attr<bool>("is_test") && !op.Attr<bool>("use_global_stats");
}

// Larger strides and dilations may step over elements of the image.
bool ReadsEveryElement(const OpDesc& op) {
  const auto all_ones = [&](const char* name) {
    const auto& numbers = op.Attr<std::vector<int32_t>>(name);
    return std::all_of(numbers.begin(), numbers.end(),
                       [](int32_t n) { return n == 1; });
  };
  return all_ones("strides") && all_ones("dilations");
}

NonFiniteFacts Shows(std::vector<NonFiniteRule> rules) {
  NonFiniteFacts facts;
  facts.rules = std::move(rules);
  return facts;
}

NonFiniteFacts With(bool NonFiniteFacts::*fact) {
  NonFiniteFacts facts;
  facts.*fact = true;
  return facts;
}

using Table = std::map<std::string, NonFiniteFacts, std::less<>>;

// Every element of the input of a rule is a summand of an element of the
// output, times something at most: NaN stays NaN, and an infinity stays one, or
// becomes NaN against another infinity or zero.
Table MakeTable() {
  Table table = {
      {"batch_norm", Shows({{"X", "SavedMean", TakesStatistics}})},
      {"batch_norm_grad", Shows({{"Y@GRAD", "Bias@GRAD", TakesStatistics}})},
      {"conv2d", Shows({{"Input", "Output", ReadsEveryElement}})},
      {"conv2d_grad", Shows({{"Output@GRAD", "Filter@GRAD"}})},
      {"elementwise_add", Shows({{"X", "Out"}, {"Y", "Out"}})},
      {"elementwise_sub", Shows({{"X", "Out"}, {"Y", "Out"}})},
      {"fused_batch_norm_act", Shows({{"X", "SavedMean", TakesStatistics}})},
      {"layer_norm", Shows({{"X", "Mean"}})},
      {"layer_norm_grad", Shows({{"Y@GRAD", "Bias@GRAD"}})},
      {"matmul_v2", Shows({{"X", "Out"}, {"Y", "Out"}})},
      {"matmul_v2_grad",
       Shows({{"Out@GRAD", "X@GRAD"}, {"Out@GRAD", "Y@GRAD"}})},
      {"mean", Shows({{"X", "Out"}})},
      {"mul", Shows({{"X", "Out"}})},
      {"mul_grad", Shows({{"Out@GRAD", "Y@GRAD"}})},
      {"reduce_mean", Shows({{"X", "Out"}})},
      {"reduce_sum", Shows({{"X", "Out"}})},
      {"sum", Shows({{"X", "Out"}})},
      {"coalesce_tensor", With(&NonFiniteFacts::writes_nothing)},
      {"check_finite_and_unscale", With(&NonFiniteFacts::finds_infinities)},
      {"update_loss_scaling", With(&NonFiniteFacts::finds_infinities)}};
  table["update_loss_scaling"].clears_infinities = true;
  for (const char* type : {"assign_value", "fill_any", "fill_any_like",
                           "fill_constant", "fill_constant_batch_size_like"})
    table[type].writes_constants = true;
  for (const char* type : {"assign",          "cast",
                           "concat",          "elementwise_add",
                           "elementwise_max", "elementwise_min",
                           "expand",          "expand_as_v2",
                           "expand_v2",       "flatten_contiguous_range",
                           "gather",          "pad",
                           "pad3d",           "reshape2",
                           "slice",           "split",
                           "squeeze2",        "stack",
                           "strided_slice",   "tile",
                           "transpose2",      "tril_triu",
                           "unsqueeze2",      "where"})
    table[type].keeps_minus_infinity = true;
  return table;
}

}  // namespace

const std::map<std::string, NonFiniteFacts, std::less<>>& AllNonFiniteFacts() {
  static const auto* const kTable = new Table(MakeTable());
  return *kTable;
}

const NonFiniteFacts& NonFiniteFactsOf(absl::string_view op_type) {
  static const auto* const kNone = new NonFiniteFacts;
  const Table& table = AllNonFiniteFacts();
  const auto found = table.find(std::string(op_type));
  return found == table.end() ? *kNone : found->second;
}

}  // namespace pd
