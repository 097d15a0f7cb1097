// SPDX-License-Identifier: Apache-2.0
// Y[..., j] = 1 where j < X[...], else 0; j counts to maxlen: the attribute,
// the element of MaxLenTensor, or, when it is negative, the largest number in
// X. No gradient.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The extent of the mask; -1: not known yet.
absl::StatusOr<int64_t> MaxLen(const InferContext& context) {
  int64_t length = context.Attr<int32_t>("maxlen");
  if (context.HasInput("MaxLenTensor")) {
    const Tensor* given = context.Input("MaxLenTensor").value;
    if (given == nullptr) return int64_t{-1};
    PD_RETURN_IF_ERROR(CheckLabelType("MaxLenTensor", given->dtype()));
    if (given->size() != 1)
      return InvalidArgument("MaxLenTensor has %d elements; expected one",
                             given->size());
    length = LabelAt(*given, 0);
  }
  if (length >= 0) return length;
  const Tensor* x = context.Input("X").value;
  if (x == nullptr) return int64_t{-1};
  if (x->size() == 0) return InvalidArgument("X is empty and maxlen not given");
  length = 0;
  for (int64_t i = 0; i < x->size(); ++i)
    length = std::max(length, LabelAt(*x, i));
  return length;
}

absl::Status InferSequenceMask(InferContext* context) {
  TensorMeta y = context->Input("X");
  y.value = nullptr;
  const auto dtype = DTypeFromCode(context->Attr<int32_t>("out_dtype"));
  if (!dtype.has_value())
    return InvalidArgument("attr 'out_dtype' is %d, which is no dtype",
                           context->Attr<int32_t>("out_dtype"));
  PD_RETURN_IF_ERROR(CheckLabelType("X", y.dtype));
  PD_ASSIGN_OR_RETURN(const int64_t length, MaxLen(*context));
  y.shape.push_back(length);
  y.dtype = *dtype;
  context->SetOutput("Y", std::move(y));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSequenceMask(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Output("Y");
  if (Tensor* length = context->Input("MaxLenTensor"))
    context->NoBuffer(length);
  const int64_t width = y->shape().back();
  return DispatchTypes<float, double, int32_t, int64_t, bool, uint8_t, int8_t,
                       int16_t, Float16, BFloat16>(
      y->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          T* to = y->data<T>();
          for (int64_t i = 0; i < x->size(); ++i) {
            const int64_t length = LabelAt(*x, i);
            for (int64_t j = 0; j < width; ++j)
              *to++ = static_cast<T>(j < length ? 1.0f : 0.0f);
          }
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterSequenceMask(OpRegistry* registry) {
  OpDef op("sequence_mask");
  op.Input("X").OptionalInput("MaxLenTensor").Output("Y");
  op.Attr("maxlen", int32_t{-1});
  op.RequiredAttr("out_dtype", AttrType::kInt);
  op.Infer(InferSequenceMask).NoGrad().Reference(BindSequenceMask);
  return registry->Add(std::move(op));
}

}  // namespace pd
