// SPDX-License-Identifier: Apache-2.0
// Second gradients of Out = X op Y. DDX, DDY are the cotangents of X@GRAD and
// Y@GRAD (absent: zero), DOut is Out@GRAD, and DX is X@GRAD:
//
//   op   DDOut                X@GRAD           Y@GRAD
//   add  DDX + DDY
//   sub  DDX - DDY
//   mul  DDX Y + X DDY        DOut conj(DDY)   DOut conj(DDX)
//   div  (DDX - Out DDY) / Y                   DX conj((Out DDY - DDX) / Y)
// For div the output DOut is the gradient by Out, -DX conj(DDY).
// As in elementwise.cc what an operand was repeated along is summed. div's op
// gets X@GRAD after such a sum, so X must have the shape of Out there.
#include "libcore/ops/elementwise/elementwise_second.h"
#include "libcore/ops/common/bilinear_grad.h"
#include "libcore/ops/common/op_formula.h"

#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/elementwise/broadcast_sum.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The elements that meet in one element of Out.
template <typename C>
struct PairValues {
  C x, y, out, dout, dx, ddx, ddy;
};

struct AddSecond {
  static constexpr bool kGradX = false, kGradY = false, kGradOut = false;
  template <typename C>
  static C DDOut(const PairValues<C>& v) {
    return v.ddx + v.ddy;
  }
};
struct SubSecond {
  static constexpr bool kGradX = false, kGradY = false, kGradOut = false;
  template <typename C>
  static C DDOut(const PairValues<C>& v) {
    return v.ddx - v.ddy;
  }
};
struct MulSecond {
  static constexpr bool kGradX = true, kGradY = true, kGradOut = false;
  template <typename C>
  static C DDOut(const PairValues<C>& v) {
    return v.ddx * v.y + v.x * v.ddy;
  }
  template <typename C>
  static C GradX(const PairValues<C>& v) {
    return v.dout * Conj(v.ddy);
  }
  template <typename C>
  static C GradY(const PairValues<C>& v) {
    return v.dout * Conj(v.ddx);
  }
};
struct DivSecond {
  static constexpr bool kGradX = false, kGradY = true, kGradOut = true;
  template <typename C>
  static C DDOut(const PairValues<C>& v) {
    return (v.ddx - v.out * v.ddy) / v.y;
  }
  template <typename C>
  static C GradY(const PairValues<C>& v) {
    return v.dx * Conj((v.out * v.ddy - v.ddx) / v.y);
  }
  template <typename C>
  static C GradOut(const PairValues<C>& v) {
    return -(v.dx * Conj(v.ddy));
  }
};

// The op's inputs, null where absent, and how they meet.
struct Operands {
  Tensor *x, *y, *out, *dout, *dx, *ddx, *ddy;
  Broadcast b;
  StridedLoop<3> loop;  // like X; like Y; like Out
};

absl::StatusOr<Operands> ReadOperands(BindContext* context) {
  Operands o{context->Input("X"),
             context->Input("Y"),
             context->Input("Out"),
             context->Input("DOut"),
             context->Input("DX"),
             context->Input("DDX"),
             context->Input("DDY"),
             {},
             {}};
  const Tensor* like_out = o.out != nullptr ? o.out : o.dout;
  if (like_out == nullptr) return InvalidArgument("'Out' or 'DOut' is missing");
  if (o.y == nullptr) return InvalidArgument("'Y' is missing");
  const Tensor* like_x = like_out;
  for (const Tensor* t : {o.x, o.dx, o.ddx})
    if (t != nullptr) like_x = t;
  PD_ASSIGN_OR_RETURN(o.b,
                      BroadcastShapes(like_x->shape(), o.y->shape(),
                                      context->op().Attr<int32_t>("axis")));
  const std::pair<const Tensor*, const Tensor*> same[] = {
      {o.x, like_x}, {o.dx, like_x},     {o.ddx, like_x},
      {o.ddy, o.y},  {o.dout, like_out}, {o.out, like_out}};
  for (const auto& [tensor, like] : same)
    if (tensor != nullptr &&
        (tensor->shape() != like->shape() || tensor->dtype() != o.y->dtype()))
      return InvalidArgument("an input is %s %s; expected %s %s",
                             Name(tensor->dtype()), ToString(tensor->shape()),
                             Name(o.y->dtype()), ToString(like->shape()));
  if (o.b.out != like_out->shape())
    return InvalidArgument("the result has shape %s; X and Y make %s",
                           ToString(like_out->shape()), ToString(o.b.out));
  o.loop = BroadcastLoop(o.b);
  return o;
}

// to[i] = f(the values that meet in element i of Out).
template <typename T, typename F>
void Fill(const Operands& o, T* to, const F& f) {
  using C = Computed<T>;
  const auto stride = o.loop.row_strides();
  const auto at = [](const Tensor* t, int64_t i) {
    return t != nullptr ? C(t->data<T>()[i]) : C(0);
  };
  o.loop.ForParts(0, o.loop.size(), [&](const auto& start, int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t x = start[0] + j * stride[0];
      const int64_t y = start[1] + j * stride[1], out = start[2] + j;
      const PairValues<C> v = {at(o.x, x),      at(o.y, y),  at(o.out, out),
                               at(o.dout, out), at(o.dx, x), at(o.ddx, x),
                               at(o.ddy, y)};
      to[out] = Stored<T>(f(v));
    }
  });
}

// The step for one output whose extents are `part` in Out's rank.
template <typename T, typename F>
absl::StatusOr<Step> OneStep(BindContext* context, const Operands& o,
                             Tensor* to, const Shape& part, const F& f) {
  return SummedStep(context, o.b.out, part, to, [&](Tensor* whole) -> Step {
    return [o, whole, f](const RunContext&) {
      Fill<T>(o, whole->data<T>(), f);
      return absl::OkStatus();
    };
  });
}

template <typename Op, typename T>
absl::StatusOr<std::vector<Step>> MakeSteps(BindContext* context,
                                            const Operands& o) {
  using V = PairValues<Computed<T>>;
  std::vector<Step> steps;
  const auto add = [&](const char* slot, const Shape& part,
                       const auto& f) -> absl::Status {
    Tensor* to = context->Output(slot);
    if (to == nullptr) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(Step step, OneStep<T>(context, o, to, part, f));
    steps.push_back(std::move(step));
    return absl::OkStatus();
  };
  PD_RETURN_IF_ERROR(
      add("DDOut", o.b.out, [](const V& v) { return Op::DDOut(v); }));
  if constexpr (Op::kGradX)
    PD_RETURN_IF_ERROR(
        add("X@GRAD", o.b.x, [](const V& v) { return Op::GradX(v); }));
  if constexpr (Op::kGradY)
    PD_RETURN_IF_ERROR(
        add("Y@GRAD", o.b.y, [](const V& v) { return Op::GradY(v); }));
  if constexpr (Op::kGradOut)
    PD_RETURN_IF_ERROR(
        add("DOut", o.b.out, [](const V& v) { return Op::GradOut(v); }));
  return steps;
}

template <typename Op>
absl::StatusOr<Step> BindSecond(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Operands o, ReadOperands(context));
  if (Op::kGradOut && o.b.x != o.b.out)
    return Unimplemented(
        "X is broadcast from %s to %s: PaddlePaddle's op does not get what the "
        "second gradient needs then",
        ToString(o.b.x), ToString(o.b.out));
  return DispatchTypes<float, double, Float16, BFloat16, std::complex<float>,
                       std::complex<double>>(
      o.y->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        PD_ASSIGN_OR_RETURN(std::vector<Step> steps,
                            (MakeSteps<Op, T>(context, o)));
        return InOrder(std::move(steps));
      });
}

absl::Status InferSecond(InferContext* context) {
  const char* like_out = context->HasInput("Out") ? "Out" : "DOut";
  if (!context->HasInput(like_out))
    return InvalidArgument("'%s' is missing", like_out);
  context->Share(like_out, "DDOut");
  context->Share(like_out, "DOut");
  if (context->HasInput("X")) context->Share("X", "X@GRAD");
  context->Share("Y", "Y@GRAD");
  return absl::OkStatus();
}

// By ops, since PaddlePaddle's op needs DX of Out's shape: with r = DDX / Y and
// s = Out DDY / Y
//   DDOut = r - s, Y@GRAD = sum(-DOut r / Y) + sum(DOut s / Y),
//   Out@GRAD = -DOut DDY / Y
// where the sums are elementwise_div_grad's.
absl::StatusOr<std::vector<OpDesc>> MakeDivSecond(const GradRequest& request) {
  const OpDesc& grad = request.op;
  const int32_t axis = grad.Attr<int32_t>("axis");
  const std::string y = grad.In("Y"), out = grad.In("Out");
  const std::string dout = grad.In("Out@GRAD");
  const std::string ddx = CotangentOf(grad, "X@GRAD");
  const std::string ddy = CotangentOf(grad, "Y@GRAD");
  OpFormula f(grad);
  const auto give_y = [&](const std::string& ratio, const std::string& of) {
    OpDesc op;
    op.type = grad.type;
    op.attrs = grad.attrs;
    op.SetInput("X", {ratio});
    op.SetInput("Y", {y});
    op.SetInput("Out", {ratio});
    op.SetInput("Out@GRAD", {of});
    op.SetOutput("Y@GRAD", {GradName(y)});
    f.Add(std::move(op));
  };
  if (!ddx.empty()) {
    const std::string r = f.Binary("elementwise_div", ddx, y, axis);
    if (request.needs_grad(dout)) f.Give(r, dout);
    if (request.needs_grad(y)) give_y(r, dout);
  }
  if (!ddy.empty()) {
    const auto over = [&](const std::string& x) {
      return f.Binary("elementwise_div",
                      f.Binary("elementwise_mul", x, ddy, axis), y, axis);
    };
    const std::string s = over(out);
    if (request.needs_grad(dout)) f.Give(f.Scale(s, -1), dout);
    if (request.needs_grad(y)) give_y(s, f.Scale(dout, -1));
    if (request.needs_grad(out)) f.Give(f.Scale(over(dout), -1), out);
  }
  return f.Take();
}

absl::StatusOr<std::vector<OpDesc>> MakeSecond(const GradRequest& request) {
  const OpDesc& grad = request.op;
  if (absl::StartsWith(grad.type, "elementwise_div"))
    return MakeDivSecond(request);
  const bool mul = absl::StartsWith(grad.type, "elementwise_mul");
  OpDesc op;
  op.type = grad.type + "_grad";
  op.attrs = grad.attrs;
  op.SetInput("Y", {grad.In("Y")});
  if (mul) op.SetInput("X", {grad.In("X")});
  op.SetInput("DOut", {grad.In("Out@GRAD")});
  for (const char* slot : {"X", "Y"}) {
    const std::string& made = grad.Out(GradName(slot));
    if (made.empty() || made == kEmptyVar) continue;
    op.SetInput(std::string("DD") + slot, {GradName(made)});
  }
  bool needed = false;
  const auto wants = [&](const char* slot, const std::string& variable) {
    if (!request.needs_grad(variable)) return;
    op.SetOutput(slot, {GradName(variable)});
    needed = true;
  };
  wants("DDOut", grad.In("Out@GRAD"));
  if (mul) wants("X@GRAD", grad.In("X"));
  if (mul) wants("Y@GRAD", grad.In("Y"));
  std::vector<OpDesc> ops;
  if (!needed) return ops;
  ops.push_back(std::move(op));
  return ops;
}

// Of DDOut = DDX + DDY or DDX - DDY: the gradient op of the sum, for the shapes
// of its operands.
absl::StatusOr<std::vector<OpDesc>> MakeSumThird(const GradRequest& request) {
  const OpDesc& second = request.op;
  std::vector<OpDesc> ops;
  OpDesc op;
  op.type = second.type.substr(0, second.type.size() - 5);  // without "_grad"
  op.attrs = second.attrs;
  const std::string ddx = Present(second.In("DDX"));
  const std::string ddy = Present(second.In("DDY"));
  op.SetInput("X", {ddx.empty() ? second.In("DOut") : ddx});
  op.SetInput("Y", {ddy.empty() ? second.In("Y") : ddy});
  op.SetInput("Out@GRAD", {CotangentOf(second, "DDOut")});
  bool needed = false;
  for (const auto& [slot, name] :
       {std::make_pair("X@GRAD", ddx), std::make_pair("Y@GRAD", ddy)}) {
    if (name.empty() || !request.needs_grad(name)) continue;
    op.SetOutput(slot, {GradName(name)});
    needed = true;
  }
  if (needed) ops.push_back(std::move(op));
  return ops;
}

template <typename Op>
absl::Status AddSecondOp(OpRegistry* registry, const std::string& type) {
  OpDef op(type + "_grad_grad");
  op.Input("Y").OptionalInput("DDX").OptionalInput("DDY");
  if (type == "elementwise_mul") op.Input("X");
  if (Op::kGradOut)
    op.Input("Out").Input("DX").OptionalOutput("DOut");
  else
    op.Input("DOut");
  if (Op::kGradX) op.OptionalOutput("X@GRAD");
  if (Op::kGradY) op.OptionalOutput("Y@GRAD");
  op.OptionalOutput("DDOut").Attr("axis", int32_t{-1});
  op.Infer(InferSecond).Reference(BindSecond<Op>);
  if (Op::kGradOut)
    op.NoGrad();
  else if (Op::kGradX)
    op.Grad(BilinearThird(type + "_grad",
                          {"DOut", "DDX", "DDY", "DDOut", "X@GRAD", "Y@GRAD"}));
  else
    op.Grad(GradMaker(MakeSumThird));
  return registry->Add(std::move(op));
}

}  // namespace

GradMaker ElementwiseSecondMaker() { return MakeSecond; }

absl::Status RegisterElementwiseSecond(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddSecondOp<AddSecond>(registry, "elementwise_add"));
  PD_RETURN_IF_ERROR(AddSecondOp<SubSecond>(registry, "elementwise_sub"));
  PD_RETURN_IF_ERROR(AddSecondOp<MulSecond>(registry, "elementwise_mul"));
  return AddSecondOp<DivSecond>(registry, "elementwise_div");
}

}  // namespace pd
