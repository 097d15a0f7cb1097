// SPDX-License-Identifier: Apache-2.0
// Integers that a program asks an op for (a shape, repeat counts), where
// tensors may give some of the integers: nothing stands for one that is not
// known yet. RequestedInts takes such a number for -1, which cannot be told
// from a -1 that was asked for.
#ifndef PD_LIBCORE_OPS_MANIPULATION_OPEN_INTS_H_
#define PD_LIBCORE_OPS_MANIPULATION_OPEN_INTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/ops/common/int_tensors.h"

namespace pd {

using OpenInts = std::vector<std::optional<int64_t>>;

/// The numbers in the tensor or list slot, else those of the attribute. Nothing
/// when not even their number is known.
inline std::optional<OpenInts> RequestedOpenInts(const InferContext& context,
                                                 absl::string_view tensor_slot,
                                                 absl::string_view list_slot,
                                                 absl::string_view attr) {
  OpenInts all;
  for (absl::string_view slot : {tensor_slot, list_slot}) {
    if (!context.HasInput(slot)) continue;
    for (size_t i = 0; i < context.InputCount(slot); ++i) {
      const TensorMeta& meta = context.Input(slot, i);
      if (meta.value != nullptr) {
        for (int64_t v : IntsOf(*meta.value)) all.push_back(v);
      } else if (IsDynamic(meta.shape)) {
        return std::nullopt;
      } else {
        all.resize(all.size() + static_cast<size_t>(NumElements(meta.shape)));
      }
    }
    return all;
  }
  for (int64_t v : IntsAttr(context.op(), attr)) all.push_back(v);
  return all;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_MANIPULATION_OPEN_INTS_H_
