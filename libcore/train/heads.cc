// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/heads.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

// The op that makes a variable, or null.
const OpDesc* WriterOf(const ProgramDesc& program, const std::string& name) {
  for (const OpDesc& op : program.global().ops)
    for (const auto& [slot, names] : op.outputs)
      if (std::count(names.begin(), names.end(), name) > 0) return &op;
  return nullptr;
}

// Follows a variable back through ops that keep its numbers.
template <typename Found>
std::string Backward(const ProgramDesc& program, std::string name,
                     const Found& found) {
  while (!found(name)) {
    const OpDesc* op = WriterOf(program, name);
    if (op == nullptr) return "";
    const bool keeps = op->type == "reshape2" || op->type == "cast" ||
                       op->type == "unsqueeze2" || op->type == "squeeze2" ||
                       op->type == "flatten_contiguous_range" ||
                       op->type == "transpose2" || op->type == "log_softmax";
    if (!keeps || op->Input("X").size() != 1) return "";
    name = op->In("X");
  }
  return name;
}

// The class numbers of a loss; of one with smoothed labels those that were
// smoothed. "" where it is given probabilities.
std::string NumbersOf(const ProgramDesc& program, const OpDesc& loss) {
  if (!loss.AttrOr<bool>("soft_label", false)) return loss.In("Label");
  const OpDesc* op = WriterOf(program, loss.In("Label"));
  if (op != nullptr && op->type == "label_smooth")
    op = WriterOf(program, op->In("X"));
  return op != nullptr && op->type == "one_hot_v2" ? op->In("X") : "";
}

// PaddlePaddle gives it 32 bits in one op and 64 in another.
int64_t IgnoredOf(const OpDesc& loss) {
  if (loss.AttrOr<bool>("soft_label", false)) return -100;
  return loss.AttrOr<int64_t>("ignore_index",
                              loss.AttrOr<int32_t>("ignore_index", -100));
}

std::optional<Head> HeadOf(const TrainProgram& program, const OpDesc& op) {
  const bool softmax = op.type == "softmax_with_cross_entropy";
  if (!softmax && op.type != "nll_loss") return std::nullopt;
  const ProgramDesc& test = program.test;
  const std::string numbers = NumbersOf(test, op);
  if (numbers.empty()) return std::nullopt;
  const std::string logits = op.In(softmax ? "Logits" : "X");
  const VarDesc* var = test.global().FindVar(logits);
  if (var == nullptr || var->shape.size() < 2) return std::nullopt;
  const int64_t rank = static_cast<int64_t>(var->shape.size());
  int64_t axis = softmax ? op.AttrOr<int32_t>("axis", -1) : 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  Head head;
  head.outputs = var->shape[static_cast<size_t>(axis)];
  head.ignored = IgnoredOf(op);
  head.field = Backward(test, numbers, [&](const std::string& name) {
    return std::any_of(program.feeds.begin(), program.feeds.end(),
                       [&](const FeedSpec& feed) { return feed.name == name; });
  });
  const LayerInfo* layer = nullptr;
  Backward(test, logits, [&](const std::string& name) {
    for (const LayerInfo& one : program.test_layers)
      if (std::count(one.variables.begin(), one.variables.end(), name) > 0)
        layer = &one;
    return layer != nullptr;
  });
  if (head.field.empty() || layer == nullptr || head.outputs <= 0)
    return std::nullopt;
  head.layer = layer->name;
  head.place = layer->place;
  return head;
}

template <typename T>
std::optional<int64_t> FirstBad(const BatchField& field, const Head& head) {
  const T* labels = reinterpret_cast<const T*>(field.data);
  const int64_t count = NumElements(field.shape);
  for (int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<int64_t>(labels[i]);
    if ((label < 0 || label >= head.outputs) && label != head.ignored) return i;
  }
  return std::nullopt;
}

std::optional<int64_t> FirstBadOf(const BatchField& field, const Head& head) {
  if (field.dtype == DType::kInt64) return FirstBad<int64_t>(field, head);
  if (field.dtype == DType::kInt32) return FirstBad<int32_t>(field, head);
  return std::nullopt;
}

}  // namespace

std::vector<Head> HeadsOf(const TrainProgram& program) {
  std::vector<Head> heads;
  for (const OpDesc& op : program.test.global().ops)
    if (const auto head = HeadOf(program, op)) heads.push_back(*head);
  return heads;
}

absl::Status BadLabel(const Head& head, int64_t label, bool is_mask,
                      absl::string_view where) {
  constexpr int64_t kNobodyKnows = 255;
  std::string remedy =
      absl::StrFormat("it needs %d, or the label is wrong", label + 1);
  if (label < 0)
    remedy = absl::StrFormat(
        "classes count from 0; 'ignore_index: %d' in loss and metrics leaves "
        "it out",
        label);
  else if (is_mask && label == kNobodyKnows)
    remedy =
        "255 marks pixels that nobody knows the class of; 'ignore_index: 255' "
        "in loss and metrics leaves them out";
  return InvalidArgument(
      "%s: layer '%s' has %d outputs, but field '%s' holds class %d in %s: %s",
      head.place, head.layer, head.outputs, head.field, label, where, remedy);
}

absl::Status ExplainLabels(const std::vector<Head>& heads, const Batch& batch,
                           const Dataset& dataset, const absl::Status& failed) {
  if (failed.ok()) return failed;
  for (const Head& head : heads) {
    for (const BatchField& field : batch.fields) {
      if (field.name != head.field || batch.records.empty()) continue;
      const auto bad = FirstBadOf(field, head);
      if (!bad.has_value()) continue;
      const int64_t each =
          NumElements(field.shape) / static_cast<int64_t>(batch.records.size());
      const int64_t label = field.dtype == DType::kInt64
                                ? reinterpret_cast<int64_t*>(field.data)[*bad]
                                : reinterpret_cast<int32_t*>(field.data)[*bad];
      const FieldSpec* spec = dataset.FindField(head.field);
      return BadLabel(
          head, label, spec != nullptr && spec->is_mask,
          dataset.Describe(batch.records[static_cast<size_t>(*bad / each)]));
    }
  }
  return failed;
}

}  // namespace pd
