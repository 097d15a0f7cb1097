// SPDX-License-Identifier: Apache-2.0
// A tensor of PyTorch as its files have it: a window on a storage.
#ifndef PD_FORMATS_TORCH_WINDOW_H_
#define PD_FORMATS_TORCH_WINDOW_H_

#include <cstddef>
#include <cstdint>

#include "libcore/base/shape.h"

namespace pd {

struct TorchWindow {
  Shape shape, strides;  ///< in elements, of the same length, none below 0
  int64_t offset = 0;    ///< of the first element
};

/// Whether all elements of the window lie within the first `count`. The offset
/// is not below 0.
bool LiesWithin(const TorchWindow& window, int64_t count);

/// Whether the elements follow each other, row-major.
bool IsContiguous(const TorchWindow& window);

/// Copies the elements, of `size` bytes each, row-major. There is at least one,
/// and all lie within what `from` has.
void Gather(const TorchWindow& window, const std::byte* from, size_t size,
            std::byte* to);

}  // namespace pd

#endif  // PD_FORMATS_TORCH_WINDOW_H_
