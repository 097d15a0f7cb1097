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

/// The step of a second gradient op. A null row function: the op does not make
/// dv. Rows are (v, ddX, dOut or dX) -> dv and (v, ddX) -> ddOut.
absl::StatusOr<Step> BindSecondRows(BindContext* context,
                                    const SecondSlots& slots,
                                    MakeUnaryRowFn make_dv,
                                    MakeUnaryRowFn make_ddout);
/// The op, which follows gradient ops with slots X or Out, Out@GRAD and X@GRAD.
OpDef MakeSecond(const std::string& type, const SecondSlots& slots,
                 const UnaryAttrs& attrs);
GradMaker SecondMaker(std::string type, SecondSlots slots);

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
absl::StatusOr<RowFunction> SecondOfV(DType dtype, const OpDesc& op) {
  return Dispatch<kTypes>(dtype, [&](auto tag) -> absl::StatusOr<RowFunction> {
    using T = typename decltype(tag)::type;
    return RowFunction::Of<T, T, T, T>(
        [f = Function<T>{op}](T v, T ddx, T with) {
          return Conj<T>(ddx * f.D2(v)) * with;
        });
  });
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<RowFunction> SecondOfDOut(DType dtype, const OpDesc& op) {
  return Dispatch<kTypes>(dtype, [&](auto tag) -> absl::StatusOr<RowFunction> {
    using T = typename decltype(tag)::type;
    return RowFunction::Of<T, T, T>(
        [f = Function<T>{op}](T v, T ddx) { return ddx * f.D(v); });
  });
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> BindSecond(BindContext* context) {
  MakeUnaryRowFn make_dv = nullptr;
  if constexpr (HasD2<Function<float>>::value)
    make_dv = SecondOfV<Function, kTypes>;
  return BindSecondRows(context, SlotsOf<Function>(), make_dv,
                        SecondOfDOut<Function, kTypes>);
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
  auto [op, grad] =
      in::MakeUnary(type, in::PartsOf<Function, kTypes>(), attrs, both_slots);
  const in::SecondSlots slots = in::SlotsOf<Function>();
  grad.Grad(in::SecondMaker(second_type, slots));
  OpDef second = in::MakeSecond(second_type, slots, attrs);
  second.Infer(in::InferSecond<Function>);
  SetUnaryThird(type, Function<float>::kReads, slots.with, slots.dout, &second);
  second.Reference(in::BindSecond<Function, kTypes>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  return registry->Add(std::move(second));
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ACTIVATION_UNARY_SECOND_H_
