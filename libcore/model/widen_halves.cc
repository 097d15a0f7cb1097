// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/widen_halves.h"

#include "libcore/base/status_macros.h"
#include "libcore/model/edit_arrays.h"

namespace pd {
namespace {

bool IsHalf(DType dtype) { return IsFloating(dtype) && SizeOf(dtype) == 2; }

// The attributes in which PaddlePaddle's operators keep an element type.
constexpr absl::string_view kTypeAttrs[] = {"dtype", "in_dtype", "out_dtype",
                                            "value_dtype"};

void WidenAttrs(OpDesc* op) {
  for (const absl::string_view name : kTypeAttrs) {
    const auto it = op->attrs.find(std::string(name));
    if (it == op->attrs.end()) continue;
    for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
      if (auto* code = std::get_if<int32_t>(&it->second);
          code != nullptr && *code == static_cast<int32_t>(half))
        *code = static_cast<int32_t>(DType::kFloat32);
    }
  }
}

}  // namespace

absl::Status WidenHalves(ProgramDesc* program, NamedArrays* params) {
  for (BlockDesc& block : program->blocks) {
    for (VarDesc& var : block.vars)
      if (IsHalf(var.dtype)) var.dtype = DType::kFloat32;
    for (OpDesc& op : block.ops) WidenAttrs(&op);
  }
  for (auto& [name, value] : *params) {
    if (!IsHalf(value.dtype)) continue;
    PD_ASSIGN_OR_RETURN(value, InFloatingType(value, DType::kFloat32));
  }
  return absl::OkStatus();
}

}  // namespace pd
