// SPDX-License-Identifier: Apache-2.0
// Loops over a contiguous tensor and the same elements with their axes in
// another order.
#ifndef PD_LIBCORE_OPS_COMMON_PERMUTE_H_
#define PD_LIBCORE_OPS_COMMON_PERMUTE_H_

#include <vector>

#include "libcore/base/shape.h"
#include "libcore/ops/common/strided_loop.h"

namespace pd {

/// A loop from a tensor of shape `x` (tensor 0) to the one whose axis i is axis
/// axes[i] of it; or, `back`, from that one (tensor 0) to x. In the order of
/// what is written.
inline StridedLoop<2> PermuteLoop(const Shape& x,
                                  const std::vector<size_t>& axes, bool back) {
  const auto strides = RowMajorStrides(x);
  Shape out;
  for (size_t axis : axes) out.push_back(x[axis]);
  const auto out_strides = RowMajorStrides(out);
  StridedLoop<2> loop;
  if (!back) {
    for (size_t i = 0; i < axes.size(); ++i)
      loop.Add(out[i], {strides[axes[i]], out_strides[i]});
    return loop;
  }
  std::vector<size_t> place(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) place[axes[i]] = i;
  for (size_t i = 0; i < axes.size(); ++i)
    loop.Add(x[i], {out_strides[place[i]], strides[i]});
  return loop;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_PERMUTE_H_
