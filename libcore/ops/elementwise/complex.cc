// SPDX-License-Identifier: Apache-2.0
// Complex numbers and their parts:
//   real, imag: X's parts; X@GRAD = Out@GRAD, or i Out@GRAD
//   conj: the conjugate (real numbers stay); X@GRAD = conj(Out@GRAD)
//   angle: of the point X in the plane, 0 or pi for real numbers;
//     X@GRAD = i X / |X|^2 Out@GRAD, 0 where X is 0 and for real X
//   complex: Out = X + i Y, with broadcasting; X@GRAD, Y@GRAD are the parts
//     of Out@GRAD, summed back
//   as_complex: pairs in the last axis become complex numbers; as_real: the
//     other way. Each is the gradient of the other.
#include <cmath>
#include <complex>
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
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/elementwise/broadcast_sum.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

DType RealDType(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}
absl::StatusOr<DType> ComplexDType(DType dtype) {
  if (dtype == DType::kFloat32) return DType::kComplex64;
  if (dtype == DType::kFloat64) return DType::kComplex128;
  return InvalidArgument("a part is %s; expected float32 or float64",
                         Name(dtype));
}

// Each: Out of X, and X@GRAD of X (a T, or 0 when not read) and Out@GRAD.
struct Real {
  static constexpr bool kReadsX = false;
  template <typename T>
  static RealOf<T> F(T x) {
    return x.real();
  }
  template <typename T>
  static T D(T, RealOf<T> d) {
    return T(d, 0);
  }
};
struct Imag {
  static constexpr bool kReadsX = false;
  template <typename T>
  static RealOf<T> F(T x) {
    return x.imag();
  }
  template <typename T>
  static T D(T, RealOf<T> d) {
    return T(0, d);
  }
};
struct Angle {
  static constexpr bool kReadsX = true;
  template <typename T>
  static RealOf<T> F(T x) {
    if constexpr (kIsComplex<T>)
      return std::arg(x);
    else
      return x < T(0) ? static_cast<T>(M_PI) : T(0);
  }
  template <typename T>
  static T D(T x, RealOf<T> d) {
    if constexpr (kIsComplex<T>) {
      const RealOf<T> square = std::norm(x);
      if (square == 0) return T(0);
      return T(-x.imag() * d / square, x.real() * d / square);
    } else {
      return T(0);
    }
  }
};

template <typename Op, typename Body>
auto DispatchPart(DType dtype, const Body& body) {
  if constexpr (Op::kReadsX)
    return DispatchTypes<float, double, std::complex<float>,
                         std::complex<double>>(dtype, body);
  else
    return DispatchTypes<std::complex<float>, std::complex<double>>(dtype,
                                                                    body);
}

absl::Status InferPart(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.dtype = RealDType(out.dtype);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

template <typename Op>
absl::StatusOr<Step> BindPart(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return DispatchPart<Op>(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out](const RunContext&) {
      for (int64_t i = 0, n = x->size(); i < n; ++i)
        out->data<RealOf<T>>()[i] = Op::F(x->data<T>()[i]);
      return absl::OkStatus();
    });
  });
}

template <typename Op>
absl::Status InferPartGrad(InferContext* context) {
  if (Op::kReadsX) return InferGradLikeInput(context);
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  TensorMeta out = context->Input("Out@GRAD");
  out.value = nullptr;
  PD_ASSIGN_OR_RETURN(out.dtype, ComplexDType(out.dtype));
  context->SetOutput("X@GRAD", std::move(out));
  return absl::OkStatus();
}

template <typename Op>
absl::StatusOr<Step> BindPartGrad(BindContext* context) {
  Tensor* x = Op::kReadsX ? context->Input("X") : nullptr;
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", RealDType(dx->dtype()), dx->size()));
  return DispatchPart<Op>(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, dout, dx](const RunContext&) {
      for (int64_t i = 0, n = dx->size(); i < n; ++i)
        dx->data<T>()[i] = Op::D(x != nullptr ? x->data<T>()[i] : T(0),
                                 dout->data<RealOf<T>>()[i]);
      return absl::OkStatus();
    });
  });
}

template <typename Op>
absl::Status AddPart(OpRegistry* registry, const std::string& type) {
  OpDef op(type);
  op.Input("X").Output("Out").Infer(InferPart).Reference(BindPart<Op>);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (Op::kReadsX) spec.inputs = {"X"};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  OpDef grad(type + "_grad");
  if (Op::kReadsX) grad.Input("X");
  grad.Input("Out@GRAD").Output("X@GRAD").Infer(InferPartGrad<Op>).NoGrad();
  grad.Reference(BindPartGrad<Op>);
  return registry->Add(std::move(grad));
}

absl::StatusOr<Step> BindConj(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (!IsComplex(x->dtype())) {
    context->Alias(x, out);
    return Step();
  }
  context->MayShare(x, out);
  return DispatchTypes<std::complex<float>, std::complex<double>>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x, out](const RunContext&) {
          for (int64_t i = 0, n = x->size(); i < n; ++i)
            out->data<T>()[i] = std::conj(x->data<T>()[i]);
          return absl::OkStatus();
        });
      });
}

absl::Status InferComplex(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.dtype != y.dtype)
    return InvalidArgument("X is %s, Y is %s; expected one dtype",
                           Name(x.dtype), Name(y.dtype));
  PD_ASSIGN_OR_RETURN(Broadcast b, BroadcastShapes(x.shape, y.shape, -1));
  PD_ASSIGN_OR_RETURN(const DType dtype, ComplexDType(x.dtype));
  context->SetOutput("Out", std::move(b.out), dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindComplex(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(x->shape(), y->shape(), -1));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using R = typename decltype(tag)::type;
    return Step([x, y, out, loop = BroadcastLoop(b)](const RunContext&) {
      const auto stride = loop.row_strides();
      loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
        for (int64_t j = 0; j < n; ++j)
          out->data<std::complex<R>>()[at[2] + j] = {
              x->data<R>()[at[0] + j * stride[0]],
              y->data<R>()[at[1] + j * stride[1]]};
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindComplexGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* dout = context->Input("Out@GRAD");
  context->NoBuffer(x);
  context->NoBuffer(y);
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(x->shape(), y->shape(), -1));
  PD_ASSIGN_OR_RETURN(const DType dtype, ComplexDType(x->dtype()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", dtype, b.out));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using R = typename decltype(tag)::type;
    std::vector<Step> steps;
    for (bool real : {true, false}) {
      Tensor* to = context->Output(real ? "X@GRAD" : "Y@GRAD");
      if (to == nullptr) continue;
      const Shape& part = real ? b.x : b.y;
      const auto compute = [&](Tensor* whole) -> Step {
        return [=](const RunContext&) {
          const auto* d = dout->data<std::complex<R>>();
          for (int64_t i = 0, n = dout->size(); i < n; ++i)
            whole->data<R>()[i] = real ? d[i].real() : d[i].imag();
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

absl::Status InferAsComplex(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.shape.empty() || (x.shape.back() != 2 && x.shape.back() != -1))
    return InvalidArgument("X has shape %s; expected a last axis of 2",
                           ToString(x.shape));
  PD_ASSIGN_OR_RETURN(const DType dtype, ComplexDType(x.dtype));
  context->SetOutput("Out", Shape(x.shape.begin(), x.shape.end() - 1), dtype);
  return absl::OkStatus();
}

absl::Status InferAsReal(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (!IsComplex(x.dtype))
    return InvalidArgument("X is %s; expected complex numbers", Name(x.dtype));
  Shape shape = x.shape;
  shape.push_back(2);
  context->SetOutput("Out", std::move(shape), RealDType(x.dtype));
  return absl::OkStatus();
}

// The bytes are the same.
absl::StatusOr<Step> BindSameBytes(BindContext* context) {
  context->Alias(context->Input("X"), context->Output("Out"));
  return Step();
}

// A gradient that is the op `type` applied to Out@GRAD.
GradMaker ByOp(std::string type) {
  return
      [type](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        std::vector<OpDesc> ops;
        if (!request.needs_grad(request.op.In("X"))) return ops;
        OpDesc op;
        op.type = type;
        op.SetInput("X", {GradName(request.op.Out("Out"))});
        op.SetOutput("Out", {GradName(request.op.In("X"))});
        ops.push_back(std::move(op));
        return ops;
      };
}

absl::Status AddByOp(OpRegistry* registry, const std::string& type,
                     const std::string& grad, InferFn infer, BindFn bind) {
  OpDef op(type);
  op.Input("X").Output("Out").Infer(infer).Grad(ByOp(grad)).Reference(bind);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterComplex(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddPart<Real>(registry, "real"));
  PD_RETURN_IF_ERROR(AddPart<Imag>(registry, "imag"));
  PD_RETURN_IF_ERROR(AddPart<Angle>(registry, "angle"));
  PD_RETURN_IF_ERROR(AddByOp(registry, "conj", "conj", InferUnary, BindConj));
  PD_RETURN_IF_ERROR(AddByOp(registry, "as_complex", "as_real", InferAsComplex,
                             BindSameBytes));
  PD_RETURN_IF_ERROR(
      AddByOp(registry, "as_real", "as_complex", InferAsReal, BindSameBytes));

  OpDef op("complex");
  op.Input("X").Input("Y").Output("Out");
  op.Infer(InferComplex).Reference(BindComplex);
  op.Grad(GradSpec{"complex_grad", {"X", "Y"}, {}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  OpDef grad("complex_grad");
  grad.Input("X").Input("Y").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindComplexGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
