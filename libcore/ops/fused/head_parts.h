// SPDX-License-Identifier: Apache-2.0
// Parts that the fused layers of transformers share: tensors of heads are
// [batch, heads, steps, width].
#ifndef PD_LIBCORE_OPS_FUSED_HEAD_PARTS_H_
#define PD_LIBCORE_OPS_FUSED_HEAD_PARTS_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
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

/// The attributes of a dropout whose own are called NAME_rate and so on.
inline Composition::Attrs DropoutOf(const Composition& parts,
                                    const std::string& name) {
  return {{"dropout_prob", parts.Attr<float>(name + "_rate")},
          {"is_test", parts.Attr<bool>("is_test")},
          {"fix_seed", parts.Attr<bool>(name + "_fix_seed")},
          {"seed", parts.Attr<int32_t>(name + "_seed")},
          {"dropout_implementation",
           parts.Attr<std::string>(name + "_implementation")}};
}

/// The attributes of a layer norm over the last axis of X.
inline Composition::Attrs NormOf(const Composition& parts,
                                 const char* epsilon) {
  const auto rank = static_cast<int32_t>(parts.Meta("X").shape.size());
  return {{"epsilon", parts.Attr<float>(epsilon)},
          {"begin_norm_axis", rank - 1}};
}

/// layer_norm of `x` into `out`; its slots are NORM + "Scale", "Bias", "Mean",
/// "Variance".
inline void NormPart(Composition* parts, const std::string& norm,
                     const char* epsilon, const std::string& x,
                     const std::string& out) {
  Composition::Slots in = {{"X", {x}}};
  for (const char* part : {"Scale", "Bias"})
    if (parts->HasInput(norm + part))
      in.push_back({part, {parts->In(norm + part)}});
  parts->Add("layer_norm", in,
             {{"Y", {out}},
              {"Mean", {parts->Out(norm + "Mean")}},
              {"Variance", {parts->Out(norm + "Variance")}}},
             NormOf(*parts, epsilon));
}

/// Its gradients; that of `x` is called `x_grad`.
inline void NormGradPart(Composition* parts, const std::string& norm,
                         const char* epsilon, const std::string& x,
                         const std::string& out_grad,
                         const std::string& x_grad) {
  Composition::Slots in = {{"X", {x}},
                           {"Mean", {parts->In(norm + "Mean")}},
                           {"Variance", {parts->In(norm + "Variance")}},
                           {"Y@GRAD", {out_grad}}};
  Composition::Slots out = {{"X@GRAD", {x_grad}}};
  for (const char* part : {"Scale", "Bias"})
    if (parts->HasInput(norm + part)) {
      in.push_back({part, {parts->In(norm + part)}});
      out.push_back({GradName(part), {parts->Out(GradName(norm + part))}});
    }
  parts->Add("layer_norm_grad", in, out, NormOf(*parts, epsilon));
}

/// Divides the products of queries with keys.
inline Composition::Attrs HeadScale(int32_t width) {
  return {{"scale", static_cast<float>(1 / std::sqrt(double{1} * width))}};
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_FUSED_HEAD_PARTS_H_
