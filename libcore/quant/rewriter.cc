// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/rewriter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/deploy/weight_ops.h"

namespace pd {

Rewriter::Rewriter(const InferenceModel& model) : model_(model) {
  ops_ = std::move(block().ops);
  block().ops.clear();
  for (size_t i = 0; i < block().vars.size(); ++i)
    vars_[block().vars[i].name] = i;
}

const VarDesc* Rewriter::FindVar(const std::string& name) const {
  const auto it = vars_.find(name);
  return it == vars_.end() ? nullptr
                           : &model_.program.global().vars[it->second];
}

void Rewriter::AddLike(const std::string& like, const std::string& name) {
  if (vars_.count(name) > 0) return;
  VarDesc var;
  if (const VarDesc* original = FindVar(like)) var = *original;
  var.name = name;
  var.persistable = var.is_parameter = var.need_check_feed = false;
  vars_[name] = block().vars.size();
  block().vars.push_back(std::move(var));
}

void Rewriter::AddParam(const std::string& name, const Array& value) {
  if (vars_.count(name) == 0) {
    vars_[name] = block().vars.size();
    block().vars.emplace_back();
  }
  VarDesc& var = block().vars[vars_[name]];
  var.name = name;
  var.dtype = value.dtype;
  var.shape = value.shape;
  var.persistable = true;
  model_.params[name] = value;
}

std::string Rewriter::AddWeight(const std::string& name,
                                const QuantizedWeight& weight) {
  const WeightOps back =
      DequantizeWeight(name, weight.scales, weight.axis, weight.bits);
  for (const std::string& made : back.made) AddLike(name, made);
  AddParam(name, weight.AsIntegers());
  for (const auto& [param, value] : back.params) AddParam(param, value);
  for (const OpDesc& op : back.ops) Append(op);
  return back.back();
}

const std::string& Rewriter::Now(const std::string& name) const {
  const auto it = instead_.find(name);
  return it == instead_.end() ? name : it->second;
}

void Rewriter::Rename(const std::vector<std::string>& slots, OpDesc* op) const {
  for (auto& [slot, names] : op->inputs) {
    if (!slots.empty() &&
        std::find(slots.begin(), slots.end(), slot) == slots.end())
      continue;
    for (std::string& name : names) name = Now(name);
  }
}

InferenceModel Rewriter::Finish() {
  std::vector<std::string> keep = model_.names.feeds;
  keep.insert(keep.end(), model_.names.fetches.begin(),
              model_.names.fetches.end());
  DropUnused(keep, &model_.program);
  const BlockDesc& left = model_.program.global();
  for (auto it = model_.params.begin(); it != model_.params.end();)
    it = left.FindVar(it->first) == nullptr ? model_.params.erase(it)
                                            : std::next(it);
  return std::move(model_);
}

}  // namespace pd
