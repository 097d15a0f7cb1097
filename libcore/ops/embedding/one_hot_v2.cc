// SPDX-License-Identifier: Apache-2.0
// Out[..., c] = 1 where c = X[...], else 0; c in [0, depth). depth is the
// attribute, or the element of depth_tensor. A class outside is an error
// unless allow_out_of_range: then its row is 0. one_hot, the first version,
// replaces X's last extent, which is 1. No gradient.
#include <cstdint>
#include <cstring>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferOneHot(InferContext* context) {
  Shape shape = context->Input("X").shape;
  int64_t depth = context->Attr<int32_t>("depth");
  if (const auto given = IntsIn(*context, "depth_tensor"))
    depth = given->size() == 1 ? given->front() : -1;
  const auto dtype = DTypeFromCode(context->Attr<int32_t>("dtype"));
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype",
                           context->Attr<int32_t>("dtype"));
  if (context->op().type == "one_hot") {
    if (shape.empty() || (shape.back() != 1 && shape.back() != -1))
      return InvalidArgument("X has shape %s; expected a last extent of 1",
                             ToString(shape));
    shape.pop_back();
  }
  shape.push_back(depth);
  context->SetOutput("Out", std::move(shape), *dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindOneHot(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (Tensor* depth = context->Input("depth_tensor")) context->NoBuffer(depth);
  const bool lenient = context->Attr<bool>("allow_out_of_range");
  return DispatchTypes<int64_t, int32_t>(
      x->dtype(), [&](auto from) -> absl::StatusOr<Step> {
        using I = typename decltype(from)::type;
        return DispatchTypes<float, double, int32_t, int64_t, bool>(
            out->dtype(), [&](auto to) -> absl::StatusOr<Step> {
              using T = typename decltype(to)::type;
              return Step([x, out, lenient, n = x->size(),
                           depth = out->shape().back()](const RunContext&) {
                std::memset(out->raw(), 0, out->bytes());
                for (int64_t i = 0; i < n; ++i) {
                  const int64_t c = x->data<I>()[i];
                  if (c >= 0 && c < depth)
                    out->data<T>()[i * depth + c] = T(1);
                  else if (!lenient)
                    return OutOfRange("class %d is outside [0, %d)", c, depth);
                }
                return absl::OkStatus();
              });
            });
      });
}

absl::Status AddOneHotOp(OpRegistry* registry, const std::string& type) {
  OpDef op(type);
  op.Input("X").OptionalInput("depth_tensor").Output("Out");
  op.Attr("depth", int32_t{-1}).Attr("dtype", int32_t{5});
  op.Attr("allow_out_of_range", false);
  op.Infer(InferOneHot).NoGrad().Reference(BindOneHot);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterOneHotV2(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddOneHotOp(registry, "one_hot_v2"));
  return AddOneHotOp(registry, "one_hot");
}

}  // namespace pd
