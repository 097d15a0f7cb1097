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
// unary_second.h.
#ifndef PD_LIBCORE_OPS_COMMON_UNARY_H_
#define PD_LIBCORE_OPS_COMMON_UNARY_H_

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/registry.h"

namespace pd {

/// The argument of D.
enum class GradReads { kNothing, kX, kOut };

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

inline constexpr int64_t kGrain = 4096;  // elements per thread at least

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

template <UnaryTypes kTypes>
absl::Status Infer(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  if (Promotes(kTypes) &&
      (out.dtype == DType::kInt32 || out.dtype == DType::kInt64))
    out.dtype = DType::kFloat32;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

template <template <typename> class Function>
absl::StatusOr<Step> BindPromoted(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return DispatchTypes<int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x, out,
                     f = Function<float>{context->op()}](const RunContext&) {
          for (int64_t i = 0, n = x->size(); i < n; ++i)
            out->data<float>()[i] = f.F(static_cast<float>(x->data<T>()[i]));
          return absl::OkStatus();
        });
      });
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> Bind(BindContext* context) {
  if constexpr (Promotes(kTypes))
    if (IsInteger(context->Input("X")->dtype()))
      return BindPromoted<Function>(context);
  context->MayShare(context->Input("X"), context->Output("Out"));
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("X"));
  Tensor* out = upcaster.Out(context->Output("Out"));
  return upcaster.Wrap(
      Dispatch<kTypes>(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x, out, n = x->size(),
                     f = Function<T>{context->op()}](const RunContext&) {
          const T* in = x->data<T>();
          T* result = out->data<T>();
          ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) result[i] = f.F(in[i]);
          });
          return absl::OkStatus();
        });
      }));
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> BindGrad(BindContext* context) {
  constexpr GradReads kReads = Function<float>::kReads;
  constexpr bool kReadsNothing = kReads == GradReads::kNothing;
  Upcaster upcaster(context);
  Tensor* dout = upcaster.In(context->Input("Out@GRAD"));
  if (context->Output("X@GRAD") == nullptr)
    return InvalidArgument("'X@GRAD' is missing");
  context->MayShare(context->Input("Out@GRAD"), context->Output("X@GRAD"));
  Tensor* dx = upcaster.Out(context->Output("X@GRAD"));
  const char* reads = kReads == GradReads::kX ? "X" : "Out";
  Tensor* from = dout;
  if (!kReadsNothing) {
    PD_RETURN_IF_ERROR(ExpectElements(
        *context, reads, context->Input("Out@GRAD")->dtype(), dout->size()));
    from = upcaster.In(context->Input(reads));
    Tensor* other = context->Input(kReads == GradReads::kX ? "Out" : "X");
    if (other != nullptr) context->NoBuffer(other);
  }
  return upcaster.Wrap(
      Dispatch<kTypes>(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([from, dout, dx, n = dout->size(),
                     f = Function<T>{context->op()}](const RunContext&) {
          const T* v = from->data<T>();
          const T* d = dout->data<T>();
          T* result = dx->data<T>();
          ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) {
              if constexpr (kReadsNothing)
                result[i] = T(0);
              else
                result[i] = static_cast<T>(d[i] * Conj(f.D(v[i])));
            }
          });
          return absl::OkStatus();
        });
      }));
}

inline absl::Status InferGrad(InferContext* context) {
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

/// The op and its gradient op, which has no gradient of its own yet.
template <template <typename> class Function, UnaryTypes kTypes>
std::pair<OpDef, OpDef> MakeUnary(const std::string& type,
                                  const UnaryAttrs& attrs, bool both_slots) {
  constexpr GradReads kReads = Function<float>::kReads;
  OpDef op(type);
  op.Input("X").Output("Out").Infer(Infer<kTypes>);
  op.Reference(Bind<Function, kTypes>).With(Trait::kShapeArithmetic);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (kReads == GradReads::kX || both_slots) spec.inputs = {"X"};
  if (kReads == GradReads::kOut || both_slots) spec.outputs = {"Out"};
  op.Grad(std::move(spec));

  OpDef grad(type + "_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  // The slot that is not read may be there: versions differ in it.
  kReads == GradReads::kX ? grad.Input("X") : grad.OptionalInput("X");
  kReads == GradReads::kOut ? grad.Input("Out") : grad.OptionalInput("Out");
  grad.Infer(InferGrad);
  grad.Reference(BindGrad<Function, kTypes>);
  for (const auto& [name, value] : attrs) {
    op.Attr(name, value);
    grad.Attr(name, value);
  }
  return {std::move(op), std::move(grad)};
}

}  // namespace unary_internal

/// Registers the op and its gradient op.
template <template <typename> class Function,
          UnaryTypes kTypes = UnaryTypes::kReal>
absl::Status AddUnary(OpRegistry* registry, const std::string& type,
                      const UnaryAttrs& attrs = {}, bool both_slots = false) {
  auto [op, grad] =
      unary_internal::MakeUnary<Function, kTypes>(type, attrs, both_slots);
  grad.NoGrad();
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(grad));
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_UNARY_H_
