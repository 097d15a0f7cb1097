// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/optimizer/update.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd {

void CopyUnlessSame(const Tensor* from, Tensor* to) {
  if (from->raw() != to->raw() && from->bytes() > 0)
    std::memcpy(to->raw(), from->raw(), from->bytes());
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
  if (tensor->size() != 1 || !IsFloating(tensor->dtype()))
    return InvalidArgument(
        "'%s' is %s of shape %s; expected one floating-point number", slot,
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

namespace {

absl::Status CheckShape(absl::string_view slot, const Tensor* tensor,
                        const Shape& shape, DType dtype, DType or_dtype) {
  if (tensor == nullptr) return InvalidArgument("'%s' is missing", slot);
  if (tensor->shape() == shape &&
      (tensor->dtype() == dtype || tensor->dtype() == or_dtype))
    return absl::OkStatus();
  return InvalidArgument("'%s' is %s %s; 'Param' is %s %s", slot,
                         Name(tensor->dtype()), ToString(tensor->shape()),
                         Name(or_dtype), ToString(shape));
}

absl::Status CheckGrad(const Tensor* param, const Tensor* grad) {
  if (grad == nullptr) return InvalidArgument("'Grad' is missing");
  Shape expected = param->shape();
  if (IsSelectedRows(grad)) {
    if (expected.empty() || grad->rank() == 0 ||
        (grad->height() != 0 && grad->height() != expected[0]))
      return InvalidArgument(
          "'Grad' is rows of a tensor with %d; 'Param' has shape %s",
          grad->height(), ToString(expected));
    expected[0] = grad->dim(0);
  }
  return CheckShape("Grad", grad, expected, StateType(param->dtype()),
                    param->dtype());
}

}  // namespace

OpDef MergedUpdate(const OpDef& update) {
  OpDef merged(absl::StrCat("merged_", update.type()));
  for (const SlotDef& slot : update.inputs())
    slot.optional ? merged.OptionalInputs(slot.name) : merged.Inputs(slot.name);
  for (const SlotDef& slot : update.outputs())
    slot.optional ? merged.OptionalOutputs(slot.name)
                  : merged.Outputs(slot.name);
  for (const AttrDef& attr : update.attrs())
    attr.default_value.has_value() ? merged.Attr(attr.name, *attr.default_value)
                                   : merged.RequiredAttr(attr.name, attr.type);
  return merged;
}

absl::StatusOr<Step> UpdateAll(std::vector<Step> steps) {
  if (steps.empty()) return InvalidArgument("'Param' is empty");
  return InOrder(std::move(steps));
}

absl::StatusOr<UpdatedParam> ReadUpdatedParam(BindContext* context, size_t i) {
  UpdatedParam p;
  p.param = context->Input("Param", i);
  p.param_out = context->Output("ParamOut", i);
  if (p.param == nullptr || p.param_out == nullptr)
    return InvalidArgument("'Param' or 'ParamOut' %d is missing", i);
  p.grad = context->Input("Grad", i);
  PD_RETURN_IF_ERROR(CheckGrad(p.param, p.grad));
  p.rate = context->Input("LearningRate",
                          context->InputCount("LearningRate") == 1 ? 0 : i);
  PD_RETURN_IF_ERROR(CheckScalar("LearningRate", p.rate));
  context->MayShare(p.param, p.param_out);
  if (!context->op().AttrOr("multi_precision", false) ||
      context->InputCount("MasterParam") <= i)
    return p;
  p.master = context->Input("MasterParam", i);
  p.master_out = context->Output("MasterParamOut", i);
  if (p.master == nullptr) return p;
  if (p.master_out == nullptr)
    return InvalidArgument("'MasterParamOut' %d is missing", i);
  const DType type = StateType(p.param->dtype());
  PD_RETURN_IF_ERROR(
      CheckShape("MasterParam", p.master, p.param->shape(), type, type));
  context->MayShare(p.master, p.master_out);
  return p;
}

absl::StatusOr<UpdatedState> ReadUpdatedState(BindContext* context,
                                              const UpdatedParam& param,
                                              absl::string_view slot,
                                              absl::string_view out_slot,
                                              size_t i) {
  UpdatedState state;
  state.in = context->Input(slot, i);
  state.out = context->Output(out_slot, i);
  const DType type = StateType(param.param->dtype());
  PD_RETURN_IF_ERROR(
      CheckShape(slot, state.in, param.param->shape(), type, type));
  if (state.out == nullptr)
    return InvalidArgument("'%s' %d is missing", out_slot, i);
  context->MayShare(state.in, state.out);
  return state;
}

}  // namespace pd
