// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/fused/post_ops.h"

#include "libcore/base/error.h"

namespace pd {

std::string AddScale(Composition* parts, const std::string& x, float scale,
                     float bias) {
  if (scale == 1 && bias == 0) return x;
  return parts->Apply("scale", {{"X", {x}}},
                      {{"scale", scale}, {"bias", bias}});
}

std::string AddReshape(Composition* parts, const std::string& x,
                       const std::vector<int32_t>& shape) {
  if (shape.empty()) return x;
  return parts->Apply("reshape2", {{"X", {x}}}, {{"shape", shape}});
}

std::string AddTranspose(Composition* parts, const std::string& x,
                         const std::vector<int32_t>& axis) {
  if (axis.empty()) return x;
  return parts->Apply("transpose2", {{"X", {x}}}, {{"axis", axis}});
}

void WriteTo(Composition* parts, const std::string& x, const std::string& out) {
  parts->Add("assign", {{"X", {x}}}, {{"Out", {out}}});
}

absl::StatusOr<std::string> AddActivation(Composition* parts, std::string x,
                                          const std::string& type, float alpha,
                                          float beta) {
  const auto clip = [&](const std::string& of, float low, float high) {
    return parts->Apply("clip", {{"X", {of}}}, {{"min", low}, {"max", high}});
  };
  const auto times = [&](const std::string& other) {
    return parts->Apply("elementwise_mul", {{"X", {x}}, {"Y", {other}}});
  };
  if (type.empty() || type == "identity") return x;
  for (const char* plain :
       {"relu", "tanh", "sigmoid", "sqrt", "abs", "mish", "exp"})
    if (type == plain) return parts->Apply(plain, {{"X", {x}}});
  if (type == "gelu" || type == "gelu_erf" || type == "gelu_tanh")
    return parts->Apply("gelu", {{"X", {x}}},
                        {{"approximate", type == "gelu_tanh"}});
  if (type == "leaky_relu")
    return parts->Apply("leaky_relu", {{"X", {x}}}, {{"alpha", alpha}});
  if (type == "relu6") return clip(x, 0, alpha);
  if (type == "clip") return clip(x, alpha, beta);
  if (type == "linear") return AddScale(parts, x, alpha, beta);
  if (type == "swish")
    return times(parts->Apply("sigmoid", {{"X", {AddScale(parts, x, alpha)}}}));
  if (type == "hard_sigmoid" || type == "hard_swish") {
    const std::string gate = clip(AddScale(parts, x, alpha, beta), 0, 1);
    return type == "hard_swish" ? times(gate) : gate;
  }
  return InvalidArgument("'%s' is no activation that is fused", type);
}

}  // namespace pd
