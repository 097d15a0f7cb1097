// SPDX-License-Identifier: Apache-2.0
// Out = X + Weight (Y - X), with broadcasting of all three.
// X@GRAD = Out@GRAD (1 - Weight), Y@GRAD = Out@GRAD Weight, summed back.
// Weight gets none, as in PaddlePaddle.
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/elementwise/broadcast_sum.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

Shape Padded(const Shape& shape, size_t rank) {
  Shape padded(rank - std::min(rank, shape.size()), 1);
  padded.insert(padded.end(), shape.begin(), shape.end());
  return padded;
}

// The shapes as they meet.
struct Extents {
  Shape x, y, weight, out;
};

absl::StatusOr<Extents> ExtentsOf(const Shape& x, const Shape& y,
                                  const Shape& weight) {
  PD_ASSIGN_OR_RETURN(const Broadcast both, BroadcastShapes(x, y, -1));
  PD_ASSIGN_OR_RETURN(const Broadcast all,
                      BroadcastShapes(both.out, weight, -1));
  const size_t rank = all.out.size();
  return Extents{Padded(x, rank), Padded(y, rank), Padded(weight, rank),
                 all.out};
}

absl::Status InferForward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  const TensorMeta& weight = context->Input("Weight");
  if (x.dtype != y.dtype || x.dtype != weight.dtype)
    return InvalidArgument("X is %s, Y is %s, Weight is %s; expected one dtype",
                           Name(x.dtype), Name(y.dtype), Name(weight.dtype));
  PD_ASSIGN_OR_RETURN(Extents e, ExtentsOf(x.shape, y.shape, weight.shape));
  context->SetOutput("Out", std::move(e.out), x.dtype);
  return absl::OkStatus();
}

template <typename T, typename X, typename W>
void BlendElements(const T* x, const T* y, const T* weight, X sx, X sy, W sw,
                   int64_t n, T* out) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    const T p = x[j * sx], q = y[j * sy];
    out[j] = p + weight[j * sw] * (q - p);
  }
}

// A row of Out. Usual strides are known to the compiler.
template <typename T>
void BlendRow(const T* x, const T* y, const T* weight,
              const StridedLoop<4>::Offsets& strides, int64_t n, T* out) {
  constexpr std::integral_constant<int64_t, 1> kEach;
  if (strides[0] != 1 || strides[1] != 1 || strides[2] > 1) {
    BlendElements(x, y, weight, strides[0], strides[1], strides[2], n, out);
  } else if (strides[2] == 1) {
    BlendElements(x, y, weight, kEach, kEach, kEach, n, out);
  } else {
    const T one = *weight;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = x[j] + one * (y[j] - x[j]);
  }
}

absl::StatusOr<Step> BindForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* weight = context->Input("Weight");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Extents e,
                      ExtentsOf(x->shape(), y->shape(), weight->shape()));
  const auto sx = BroadcastStrides(e.x, e.out);
  const auto sy = BroadcastStrides(e.y, e.out);
  const auto sw = BroadcastStrides(e.weight, e.out);
  const auto so = RowMajorStrides(e.out);
  StridedLoop<4> loop;
  for (size_t i = 0; i < e.out.size(); ++i)
    loop.Add(e.out[i], {sx[i], sy[i], sw[i], so[i]});
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T *xs = x->data<T>(), *ys = y->data<T>(), *ws = weight->data<T>();
      T* to = out->data<T>();
      ParallelFor(loop.size(), kElementGrain, [&](int64_t begin, int64_t end) {
        loop.ForParts(begin, end, [&](const auto& at, int64_t n) {
          BlendRow(xs + at[0], ys + at[1], ws + at[2], loop.row_strides(), n,
                   to + at[3]);
        });
      });
      return absl::OkStatus();
    });
  });
}

// dOut times the weight, or times 1 minus it, in the shape of Out.
template <typename T>
void Weighted(const StridedLoop<2>& loop, const Tensor& weight,
              const Tensor& dout, bool of_x, T* to) {
  const int64_t stride = loop.row_strides()[0];
  const T *ws = weight.data<T>(), *d = dout.data<T>();
  ParallelFor(loop.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    loop.ForParts(begin, end, [&](const auto& at, int64_t n) {
      const T *w = ws + at[0], *from = d + at[1];
      T* row = to + at[1];
      if (stride == 0) {
        const T factor = of_x ? T(1) - *w : *w;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) row[j] = from[j] * factor;
        return;
      }
      for (int64_t j = 0; j < n; ++j)
        row[j] = from[j] * (of_x ? T(1) - w[j * stride] : w[j * stride]);
    });
  });
}

absl::StatusOr<Step> BindGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* weight = context->Input("Weight");
  Tensor* dout = context->Input("Out@GRAD");
  context->NoBuffer(x);
  context->NoBuffer(y);
  if (Tensor* out = context->Input("Out")) context->NoBuffer(out);
  PD_ASSIGN_OR_RETURN(const Extents e,
                      ExtentsOf(x->shape(), y->shape(), weight->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", weight->dtype(), e.out));
  const auto sw = BroadcastStrides(e.weight, e.out);
  const auto so = RowMajorStrides(e.out);
  StridedLoop<2> loop;
  for (size_t i = 0; i < e.out.size(); ++i) loop.Add(e.out[i], {sw[i], so[i]});
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    std::vector<Step> steps;
    for (bool of_x : {true, false}) {
      Tensor* to = context->Output(of_x ? "X@GRAD" : "Y@GRAD");
      if (to == nullptr) continue;
      const Shape& part = of_x ? e.x : e.y;
      const auto compute = [&](Tensor* whole) -> Step {
        return [=](const RunContext&) {
          Weighted<T>(loop, *weight, *dout, of_x, whole->data<T>());
          return absl::OkStatus();
        };
      };
      PD_ASSIGN_OR_RETURN(Step step,
                          SummedStep(context, e.out, part, to, compute));
      steps.push_back(std::move(step));
    }
    return InOrder(std::move(steps));
  });
}

}  // namespace

absl::Status RegisterLerp(OpRegistry* registry) {
  OpDef op("lerp"), grad("lerp_grad");
  op.Input("X").Input("Y").Input("Weight").Output("Out");
  op.Infer(InferForward).Reference(BindForward);
  op.Grad(GradSpec{
      "lerp_grad", {"X", "Y", "Weight"}, {"Out"}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("X").Input("Y").Input("Weight").OptionalInput("Out");
  grad.Input("Out@GRAD").OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
