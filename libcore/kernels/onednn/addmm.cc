// SPDX-License-Identifier: Apache-2.0
// addmm and its gradient by oneDNN's product. Formulas:
// libcore/ops/linalg/addmm.cc.
#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace onednn {
namespace {

absl::StatusOr<Tensor*> RowMajorIn(BindContext* context, const char* slot) {
  return context->In(context->Input(slot), nullptr);
}
// Null where nobody wants the output.
absl::StatusOr<Tensor*> RowMajorOut(BindContext* context, const char* slot) {
  Tensor* to = context->Output(slot);
  if (to == nullptr) return to;
  return context->Out(to, nullptr);
}

struct SummedProduct {
  int64_t m, n, k;
  float alpha, beta;
  StridedLoop<3> loop;  // Input; [m, n]; [m, n]
};

// Operands that the reference takes, or tells what is wrong with, are refused.
absl::StatusOr<SummedProduct> SummedProductOf(const BindContext& context) {
  const Tensor& x = *context.Input("X");
  const Tensor& y = *context.Input("Y");
  const Tensor& input = *context.Input("Input");
  for (const Tensor* t : {&x, &y, &input})
    if (t->dtype() != DType::kFloat32)
      return Unimplemented("it is for float32 only");
  if (x.rank() != 2 || y.rank() != 2 || x.dim(1) != y.dim(0) || x.size() == 0 ||
      y.size() == 0)
    return Unimplemented("X has shape %s, Y %s; it is for matrices that fit",
                         ToString(x.shape()), ToString(y.shape()));
  SummedProduct p{x.dim(0),
                  y.dim(1),
                  x.dim(1),
                  context.Attr<float>("Alpha"),
                  context.Attr<float>("Beta"),
                  {}};
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(input.shape(), {p.m, p.n}, -1));
  if (b.out != Shape{p.m, p.n})
    return Unimplemented("Input has shape %s", ToString(input.shape()));
  p.loop = BroadcastLoop(b);
  return p;
}

}  // namespace

absl::StatusOr<Step> BindAddmm(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const SummedProduct p, SummedProductOf(*context));
  PD_ASSIGN_OR_RETURN(Tensor * input, RowMajorIn(context, "Input"));
  PD_ASSIGN_OR_RETURN(Tensor * x, RowMajorIn(context, "X"));
  PD_ASSIGN_OR_RETURN(Tensor * y, RowMajorIn(context, "Y"));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  return Step([=](const RunContext&) {
    const float* from = input->data<float>();
    float* to = out->data<float>();
    const int64_t stride = p.loop.row_strides()[0];
    ParallelFor(p.loop.size(), kElementGrain, [&](int64_t begin, int64_t end) {
      p.loop.ForParts(begin, end, [&](const auto& at, int64_t count) {
        for (int64_t j = 0; j < count; ++j)
          to[at[2] + j] = p.beta * from[at[0] + j * stride];
      });
    });
    Sgemm({p.m, p.n, p.k, false, false}, p.alpha, x->data<float>(),
          y->data<float>(), 1.0f, to);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindAddmmGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const SummedProduct p, SummedProductOf(*context));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", DType::kFloat32, {p.m, p.n}));
  context->NoBuffer(context->Input("Input"));
  PD_ASSIGN_OR_RETURN(Tensor * x, RowMajorIn(context, "X"));
  PD_ASSIGN_OR_RETURN(Tensor * y, RowMajorIn(context, "Y"));
  PD_ASSIGN_OR_RETURN(Tensor * dout, RowMajorIn(context, "Out@GRAD"));
  PD_ASSIGN_OR_RETURN(Tensor * dinput, RowMajorOut(context, "Input@GRAD"));
  PD_ASSIGN_OR_RETURN(Tensor * dx, RowMajorOut(context, "X@GRAD"));
  PD_ASSIGN_OR_RETURN(Tensor * dy, RowMajorOut(context, "Y@GRAD"));
  return Step([=](const RunContext&) {
    const float* g = dout->data<float>();
    if (dx != nullptr)
      Sgemm({p.m, p.k, p.n, false, true}, p.alpha, g, y->data<float>(), 0.0f,
            dx->data<float>());
    if (dy != nullptr)
      Sgemm({p.k, p.n, p.m, true, false}, p.alpha, x->data<float>(), g, 0.0f,
            dy->data<float>());
    if (dinput == nullptr) return absl::OkStatus();
    float* sum = dinput->data<float>();
    std::fill_n(sum, dinput->size(), 0.0f);
    const int64_t stride = p.loop.row_strides()[0];
    p.loop.ForParts(0, p.loop.size(), [&](const auto& at, int64_t count) {
      for (int64_t j = 0; j < count; ++j)
        sum[at[0] + j * stride] += p.beta * g[at[2] + j];
    });
    return absl::OkStatus();
  });
}

}  // namespace onednn
}  // namespace pd
