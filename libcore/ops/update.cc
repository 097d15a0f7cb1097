// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/update.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

namespace pd {

std::string TouchedRowsName(absl::string_view gradient) {
  return absl::StrCat(gradient, "#touched_rows");
}

absl::Status InferUpdate(InferContext* context,
                         std::initializer_list<absl::string_view> slots) {
  for (absl::string_view slot : slots) {
    const std::string out = absl::StrCat(slot, "Out");
    const size_t n = context->OutputCount(out);
    if (n > context->InputCount(slot))
      return InvalidArgument("'%s' holds %d variables; '%s' holds %d", out, n,
                             slot, context->InputCount(slot));
    for (size_t i = 0; i < n; ++i) context->Share(slot, out, i);
  }
  return absl::OkStatus();
}

absl::Status CheckScalar(absl::string_view slot, const Tensor* tensor) {
  if (tensor == nullptr) return InvalidArgument("'%s' is missing", slot);
  if (tensor->size() != 1 || (tensor->dtype() != DType::kFloat32 &&
                              tensor->dtype() != DType::kFloat64))
    return InvalidArgument(
        "'%s' is %s of shape %s; expected one float32 or float64", slot,
        Name(tensor->dtype()), ToString(tensor->shape()));
  return absl::OkStatus();
}

absl::Status CheckAlike(const BindContext& context, absl::string_view a,
                        absl::string_view b, size_t i) {
  const Tensor* x = context.Input(a, i);
  const Tensor* y = context.Input(b, i);
  if (x == nullptr || y == nullptr)
    return InvalidArgument("'%s' %d is missing", x == nullptr ? a : b, i);
  if (x->shape() == y->shape() && x->dtype() == y->dtype())
    return absl::OkStatus();
  return InvalidArgument("'%s' is %s %s; '%s' is %s %s", a, Name(x->dtype()),
                         ToString(x->shape()), b, Name(y->dtype()),
                         ToString(y->shape()));
}

}  // namespace pd
