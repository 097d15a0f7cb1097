// SPDX-License-Identifier: Apache-2.0
// fused_elemwise_activation and fused_elemwise_add_activation: functor_list
// names a binary function b (elementwise_add, elementwise_mul) and a unary u
// (scale, relu, tanh, sigmoid, gelu), outer one first:
//   [u, b]: Out = u(I), I = b(X, Y);  [b, u]: Out = b(X, I), I = u(Y)
// IntermediateOut is I. X and Y are broadcast as in elementwise ops. The
// gradient is the chain rule through I; its functor_list has "_grad" at each
// name.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// gelu is the approximation by tanh here.
constexpr double kSqrt2ByPi = 0.79788456, kCubic = 0.044715;

template <typename T>
T GeluTanh(T x) {
  return std::tanh(T(kSqrt2ByPi) * x * (T(1) + T(kCubic) * x * x));
}

enum class Unary { kScale, kRelu, kTanh, kSigmoid, kGelu };

struct Functions {
  bool unary_outside = false;  // [u, b]
  bool multiplies = false;
  Unary unary = Unary::kScale;
  float scale = 0;

  template <typename T>
  T B(T x, T y) const {
    return multiplies ? x * y : x + y;
  }
  template <typename T>
  T U(T x) const {
    switch (unary) {
      case Unary::kScale:
        return x * static_cast<T>(scale);
      case Unary::kRelu:
        return x > T(0) ? x : T(0);
      case Unary::kTanh:
        return std::tanh(x);
      case Unary::kSigmoid:
        return T(1) / (T(1) + std::exp(-x));
      case Unary::kGelu:
        return x * T(0.5) * (T(1) + GeluTanh(x));
    }
    return x;
  }
  // u' at x, where u(x) is out.
  template <typename T>
  T Slope(T x, T out) const {
    switch (unary) {
      case Unary::kScale:
        return static_cast<T>(scale);
      case Unary::kRelu:
        return out > T(0) ? T(1) : T(0);
      case Unary::kTanh:
        return T(1) - out * out;
      case Unary::kSigmoid:
        return out * (T(1) - out);
      case Unary::kGelu: {
        const T t = GeluTanh(x);
        const T inner = T(kSqrt2ByPi) * (T(1) + T(3 * kCubic) * x * x);
        return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner;
      }
    }
    return T(0);
  }
};

absl::StatusOr<Functions> ReadFunctions(const OpDesc& op, bool grad) {
  const auto list = op.Attr<std::vector<std::string>>("functor_list");
  Functions f;
  f.scale = op.Attr<float>("scale");
  const std::string suffix = grad ? "_grad" : "";
  int binaries = 0, unaries = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const char* unary_names[] = {"scale", "relu", "tanh", "sigmoid", "gelu"};
    for (bool multiplies : {false, true}) {
      if (list[i] !=
          (multiplies ? "elementwise_mul" : "elementwise_add") + suffix)
        continue;
      f.multiplies = multiplies;
      f.unary_outside = i == 1;
      ++binaries;
    }
    for (size_t k = 0; k < 5; ++k) {
      if (list[i] != unary_names[k] + suffix) continue;
      f.unary = static_cast<Unary>(k);
      ++unaries;
    }
  }
  if (list.size() != 2 || binaries != 1 || unaries != 1)
    return InvalidArgument(
        "attr 'functor_list' has %d names; expected elementwise_add or "
        "elementwise_mul, and scale, relu, tanh, sigmoid or gelu",
        list.size());
  return f;
}

absl::StatusOr<Broadcast> BroadcastOf(const OpDesc& op, const Shape& x,
                                      const Shape& y) {
  return BroadcastShapes(x, y, op.Attr<int32_t>("axis"));
}

// Calls body(x, y, out) with the offsets of every element of out.
template <typename Body>
void ForEachElement(const StridedLoop<3>& loop, const Body& body) {
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    const auto step = loop.row_strides();
    for (int64_t j = 0; j < n; ++j)
      body(at[0] + j * step[0], at[1] + j * step[1], at[2] + j * step[2]);
  });
}

absl::StatusOr<Step> BindElemwiseForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  Tensor* inter = context->Output("IntermediateOut");
  PD_ASSIGN_OR_RETURN(const Functions f, ReadFunctions(context->op(), false));
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastOf(context->op(), x->shape(), y->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, loop = BroadcastLoop(b)](const RunContext&) {
      ForEachElement(loop, [&](int64_t i, int64_t j, int64_t o) {
        const T left = x->data<T>()[i], right = y->data<T>()[j];
        const T middle = f.unary_outside ? f.B(left, right) : f.U(right);
        if (inter != nullptr)
          inter->data<T>()[f.unary_outside ? o : j] = middle;
        out->data<T>()[o] = f.unary_outside ? f.U(middle) : f.B(left, middle);
      });
      return absl::OkStatus();
    });
  });
}

struct ElemwiseGradTensors {
  Tensor *x, *y, *out, *inter, *dout;  // x, inter may be null
  Tensor *dx, *dy, *dinter;
};

template <typename T>
void ElemwiseBackward(const Functions& f, const StridedLoop<3>& loop,
                      const ElemwiseGradTensors& t) {
  for (Tensor* to : {t.dx, t.dy, t.dinter})
    if (to != nullptr) std::fill_n(to->data<T>(), to->size(), T(0));
  const auto add = [](Tensor* to, int64_t i, T v) {
    if (to != nullptr) to->data<T>()[i] += v;
  };
  ForEachElement(loop, [&](int64_t i, int64_t j, int64_t o) {
    const T x = t.x != nullptr ? t.x->data<T>()[i] : T(0);
    const T y = t.y->data<T>()[j], d = t.dout->data<T>()[o];
    if (f.unary_outside) {
      const T middle = t.inter != nullptr ? t.inter->data<T>()[o] : f.B(x, y);
      const T g = d * f.Slope(middle, t.out->data<T>()[o]);
      add(t.dinter, o, g);
      add(t.dx, i, f.multiplies ? g * y : g);
      add(t.dy, j, f.multiplies ? g * x : g);
    } else {
      const T middle = t.inter != nullptr ? t.inter->data<T>()[j] : f.U(y);
      const T g = f.multiplies ? d * x : d;
      add(t.dinter, j, g);
      add(t.dx, i, f.multiplies ? d * middle : d);
      add(t.dy, j, g * f.Slope(y, middle));
    }
  });
}

absl::StatusOr<Step> BindElemwiseBackward(BindContext* context) {
  ElemwiseGradTensors t;
  t.x = context->Input("X");
  t.y = context->Input("Y");
  t.out = context->Input("Out");
  t.inter = context->Input("IntermediateOut");
  t.dout = context->Input("Out@GRAD");
  t.dx = context->Output("X@GRAD");
  t.dy = context->Output("Y@GRAD");
  t.dinter = context->Output("IntermediateOut@GRAD");
  PD_ASSIGN_OR_RETURN(const Functions f, ReadFunctions(context->op(), true));
  const DType dtype = t.dout->dtype();
  // Without X, which a sum does not need, it has the result's shape.
  if (t.x == nullptr &&
      (f.multiplies ||
       (f.unary_outside && t.inter == nullptr && f.unary == Unary::kGelu)))
    return InvalidArgument("'X' is missing");
  const Shape& x = t.x != nullptr ? t.x->shape() : t.dout->shape();
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastOf(context->op(), x, t.y->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", dtype, NumElements(b.out)));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out", dtype, NumElements(b.out)));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", dtype, t.y->shape()));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "X", dtype, x));
  if (t.inter != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "IntermediateOut", dtype,
                       f.unary_outside ? t.dout->size() : t.y->size()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, loop = BroadcastLoop(b)](const RunContext&) {
      ElemwiseBackward<T>(f, loop, t);
      return absl::OkStatus();
    });
  });
}

absl::Status InferElemwise(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  PD_ASSIGN_OR_RETURN(const Functions f, ReadFunctions(context->op(), false));
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastOf(context->op(), x.shape, y.shape));
  TensorMeta out = b.out.size() == x.shape.size() ? x : y;
  out.shape = b.out;
  out.value = nullptr;
  context->SetOutput("Out", out);
  if (f.unary_outside)
    context->SetOutput("IntermediateOut", out);
  else
    context->Share("Y", "IntermediateOut");
  return absl::OkStatus();
}

absl::Status InferElemwiseGrad(InferContext* context) {
  PD_RETURN_IF_ERROR(InferGradLikeInput(context));
  PD_ASSIGN_OR_RETURN(const Functions f, ReadFunctions(context->op(), true));
  if (!context->HasInput("X")) context->Share("Out@GRAD", "X@GRAD");
  context->Share(f.unary_outside ? "Out@GRAD" : "Y", "IntermediateOut@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OpDesc>> MakeElemwiseGrad(
    const GradRequest& request) {
  const OpDesc& op = request.op;
  OpDesc grad;
  grad.type = op.type + "_grad";
  grad.attrs = op.attrs;
  auto list = op.Attr<std::vector<std::string>>("functor_list");
  for (std::string& name : list) name += "_grad";
  grad.attrs["functor_list"] = list;
  for (const char* slot : {"X", "Y"}) {
    grad.SetInput(slot, op.Input(slot));
    const std::string& name = op.Input(slot)[0];
    grad.SetOutput(
        GradName(slot),
        {request.needs_grad(name) ? GradName(name) : std::string(kEmptyVar)});
  }
  grad.SetInput("Out", op.Output("Out"));
  if (!op.Output("IntermediateOut").empty())
    grad.SetInput("IntermediateOut", op.Output("IntermediateOut"));
  grad.SetInput("Out@GRAD", {GradName(op.Output("Out")[0])});
  return std::vector<OpDesc>{std::move(grad)};
}

void AddElemwiseAttrs(OpDef* def) {
  def->Attr("axis", int32_t{-1}).Attr("scale", 0.0f);
  def->Attr("save_intermediate_out", false);
  def->RequiredAttr("functor_list", AttrType::kStrings);
}

}  // namespace

absl::Status RegisterFusedElemwiseActivation(OpRegistry* registry) {
  for (const char* type :
       {"fused_elemwise_activation", "fused_elemwise_add_activation"}) {
    OpDef op(type);
    op.Input("X").Input("Y").Output("Out");
    op.IntermediateOutput("IntermediateOut");
    AddElemwiseAttrs(&op);
    op.Infer(InferElemwise)
        .Reference(BindElemwiseForward)
        .Grad(GradMaker(MakeElemwiseGrad));
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

    OpDef grad(std::string(type) + "_grad");
    grad.OptionalInput("X").Input("Y").Input("Out").Input("Out@GRAD");
    grad.OptionalInput("IntermediateOut");
    for (const char* slot : {"X@GRAD", "Y@GRAD", "IntermediateOut@GRAD"})
      grad.OptionalOutput(slot);
    AddElemwiseAttrs(&grad);
    grad.Infer(InferElemwiseGrad).NoGrad().Reference(BindElemwiseBackward);
    PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  }
  return absl::OkStatus();
}

}  // namespace pd
