// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/int_tensors.h"

#include <string>

#include "libcore/ops/common/labels.h"

namespace pd {

std::vector<int64_t> IntsOf(const Tensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = LabelAt(tensor, static_cast<int64_t>(i));
  return values;
}

std::optional<std::vector<int64_t>> IntsIn(const InferContext& context,
                                           absl::string_view slot) {
  if (!context.HasInput(slot)) return std::nullopt;
  std::vector<int64_t> all;
  for (size_t i = 0; i < context.InputCount(slot); ++i) {
    const TensorMeta& meta = context.Input(slot, i);
    if (meta.value != nullptr && (meta.value->dtype() == DType::kInt64 ||
                                  meta.value->dtype() == DType::kInt32)) {
      const std::vector<int64_t> values = IntsOf(*meta.value);
      all.insert(all.end(), values.begin(), values.end());
    } else {
      if (IsDynamic(meta.shape)) return std::nullopt;
      all.insert(all.end(), static_cast<size_t>(NumElements(meta.shape)), -1);
    }
  }
  return all;
}

std::vector<int64_t> RequestedInts(const InferContext& context,
                                   absl::string_view tensor_slot,
                                   absl::string_view list_slot,
                                   absl::string_view attr) {
  if (auto ints = IntsIn(context, tensor_slot)) return *ints;
  if (auto ints = IntsIn(context, list_slot)) return *ints;
  return IntsAttr(context.op(), attr);
}

std::vector<int64_t> IntsAttr(const OpDesc& op, absl::string_view name) {
  const Attribute* a = op.FindAttr(name);
  if (a == nullptr) return {};
  if (const auto* longs = std::get_if<std::vector<int64_t>>(a)) return *longs;
  if (const auto* ints = std::get_if<std::vector<int32_t>>(a))
    return std::vector<int64_t>(ints->begin(), ints->end());
  return {};
}

namespace {

// An attribute of integers in whose place an op may read tensors.
struct IntSlots {
  const char *tensor, *list, *attr;
};
constexpr IntSlots kIntSlots[] = {
    {"StartsTensor", "StartsTensorList", "starts"},
    {"EndsTensor", "EndsTensorList", "ends"},
    {"StridesTensor", "StridesTensorList", "strides"},
    {"AxisTensor", "", "axis"},
    {"", "SectionsTensorList", "sections"},
};

bool SetInts(const std::vector<int64_t>& values, Attribute* attr) {
  const std::vector<int32_t> ints(values.begin(), values.end());
  if (std::holds_alternative<std::vector<int32_t>>(*attr))
    *attr = ints;
  else if (std::holds_alternative<std::vector<int64_t>>(*attr))
    *attr = values;
  else if (std::holds_alternative<int32_t>(*attr) && ints.size() == 1)
    *attr = ints[0];
  else
    return false;
  return true;
}

// The elements of all tensors, or nothing where one is not at hand.
std::optional<std::vector<int64_t>> IntsOfAll(
    const std::vector<std::string>& names, const HostTensorFn& on_host) {
  std::vector<int64_t> values;
  for (const std::string& name : names) {
    const Tensor* tensor = on_host(name);
    if (tensor == nullptr ||
        (tensor->dtype() != DType::kInt32 && tensor->dtype() != DType::kInt64))
      return std::nullopt;
    const std::vector<int64_t> more = IntsOf(*tensor);
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

}  // namespace

OpDesc WithIntsAsAttrs(const OpDesc& op, const HostTensorFn& on_host) {
  OpDesc result = op;
  for (const IntSlots& slots : kIntSlots) {
    const auto attr = result.attrs.find(slots.attr);
    const bool list = op.Input(slots.tensor).empty();
    const std::string slot = list ? slots.list : slots.tensor;
    const std::vector<std::string> names = op.Input(slot);
    if (names.empty() || attr == result.attrs.end()) continue;
    const auto values = IntsOfAll(names, on_host);
    if (values.has_value() && SetInts(*values, &attr->second))
      result.SetInput(slot, {});
  }
  return result;
}

}  // namespace pd
