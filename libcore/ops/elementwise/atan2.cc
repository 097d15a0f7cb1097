// SPDX-License-Identifier: Apache-2.0
// Pairs of numbers, with broadcasting:
//   atan2: Out = the angle of the point (X2, X1), in float64 for integers;
//     X1@GRAD = Out@GRAD X2 / (X1^2 + X2^2), X2@GRAD = -Out@GRAD X1 / (same)
//   nextafter: the number after x towards y; no gradient
//   minus: Out = X - Y; its gradients are scale ops by 1 and -1
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/elementwise/broadcast_sum.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Atan2 {
  static constexpr const char *kX = "X1", *kY = "X2", *kOut = "Out";
  template <typename T, typename R>
  static R F(T x, T y) {
    return std::atan2(static_cast<R>(x), static_cast<R>(y));
  }
};
struct NextAfter {
  static constexpr const char *kX = "x", *kY = "y", *kOut = "out";
  template <typename T, typename R>
  static R F(T x, T y) {
    return std::nextafter(static_cast<R>(x), static_cast<R>(y));
  }
};
struct Minus {
  static constexpr const char *kX = "X", *kY = "Y", *kOut = "Out";
  template <typename T, typename R>
  static R F(T x, T y) {
    return x - y;
  }
};

template <typename Op>
absl::Status InferPair(InferContext* context) {
  const TensorMeta& x = context->Input(Op::kX);
  const TensorMeta& y = context->Input(Op::kY);
  if (x.dtype != y.dtype)
    return InvalidArgument("%s is %s, %s is %s; expected one dtype", Op::kX,
                           Name(x.dtype), Op::kY, Name(y.dtype));
  if (std::is_same_v<Op, NextAfter> && x.dtype != DType::kFloat32 &&
      x.dtype != DType::kFloat64)
    return InvalidArgument("x is %s; expected float32 or float64",
                           Name(x.dtype));
  PD_ASSIGN_OR_RETURN(Broadcast b, BroadcastShapes(x.shape, y.shape, -1));
  TensorMeta out = x.shape.size() >= y.shape.size() ? x : y;
  out.value = nullptr;
  out.shape = std::move(b.out);
  if (std::is_same_v<Op, Atan2> && IsInteger(x.dtype))
    out.dtype = DType::kFloat64;
  context->SetOutput(Op::kOut, std::move(out));
  return absl::OkStatus();
}

template <typename Op>
absl::StatusOr<Step> BindPair(BindContext* context) {
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input(Op::kX));
  Tensor* y = upcaster.In(context->Input(Op::kY));
  Tensor* out = upcaster.Out(context->Output(Op::kOut));
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(x->shape(), y->shape(), -1));
  return upcaster.Wrap(DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        using R = std::conditional_t<
            std::is_integral_v<T> && std::is_same_v<Op, Atan2>, double, T>;
        return Step([x, y, out, loop = BroadcastLoop(b)](const RunContext&) {
          const auto stride = loop.row_strides();
          ParallelFor(
              loop.size(), kElementGrain, [&](int64_t begin, int64_t end) {
                loop.ForParts(begin, end, [&](const auto& at, int64_t n) {
                  const T* p = x->data<T>() + at[0];
                  const T* q = y->data<T>() + at[1];
                  R* to = out->data<R>() + at[2];
                  for (int64_t j = 0; j < n; ++j)
                    to[j] = static_cast<R>(Op::template F<T, R>(
                        p[j * stride[0]], q[j * stride[1]]));
                });
              });
          return absl::OkStatus();
        });
      }));
}

// One operand's gradient in the shape of Out: dOut * (of the other operand) /
// (X1^2 + X2^2).
template <typename T>
void Atan2Part(const StridedLoop<3>& loop, const Tensor& x, const Tensor& y,
               const Tensor& dout, bool of_x, T* to) {
  const auto stride = loop.row_strides();
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      const T p = x.data<T>()[at[0] + j * stride[0]];
      const T q = y.data<T>()[at[1] + j * stride[1]];
      to[at[2] + j] =
          dout.data<T>()[at[2] + j] * (of_x ? q : -p) / (p * p + q * q);
    }
  });
}

absl::StatusOr<Step> BindAtan2Grad(BindContext* context) {
  Tensor* x = context->Input("X1");
  Tensor* y = context->Input("X2");
  Tensor* dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(x->shape(), y->shape(), -1));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "X2", x->dtype(), y->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), b.out));
  const StridedLoop<3> loop = BroadcastLoop(b);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    std::vector<Step> steps;
    for (bool of_x : {true, false}) {
      Tensor* to = context->Output(of_x ? "X1@GRAD" : "X2@GRAD");
      if (to == nullptr) continue;
      const Shape& part = of_x ? b.x : b.y;
      const auto compute = [&](Tensor* whole) -> Step {
        return [=](const RunContext&) {
          Atan2Part<T>(loop, *x, *y, *dout, of_x, whole->data<T>());
          return absl::OkStatus();
        };
      };
      PD_ASSIGN_OR_RETURN(Step step,
                          SummedStep(context, b.out, part, to, compute));
      steps.push_back(std::move(step));
    }
    return InOrder(std::move(steps));
  });
}

absl::StatusOr<std::vector<OpDesc>> MinusGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  for (const auto& [slot, factor] :
       {std::pair<const char*, float>{"X", 1.0f},
        std::pair<const char*, float>{"Y", -1.0f}}) {
    const std::string& operand = request.op.In(slot);
    if (!request.needs_grad(operand)) continue;
    OpDesc op;
    op.type = "scale";
    op.SetInput("X", {GradName(request.op.Out("Out"))});
    op.SetOutput("Out", {GradName(operand)});
    op.attrs["scale"] = factor;
    op.attrs["bias"] = 0.0f;
    op.attrs["bias_after_scale"] = true;
    ops.push_back(std::move(op));
  }
  return ops;
}

// The gradient is not summed back, so the operands have one shape.
absl::Status InferMinus(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  const Shape& y = context->Input("Y").shape;
  if (!IsDynamic(x) && !IsDynamic(y) && x != y)
    return InvalidArgument("X has shape %s, Y %s; expected one shape",
                           ToString(x), ToString(y));
  return InferPair<Minus>(context);
}

}  // namespace

absl::Status RegisterAtan2(OpRegistry* registry) {
  OpDef atan2("atan2");
  atan2.Input("X1").Input("X2").Output("Out");
  atan2.Infer(InferPair<Atan2>).Reference(BindPair<Atan2>);
  atan2.Grad(GradSpec{"atan2_grad", {"X1", "X2"}, {}, {"Out"}, {"X1", "X2"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(atan2)));

  OpDef grad("atan2_grad");
  grad.Input("X1").Input("X2").Input("Out@GRAD");
  grad.OptionalOutput("X1@GRAD").OptionalOutput("X2@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindAtan2Grad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef next("nextafter");
  next.Input("x").Input("y").Output("out");
  next.Infer(InferPair<NextAfter>).NoGrad().Reference(BindPair<NextAfter>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(next)));

  OpDef minus("minus");
  minus.Input("X").Input("Y").Output("Out");
  minus.Infer(InferMinus).Reference(BindPair<Minus>);
  minus.Grad(GradMaker(MinusGrad));
  return registry->Add(std::move(minus));
}

}  // namespace pd
