// SPDX-License-Identifier: Apache-2.0
// Out = activation(op(X) * op(Y) + Bias): X [..., K] seen as a matrix (trans_x:
// [K, ...]), Y [K, N] (trans_y: [N, K]), Bias [N]; activation none, relu, gelu.
// ReserveSpace keeps what the activation was applied to.
// fused_gemm_epilogue_grad, for activation none (a relu_grad or gelu_grad goes
// before it otherwise):
//   DX = DOut * op(Y)^T, DY = op(X)^T * DOut, DBias = column sums of DOut
// gelu is the exact one (erf) unless `approximate`, an attribute of our own.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// op(X) is [m, k], op(Y) is [k, n].
struct Problem {
  int64_t m, n, k;
  bool trans_x, trans_y;
};

absl::StatusOr<Problem> ReadProblem(const OpDesc& op, const Shape& x,
                                    const Shape& y) {
  if (x.size() < 2 || y.size() != 2)
    return InvalidArgument(
        "'X' has shape %s and 'Y' %s; expected rank 2 or "
        "more and rank 2",
        ToString(x), ToString(y));
  Problem p;
  p.trans_x = op.Attr<bool>("trans_x");
  p.trans_y = op.Attr<bool>("trans_y");
  const size_t split = p.trans_x ? 1 : x.size() - 1;
  const int64_t k = p.trans_x ? x[0] : x.back();
  p.m = p.trans_x ? NumElements(x, split, x.size()) : NumElements(x, 0, split);
  p.k = p.trans_y ? y[1] : y[0];
  p.n = p.trans_y ? y[0] : y[1];
  if (k != p.k && k >= 0 && p.k >= 0)
    return InvalidArgument("'X' %s has rows of %d; 'Y' %s has columns of %d",
                           ToString(x), k, ToString(y), p.k);
  return p;
}

enum class Activation { kNone, kRelu, kGelu, kGeluTanh };

absl::StatusOr<Activation> ReadActivation(const OpDesc& op) {
  const auto name = op.Attr<std::string>("activation");
  if (name == "none" || name.empty()) return Activation::kNone;
  if (name == "relu") return Activation::kRelu;
  if (name == "gelu")
    return op.Attr<bool>("approximate") ? Activation::kGeluTanh
                                        : Activation::kGelu;
  return InvalidArgument(
      "attr 'activation' is '%s'; expected none, relu or "
      "gelu",
      name);
}

template <typename T>
T Activate(Activation activation, T v) {
  switch (activation) {
    case Activation::kNone:
      return v;
    case Activation::kRelu:
      return v < T(0) ? T(0) : v;
    case Activation::kGelu:
      return T(0.5) * v * (T(1) + std::erf(v * T(0.70710678118654752440)));
    case Activation::kGeluTanh:
      return T(0.5) * v *
             (T(1) + std::tanh(T(0.79788456080286535588) *
                               (v + T(0.044715) * v * v * v)));
  }
  return v;
}

absl::StatusOr<Step> BindGemmEpilogueForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* bias = context->Input("Bias");
  Tensor* out = context->Output("Out");
  Tensor* reserve = context->Output("ReserveSpace");
  PD_ASSIGN_OR_RETURN(const Problem p,
                      ReadProblem(context->op(), x->shape(), y->shape()));
  PD_ASSIGN_OR_RETURN(const Activation activation,
                      ReadActivation(context->op()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", x->dtype(), p.n));
  if (reserve != nullptr && reserve->size() != out->size()) reserve = nullptr;
  const GemmShape shape = {p.m, p.n, p.k, p.trans_x, p.trans_y};
  const GemmBatch batch = {{{0, 0}}};
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* result = out->data<T>();
      T* before = reserve != nullptr ? reserve->data<T>() : nullptr;
      Gemm(shape, batch, T(1), x->data<T>(), y->data<T>(), result);
      const T* b = bias->data<T>();
      ParallelFor(p.m, 4096 / p.n + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * p.n; i < end * p.n; ++i) {
          const T v = result[i] + b[i % p.n];
          if (before != nullptr) before[i] = v;
          result[i] = Activate(activation, v);
        }
      });
      return absl::OkStatus();
    });
  });
}

struct GemmEpilogueGradTensors {
  Tensor *x, *y, *dout, *dx, *dy, *dbias;
};

template <typename T>
void GemmEpilogueBackward(const Problem& p, const GemmBatch& batch,
                          const GemmEpilogueGradTensors& t) {
  const T* g = t.dout->data<T>();
  const T* x = t.x->data<T>();
  const T* y = t.y->data<T>();
  if (t.dx != nullptr) {
    T* dx = t.dx->data<T>();
    if (p.trans_x)  // X is [k, m]: op(Y) * g^T
      Gemm({p.k, p.m, p.n, p.trans_y, true}, batch, T(1), y, g, dx);
    else  // g * op(Y)^T
      Gemm({p.m, p.k, p.n, false, !p.trans_y}, batch, T(1), g, y, dx);
  }
  if (t.dy != nullptr) {
    T* dy = t.dy->data<T>();
    if (p.trans_y)  // Y is [n, k]: g^T * op(X)
      Gemm({p.n, p.k, p.m, true, p.trans_x}, batch, T(1), g, x, dy);
    else  // op(X)^T * g
      Gemm({p.k, p.n, p.m, !p.trans_x, false}, batch, T(1), x, g, dy);
  }
  if (t.dbias == nullptr) return;
  T* db = t.dbias->data<T>();
  ParallelFor(p.n, 64, [&](int64_t begin, int64_t end) {
    std::fill(db + begin, db + end, T(0));
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = begin; j < end; ++j) db[j] += g[i * p.n + j];
  });
}

absl::StatusOr<Step> BindGemmEpilogueBackward(BindContext* context) {
  const auto& activation = context->Attr<std::string>("activation_grad");
  if (activation != "none" && !activation.empty())
    return Unimplemented("attr 'activation_grad' is '%s'; only none is here",
                         activation);
  GemmEpilogueGradTensors t = {
      context->Input("X"),   context->Input("Y"),   context->Input("DOut"),
      context->Output("DX"), context->Output("DY"), context->Output("DBias")};
  PD_ASSIGN_OR_RETURN(const Problem p,
                      ReadProblem(context->op(), t.x->shape(), t.y->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", t.x->dtype(), t.y->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "DOut", t.x->dtype(), p.m * p.n));
  const GemmBatch batch = {{{0, 0}}};
  return DispatchFloat(t.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      GemmEpilogueBackward<T>(p, batch, t);
      return absl::OkStatus();
    });
  });
}

absl::Status InferGemmEpilogueForward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  PD_ASSIGN_OR_RETURN(const Problem p,
                      ReadProblem(context->op(), x.shape, y.shape));
  Shape out = p.trans_x ? Shape(x.shape.begin() + 1, x.shape.end())
                        : Shape(x.shape.begin(), x.shape.end() - 1);
  out.push_back(p.n);
  context->SetOutput("Out", out, x.dtype);
  context->SetOutput("ReserveSpace", out, x.dtype);
  return ReadActivation(context->op()).status();
}

absl::Status InferBackward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Problem p, ReadProblem(context->op(), x.shape,
                                                   context->Input("Y").shape));
  context->Share("X", "DX");
  context->Share("Y", "DY");
  context->SetOutput("DBias", {p.n}, x.dtype);
  return absl::OkStatus();
}

// The activation's own gradient op, then the product's.
absl::StatusOr<std::vector<OpDesc>> MakeGemmEpilogueGrad(
    const GradRequest& request) {
  const OpDesc& op = request.op;
  const auto wanted = [&](const std::string& name) {
    return request.needs_grad(name) ? GradName(name) : std::string(kEmptyVar);
  };
  OpDesc grad;
  grad.type = "fused_gemm_epilogue_grad";
  grad.SetOutput("DX", {wanted(op.In("X"))});
  grad.SetOutput("DY", {wanted(op.In("Y"))});
  grad.SetOutput("DBias", {wanted(op.In("Bias"))});
  std::vector<OpDesc> ops;
  if (grad.Out("DX") == kEmptyVar && grad.Out("DY") == kEmptyVar &&
      grad.Out("DBias") == kEmptyVar)
    return ops;
  std::string dout = GradName(op.Out("Out"));
  PD_ASSIGN_OR_RETURN(const Activation activation, ReadActivation(op));
  if (activation != Activation::kNone) {
    OpDesc act;
    const bool relu = activation == Activation::kRelu;
    act.type = relu ? "relu_grad" : "gelu_grad";
    if (relu) {
      act.SetInput("Out", {op.Out("Out")});
    } else {
      if (op.Out("ReserveSpace").empty())
        return InvalidArgument(
            "output 'ReserveSpace' is missing; the "
            "gradient of gelu needs it");
      act.SetInput("X", {op.Out("ReserveSpace")});
      act.attrs["approximate"] = op.Attr<bool>("approximate");
    }
    act.SetInput("Out@GRAD", {dout});
    dout = absl::StrCat(dout, "@PRE_ACTIVATION");
    act.SetOutput("X@GRAD", {dout});
    ops.push_back(std::move(act));
  }
  grad.SetInput("DOut", {dout});
  grad.SetInput("X", op.Input("X"));
  grad.SetInput("Y", op.Input("Y"));
  grad.attrs["trans_x"] = op.Attr<bool>("trans_x");
  grad.attrs["trans_y"] = op.Attr<bool>("trans_y");
  ops.push_back(std::move(grad));
  return ops;
}

}  // namespace

absl::Status RegisterFusedGemmEpilogue(OpRegistry* registry) {
  OpDef fused("fused_gemm_epilogue");
  fused.Input("X").Input("Y").Input("Bias").Output("Out");
  fused.OptionalOutput("ReserveSpace");
  fused.Attr("trans_x", false).Attr("trans_y", false);
  fused.Attr("activation", std::string("none")).Attr("approximate", false);
  fused.Infer(InferGemmEpilogueForward)
      .Grad(MakeGemmEpilogueGrad)
      .Reference(BindGemmEpilogueForward);
  PD_RETURN_IF_ERROR(registry->Add(std::move(fused)));

  OpDef grad("fused_gemm_epilogue_grad");
  grad.Input("DOut").Input("X").Input("Y").OptionalInput("ReserveSpace");
  grad.OptionalOutput("DX").OptionalOutput("DY").OptionalOutput("DBias");
  grad.Attr("trans_x", false).Attr("trans_y", false);
  grad.Attr("activation_grad", std::string("none"));
  grad.Infer(InferBackward).NoGrad().Reference(BindGemmEpilogueBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
