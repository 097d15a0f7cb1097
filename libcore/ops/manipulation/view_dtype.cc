// SPDX-License-Identifier: Apache-2.0
// view_dtype: the bytes of `input` as elements of another dtype. The last
// extent shrinks where elements are wider and grows where they are narrower.
// The input's gradient is the bytes of the result's.
#include <cstdint>
#include <cstring>
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Shape> ViewedShape(Shape shape, DType from, DType to) {
  const auto narrow = static_cast<int64_t>(SizeOf(from));
  const auto wide = static_cast<int64_t>(SizeOf(to));
  if (narrow == wide) return shape;
  if (shape.empty() || (shape.back() > 0 && shape.back() * narrow % wide != 0))
    return InvalidArgument(
        "'input' of %s has shape %s; expected a last extent of whole %s",
        Name(from), ToString(shape), Name(to));
  if (shape.back() >= 0 &&
      __builtin_mul_overflow(shape.back(), narrow, &shape.back()))
    return InvalidArgument("'input' has too many elements");
  if (shape.back() >= 0) shape.back() /= wide;
  return shape;
}

absl::Status InferViewDtype(InferContext* context) {
  const TensorMeta& in = context->Input("input");
  const int32_t code = context->Attr<int32_t>("dtype");
  const auto to = DTypeFromCode(code);
  if (!to.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  PD_ASSIGN_OR_RETURN(Shape shape, ViewedShape(in.shape, in.dtype, *to));
  context->SetOutput("out", std::move(shape), *to);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBytes(BindContext* context, const char* from,
                               const char* to) {
  Tensor* in = context->Input(from);
  Tensor* out = context->Output(to);
  if (in->bytes() != out->bytes())
    return InvalidArgument("'%s' has %d bytes; expected %d", from, in->bytes(),
                           out->bytes());
  return Step([in, out](const RunContext&) {
    if (out->bytes() > 0) std::memmove(out->raw(), in->raw(), out->bytes());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindViewDtype(BindContext* context) {
  return BindBytes(context, "input", "out");
}
absl::StatusOr<Step> BindViewDtypeGrad(BindContext* context) {
  context->NoBuffer(context->Input("input"));
  return BindBytes(context, "out@GRAD", "input@GRAD");
}

}  // namespace

absl::Status RegisterViewDtype(OpRegistry* registry) {
  OpDef op("view_dtype"), grad("view_dtype_grad");
  op.Input("input").Output("out").RequiredAttr("dtype", AttrType::kInt);
  op.With(Trait::kConvertsDtype).Infer(InferViewDtype);
  op.Reference(BindViewDtype);
  op.Grad(GradSpec{"view_dtype_grad", {"input"}, {}, {"out"}, {"input"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("input").Input("out@GRAD").Output("input@GRAD");
  grad.RequiredAttr("dtype", AttrType::kInt).With(Trait::kConvertsDtype);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindViewDtypeGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
