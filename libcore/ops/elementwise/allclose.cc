// SPDX-License-Identifier: Apache-2.0
// Comparisons that give truth values:
//   isclose: Out[i] = |Input - Other| <= atol + rtol |Other|, or they are
//     equal, or with equal_nan both are NaN; with broadcasting
//   allclose: whether that holds for every element
//   equal_all: whether X and Y have one shape and equal elements
//   is_empty: whether X has no elements
// rtol and atol are strings, so that they keep their double precision, or the
// tensors Rtol, Atol. An infinite Other is close to everything finite, as in
// PaddlePaddle. No gradients.
#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/number_of.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// A tolerance: a number, or the tensor that holds it.
struct Tolerance {
  double number = 0;
  Tensor* tensor = nullptr;
  double Get() const {
    return tensor != nullptr ? NumberOf<double>(*tensor) : number;
  }
};

absl::StatusOr<Tolerance> ReadTolerance(const BindContext& context,
                                        const char* slot, const char* attr) {
  Tolerance t;
  t.tensor = context.Input(slot);
  if (t.tensor != nullptr) {
    PD_RETURN_IF_ERROR(CheckNumber(*t.tensor, slot));
  } else {
    const std::string& text = context.Attr<std::string>(attr);
    if (!absl::SimpleAtod(text, &t.number))
      return InvalidArgument("attr '%s' is '%s'; expected a number", attr,
                             text);
  }
  return t;
}

absl::Status InferClose(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  const TensorMeta& y = context->Input("Other");
  if (x.dtype != y.dtype)
    return InvalidArgument("Input is %s, Other is %s; expected one dtype",
                           Name(x.dtype), Name(y.dtype));
  PD_ASSIGN_OR_RETURN(Broadcast b, BroadcastShapes(x.shape, y.shape, -1));
  const bool all = context->op().type == "allclose";
  context->SetOutput("Out", all ? Shape{} : std::move(b.out), DType::kBool);
  return absl::OkStatus();
}

struct Close {
  double rtol, atol;
  bool equal_nan;

  template <typename T>
  bool operator()(T a, T b) const {
    if (IsNotANumber(a) || IsNotANumber(b))
      return equal_nan && IsNotANumber(a) && IsNotANumber(b);
    if (a == b) return true;
    const auto distance = kIsComplex<T>
                              ? std::abs(a - b)
                              : static_cast<RealOf<T>>(std::abs(a - b));
    return distance <= atol + rtol * std::abs(b);
  }
};

template <bool kAll>
absl::StatusOr<Step> BindClose(BindContext* context) {
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("Input"));
  Tensor* y = upcaster.In(context->Input("Other"));
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Tolerance rtol,
                      ReadTolerance(*context, "Rtol", "rtol"));
  PD_ASSIGN_OR_RETURN(const Tolerance atol,
                      ReadTolerance(*context, "Atol", "atol"));
  const bool equal_nan = context->Attr<bool>("equal_nan");
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(x->shape(), y->shape(), -1));
  const StridedLoop<3> loop = BroadcastLoop(b);
  return upcaster.Wrap(DispatchTypes<float, double, int32_t, int64_t, bool,
                                     std::complex<float>, std::complex<double>>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const Close close{rtol.Get(), atol.Get(), equal_nan};
          const auto stride = loop.row_strides();
          bool all = true;
          bool* result = out->data<bool>();
          loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
            for (int64_t j = 0; j < n; ++j) {
              const T p = x->data<T>()[at[0] + j * stride[0]];
              const T q = y->data<T>()[at[1] + j * stride[1]];
              const bool is = close(p, q);
              all = all && is;
              if (!kAll) result[at[2] + j] = is;
            }
          });
          if (kAll) result[0] = all;
          return absl::OkStatus();
        });
      }));
}

absl::Status InferOneBool(InferContext* context) {
  context->SetOutput("Out", Shape{}, DType::kBool);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindEqualAll(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  if (x->dtype() != y->dtype())
    return InvalidArgument("X is %s, Y is %s; expected one dtype",
                           Name(x->dtype()), Name(y->dtype()));
  const bool one_shape = x->shape() == y->shape();
  return DispatchTypes<float, double, int32_t, int64_t, bool, int16_t, int8_t,
                       uint8_t, Float16, BFloat16>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=, n = x->size()](const RunContext&) {
          const T *p = x->data<T>(), *q = y->data<T>();
          bool equal = one_shape;
          for (int64_t i = 0; equal && i < n; ++i) equal = p[i] == q[i];
          out->data<bool>()[0] = equal;
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindIsEmpty(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  context->NoBuffer(x);
  return Step([x, out](const RunContext&) {
    out->data<bool>()[0] = x->size() == 0;
    return absl::OkStatus();
  });
}

absl::Status AddClose(OpRegistry* registry, const std::string& type,
                      BindFn bind) {
  OpDef op(type);
  op.Input("Input").Input("Other").OptionalInput("Rtol").OptionalInput("Atol");
  op.Output("Out").Attr("rtol", std::string("1e-5"));
  op.Attr("atol", std::string("1e-8")).Attr("equal_nan", false);
  op.Infer(InferClose).NoGrad().Reference(bind);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterAllclose(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddClose(registry, "allclose", BindClose<true>));
  PD_RETURN_IF_ERROR(AddClose(registry, "isclose", BindClose<false>));

  OpDef equal("equal_all");
  equal.Input("X").Input("Y").Output("Out");
  equal.Infer(InferOneBool).NoGrad().Reference(BindEqualAll);
  PD_RETURN_IF_ERROR(registry->Add(std::move(equal)));

  OpDef empty("is_empty");
  empty.Input("X").Output("Out");
  empty.Infer(InferOneBool).NoGrad().Reference(BindIsEmpty);
  return registry->Add(std::move(empty));
}

}  // namespace pd
