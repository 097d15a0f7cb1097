// SPDX-License-Identifier: Apache-2.0
// Matrix products.
//   matmul_v2: Out = op(X) op(Y) over the last two axes, op transposes with
//     trans_x, trans_y; the axes before broadcast. A vector on the left is a
//     row, on the right a column, and its axis of 1 is dropped from Out.
//   matmul: the same with transpose_X, transpose_Y and a factor alpha
//   bmm: matrices in a batch of one axis
//   mul: X and Y are flattened to matrices at x_num_col_dims, y_num_col_dims
// X@GRAD = dOut op(Y)^H, Y@GRAD = op(X)^H dOut, transposed when X or Y is, and
// summed over the axes along which it was broadcast (^H: transposed, and
// conjugated where complex).
#include <algorithm>
#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/bilinear_grad.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/linalg/product.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// InvalidArgument unless `dout` has as many elements as the product.
absl::Status CheckOut(const Product& p, const Tensor& x, const Tensor& y,
                      const Tensor* dout, absl::string_view slot) {
  if (dout == nullptr) return InvalidArgument("'%s' is missing", slot);
  if (NumElements(p.out) == dout->size() && dout->dtype() == x.dtype() &&
      x.dtype() == y.dtype())
    return absl::OkStatus();
  return InvalidArgument("'%s' is %s %s; X %s and Y %s make %s", slot,
                         Name(dout->dtype()), ToString(dout->shape()),
                         Name(x.dtype()), Name(y.dtype()), ToString(p.out));
}

absl::Status CheckInner(const Product& p, const Shape& x, const Shape& y) {
  if (p.k != p.y_k && p.k >= 0 && p.y_k >= 0)
    return InvalidArgument(
        "X has shape %s, Y has shape %s: %d columns meet %d rows; expected "
        "equal numbers",
        ToString(x), ToString(y), p.k, p.y_k);
  return absl::OkStatus();
}

absl::StatusOr<Product> MulProduct(const OpDesc& op, const Shape& x,
                                   const Shape& y) {
  const int32_t at_x = op.Attr<int32_t>("x_num_col_dims");
  const int32_t at_y = op.Attr<int32_t>("y_num_col_dims");
  if (at_x < 1 || at_x >= static_cast<int64_t>(x.size()) || at_y < 1 ||
      at_y >= static_cast<int64_t>(y.size()))
    return InvalidArgument(
        "X has shape %s and attr 'x_num_col_dims' is %d, Y has shape %s and "
        "'y_num_col_dims' is %d; each must be in [1, rank - 1]",
        ToString(x), at_x, ToString(y), at_y);
  const auto product = [](const Shape& s, size_t begin, size_t end) {
    int64_t n = 1;
    for (size_t i = begin; i < end; ++i) n = n < 0 || s[i] < 0 ? -1 : n * s[i];
    return n;
  };
  const size_t cut_x = static_cast<size_t>(at_x);
  const size_t cut_y = static_cast<size_t>(at_y);
  Product p;
  p.m = product(x, 0, cut_x);
  p.k = product(x, cut_x, x.size());
  p.y_k = product(y, 0, cut_y);
  p.n = product(y, cut_y, y.size());
  p.out.assign(x.begin(), x.begin() + at_x);
  p.out.insert(p.out.end(), y.begin() + at_y, y.end());
  PD_RETURN_IF_ERROR(CheckInner(p, x, y));
  return p;
}

absl::StatusOr<Product> MatmulProduct(const OpDesc& op, const Shape& x,
                                      const Shape& y) {
  if (x.empty() || y.empty())
    return InvalidArgument(
        "X has shape %s, Y has shape %s; expected ranks of "
        "1 or more",
        ToString(x), ToString(y));
  Product p;
  const bool old = op.type == "matmul" || op.type == "matmul_grad";
  if (op.type.rfind("bmm", 0) != 0) {
    p.trans_x = op.Attr<bool>(old ? "transpose_X" : "trans_x");
    p.trans_y = op.Attr<bool>(old ? "transpose_Y" : "trans_y");
  }
  if (old) p.alpha = op.Attr<float>("alpha");
  if (x.size() == 1) {
    p.trans_x = false;
    p.k = x[0];
  } else {
    p.m = x[x.size() - (p.trans_x ? 1 : 2)];
    p.k = x[x.size() - (p.trans_x ? 2 : 1)];
    p.x_batch.assign(x.begin(), x.end() - 2);
  }
  if (y.size() == 1) {
    p.trans_y = false;
    p.y_k = y[0];
  } else {
    p.y_k = y[y.size() - (p.trans_y ? 1 : 2)];
    p.n = y[y.size() - (p.trans_y ? 2 : 1)];
    p.y_batch.assign(y.begin(), y.end() - 2);
  }
  PD_RETURN_IF_ERROR(CheckInner(p, x, y));
  PD_ASSIGN_OR_RETURN(Broadcast b, BroadcastShapes(p.x_batch, p.y_batch, -1));
  p.x_batch = std::move(b.x);
  p.y_batch = std::move(b.y);
  p.batch = std::move(b.out);
  p.out = p.batch;
  if (x.size() > 1) p.out.push_back(p.m);
  if (y.size() > 1) p.out.push_back(p.n);
  return p;
}

}  // namespace

absl::StatusOr<Product> ProductOf(const OpDesc& op, const Shape& x,
                                  const Shape& y) {
  if (op.type == "mul" || op.type == "mul_grad") return MulProduct(op, x, y);
  return MatmulProduct(op, x, y);
}

namespace {

absl::Status InferProduct(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.dtype != y.dtype)
    return InvalidArgument("X is %s, Y is %s; expected one dtype",
                           Name(x.dtype), Name(y.dtype));
  if (context->op().type == "bmm" &&
      (x.shape.size() != 3 || y.shape.size() != 3))
    return InvalidArgument("X has shape %s, Y has shape %s; expected rank 3",
                           ToString(x.shape), ToString(y.shape));
  PD_ASSIGN_OR_RETURN(Product p, ProductOf(context->op(), x.shape, y.shape));
  TensorMeta out;
  out.dtype = x.dtype;
  out.lod_level = x.lod_level;
  out.lod = x.lod;
  out.shape = std::move(p.out);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// The number of the matrix in a batch of extents `part` (ones where it is
// broadcast) that element `i` of `batch` takes.
int64_t Source(int64_t i, const Shape& batch, const Shape& part) {
  int64_t number = 0, scale = 1;
  for (size_t d = batch.size(); d-- > 0;) {
    const int64_t at = i % batch[d];
    i /= batch[d];
    if (part[d] != 1) number += at * scale;
    scale *= part[d];
  }
  return number;
}

// The product itself: which matrices make which.
GemmBatch ForwardBatch(const Product& p) {
  const int64_t count = NumElements(p.batch);
  GemmBatch batch(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    batch[static_cast<size_t>(i)] = {
        {Source(i, p.batch, p.x_batch) * p.m * p.k,
         Source(i, p.batch, p.y_batch) * p.k * p.n}};
  return batch;
}

absl::StatusOr<Step> BindProduct(BindContext* context) {
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("X"));
  Tensor* y = upcaster.In(context->Input("Y"));
  Tensor* out = upcaster.Out(context->Output("Out"));
  PD_ASSIGN_OR_RETURN(Product p,
                      ProductOf(context->op(), x->shape(), y->shape()));
  if (!p.trans_x && NumElements(p.y_batch) == 1) {
    p.m *= NumElements(p.batch);  // one tall matrix
    if (NumElements(p.batch) == 0) p.m = 0;
    p.batch = p.x_batch = p.y_batch = {};
  }
  const GemmShape shape{p.m, p.n, p.k, p.trans_x, p.trans_y};
  return upcaster.Wrap(
      DispatchArithmetic(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x, y, out, shape, batch = ForwardBatch(p),
                     alpha = static_cast<T>(p.alpha)](const RunContext&) {
          Gemm(shape, batch, alpha, x->data<T>(), y->data<T>(), out->data<T>());
          return absl::OkStatus();
        });
      }));
}

// One gradient: `to` = sum over its part of the batch of op(a) op(b).
struct GradProduct {
  GemmShape shape;
  GemmBatch batch;
  const Tensor *a = nullptr, *b = nullptr;
  bool conj_a = false, conj_b = false;
  Tensor* to = nullptr;
};

// Which products each matrix of the gradient sums. `a_part`, `b_part`: the
// batches that the factors come from.
GemmBatch GradBatch(const Product& p, const Shape& to_part, int64_t a_size,
                    const Shape& a_part, int64_t b_size, const Shape& b_part) {
  GemmBatch batch(static_cast<size_t>(NumElements(to_part)));
  for (int64_t i = 0, n = NumElements(p.batch); i < n; ++i)
    batch[static_cast<size_t>(Source(i, p.batch, to_part))].emplace_back(
        Source(i, p.batch, a_part) * a_size,
        Source(i, p.batch, b_part) * b_size);
  return batch;
}

GradProduct XGrad(const Product& p, Tensor* y, Tensor* dout, Tensor* dx) {
  GradProduct g;
  g.to = dx;
  const int64_t out_size = p.m * p.n, y_size = p.k * p.n;
  if (p.trans_x) {  // dX = op(Y) dOut^T
    g.shape = {p.k, p.m, p.n, p.trans_y, true};
    g.a = y;
    g.b = dout;
    g.conj_a = true;
    g.batch = GradBatch(p, p.x_batch, y_size, p.y_batch, out_size, p.batch);
  } else {  // dX = dOut op(Y)^T
    g.shape = {p.m, p.k, p.n, false, !p.trans_y};
    g.a = dout;
    g.b = y;
    g.conj_b = true;
    g.batch = GradBatch(p, p.x_batch, out_size, p.batch, y_size, p.y_batch);
  }
  return g;
}

GradProduct YGrad(const Product& p, Tensor* x, Tensor* dout, Tensor* dy) {
  GradProduct g;
  g.to = dy;
  const int64_t out_size = p.m * p.n, x_size = p.m * p.k;
  if (p.trans_y) {  // dY = dOut^T op(X)
    g.shape = {p.n, p.k, p.m, true, p.trans_x};
    g.a = dout;
    g.b = x;
    g.conj_b = true;
    g.batch = GradBatch(p, p.y_batch, out_size, p.batch, x_size, p.x_batch);
  } else {  // dY = op(X)^T dOut
    g.shape = {p.k, p.n, p.m, !p.trans_x, false};
    g.a = x;
    g.b = dout;
    g.conj_a = true;
    g.batch = GradBatch(p, p.y_batch, x_size, p.x_batch, out_size, p.batch);
  }
  return g;
}

template <typename T>
const T* MaybeConj(const Tensor* from, bool conj, std::vector<T>* copy) {
  const T* data = from->data<T>();
  if constexpr (std::is_floating_point_v<T> || std::is_integral_v<T>) {
    return data;
  } else {
    if (!conj) return data;
    copy->resize(static_cast<size_t>(from->size()));
    for (size_t i = 0; i < copy->size(); ++i) (*copy)[i] = std::conj(data[i]);
    return copy->data();
  }
}

template <typename T>
void RunGrad(const GradProduct& g, T alpha) {
  if (g.to == nullptr) return;
  std::vector<T> a, b;  // used for complex numbers only
  Gemm(g.shape, g.batch, alpha, MaybeConj<T>(g.a, g.conj_a, &a),
       MaybeConj<T>(g.b, g.conj_b, &b), g.to->data<T>());
}

absl::StatusOr<Step> BindProductGrad(BindContext* context) {
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("X"));
  Tensor* y = upcaster.In(context->Input("Y"));
  Tensor* dout = upcaster.In(context->Input("Out@GRAD"));
  Tensor* dx = upcaster.Out(context->Output("X@GRAD"));
  Tensor* dy = upcaster.Out(context->Output("Y@GRAD"));
  PD_ASSIGN_OR_RETURN(Product p,
                      ProductOf(context->op(), x->shape(), y->shape()));
  PD_RETURN_IF_ERROR(CheckOut(p, *x, *y, dout, "Out@GRAD"));
  if (!p.trans_x && NumElements(p.y_batch) == 1 &&
      NumElements(p.x_batch) == NumElements(p.batch)) {
    p.m *= NumElements(p.batch);  // one tall matrix
    p.batch = p.x_batch = p.y_batch = {};
  }
  GradProduct x_grad, y_grad;
  if (dx != nullptr) x_grad = XGrad(p, y, dout, dx);
  if (dy != nullptr) y_grad = YGrad(p, x, dout, dy);
  return upcaster.Wrap(
      DispatchArithmetic(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x_grad, y_grad,
                     alpha = static_cast<T>(p.alpha)](const RunContext&) {
          RunGrad(x_grad, alpha);
          RunGrad(y_grad, alpha);
          return absl::OkStatus();
        });
      }));
}

// The second gradient. Out is linear in X and in Y, so with the cotangents
// ddX, ddY of X@GRAD, Y@GRAD everything is a product again:
//   by dOut: op(ddX) op(Y) + op(X) op(ddY)
//   by X: what X@GRAD is with ddY for Y; by Y: Y@GRAD with ddX for X
struct SecondProduct {
  Product p;
  Tensor *x, *y, *ddx, *ddy, *ddout, *sum;
  GradProduct x_grad, y_grad;
  Tensor *dx, *dy;
};

template <typename T>
Step SecondStep(const SecondProduct& s) {
  const GemmShape shape{s.p.m, s.p.n, s.p.k, s.p.trans_x, s.p.trans_y};
  return [s, shape, batch = ForwardBatch(s.p)](const RunContext&) {
    const auto zero = [](Tensor* t) {
      std::fill_n(t->data<T>(), t->size(), T(0));
    };
    if (s.dx != nullptr)
      s.ddy != nullptr ? RunGrad(s.x_grad, T(1)) : zero(s.dx);
    if (s.dy != nullptr)
      s.ddx != nullptr ? RunGrad(s.y_grad, T(1)) : zero(s.dy);
    if (s.ddout == nullptr) return absl::OkStatus();
    T* out = s.ddout->data<T>();
    zero(s.ddout);
    if (s.ddx != nullptr)
      Gemm(shape, batch, T(1), s.ddx->data<T>(), s.y->data<T>(), out);
    if (s.ddy != nullptr) {
      T* second = s.sum->data<T>();
      Gemm(shape, batch, T(1), s.x->data<T>(), s.ddy->data<T>(), second);
      for (int64_t i = 0, n = s.ddout->size(); i < n; ++i) out[i] += second[i];
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<Step> BindProductSecond(BindContext* context) {
  Tensor* dout = context->Input("grad_out");
  SecondProduct s{{},
                  context->Input("X"),
                  context->Input("Y"),
                  context->Input("grad_x@GRAD"),
                  context->Input("grad_y@GRAD"),
                  context->Output("grad_out@GRAD"),
                  nullptr,
                  {},
                  {},
                  context->Output("X@GRAD"),
                  context->Output("Y@GRAD")};
  PD_ASSIGN_OR_RETURN(s.p,
                      ProductOf(context->op(), s.x->shape(), s.y->shape()));
  PD_RETURN_IF_ERROR(CheckOut(s.p, *s.x, *s.y, dout, "grad_out"));
  if (s.ddx != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "grad_x@GRAD", s.x->dtype(), s.x->shape()));
  if (s.ddy != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "grad_y@GRAD", s.y->dtype(), s.y->shape()));
  if (s.dx != nullptr && s.ddy != nullptr)
    s.x_grad = XGrad(s.p, s.ddy, dout, s.dx);
  if (s.dy != nullptr && s.ddx != nullptr)
    s.y_grad = YGrad(s.p, s.ddx, dout, s.dy);
  if (s.ddout != nullptr) s.sum = context->Scratch(dout->bytes());
  return DispatchArithmetic(
      dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        return SecondStep<typename decltype(tag)::type>(s);
      });
}

absl::Status InferProductSecond(InferContext* context) {
  context->Share("X", "X@GRAD");
  context->Share("Y", "Y@GRAD");
  context->Share("grad_out", "grad_out@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OpDesc>> ProductSecond(const GradRequest& request) {
  const OpDesc& grad = request.op;
  OpDesc op;
  op.type = grad.type + "_grad";
  op.attrs = grad.attrs;
  op.SetInput("X", {grad.In("X")});
  op.SetInput("Y", {grad.In("Y")});
  op.SetInput("grad_out", {grad.In("Out@GRAD")});
  const std::pair<const char*, const char*> cotangents[] = {
      {"X@GRAD", "grad_x@GRAD"}, {"Y@GRAD", "grad_y@GRAD"}};
  for (const auto& [slot, cotangent] : cotangents)
    if (!grad.Out(slot).empty() && grad.Out(slot) != kEmptyVar)
      op.SetInput(cotangent, {GradName(grad.Out(slot))});
  bool needed = false;
  const std::pair<const char*, std::string> results[] = {
      {"X@GRAD", grad.In("X")},
      {"Y@GRAD", grad.In("Y")},
      {"grad_out@GRAD", grad.In("Out@GRAD")}};
  for (const auto& [slot, variable] : results) {
    if (!request.needs_grad(variable)) continue;
    op.SetOutput(slot, {GradName(variable)});
    needed = true;
  }
  std::vector<OpDesc> ops;
  if (needed) ops.push_back(std::move(op));
  return ops;
}

void AddMatmulAttrs(const std::string& type, OpDef* op) {
  if (type == "matmul_v2") {
    op->Attr("trans_x", false).Attr("trans_y", false);
  } else if (type == "matmul") {
    op->Attr("transpose_X", false).Attr("transpose_Y", false);
    op->Attr("alpha", 1.0f);
  } else if (type == "mul") {
    op->Attr("x_num_col_dims", int32_t{1}).Attr("y_num_col_dims", int32_t{1});
  }
}

absl::Status AddMatmulOp(OpRegistry* registry, const std::string& type) {
  OpDef op(type);
  op.Input("X").Input("Y").Output("Out");
  AddMatmulAttrs(type, &op);
  op.Infer(InferProduct).Reference(BindProduct);
  op.Grad(GradSpec{type + "_grad", {"X", "Y"}, {}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Y").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  AddMatmulAttrs(type, &grad);
  grad.Infer(InferGradLikeInput).Reference(BindProductGrad);
  if (type != "matmul_v2") {
    grad.Grad(BilinearSecond(type));
    return registry->Add(std::move(grad));
  }
  grad.Grad(GradMaker(ProductSecond));
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef second(type + "_grad_grad");
  second.Input("X").Input("Y").Input("grad_out");
  second.OptionalInput("grad_x@GRAD").OptionalInput("grad_y@GRAD");
  second.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  second.OptionalOutput("grad_out@GRAD");
  AddMatmulAttrs(type, &second);
  second.Infer(InferProductSecond).Reference(BindProductSecond);
  second.Grad(
      BilinearThird("matmul_v2_grad", {"grad_out", "grad_x@GRAD", "grad_y@GRAD",
                                       "grad_out@GRAD", "X@GRAD", "Y@GRAD"}));
  return registry->Add(std::move(second));
}

}  // namespace

absl::Status RegisterMatmul(OpRegistry* registry) {
  for (const char* type : {"matmul_v2", "matmul", "bmm", "mul"})
    PD_RETURN_IF_ERROR(AddMatmulOp(registry, type));
  return absl::OkStatus();
}

}  // namespace pd
