// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one variable, Out = F(X), and their gradients,
// X@GRAD = Out@GRAD * conj(D), where D is a function of X or of Out: whichever
// PaddlePaddle's gradient op reads. A function is a template over the element
// type with what F and D need:
//
//   template <typename T>
//   struct Exp : OfOut {
//     T F(T x) const { return std::exp(x); }
//     T D(T out) const { return out; }
//   };
// Halves are computed as float (widen.h). Second gradients are in
// unary_curve.h and, where PaddlePaddle has an op for them, unary_second.h.
#ifndef PD_LIBCORE_OPS_COMMON_UNARY_H_
#define PD_LIBCORE_OPS_COMMON_UNARY_H_

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/element_rows.h"
#include "libcore/ops/common/unary_curve.h"
#include "libcore/ops/registry.h"

namespace pd {

/// The element types of a function; all take floating-point numbers.
enum class UnaryTypes {
  kReal,
  kWithIntegers,
  kWithComplex,
  kPromoting,        ///< of int32 and int64 it gives float32
  kComplexPromoting  ///< the same, and takes complex numbers
};

/// Names in the second gradient op (unary_second.h); a function may hide them.
struct SecondDefaults {
  static constexpr bool kSecondReadsDx = false;
  static constexpr const char* kSecondDOut = "grad_out";
};

// The base of a function says what D reads. A function with attributes has a
// constructor from its OpDesc.
struct OfX : SecondDefaults {
  static constexpr GradReads kReads = GradReads::kX;
  OfX(const OpDesc&) {}  // NOLINT: an aggregate's base
};
struct OfOut : SecondDefaults {
  static constexpr GradReads kReads = GradReads::kOut;
  OfOut(const OpDesc&) {}  // NOLINT
};
/// A step function: its derivative is 0 almost everywhere.
struct OfNothing : SecondDefaults {
  static constexpr GradReads kReads = GradReads::kNothing;
  OfNothing(const OpDesc&) {}  // NOLINT
};

/// Attributes of a family: floats with their defaults.
using UnaryAttrs = std::vector<std::pair<std::string, float>>;

namespace unary_internal {

using pd::Conj;

/// The row function of a dtype, with the attributes of the op.
using MakeUnaryRowFn = absl::StatusOr<RowFunction> (*)(DType, const OpDesc&);

/// The parts of an op and its gradient op that depend on the function.
struct UnaryParts {
  GradReads reads;
  InferFn infer;
  BindFn bind, bind_grad;
};

/// Out = row(X).
absl::StatusOr<Step> BindForward(BindContext* context, MakeUnaryRowFn make);
/// X@GRAD = row(X or Out, Out@GRAD).
absl::StatusOr<Step> BindGradient(BindContext* context, GradReads reads,
                                  MakeUnaryRowFn make);
absl::Status InferPromoting(InferContext* context);
absl::Status InferGrad(InferContext* context);
/// The op and its gradient op, which has no gradient of its own yet.
std::pair<OpDef, OpDef> MakeUnary(const std::string& type,
                                  const UnaryParts& parts,
                                  const UnaryAttrs& attrs, bool both_slots);

template <UnaryTypes kTypes, typename Body>
auto Dispatch(DType dtype, const Body& body) {
  if constexpr (kTypes == UnaryTypes::kWithIntegers)
    return DispatchNumeric(dtype, body);
  else if constexpr (kTypes == UnaryTypes::kWithComplex ||
                     kTypes == UnaryTypes::kComplexPromoting)
    return DispatchTypes<float, double, std::complex<float>,
                         std::complex<double>>(dtype, body);
  else
    return DispatchFloat(dtype, body);
}

constexpr bool Promotes(UnaryTypes types) {
  return types == UnaryTypes::kPromoting ||
         types == UnaryTypes::kComplexPromoting;
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<RowFunction> ForwardRow(DType dtype, const OpDesc& op) {
  if constexpr (Promotes(kTypes))
    if (IsInteger(dtype))
      return DispatchTypes<int32_t, int64_t>(
          dtype, [&](auto tag) -> absl::StatusOr<RowFunction> {
            using T = typename decltype(tag)::type;
            return RowFunction::Of<float, T>([f = Function<float>{op}](T x) {
              return f.F(static_cast<float>(x));
            });
          });
  return Dispatch<kTypes>(dtype, [&](auto tag) -> absl::StatusOr<RowFunction> {
    using T = typename decltype(tag)::type;
    return RowFunction::Of<T, T>([f = Function<T>{op}](T x) { return f.F(x); });
  });
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<RowFunction> GradRow(DType dtype, const OpDesc& op) {
  return Dispatch<kTypes>(dtype, [&](auto tag) -> absl::StatusOr<RowFunction> {
    using T = typename decltype(tag)::type;
    return RowFunction::Of<T, T, T>([f = Function<T>{op}](T v, T d) {
      if constexpr (Function<T>::kReads == GradReads::kNothing)
        return T(0);
      else
        return d * Conj(f.D(v));
    });
  });
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> Bind(BindContext* context) {
  return BindForward(context, ForwardRow<Function, kTypes>);
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> BindGrad(BindContext* context) {
  return BindGradient(context, Function<float>::kReads,
                      GradRow<Function, kTypes>);
}

template <template <typename> class Function, UnaryTypes kTypes>
UnaryParts PartsOf() {
  return {Function<float>::kReads,
          Promotes(kTypes) ? InferPromoting : InferUnary,
          Bind<Function, kTypes>, BindGrad<Function, kTypes>};
}

}  // namespace unary_internal

/// Registers the op and its gradient op.
template <template <typename> class Function,
          UnaryTypes kTypes = UnaryTypes::kReal>
absl::Status AddUnary(OpRegistry* registry, const std::string& type,
                      const UnaryAttrs& attrs = {}, bool both_slots = false) {
  auto [op, grad] = unary_internal::MakeUnary(
      type, unary_internal::PartsOf<Function, kTypes>(), attrs, both_slots);
  SetUnarySecond(type, Function<float>::kReads, &grad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(grad));
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_UNARY_H_
