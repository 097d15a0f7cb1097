// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cuda/layouts.h"

#include <algorithm>
#include <numeric>

#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {

LayoutPtr ChannelsLast(const Shape& shape) {
  if (shape.size() == 4) return PermutedLayout(shape, {0, 2, 3, 1});
  if (shape.size() == 5) return PermutedLayout(shape, {0, 2, 3, 4, 1});
  return nullptr;
}

std::vector<int64_t> StridesIn(const LayoutPtr& layout, const Shape& shape) {
  return layout != nullptr ? layout->strides : RowMajorStrides(shape);
}

std::vector<size_t> OrderIn(const LayoutPtr& layout, size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (layout != nullptr)
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return layout->strides[a] > layout->strides[b];
    });
  return order;
}

absl::Status InOneLayout(BindContext* context,
                         std::initializer_list<Tensor**> inputs,
                         std::initializer_list<Tensor**> outputs) {
  LayoutPtr layout;
  for (Tensor** input : inputs)
    if (layout == nullptr && *input != nullptr) layout = (*input)->layout();
  for (const auto& tensors : {inputs, outputs})
    for (Tensor** tensor : tensors)
      if (layout != nullptr && *tensor != nullptr &&
          (*tensor)->shape() != layout->shape)
        layout = nullptr;
  for (Tensor** input : inputs)
    if (*input != nullptr) {
      PD_ASSIGN_OR_RETURN(*input, context->In(*input, layout));
    }
  for (Tensor** output : outputs)
    if (*output != nullptr) {
      PD_ASSIGN_OR_RETURN(*output, context->Out(*output, layout));
    }
  return absl::OkStatus();
}

Implementation AnyLayout(const char* label, DeviceBindFn bind) {
  Implementation implementation{label, bind};
  implementation.TakesLayouts();
  return implementation;
}

absl::StatusOr<Step> BindReorder(DeviceBinding* binding, Tensor* from,
                                 Tensor* to) {
  const auto from_strides = StridesIn(from->layout(), from->shape());
  const auto to_strides = StridesIn(to->layout(), to->shape());
  Walk<2> walk;
  for (const size_t d : OrderIn(to->layout(), to->rank()))
    if (!AddExtent<2>(to->dim(d), {from_strides[d], to_strides[d]}, &walk))
      return TooManyDims();
  return BindCopy(binding, {from, to, to->size(), walk});
}

}  // namespace pd::cuda
