// SPDX-License-Identifier: Apache-2.0
// Second gradients of element-wise functions: the gradient of the gradient op
//   dX = dOut * D(v), v being X or Out,
// for the cotangent ddX ("grad_x@GRAD") of dX:
//   ddOut = ddX * D(v)                  "grad_out@GRAD"
//   dv    = ddX * dOut * D'(v)          "X@GRAD" or "Out@GRAD"
// A function gives D' as D2. One that is linear by pieces has none, and its
// second gradient op makes ddOut only. With kSecondReadsDx the op reads dX
// ("grad_x") in the place of dOut, and D2 is D' / D.
// For complex numbers dv = conj(ddX D') dOut.
#ifndef PD_LIBCORE_OPS_ACTIVATION_UNARY_SECOND_H_
#define PD_LIBCORE_OPS_ACTIVATION_UNARY_SECOND_H_

#include <string>
#include <vector>

#include "libcore/ops/common/unary.h"

namespace pd {

namespace unary_internal {

template <typename F, typename = void>
struct HasD2 : std::false_type {};
template <typename F>
struct HasD2<F, std::void_t<decltype(&F::D2)>> : std::true_type {};

// Slots of a second gradient op.
struct SecondSlots {
  std::string v;     // the slot that D reads
  std::string with;  // dOut or dX; empty when neither is read
  std::string dout;  // the slot whose gradient is ddOut
};

template <template <typename> class Function>
SecondSlots SlotsOf() {
  using F = Function<float>;
  SecondSlots slots;
  slots.v = F::kReads == GradReads::kX ? "X" : "Out";
  slots.dout = F::kSecondDOut;
  if (HasD2<F>::value) slots.with = F::kSecondReadsDx ? "grad_x" : slots.dout;
  return slots;
}

template <template <typename> class Function>
absl::Status InferSecond(InferContext* context) {
  const SecondSlots slots = SlotsOf<Function>();
  if (!context->HasInput("grad_x@GRAD"))
    return InvalidArgument("'grad_x@GRAD' is missing");
  context->Share(slots.v, GradName(slots.v));
  context->Share("grad_x@GRAD", GradName(slots.dout));
  return absl::OkStatus();
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> BindSecond(BindContext* context) {
  constexpr bool kBends = HasD2<Function<float>>::value;
  const SecondSlots slots = SlotsOf<Function>();
  const std::string with_slot = kBends ? slots.with : "grad_x@GRAD";
  const Tensor* like = context->Input("grad_x@GRAD");
  for (const std::string& slot : {slots.v, with_slot})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, like->dtype(), like->size()));
  Upcaster upcaster(context);
  Tensor* v = upcaster.In(context->Input(slots.v));
  Tensor* ddx = upcaster.In(context->Input("grad_x@GRAD"));
  Tensor* with = upcaster.In(context->Input(with_slot));
  Tensor* ddout = upcaster.Out(context->Output(GradName(slots.dout)));
  Tensor* dv =
      kBends ? upcaster.Out(context->Output(GradName(slots.v))) : nullptr;
  return upcaster.Wrap(
      Dispatch<kTypes>(ddx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=, n = ddx->size(),
                     f = Function<T>{context->op()}](const RunContext&) {
          const T *at = v->data<T>(), *d = ddx->data<T>();
          if constexpr (kBends)
            for (int64_t i = 0; dv != nullptr && i < n; ++i)
              dv->data<T>()[i] = static_cast<T>(Conj<T>(d[i] * f.D2(at[i])) *
                                                with->data<T>()[i]);
          for (int64_t i = 0; ddout != nullptr && i < n; ++i)
            ddout->data<T>()[i] = static_cast<T>(d[i] * f.D(at[i]));
          return absl::OkStatus();
        });
      }));
}

// The second gradient op of a gradient op with slots X or Out, Out@GRAD and
// X@GRAD.
inline GradMaker SecondMaker(std::string type, SecondSlots slots) {
  return
      [type, slots](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        const OpDesc& grad = request.op;
        const std::string v = grad.In(slots.v), dout = grad.In("Out@GRAD");
        const bool want_v = !slots.with.empty() && request.needs_grad(v);
        const bool want_dout = request.needs_grad(dout);
        std::vector<OpDesc> ops;
        if (!want_v && !want_dout) return ops;
        OpDesc op;
        op.type = type;
        op.attrs = grad.attrs;
        op.SetInput(slots.v, {v});
        if (slots.with == "grad_x")
          op.SetInput("grad_x", {grad.Out("X@GRAD")});
        else if (!slots.with.empty())
          op.SetInput(slots.with, {dout});
        op.SetInput("grad_x@GRAD", {GradName(grad.Out("X@GRAD"))});
        if (want_v) op.SetOutput(GradName(slots.v), {GradName(v)});
        if (want_dout) op.SetOutput(GradName(slots.dout), {GradName(dout)});
        ops.push_back(std::move(op));
        return ops;
      };
}

}  // namespace unary_internal

/// Registers the op, its gradient op, and the gradient op of that, which is
/// called `second_type`.
template <template <typename> class Function,
          UnaryTypes kTypes = UnaryTypes::kReal>
absl::Status AddUnaryTwice(OpRegistry* registry, const std::string& type,
                           const std::string& second_type,
                           const UnaryAttrs& attrs = {},
                           bool both_slots = false) {
  namespace in = unary_internal;
  auto [op, grad] = in::MakeUnary<Function, kTypes>(type, attrs, both_slots);
  const in::SecondSlots slots = in::SlotsOf<Function>();
  grad.Grad(in::SecondMaker(second_type, slots));
  OpDef second(second_type);
  second.Input(slots.v).Input("grad_x@GRAD");
  if (!slots.with.empty()) second.Input(slots.with);
  if (!slots.with.empty()) second.OptionalOutput(GradName(slots.v));
  second.OptionalOutput(GradName(slots.dout));
  second.Infer(in::InferSecond<Function>).NoGrad();
  second.Reference(in::BindSecond<Function, kTypes>);
  for (const auto& [name, value] : attrs) second.Attr(name, value);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  return registry->Add(std::move(second));
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ACTIVATION_UNARY_SECOND_H_
