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
#ifndef PD_LIBCORE_OPS_UNARY_H_
#define PD_LIBCORE_OPS_UNARY_H_

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {

/// What D is a function of.
enum class GradReads { kNothing, kX, kOut };

/// The element types of a function; all take float32 and float64.
enum class UnaryTypes { kReal, kWithIntegers, kWithComplex };

// The base of a function says what D reads. A function with attributes has a
// constructor from its OpDesc.
struct OfX {
  static constexpr GradReads kReads = GradReads::kX;
  OfX(const OpDesc&) {}  // NOLINT: an aggregate's base
};
struct OfOut {
  static constexpr GradReads kReads = GradReads::kOut;
  OfOut(const OpDesc&) {}  // NOLINT
};
/// A step function: its derivative is 0 almost everywhere.
struct OfNothing {
  static constexpr GradReads kReads = GradReads::kNothing;
  OfNothing(const OpDesc&) {}  // NOLINT
};

namespace unary_internal {

inline constexpr int64_t kGrain = 4096;  // elements per thread at least

template <UnaryTypes kTypes, typename Body>
auto Dispatch(DType dtype, const Body& body) {
  if constexpr (kTypes == UnaryTypes::kWithIntegers)
    return DispatchTypes<float, double, int32_t, int64_t>(dtype, body);
  else if constexpr (kTypes == UnaryTypes::kWithComplex)
    return DispatchTypes<float, double, std::complex<float>,
                         std::complex<double>>(dtype, body);
  else
    return DispatchFloat(dtype, body);
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> Bind(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return Dispatch<kTypes>(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
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
  });
}

template <typename T>
T Conj(T v) {
  if constexpr (std::is_arithmetic_v<T>)
    return v;
  else
    return std::conj(v);
}

template <template <typename> class Function, UnaryTypes kTypes>
absl::StatusOr<Step> BindGrad(BindContext* context) {
  constexpr GradReads kReads = Function<float>::kReads;
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* from = dout;
  if (kReads != GradReads::kNothing) {
    const bool reads_x = kReads == GradReads::kX;
    from = context->Input(reads_x ? "X" : "Out");
    Tensor* other = context->Input(reads_x ? "Out" : "X");
    if (other != nullptr) context->NoBuffer(other);
  }
  context->MayShare(dout, dx);
  return Dispatch<kTypes>(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([from, dout, dx, n = dout->size(),
                 f = Function<T>{context->op()}](const RunContext&) {
      const T* v = from->data<T>();
      const T* d = dout->data<T>();
      T* result = dx->data<T>();
      ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          if constexpr (kReads == GradReads::kNothing)
            result[i] = T(0);
          else
            result[i] = static_cast<T>(d[i] * Conj(f.D(v[i])));
        }
      });
      return absl::OkStatus();
    });
  });
}

inline absl::Status InferGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace unary_internal

/// Registers the op and its gradient op.
template <template <typename> class Function,
          UnaryTypes kTypes = UnaryTypes::kReal>
absl::Status AddUnary(
    OpRegistry* registry, const std::string& type,
    const std::vector<std::pair<std::string, float>>& attrs = {},
    bool both_slots = false) {
  constexpr GradReads kReads = Function<float>::kReads;
  OpDef op(type);
  op.Input("X").Output("Out").Infer(InferUnary);
  op.Reference(unary_internal::Bind<Function, kTypes>);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (kReads == GradReads::kX || both_slots) spec.inputs = {"X"};
  if (kReads == GradReads::kOut || both_slots) spec.outputs = {"Out"};
  op.Grad(std::move(spec));

  OpDef grad(type + "_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  // The slot that is not read may be there: versions differ in it.
  kReads == GradReads::kX ? grad.Input("X") : grad.OptionalInput("X");
  kReads == GradReads::kOut ? grad.Input("Out") : grad.OptionalInput("Out");
  grad.Infer(unary_internal::InferGrad).NoGrad();
  grad.Reference(unary_internal::BindGrad<Function, kTypes>);
  for (const auto& [name, value] : attrs) {
    op.Attr(name, value);
    grad.Attr(name, value);
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(grad));
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_UNARY_H_
