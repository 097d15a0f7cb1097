// SPDX-License-Identifier: Apache-2.0
// Attributes that PaddlePaddle lets a program give by tensors: a shape, axes,
// section sizes.
#ifndef PD_LIBCORE_OPS_COMMON_INT_TENSORS_H_
#define PD_LIBCORE_OPS_COMMON_INT_TENSORS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"

namespace pd {

/// The int32 or int64 elements of a tensor that has its bytes.
std::vector<int64_t> IntsOf(const Tensor& tensor);

/// The elements of the tensors in a slot, one after the other: a single tensor
/// of integers or a list of tensors of one each. Those that are not known when
/// a program is built are -1. Nothing when the slot is absent, or when not even
/// their number is known.
std::optional<std::vector<int64_t>> IntsIn(const InferContext& context,
                                           absl::string_view slot);

/// The shape that an op is asked for: by the tensor in `tensor_slot`, by the
/// tensors in `list_slot`, else by the attribute `attr` (ints or longs).
std::vector<int64_t> RequestedInts(const InferContext& context,
                                   absl::string_view tensor_slot,
                                   absl::string_view list_slot,
                                   absl::string_view attr);

/// An attribute that is ints in some versions and longs in others; empty when
/// it is absent.
std::vector<int64_t> IntsAttr(const OpDesc& op, absl::string_view name);

/// The tensor of a name whose bytes are in the host's memory, or null.
using HostTensorFn = std::function<const Tensor*(const std::string& name)>;

/// `op` with the elements of such tensors as attributes where all of a slot are
/// in the host's memory; their slots are empty then. A kernel on a GPU needs
/// them as arguments.
OpDesc WithIntsAsAttrs(const OpDesc& op, const HostTensorFn& on_host);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_INT_TENSORS_H_
