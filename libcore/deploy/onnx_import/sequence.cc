// SPDX-License-Identifier: Apache-2.0
// Sequences whose length is known while importing: lists of values, no ops.
#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

const OnnxValue* ListIn(OnnxNode* node) {
  const OnnxValue* value = node->Value(0);
  if (value == nullptr || !value->is_list)
    node->Fail(InvalidArgument("its first input is no sequence"));
  return node->ok() ? value : nullptr;
}

OnnxValue OneOf(OnnxNode* node, size_t i) {
  OnnxValue value;
  value.variable = node->In(i);
  return value;
}

// A place in a list of `count`, by a constant input; negative ones count from
// the end.
int64_t Place(OnnxNode* node, size_t input, int64_t count) {
  auto at = static_cast<int64_t>(node->NeedNumber(input));
  if (at < 0) at += count;
  if (at < 0 || at > count) node->Fail(OutOfRange("place %d of %d", at, count));
  return node->ok() ? at : 0;
}

void ImportConstruct(OnnxNode* node) {
  OnnxValue out;
  out.is_list = true;
  for (size_t i = 0; i < node->InputCount(); ++i)
    out.list.push_back(OneOf(node, i));
  node->GiveValue(0, std::move(out));
}

void ImportEmpty(OnnxNode* node) {
  OnnxValue out;
  out.is_list = true;
  node->GiveValue(0, std::move(out));
}

void ImportAt(OnnxNode* node) {
  const OnnxValue* list = ListIn(node);
  if (list == nullptr) return;
  const auto count = static_cast<int64_t>(list->list.size());
  const int64_t at = Place(node, 1, count);
  if (at >= count) return node->Fail(OutOfRange("place %d of %d", at, count));
  node->GiveValue(0, list->list[static_cast<size_t>(at)]);
}

void ImportLength(OnnxNode* node) {
  const OnnxValue* list = ListIn(node);
  if (list == nullptr) return;
  node->GiveConstant(
      0, MakeArray<int64_t>({}, {static_cast<int64_t>(list->list.size())}));
}

void ImportInsert(OnnxNode* node) {
  const OnnxValue* list = ListIn(node);
  if (list == nullptr) return;
  OnnxValue out = *list;
  const auto count = static_cast<int64_t>(out.list.size());
  const int64_t at = node->Has(2) ? Place(node, 2, count) : count;
  out.list.insert(out.list.begin() + at, OneOf(node, 1));
  node->GiveValue(0, std::move(out));
}

void ImportErase(OnnxNode* node) {
  const OnnxValue* list = ListIn(node);
  if (list == nullptr) return;
  OnnxValue out = *list;
  const auto count = static_cast<int64_t>(out.list.size());
  const int64_t at = node->Has(1) ? Place(node, 1, count) : count - 1;
  if (at < 0 || at >= count)
    return node->Fail(OutOfRange("place %d of %d", at, count));
  out.list.erase(out.list.begin() + at);
  node->GiveValue(0, std::move(out));
}

void ImportConcatFrom(OnnxNode* node) {
  const OnnxValue* list = ListIn(node);
  if (list == nullptr) return;
  if (list->list.empty())
    return node->Fail(InvalidArgument("the sequence is empty"));
  const bool stacks = node->Int("new_axis", 0) != 0;
  OnnxNode::Names parts;
  for (const OnnxValue& value : list->list) parts.push_back(value.variable);
  const int64_t rank = node->Rank(parts[0]) + (stacks ? 1 : 0);
  const int64_t axis = node->Axis(node->Int("axis", 0), rank);
  node->Give(0, stacks ? node->Emit("stack", {{"X", parts}},
                                    {{"axis", static_cast<int32_t>(axis)}}, "Y")
                       : node->Concat(parts, axis));
}

void ImportSplitTo(OnnxNode* node) {
  const std::string x = node->In(0);
  const int64_t axis = node->Axis(node->Int("axis", 0), node->Rank(x));
  const int64_t extent = node->Extent(x, axis);
  OnnxNode::Ints sizes = {1};
  if (node->Has(1)) sizes = node->NeedInts(1);
  if (!node->ok()) return;
  // One size: for all parts.
  if (!node->Has(1) || node->ShapeOf(node->In(1)).empty()) {
    const int64_t size = sizes.empty() ? 0 : sizes[0];
    if (extent < 0 || size < 1 || extent / size > 65536)
      return node->Fail(
          Unimplemented("an extent of %d in parts of %d", extent, size));
    sizes.clear();
    for (int64_t at = 0; at < extent; at += size)
      sizes.push_back(std::min(size, extent - at));
  }
  OnnxValue out;
  out.is_list = true;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > (int64_t{1} << 40))
      return node->Fail(InvalidArgument("a part has %d elements", size));
    OnnxValue part;
    part.variable = node->Slice(x, {axis}, {begin}, {begin + size});
    const bool drop = !node->Has(1) && node->Int("keepdims", 1) == 0;
    if (drop) part.variable = node->Squeeze(part.variable, {axis});
    out.list.push_back(std::move(part));
    begin += size;
  }
  node->GiveValue(0, std::move(out));
}

// An optional is here when a tensor is.
void ImportHasElement(OnnxNode* node) {
  node->GiveConstant(0,
                     OnnxArray(DType::kBool, {}, {node->Has(0) ? 1.0 : 0.0}));
}

void ImportGetElement(OnnxNode* node) {
  OnnxValue* value = node->Value(0);
  if (value != nullptr) return node->GiveValue(0, *value);
  node->Fail(InvalidArgument("the optional is empty"));
}

}  // namespace

OnnxImportEntries SequenceImports() {
  return {
      {"ConcatFromSequence", ImportConcatFrom},
      {"OptionalGetElement", ImportGetElement},
      {"OptionalHasElement", ImportHasElement},
      {"SequenceAt", ImportAt},
      {"SequenceConstruct", ImportConstruct},
      {"SequenceEmpty", ImportEmpty},
      {"SequenceErase", ImportErase},
      {"SequenceInsert", ImportInsert},
      {"SequenceLength", ImportLength},
      {"SplitToSequence", ImportSplitTo},
  };
}

}  // namespace pd
