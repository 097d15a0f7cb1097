// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/check.h"

#include "libcore/base/error.h"

namespace pd {

absl::Status ExpectInput(const BindContext& context, absl::string_view slot,
                         DType dtype, const Shape& shape) {
  const Tensor* t = context.Input(slot);
  if (t == nullptr) return InvalidArgument("'%s' is missing", slot);
  if (t->dtype() == dtype && t->shape() == shape) return absl::OkStatus();
  return InvalidArgument("'%s' is %s %s; expected %s %s", slot,
                         Name(t->dtype()), ToString(t->shape()), Name(dtype),
                         ToString(shape));
}

absl::Status ExpectOptionalInput(const BindContext& context,
                                 absl::string_view slot, DType dtype,
                                 const Shape& shape) {
  return context.Input(slot) == nullptr
             ? absl::OkStatus()
             : ExpectInput(context, slot, dtype, shape);
}

absl::Status ExpectElements(const BindContext& context, absl::string_view slot,
                            DType dtype, int64_t elements) {
  const Tensor* t = context.Input(slot);
  if (t == nullptr) return InvalidArgument("'%s' is missing", slot);
  if (t->dtype() == dtype && t->size() == elements) return absl::OkStatus();
  return InvalidArgument("'%s' is %s %s; expected %s of %d elements", slot,
                         Name(t->dtype()), ToString(t->shape()), Name(dtype),
                         elements);
}

}  // namespace pd
