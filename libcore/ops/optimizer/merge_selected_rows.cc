// SPDX-License-Identifier: Apache-2.0
// merge_selected_rows: Out has each row of X once, with its value: in the order
// of X when no row repeats, else in ascending order.
// get_tensor_from_selected_rows: Out is the rows of X as a dense tensor.
#include <cstring>
#include <memory>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status ExpectRows(const TensorMeta& x) {
  if (x.kind == VarKind::kSelectedRows && !x.shape.empty())
    return absl::OkStatus();
  return InvalidArgument("'X' is a dense tensor; expected selected rows");
}

absl::Status InferMerge(InferContext* context) {
  TensorMeta out = context->Input("X");
  PD_RETURN_IF_ERROR(ExpectRows(out));
  out.value = nullptr;
  out.shape[0] = -1;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMerge(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  auto order = std::make_shared<RowOrder>();
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PD_RETURN_IF_ERROR(CheckRows("X", *x, x->height()));
      order->Sort(x->rows());
      Shape shape = x->shape();
      shape[0] = static_cast<int64_t>(order->size());
      PD_RETURN_IF_ERROR(out->Resize(x->dtype(), shape));
      out->set_kind(VarKind::kSelectedRows);
      out->set_height(x->height());
      out->rows() = order->repeats() ? order->rows() : x->rows();
      if (order->repeats())
        SumRows<T>(*x, *order, out->data<T>());
      else if (x->bytes() > 0)
        std::memcpy(out->raw(), x->raw(), x->bytes());
      return absl::OkStatus();
    });
  });
}

absl::Status InferGetTensor(InferContext* context) {
  TensorMeta out = context->Input("X");
  PD_RETURN_IF_ERROR(ExpectRows(out));
  out.value = nullptr;
  out.kind = VarKind::kLodTensor;
  out.height = 0;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindGetTensor(BindContext* context) {
  context->Alias(context->Input("X"), context->Output("Out"));
  return Step();
}

}  // namespace

absl::Status RegisterMergeSelectedRows(OpRegistry* registry) {
  OpDef merge("merge_selected_rows");
  merge.Input("X").Output("Out").ShapeFromData();
  merge.Infer(InferMerge).NoGrad().Reference(BindMerge);
  PD_RETURN_IF_ERROR(registry->Add(std::move(merge)));

  OpDef get("get_tensor_from_selected_rows");
  get.Input("X").Output("Out");
  get.Infer(InferGetTensor).NoGrad().Reference(BindGetTensor);
  return registry->Add(std::move(get));
}

}  // namespace pd
