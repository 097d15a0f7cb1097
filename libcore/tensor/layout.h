// SPDX-License-Identifier: Apache-2.0
// How the elements of a tensor lie in memory when they are not row-major:
// strides per dimension plus inner blocks, which covers permutations (NHWC,
// CHWN) and oneDNN's blocked formats (nChw16c, OIhw16i16o).
#ifndef PD_LIBCORE_TENSOR_LAYOUT_H_
#define PD_LIBCORE_TENSOR_LAYOUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libcore/base/shape.h"

namespace pd {

struct Layout {
  struct Block {
    int dim = 0;
    int64_t size = 1;
    bool operator==(const Block& o) const {
      return dim == o.dim && size == o.size;
    }
  };
  Shape shape;                   ///< logical extents
  Shape padded;                  ///< extents rounded up to whole blocks
  std::vector<int64_t> strides;  ///< of the outer index, in elements
  std::vector<Block> blocks;     ///< inner blocks, outermost first

  bool operator==(const Layout& o) const {
    return shape == o.shape && padded == o.padded && strides == o.strides &&
           blocks == o.blocks;
  }

  /// Elements that the memory holds, padding included.
  int64_t Elements() const;
  /// Where elements lie, in elements from the start: that at `index` (logical)
  /// at the sum of [d][index[d]] over the dimensions d.
  std::vector<std::vector<int64_t>> Offsets() const;
  /// "strides [..] blocks [..]", for logs.
  std::string ToString() const;
};

/// Null stands for row-major.
using LayoutPtr = std::shared_ptr<const Layout>;

/// Same layout; two nulls are the same, and a Layout that happens to be
/// row-major equals null.
bool SameLayout(const LayoutPtr& a, const LayoutPtr& b);

/// A permuted layout without blocks: `order` lists the dimensions from the
/// outermost to the innermost in memory. {1, 2, 3, 0} is CHWN.
LayoutPtr PermutedLayout(const Shape& shape, const std::vector<int>& order);

/// `layout`, or null when it is plain row-major.
LayoutPtr Canonical(Layout layout);

}  // namespace pd

#endif  // PD_LIBCORE_TENSOR_LAYOUT_H_
