// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_script/value.h"

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

absl::Status NotKnown() {
  return Unimplemented(
      "an integer that hangs on the batch in another way than as a multiple "
      "of it; a shape with a fixed batch settles it");
}

absl::Status TooLarge(ScriptInt a, ScriptInt b) {
  return OutOfRange("integers %d and %d lead beyond 64 bits", a.value, b.value);
}

}  // namespace

absl::StatusOr<ScriptInt> AddInts(ScriptInt a, ScriptInt b) {
  if (a.open != b.open && a.value != 0 && b.value != 0) return NotKnown();
  ScriptInt out;
  if (__builtin_add_overflow(a.value, b.value, &out.value))
    return TooLarge(a, b);
  out.open = (a.open || b.open) && out.value != 0;
  return out;
}

absl::StatusOr<ScriptInt> MultiplyInts(ScriptInt a, ScriptInt b) {
  if (a.open && b.open) return NotKnown();
  ScriptInt out;
  if (__builtin_mul_overflow(a.value, b.value, &out.value))
    return TooLarge(a, b);
  out.open = (a.open || b.open) && out.value != 0;
  return out;
}

absl::StatusOr<ScriptInt> DivideInts(ScriptInt a, ScriptInt b) {
  if (b.value == 0) return InvalidArgument("a division by 0");
  if (b.value == -1) return MultiplyInts(a, b);
  const bool exact = a.value % b.value == 0;
  if ((a.open || b.open) && !exact) return NotKnown();
  if (b.open && !a.open && a.value != 0) return NotKnown();
  ScriptInt out;
  out.value = a.value / b.value;
  if (!exact && (a.value < 0) != (b.value < 0)) --out.value;
  out.open = a.open && !b.open && out.value != 0;
  return out;
}

absl::StatusOr<ScriptInt> ProductOf(const ScriptDims& dims) {
  ScriptInt product{1, false};
  for (const ScriptInt& dim : dims) {
    PD_ASSIGN_OR_RETURN(product, MultiplyInts(product, dim));
  }
  return product;
}

}  // namespace pd
