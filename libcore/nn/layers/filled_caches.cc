// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/filled_caches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Nothing of what has this logarithm of a weight is left by a softmax.
constexpr double kHidden = -1e9;

using Ints = std::vector<int32_t>;

}  // namespace

void FilledCaches::BeginRun(int32_t block) {
  block_ = block;
  caches_.clear();
  next_.clear();
  masks_.clear();
  indices_.clear();
  mask_counts_.clear();
}

void FilledCaches::Set(const std::string& variable, const std::string& count,
                       const std::string& places) {
  caches_[variable] = {count, places};
}

const std::string* FilledCaches::CountOf(const std::string& variable) const {
  const auto found = caches_.find(variable);
  return found == caches_.end() ? nullptr : &found->second.count;
}

std::string FilledCaches::Next(const std::string& count, OpChain* ops) {
  std::string& next = next_[count];
  if (next.empty()) next = ops->Scale(count, 1, 1);
  return next;
}

std::string FilledCaches::Write(const std::string& cache,
                                const std::string& now, OpChain* ops) {
  const Cache known = caches_.at(cache);
  // The place of the key, for each of its numbers; heads may differ in size.
  const Shape& shape = ops->ShapeOf(now);
  std::string& index =
      indices_[absl::StrCat(known.count, " ", ToString(shape))];
  if (index.empty())
    index = ops->Add(
        ops->Unary(
            "fill_any_like", now,
            {{"value", 0.0f}, {"dtype", static_cast<int32_t>(DType::kInt64)}}),
        known.count);
  const std::string written = ops->Op(
      "put_along_axis", {{"Input", cache}, {"Index", index}, {"Value", now}},
      {"Result"}, {{"Axis", int32_t{2}}, {"Reduce", std::string("assign")}});
  Set(written, Next(known.count, ops), known.places);
  return written;
}

std::string FilledCaches::MaskOf(const std::string& count,
                                 const std::string& places, OpChain* ops) {
  std::string& mask = masks_[count];
  if (!mask.empty()) return mask;
  const std::string hidden =
      ops->Cast(ops->Binary("greater_equal", places, count), DType::kFloat32);
  mask = ops->Unsqueeze(ops->Unsqueeze(ops->Scale(hidden, kHidden), 1), 1);
  mask_counts_[mask] = count;
  return mask;
}

std::string FilledCaches::Mask(const std::string& cache, bool next,
                               OpChain* ops) {
  const Cache known = caches_.at(cache);
  return MaskOf(next ? Next(known.count, ops) : known.count, known.places, ops);
}

std::string FilledCaches::Filled(const std::string& variable, OpChain* ops) {
  const bool mask = IsMask(variable);
  return ops->Op("slice",
                 {{"Input", variable},
                  {"EndsTensorList", mask ? mask_counts_.at(variable)
                                          : caches_.at(variable).count}},
                 {"Out"},
                 {{"axes", Ints{mask ? 3 : 2}},
                  {"starts", Ints{0}},
                  {"ends", Ints{-1}},
                  {"infer_flags", Ints{-1}},
                  {"decrease_axis", Ints{}}});
}

absl::Status FilledCaches::FillReads(LayerReads* reads, BlockBuilder* main) {
  if (caches_.empty()) return absl::OkStatus();
  OpChain ops(main);
  const bool here = InRun(*main);
  const auto fill = [&](LayerInput* input, bool caches, bool masks) {
    const std::string& name = input->variable;
    if ((!caches && CountOf(name) != nullptr) || (!masks && IsMask(name)))
      input->variable = Filled(name, &ops);
  };
  for (LayerInput& input : reads->inputs) fill(&input, false, false);
  for (auto& [field, inputs] : reads->fields)
    for (LayerInput& input : inputs)
      fill(&input, here && field == "cache",
           here && (field == "src_mask" || field == "tgt_mask" ||
                    field == "attn_mask"));
  return ops.Give("").status();
}

std::vector<std::string> VariablesOf(const std::vector<LayerInput>& states) {
  std::vector<std::string> all;
  for (const LayerInput& state : states) {
    if (state.group.empty()) all.push_back(state.variable);
    all.insert(all.end(), state.group.begin(), state.group.end());
  }
  return all;
}

std::vector<LayerInput> WithVariables(std::vector<LayerInput> states,
                                      const std::vector<std::string>& names) {
  size_t next = 0;
  for (LayerInput& state : states) {
    if (state.group.empty()) state.variable = names[next++];
    for (std::string& one : state.group) one = names[next++];
  }
  return states;
}

std::vector<bool> GrowingStates::Find(const std::vector<LayerInput>& states,
                                      const LayerContext& c) {
  std::vector<bool> grows;
  for (const LayerInput& state : states) {
    const auto names = VariablesOf({state});
    grows.push_back(std::all_of(
        names.begin(), names.end(),
        [&c](const auto& name) { return c.filled()->Grows(name); }));
  }
  return grows;
}

absl::StatusOr<std::vector<std::string>> GrowingStates::MakeRoom(
    const std::string& all, std::vector<LayerInput>* states) {
  OpChain ops(c_->main());
  std::vector<std::string> counts;
  for (size_t i = 0; i < states->size(); ++i) {
    if (!grows_[i]) continue;
    auto names = VariablesOf({(*states)[i]});
    counts.push_back(ops.Cast(ops.Extent(names[0], 2), DType::kInt64));
    const std::string rest =
        ops.Cast(ops.Sub(all, counts.back()), DType::kInt32);
    std::map<Shape, std::string> rooms;  // by heads and size
    for (std::string& name : names) {
      const Shape shape = ops.ShapeOf(name);  // [N, heads, keys, size]
      std::string& room = rooms[{shape[1], shape[3]}];
      if (room.empty()) {
        OpDesc fill;
        fill.type = "fill_constant";
        fill.SetInput("ShapeTensorList",
                      {ops.Extent(name, 0), ops.Extent(name, 1), rest,
                       ops.Extent(name, 3)});
        fill.attrs = {
            {"shape", std::vector<int64_t>{-1, shape[1], -1, shape[3]}},
            {"dtype", static_cast<int32_t>(DType::kFloat32)},
            {"value", 0.0f},
            {"str_value", std::string("0")}};
        PD_RETURN_IF_ERROR(ops.Give("").status());
        PD_ASSIGN_OR_RETURN(room, c_->Append(std::move(fill), {"Out"}));
      }
      OpDesc concat;
      concat.type = "concat";
      concat.SetInput("X", {name, room});
      concat.attrs["axis"] = int32_t{2};
      PD_ASSIGN_OR_RETURN(name, c_->Append(std::move(concat), {"Out"}));
    }
    (*states)[i] = WithVariables({(*states)[i]}, names)[0];
  }
  PD_RETURN_IF_ERROR(ops.Give("").status());
  return counts;
}

std::vector<std::vector<std::string>> GrowingStates::Growing(
    const std::vector<LayerInput>& states) const {
  std::vector<std::vector<std::string>> growing;
  for (size_t i = 0; i < states.size(); ++i)
    if (grows_[i]) growing.push_back(VariablesOf({states[i]}));
  return growing;
}

void GrowingStates::BeginRun(const std::vector<LayerInput>& states,
                             const std::vector<std::string>& counts,
                             const std::string& places) const {
  c_->filled()->BeginRun(c_->main()->block_index());
  const auto growing = Growing(states);
  for (size_t i = 0; i < growing.size(); ++i)
    for (const std::string& name : growing[i])
      c_->filled()->Set(name, counts[i], places);
}

absl::StatusOr<std::vector<std::string>> GrowingStates::CountsOf(
    const std::vector<LayerInput>& states) const {
  std::vector<std::string> counts;
  for (const auto& names : Growing(states)) {
    for (const std::string& name : names)
      if (c_->filled()->CountOf(name) == nullptr)
        return InvalidArgument(
            "the decoder gives keys and values of the first ids, and others of "
            "those that come later; 'use_cache: false' does without");
    counts.push_back(*c_->filled()->CountOf(names[0]));
  }
  return counts;
}

}  // namespace pd
