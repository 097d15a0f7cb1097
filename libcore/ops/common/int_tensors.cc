// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/int_tensors.h"

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

}  // namespace pd
