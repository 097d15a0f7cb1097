// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/weight_ops.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace pd {

std::string ScaleName(const std::string& variable) {
  return absl::StrCat(variable, "@scale");
}

WeightOps DequantizeWeight(const std::string& name,
                           const std::vector<float>& scales, int axis,
                           int bits) {
  WeightOps result;
  const std::string back = absl::StrCat(name, ".quantized.dequantized");
  const std::string zero = absl::StrCat(back, "@zero_point");
  const Shape channels = {static_cast<int64_t>(scales.size())};
  result.params[ScaleName(name)] = MakeArray<float>(channels, scales);
  result.params[zero] =
      MakeArray<int32_t>(channels, std::vector<int32_t>(scales.size()));
  std::string integers = name;
  if (bits > 8) {
    integers = absl::StrCat(name, ".quantized");
    OpDesc cast;
    cast.type = "cast";
    cast.SetInput("X", {name});
    cast.SetOutput("Out", {integers});
    cast.attrs = {{"in_dtype", static_cast<int32_t>(DType::kInt16)},
                  {"out_dtype", static_cast<int32_t>(DType::kFloat32)},
                  {std::string(kOpRoleAttr), int32_t{kRoleForward}}};
    result.ops.push_back(std::move(cast));
    result.made.push_back(integers);
  }
  OpDesc op;
  op.type = "dequantize_linear";
  op.SetInput("Scale", {ScaleName(name)});
  op.SetInput("X", {integers});
  op.SetInput("ZeroPoint", {zero});
  op.SetOutput("Y", {back});
  op.attrs = {{"quant_axis", int32_t{axis}},
              {"bit_length", int32_t{bits}},
              {"round_type", int32_t{0}},
              {"is_test", true},
              {"only_observer", false},
              {std::string(kOpRoleAttr), int32_t{kRoleForward}}};
  result.ops.push_back(std::move(op));
  result.made.push_back(back);
  return result;
}

}  // namespace pd
