// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/gradient_merge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/optim/grad_ops.h"

namespace pd {
namespace {

constexpr const char* kCounter = "gradient_merge_step";
constexpr const char* kSteps = "gradient_merge_k";
constexpr const char* kZero = "gradient_merge_zero";
constexpr const char* kDue = "gradient_merge_cond";

// counter = (counter + 1) mod k; due = counter is 0.
absl::Status AddCounter(int64_t k, BlockBuilder* main, BlockBuilder* startup) {
  const auto add = [&](const char* name, int64_t value) {
    return AddFilled(name, DType::kInt32, {1}, static_cast<double>(value), true,
                     main, startup);
  };
  PD_RETURN_IF_ERROR(add(kSteps, k));
  PD_RETURN_IF_ERROR(add(kZero, 0));
  PD_RETURN_IF_ERROR(add(kCounter, 0));
  const auto append = [&](const char* type, SlotList inputs,
                          std::map<std::string, Attribute> attrs,
                          const char* out) {
    OpDesc op;
    op.type = type;
    op.inputs = std::move(inputs);
    op.attrs = std::move(attrs);
    op.SetOutput("Out", {out});
    op.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleBackward};
    return main->Append(std::move(op));
  };
  PD_RETURN_IF_ERROR(
      append("increment", {{"X", {kCounter}}}, {{"step", 1.0f}}, kCounter));
  PD_RETURN_IF_ERROR(append("elementwise_mod",
                            {{"X", {kCounter}}, {"Y", {kSteps}}},
                            {{"axis", int32_t{-1}}}, kCounter));
  return append("equal", {{"X", {kCounter}}, {"Y", {kZero}}},
                {{"axis", int32_t{-1}}}, kDue);
}

// sum += gradient.
absl::Status AddGradient(const std::string& gradient, const std::string& sum,
                         const ParamGrad& pair, BlockBuilder* main) {
  if (IsRows(gradient, *main))
    return AppendOptimizeOp("sum", {{"X", {gradient, sum}}}, {}, pair, main,
                            sum)
        .status();
  return AppendOptimizeOp("elementwise_add", {{"X", {gradient}}, {"Y", {sum}}},
                          {{"axis", int32_t{-1}}}, pair, main, sum)
      .status();
}

// The variables that the ops write, by whether the block lives longer than they
// must.
struct Written {
  std::vector<std::string> kept;  // persistables, each once
  std::set<std::string> local;
};

Written WrittenBy(const std::vector<OpDesc>& ops, const BlockDesc& block) {
  Written written;
  std::set<std::string> seen;
  for (const OpDesc& op : ops) {
    for (const auto& [slot, names] : op.outputs) {
      for (const std::string& name : names) {
        const VarDesc* var = block.FindVar(name);
        if (name == kEmptyVar || var == nullptr || !seen.insert(name).second)
          continue;
        if (var->persistable)
          written.kept.push_back(name);
        else
          written.local.insert(name);
      }
    }
  }
  return written;
}

}  // namespace

absl::StatusOr<GradientMerge> GradientMerge::Begin(
    const GradientMergeSpec& spec, std::vector<ParamGrad>* pairs,
    BlockBuilder* main, BlockBuilder* startup) {
  if (spec.k_steps < 1 || spec.k_steps > 2147483647)
    return InvalidArgument("'k_steps' is %d; expected 1 or more", spec.k_steps);
  PD_RETURN_IF_ERROR(AddCounter(spec.k_steps, main, startup));
  for (ParamGrad& pair : *pairs) {
    const VarDesc* param = main->FindVar(pair.param);
    if (param == nullptr)
      return NotFound("parameter '%s' does not exist", pair.param);
    const std::string sum =
        absl::StrCat(GradName(pair.param), "@GradientMerge");
    PD_RETURN_IF_ERROR(AddFilled(sum, param->dtype, Shape(param->shape), 0,
                                 true, main, startup));
    PD_RETURN_IF_ERROR(AddGradient(pair.grad, sum, pair, main));
    pair.grad = sum;
  }
  GradientMerge merge;
  merge.first_ = main->block().ops.size();
  merge.sums_ = *pairs;
  if (spec.avg)
    for (const ParamGrad& pair : *pairs)
      PD_RETURN_IF_ERROR(
          AppendOptimizeOp("scale", {{"X", {pair.grad}}},
                           {{"scale", 1.0f / static_cast<float>(spec.k_steps)},
                            {"bias", 0.0f},
                            {"bias_after_scale", false}},
                           pair, main, pair.grad)
              .status());
  return merge;
}

absl::Status GradientMerge::Finish(BlockBuilder* main) {
  for (const ParamGrad& pair : sums_) {
    const VarDesc* sum = main->FindVar(pair.grad);
    PD_INVARIANT(sum != nullptr);
    PD_RETURN_IF_ERROR(
        AppendOptimizeOp("fill_constant", {},
                         {{"shape", sum->shape},
                          {"dtype", static_cast<int32_t>(sum->dtype)},
                          {"value", 0.0f}},
                         pair, main, pair.grad)
            .status());
  }
  ProgramDesc* program = main->program();
  BlockDesc inside;
  inside.idx = static_cast<int32_t>(program->blocks.size());
  inside.parent_idx = 0;
  BlockDesc& outside = program->global();
  const auto moved = outside.ops.begin() + static_cast<ptrdiff_t>(first_);
  inside.ops.assign(std::make_move_iterator(moved),
                    std::make_move_iterator(outside.ops.end()));
  outside.ops.erase(moved, outside.ops.end());
  Written written = WrittenBy(inside.ops, outside);
  const auto local = std::stable_partition(
      outside.vars.begin(), outside.vars.end(),
      [&](const VarDesc& var) { return written.local.count(var.name) == 0; });
  inside.vars.assign(std::make_move_iterator(local),
                     std::make_move_iterator(outside.vars.end()));
  outside.vars.erase(local, outside.vars.end());

  OpDesc op;
  op.type = "conditional_block";
  op.SetInput("Cond", {kDue});
  op.SetOutput("Out", std::move(written.kept));
  op.attrs["sub_block"] = BlockRef{inside.idx};
  op.attrs["is_scalar_condition"] = true;
  op.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleOptimize};
  outside.ops.push_back(std::move(op));
  program->blocks.push_back(std::move(inside));
  return absl::OkStatus();
}

}  // namespace pd
