// SPDX-License-Identifier: Apache-2.0
// Parts that the fused layers of transformers share: tensors of heads are
// [batch, heads, steps, width].
#ifndef PD_LIBCORE_OPS_FUSED_HEAD_PARTS_H_
#define PD_LIBCORE_OPS_FUSED_HEAD_PARTS_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/ops/common/composed.h"

namespace pd {

/// 0 in `shape` copies the extent of `x` at that place.
inline std::string ReshapePart(Composition* parts, const std::string& x,
                               std::vector<int32_t> shape) {
  return parts->Apply("reshape2", {{"X", {x}}}, {{"shape", std::move(shape)}});
}

inline void TransposePart(Composition* parts, const std::string& x,
                          std::vector<int32_t> perm, const std::string& out) {
  parts->Add("transpose2", {{"X", {x}}}, {{"Out", {out}}},
             {{"axis", std::move(perm)}});
}

/// x[i]
inline std::string ElementPart(Composition* parts, const std::string& x,
                               int32_t i) {
  using Ints = std::vector<int32_t>;
  return parts->Apply("slice", {{"Input", {x}}},
                      {{"axes", Ints{0}},
                       {"starts", Ints{i}},
                       {"ends", Ints{i + 1}},
                       {"decrease_axis", Ints{0}}});
}

/// x + y, whose extents are the last of x; x where `y` is "".
inline std::string AddPart(Composition* parts, const std::string& x,
                           const std::string& y) {
  return y.empty() ? x
                   : parts->Apply("elementwise_add", {{"X", {x}}, {"Y", {y}}});
}

/// Divides the products of queries with keys.
inline Composition::Attrs HeadScale(int32_t width) {
  return {{"scale", static_cast<float>(1 / std::sqrt(double{1} * width))}};
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_FUSED_HEAD_PARTS_H_
