// SPDX-License-Identifier: Apache-2.0
// Out = Beta * Input + Alpha * X Y, X [m, k], Y [k, n]; Input broadcasts to
// [m, n].
//   Input@GRAD = Beta * Out@GRAD, summed where it was broadcast
//   X@GRAD = Alpha * Out@GRAD Y^T,  Y@GRAD = Alpha * X^T Out@GRAD
#include <algorithm>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct AddmmForm {
  int64_t m = 0, n = 0, k = 0;
  Broadcast input;  // Input and [m, n]

  Shape Out() const { return {m, n}; }
};

absl::StatusOr<AddmmForm> AddmmFormOf(const Shape& input, const Shape& x,
                                      const Shape& y) {
  if (x.size() != 2 || y.size() != 2 ||
      (x[1] != y[0] && x[1] >= 0 && y[0] >= 0))
    return InvalidArgument(
        "'X' has shape %s, 'Y' has shape %s; expected [m, k] and [k, n]",
        ToString(x), ToString(y));
  AddmmForm f;
  f.m = x[0];
  f.n = y[1];
  f.k = x[1];
  PD_ASSIGN_OR_RETURN(f.input, BroadcastShapes(input, f.Out(), -1));
  if (f.input.out.size() != 2 ||
      (!IsDynamic(f.input.out) && !IsDynamic(f.Out()) &&
       f.input.out != f.Out()))
    return InvalidArgument(
        "'Input' has shape %s; expected one that broadcasts "
        "to %s",
        ToString(input), ToString(f.Out()));
  return f;
}

absl::StatusOr<AddmmForm> AddmmFormOf(const BindContext& context) {
  const Tensor* x = context.Input("X");
  const Tensor* y = context.Input("Y");
  const Tensor* input = context.Input("Input");
  PD_RETURN_IF_ERROR(ExpectInput(context, "Y", x->dtype(), y->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(context, "Input", x->dtype(), input->shape()));
  return AddmmFormOf(input->shape(), x->shape(), y->shape());
}

absl::StatusOr<Step> BindAddmm(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  const float alpha = context->Attr<float>("Alpha");
  const float beta = context->Attr<float>("Beta");
  PD_ASSIGN_OR_RETURN(const AddmmForm f, AddmmFormOf(*context));
  const auto loop = BroadcastLoop(f.input);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Gemm<T>({f.m, f.n, f.k, false, false}, {{{0, 0}}}, static_cast<T>(alpha),
              x->data<T>(), y->data<T>(), out->data<T>());
      const auto s = loop.row_strides();
      loop.ForParts(0, loop.size(), [&](const auto& at, int64_t count) {
        for (int64_t j = 0; j < count; ++j)
          out->data<T>()[at[2] + j * s[2]] +=
              static_cast<T>(beta) * input->data<T>()[at[0] + j * s[0]];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindAddmmGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dinput = context->Output("Input@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  context->NoBuffer(context->Input("Input"));
  const float alpha = context->Attr<float>("Alpha");
  const float beta = context->Attr<float>("Beta");
  PD_ASSIGN_OR_RETURN(const AddmmForm f, AddmmFormOf(*context));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), f.Out()));
  const auto loop = BroadcastLoop(f.input);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* g = dout->data<T>();
      const GemmBatch one = {{{0, 0}}};
      if (dx != nullptr)
        Gemm<T>({f.m, f.k, f.n, false, true}, one, static_cast<T>(alpha), g,
                y->data<T>(), dx->data<T>());
      if (dy != nullptr)
        Gemm<T>({f.k, f.n, f.m, true, false}, one, static_cast<T>(alpha),
                x->data<T>(), g, dy->data<T>());
      if (dinput == nullptr) return absl::OkStatus();
      T* sum = dinput->data<T>();
      std::fill_n(sum, dinput->size(), T(0));
      const auto s = loop.row_strides();
      loop.ForParts(0, loop.size(), [&](const auto& at, int64_t count) {
        for (int64_t j = 0; j < count; ++j)
          sum[at[0] + j * s[0]] += static_cast<T>(beta) * g[at[2] + j * s[2]];
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferAddmm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const AddmmForm f,
                      AddmmFormOf(context->Input("Input").shape, x.shape,
                                  context->Input("Y").shape));
  context->SetOutput("Out", f.Out(), x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterAddmm(OpRegistry* registry) {
  OpDef op("addmm"), grad("addmm_grad");
  for (OpDef* def : {&op, &grad}) {
    def->Input("Input").Input("X").Input("Y");
    def->Attr("Alpha", 1.0f).Attr("Beta", 1.0f);
  }
  op.Output("Out").Infer(InferAddmm).Reference(BindAddmm);
  op.Grad(GradSpec{
      "addmm_grad", {"Input", "X", "Y"}, {}, {"Out"}, {"Input", "X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  grad.Input("Out@GRAD").OptionalOutput("Input@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindAddmmGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
