// SPDX-License-Identifier: Apache-2.0
// Out = X op Y, element by element, with PaddlePaddle's broadcasting
// (broadcast.h): op is add, sub, mul, div, max, min, pow, mod, floordiv, fmax,
// fmin, heaviside.
//
//   op     X@GRAD = dOut *          Y@GRAD = dOut *
//   add    1                        1
//   sub    1                        -1
//   mul    conj(Y)                  conj(X)
//   div    1 / conj(Y)              -conj(Out / Y)
//   max    X > Y                    X <= Y
//   min    X < Y                    X >= Y
//   fmax   X >= Y or Y is NaN       otherwise
//   fmin   X <= Y or Y is NaN       otherwise
//   pow    Y * X^(Y-1)              ln(X) * X^Y
//   heaviside  0                    X == 0
// Where an operand was broadcast, its gradient is summed over what it was
// repeated along. Division of integers truncates, mod and floordiv have the
// sign of the divisor, and a zero divisor is an error. mod and floordiv have
// no gradient.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/element_rows.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/elementwise/broadcast_sum.h"
#include "libcore/ops/elementwise/elementwise_second.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Each op: Forward(x, y), and DX, DY (x, y, out, dout) where it has a gradient.
struct AddFunctor {
  template <typename T>
  static T Forward(T x, T y) {
    return x + y;
  }
  template <typename T>
  static T DX(T, T, T, T d) {
    return d;
  }
  template <typename T>
  static T DY(T, T, T, T d) {
    return d;
  }
};
struct SubFunctor {
  template <typename T>
  static T Forward(T x, T y) {
    return x - y;
  }
  template <typename T>
  static T DX(T, T, T, T d) {
    return d;
  }
  template <typename T>
  static T DY(T, T, T, T d) {
    return -d;
  }
};
struct MulFunctor {
  template <typename T>
  static T Forward(T x, T y) {
    if constexpr (std::is_same_v<T, bool>)
      return x && y;
    else
      return x * y;
  }
  template <typename T>
  static T DX(T, T y, T, T d) {
    return d * Conj(y);
  }
  template <typename T>
  static T DY(T x, T, T, T d) {
    return d * Conj(x);
  }
};
struct DivFunctor {
  template <typename T>
  static T Forward(T x, T y) {
    // The smallest integer over -1 would trap.
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      if (y == T(-1)) return static_cast<T>(std::make_unsigned_t<T>(0) - x);
    return x / y;
  }
  template <typename T>
  static T DX(T, T y, T, T d) {
    return d / Conj(y);
  }
  template <typename T>
  static T DY(T, T y, T out, T d) {
    return -d * Conj(out / y);
  }
};
struct Max {
  template <typename T>
  static T Forward(T x, T y) {
    return x > y ? x : y;
  }
  template <typename T>
  static T DX(T x, T y, T, T d) {
    return x > y ? d : T(0);
  }
  template <typename T>
  static T DY(T x, T y, T, T d) {
    return x <= y ? d : T(0);
  }
};
struct Min {
  template <typename T>
  static T Forward(T x, T y) {
    return x < y ? x : y;
  }
  template <typename T>
  static T DX(T x, T y, T, T d) {
    return x < y ? d : T(0);
  }
  template <typename T>
  static T DY(T x, T y, T, T d) {
    return x >= y ? d : T(0);
  }
};
struct FMax {
  template <typename T>
  static T Forward(T x, T y) {
    return x >= y || IsNotANumber(y) ? x : y;
  }
  template <typename T>
  static T DX(T x, T y, T, T d) {
    return x >= y || IsNotANumber(y) ? d : T(0);
  }
  template <typename T>
  static T DY(T x, T y, T, T d) {
    return x >= y || IsNotANumber(y) ? T(0) : d;
  }
};
struct FMin {
  template <typename T>
  static T Forward(T x, T y) {
    return x <= y || IsNotANumber(y) ? x : y;
  }
  template <typename T>
  static T DX(T x, T y, T, T d) {
    return x <= y || IsNotANumber(y) ? d : T(0);
  }
  template <typename T>
  static T DY(T x, T y, T, T d) {
    return x <= y || IsNotANumber(y) ? T(0) : d;
  }
};
struct Pow {
  template <typename T>
  static T Forward(T x, T y) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(std::llrint(
          std::pow(static_cast<double>(x), static_cast<double>(y))));
    else
      return std::pow(x, y);
  }
  template <typename T>
  static T DX(T x, T y, T, T d) {
    return d * y * Forward(x, static_cast<T>(y - T(1)));
  }
  template <typename T>
  static T DY(T x, T y, T, T d) {
    return static_cast<T>(d * std::log(x) * std::pow(x, y));
  }
};
struct Heaviside {
  template <typename T>
  static T Forward(T x, T y) {
    return x == T(0) ? y : T(x > T(0));
  }
  template <typename T>
  static T DX(T, T, T, T) {
    return T(0);
  }
  template <typename T>
  static T DY(T x, T, T, T d) {
    return x == T(0) ? d : T(0);
  }
};
struct Mod {
  template <typename T>
  static T Forward(T x, T y) {
    T rest;
    if constexpr (std::is_integral_v<T>)
      rest = y == T(-1) ? T(0) : static_cast<T>(x % y);
    else
      rest = std::fmod(x, y);
    return rest != T(0) && (rest < T(0)) != (y < T(0)) ? T(rest + y) : rest;
  }
};
struct FloorDiv {
  template <typename T>
  static T Forward(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = DivFunctor::Forward(x, y);
      const bool exact = T(quotient * y) == x;
      return !exact && (x < T(0)) != (y < T(0)) ? T(quotient - 1) : quotient;
    } else {
      return std::floor(x / y);
    }
  }
};

// Ops without the attribute (fmax, fmin, heaviside) line up the last axes.
int64_t AxisOf(const OpDesc& op) { return op.AttrOr<int32_t>("axis", -1); }

absl::Status InferBinary(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.dtype != y.dtype)
    return InvalidArgument("X is %s, Y is %s; expected one dtype",
                           Name(x.dtype), Name(y.dtype));
  PD_ASSIGN_OR_RETURN(Broadcast b,
                      BroadcastShapes(x.shape, y.shape, AxisOf(context->op())));
  TensorMeta out = x.shape.size() >= y.shape.size() ? x : y;
  out.value = nullptr;
  out.shape = std::move(b.out);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

template <typename Op>
constexpr bool kDivides =
    std::is_same_v<Op, DivFunctor> || std::is_same_v<Op, Mod> ||
    std::is_same_v<Op, FloorDiv>;
// Ops of the field operations: they take every dtype, and have second
// gradients (elementwise_second.cc).
template <typename Op>
constexpr bool kArithmetic =
    std::is_same_v<Op, AddFunctor> || std::is_same_v<Op, SubFunctor> ||
    std::is_same_v<Op, MulFunctor> || std::is_same_v<Op, DivFunctor>;

// Ops whose result is one of the operands.
template <typename Op>
constexpr bool kPicks = std::is_same_v<Op, Max> || std::is_same_v<Op, Min> ||
                        std::is_same_v<Op, FMax> || std::is_same_v<Op, FMin>;

template <typename Op, typename Body>
auto DispatchElementwiseOperands(DType dtype, const Body& body) {
  if constexpr (std::is_same_v<Op, MulFunctor>)
    return DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t,
                         uint8_t, bool, std::complex<float>,
                         std::complex<double>>(dtype, body);
  else if constexpr (kArithmetic<Op>)
    return DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t,
                         uint8_t, std::complex<float>, std::complex<double>>(
        dtype, body);
  else
    return DispatchTypes<float, double, int32_t, int64_t>(dtype, body);
}

absl::StatusOr<Broadcast> BroadcastOf(BindContext* context) {
  return BroadcastShapes(context->Input("X")->shape(),
                         context->Input("Y")->shape(), AxisOf(context->op()));
}

// Integers are divided by no 0.
absl::Status CheckDivisor(const Tensor& y) {
  if (!IsInteger(y.dtype())) return absl::OkStatus();
  return DispatchTypes<int32_t, int64_t, int16_t, int8_t, uint8_t>(
      y.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* values = y.data<T>();
        const T* zero = std::find(values, values + y.size(), T(0));
        if (zero == values + y.size()) return absl::OkStatus();
        return InvalidArgument("element %d of the divisor Y is 0",
                               zero - values);
      });
}

template <typename Op>
absl::StatusOr<RowFunction> ForwardRow(DType dtype) {
  return DispatchElementwiseOperands<Op>(
      dtype, [](auto tag) -> absl::StatusOr<RowFunction> {
        using T = typename decltype(tag)::type;
        return RowFunction::Of<T, T, T>(
            [](T x, T y) { return Op::Forward(x, y); });
      });
}

absl::StatusOr<Step> BindForward(BindContext* context, MakeRowFn make,
                                 bool divides) {
  for (const char* slot : {"X", "Y"})
    if (context->Input(slot)->shape() == context->Output("Out")->shape())
      context->MayShare(context->Input(slot), context->Output("Out"));
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("X"));
  Tensor* y = upcaster.In(context->Input("Y"));
  Tensor* out = upcaster.Out(context->Output("Out"));
  PD_ASSIGN_OR_RETURN(const Broadcast b, BroadcastOf(context));
  PD_ASSIGN_OR_RETURN(const RowFunction row, make(x->dtype()));
  Step step = BroadcastStep(row, b, x, y, out);
  if (divides && IsInteger(y->dtype()))
    step = [y, step](const RunContext& run) -> absl::Status {
      PD_RETURN_IF_ERROR(CheckDivisor(*y));
      return step(run);
    };
  return upcaster.Wrap(std::move(step));
}

template <typename Op>
absl::StatusOr<Step> BindBinary(BindContext* context) {
  return BindForward(context, ForwardRow<Op>, kDivides<Op>);
}

// The tensors that the gradient of one operand is computed from, and the rows
// of it: (x, y, out, dout).
struct GradOperands {
  Tensor *x, *y, *out, *dout;  // out is dout where the op does not read it
  Broadcast b;
  StridedLoop<3> loop;  // like x; like y; like out

  Step Compute(const RowFunction& row, Tensor* to) const {
    const DType dtype = dout->dtype();
    return LoopStep(
        row, loop,
        {{x, 0, dtype}, {y, 1, dtype}, {out, 2, dtype}, {dout, 2, dtype}},
        {to, 2, dtype});
  }
};

// An operand's gradient: a multiple of dOut by 1 or -1, or of rows.
struct OperandGrad {
  int multiple;  // of dOut; 0: `make` makes rows
  MakeRowFn make;
};

// The step that makes one operand's gradient; null when it is dOut itself.
absl::StatusOr<Step> BindOneGrad(BindContext* context, Upcaster* upcaster,
                                 const GradOperands& g, bool of_x,
                                 const OperandGrad& grad) {
  Tensor* to = context->Output(of_x ? "X@GRAD" : "Y@GRAD");
  if (to == nullptr) return Step();
  const Shape& part = of_x ? g.b.x : g.b.y;
  const bool whole = part == g.b.out;
  if (whole && grad.multiple == 1) {
    context->Alias(context->Input("Out@GRAD"), to);
    return Step();
  }
  to = upcaster->Out(to);
  if (!whole && grad.multiple != 0)
    return BroadcastSumStep(g.b.out, part, g.dout, to, grad.multiple < 0);
  PD_ASSIGN_OR_RETURN(const RowFunction row, grad.make(g.dout->dtype()));
  return SummedStep(context, g.b.out, part, to,
                    [&](Tensor* unsummed) { return g.Compute(row, unsummed); });
}

// Checks the inputs of a gradient op, which a program may get wrong.
absl::Status CheckGradInputs(const BindContext& context) {
  const Tensor* dout = context.Input("Out@GRAD");
  if (dout == nullptr) return InvalidArgument("'Out@GRAD' is missing");
  for (const char* slot : {"X", "Y", "Out"}) {
    const Tensor* t = context.Input(slot);
    if (t != nullptr && t->dtype() != dout->dtype())
      return InvalidArgument("'%s' is %s; Out@GRAD is %s", slot,
                             Name(t->dtype()), Name(dout->dtype()));
  }
  if (context.Input("Out") == nullptr) return absl::OkStatus();
  return ExpectInput(context, "Out", dout->dtype(), dout->shape());
}

// The inputs that the gradient op reads, and how it makes both gradients.
struct GradRule {
  bool reads_operands, reads_out;
  OperandGrad of_x, of_y;
};

absl::StatusOr<Step> BindGradient(BindContext* context, const GradRule& rule) {
  PD_RETURN_IF_ERROR(CheckGradInputs(*context));
  Upcaster upcaster(context);
  GradOperands g;
  g.x = context->Input("X");
  g.y = context->Input("Y");
  g.dout = upcaster.In(context->Input("Out@GRAD"));
  g.out = rule.reads_out ? upcaster.In(context->Input("Out")) : g.dout;
  PD_ASSIGN_OR_RETURN(g.b, BroadcastOf(context));
  if (g.b.out != g.dout->shape())
    return InvalidArgument("Out@GRAD has shape %s; X and Y make %s",
                           ToString(g.dout->shape()), ToString(g.b.out));
  g.loop = BroadcastLoop(g.b);
  if (rule.reads_operands) {
    g.x = upcaster.In(g.x);
    g.y = upcaster.In(g.y);
  } else {  // dOut stands in for them
    context->NoBuffer(g.x);
    context->NoBuffer(g.y);
    g.x = g.y = g.dout;
    g.loop = BroadcastLoop({g.b.out, g.b.out, g.b.out});
  }
  // The last step to read dOut may write over it.
  Tensor* last = context->Output("Y@GRAD");
  if (last == nullptr) last = context->Output("X@GRAD");
  if (last != nullptr && last->shape() == g.b.out)
    context->MayShare(context->Input("Out@GRAD"), last);
  PD_ASSIGN_OR_RETURN(const Step x_step,
                      BindOneGrad(context, &upcaster, g, true, rule.of_x));
  PD_ASSIGN_OR_RETURN(const Step y_step,
                      BindOneGrad(context, &upcaster, g, false, rule.of_y));
  return upcaster.Wrap(InOrder({x_step, y_step}));
}

template <typename Op, bool kOfX>
absl::StatusOr<RowFunction> GradRow(DType dtype) {
  const auto make = [](auto tag) -> absl::StatusOr<RowFunction> {
    using T = typename decltype(tag)::type;
    return RowFunction::Of<T, T, T, T, T>([](T x, T y, T out, T dout) {
      return kOfX ? Op::DX(x, y, out, dout) : Op::DY(x, y, out, dout);
    });
  };
  if constexpr (kArithmetic<Op>)
    return DispatchArithmetic(dtype, make);
  else
    return DispatchElementwiseOperands<Op>(dtype, make);
}

template <typename Op>
absl::StatusOr<Step> BindBinaryGrad(BindContext* context) {
  constexpr bool kAdd = std::is_same_v<Op, AddFunctor>;
  constexpr bool kLinear = kAdd || std::is_same_v<Op, SubFunctor>;
  return BindGradient(context,
                      {!kLinear,
                       std::is_same_v<Op, DivFunctor>,
                       {kLinear ? 1 : 0, GradRow<Op, true>},
                       {kAdd ? 1 : (kLinear ? -1 : 0), GradRow<Op, false>}});
}

template <typename Op>
absl::Status AddOp(OpRegistry* registry, const std::string& type, bool has_axis,
                   bool has_grad) {
  OpDef op(type);
  op.Input("X").Input("Y").Output("Out");
  if (has_axis) op.Attr("axis", int32_t{-1});
  op.Infer(InferBinary).Reference(BindKeepingRows<BindBinary<Op>>);
  op.With(Trait::kShapeArithmetic);
  if (!has_grad) {
    op.NoGrad();
    return registry->Add(std::move(op));
  }
  const bool reads_out = std::is_same_v<Op, DivFunctor>;
  GradSpec spec{type + "_grad", {"X", "Y"}, {}, {"Out"}, {"X", "Y"}};
  if (reads_out) spec.outputs = {"Out"};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  if constexpr (!std::is_same_v<Op, Mod> && !std::is_same_v<Op, FloorDiv>) {
    OpDef grad(type + "_grad");
    grad.Input("X").Input("Y").Input("Out@GRAD");
    if (reads_out) grad.Input("Out");
    grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
    if (has_axis) grad.Attr("axis", int32_t{-1});
    grad.Infer(InferGradLikeInput).Reference(BindBinaryGrad<Op>);
    if (kArithmetic<Op>)
      grad.Grad(ElementwiseSecondMaker());
    else if (kPicks<Op>)
      grad.Grad(PickedSecondMaker());
    else if (std::is_same_v<Op, Pow>)
      grad.Grad(PowSecondMaker());
    else
      grad.NoGrad();
    return registry->Add(std::move(grad));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterElementwise(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(
      AddOp<AddFunctor>(registry, "elementwise_add", true, true));
  PD_RETURN_IF_ERROR(
      AddOp<SubFunctor>(registry, "elementwise_sub", true, true));
  PD_RETURN_IF_ERROR(
      AddOp<MulFunctor>(registry, "elementwise_mul", true, true));
  PD_RETURN_IF_ERROR(
      AddOp<DivFunctor>(registry, "elementwise_div", true, true));
  PD_RETURN_IF_ERROR(AddOp<Max>(registry, "elementwise_max", true, true));
  PD_RETURN_IF_ERROR(AddOp<Min>(registry, "elementwise_min", true, true));
  PD_RETURN_IF_ERROR(AddOp<Pow>(registry, "elementwise_pow", true, true));
  PD_RETURN_IF_ERROR(AddOp<Mod>(registry, "elementwise_mod", true, false));
  PD_RETURN_IF_ERROR(
      AddOp<FloorDiv>(registry, "elementwise_floordiv", true, false));
  PD_RETURN_IF_ERROR(AddOp<FMax>(registry, "elementwise_fmax", false, true));
  PD_RETURN_IF_ERROR(AddOp<FMin>(registry, "elementwise_fmin", false, true));
  return AddOp<Heaviside>(registry, "elementwise_heaviside", false, true);
}

}  // namespace pd
