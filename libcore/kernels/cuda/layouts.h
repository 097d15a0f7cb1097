// SPDX-License-Identifier: Apache-2.0
// Layouts on a device: convolutions on tensor cores want channels last, what
// works on elements takes any. There are no other layouts, and no padding.
#ifndef PD_LIBCORE_KERNELS_CUDA_LAYOUTS_H_
#define PD_LIBCORE_KERNELS_CUDA_LAYOUTS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/device_binding.h"
#include "libcore/ops/op_def.h"

namespace pd::cuda {

/// Of [batch, channels, height, width] or [batch, channels, depth, height,
/// width], and of filters: channels lie last. Null where that is row-major, and
/// for other ranks.
LayoutPtr ChannelsLast(const Shape& shape);

/// Elements between neighbours of each dimension.
std::vector<int64_t> StridesIn(const LayoutPtr& layout, const Shape& shape);
/// The dimensions from the outermost in memory to the innermost.
std::vector<size_t> OrderIn(const LayoutPtr& layout, size_t rank);

/// Asks for all tensors in one layout: that of the first input that has one,
/// or row-major where a shape differs. Those that are null stay so.
absl::Status InOneLayout(BindContext* context,
                         std::initializer_list<Tensor**> inputs,
                         std::initializer_list<Tensor**> outputs);

/// An implementation that asks for layouts.
Implementation AnyLayout(const char* label, DeviceBindFn bind);

/// A DeviceReorderFn.
absl::StatusOr<Step> BindReorder(DeviceBinding* binding, Tensor* from,
                                 Tensor* to);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LAYOUTS_H_
