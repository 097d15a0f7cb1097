// SPDX-License-Identifier: Apache-2.0
// Products with a matrix of weights. Constant weights are brought once for good
// into the blocks that oneDNN's matmul likes, which is up to a tenth faster
// than its inner product. Weights that are trained stay row-major, so nothing
// else has to know of blocks. There the inner product is the faster one
// forward; the gradient by X is faster as a matmul (by 4 to 26 %), and so is
// that by narrow weights (1024 by 256 of 2048 rows: by 29 %), while wide ones
// want the inner product (768 by 3072 of 512 rows: 1.8 times as fast).
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/reduce_loop.h"

namespace pd {
namespace onednn {
namespace {

// Out[rows, n] = X[rows, k] W, where W is Y as [k, n] or [n, k].
struct InnerProductProblem {
  int64_t rows = 1, k = 0, n = 0;
  DType dtype = DType::kFloat32;
  bool transposed = false;  // Y is [n, k]
};

absl::StatusOr<InnerProductProblem> ReadInnerProductProblem(
    BindContext* context) {
  const OpDesc& op = context->op();
  const Tensor* x = context->Input("X");
  const Tensor* y = context->Input("Y");
  if (x->dtype() != y->dtype()) return Unimplemented("X and Y differ in type");
  PD_RETURN_IF_ERROR(TakesType(x->dtype()));
  if (x->rank() < 2 || y->rank() != 2 || x->size() == 0 || y->size() == 0)
    return Unimplemented(
        "X has shape %s, Y has shape %s; it is for a matrix Y on the right",
        ToString(x->shape()), ToString(y->shape()));
  InnerProductProblem p;
  p.dtype = x->dtype();
  size_t cut = x->rank() - 1;  // rows before, columns from here on
  if (op.type == "mul" || op.type == "mul_grad") {
    cut = static_cast<size_t>(op.Attr<int32_t>("x_num_col_dims"));
    if (op.Attr<int32_t>("y_num_col_dims") != 1)
      return Unimplemented("Y is not a matrix");
  } else {
    if (op.Attr<bool>("trans_x")) return Unimplemented("X is transposed");
    p.transposed = op.Attr<bool>("trans_y");
  }
  p.rows = NumElements(x->shape(), 0, cut);
  p.k = NumElements(x->shape(), cut, x->rank());
  p.n = y->dim(p.transposed ? 0 : 1);
  if (y->dim(p.transposed ? 1 : 0) != p.k)
    return InvalidArgument(
        "X has shape %s, Y has shape %s: %d columns meet "
        "%d rows",
        ToString(x->shape()), ToString(y->shape()), p.k,
        y->dim(p.transposed ? 1 : 0));
  return p;
}

LayoutPtr Transposed(const Tensor& y) {
  Layout layout;
  if (y.layout() != nullptr) {
    layout = *y.layout();
  } else {
    layout.shape = layout.padded = y.shape();
    layout.strides = RowMajorStrides(y.shape());
  }
  std::swap(layout.shape[0], layout.shape[1]);
  std::swap(layout.padded[0], layout.padded[1]);
  std::swap(layout.strides[0], layout.strides[1]);
  for (Layout::Block& block : layout.blocks) block.dim = 1 - block.dim;
  return Canonical(std::move(layout));
}

// Between the layout of Y and that of oneDNN's weights [n, k].
LayoutPtr Swapped(const InnerProductProblem& p, const LayoutPtr& layout,
                  Shape shape) {
  if (p.transposed) return layout;
  Tensor tensor(DType::kFloat32, std::move(shape));
  tensor.set_layout(layout);
  return Transposed(tensor);
}

InnerProduct Describe(const InnerProductProblem& p, const Tensor& y) {
  InnerProduct ip;
  ip.src.dtype = ip.weights.dtype = ip.dst.dtype = ip.bias.dtype = p.dtype;
  ip.src.shape = {p.rows, p.k};
  ip.weights.shape = {p.n, p.k};
  ip.weights.layout = Swapped(p, y.layout(), y.shape());
  ip.dst.shape = {p.rows, p.n};
  return ip;
}

// A layout that an earlier plan or op has chosen stays.
bool MayChooseLayout(const BindContext& context, const Tensor& y) {
  return y.layout() == nullptr && context.IsConstant(&y);
}

// A primitive, and the layout in which it wants Y.
struct Product {
  PrimitivePtr primitive;
  LayoutPtr weights;
};

absl::StatusOr<Product> ConstantProduct(const InnerProductProblem& p, bool bias,
                                        const Relu& relu) {
  Matmul m;
  m.src.dtype = m.weights.dtype = m.dst.dtype = m.bias.dtype = p.dtype;
  m.src.shape = {p.rows, p.k};
  m.weights.shape = {p.k, p.n};
  m.weights.any = true;
  if (bias) m.bias.shape = {1, p.n};
  m.dst.shape = {p.rows, p.n};
  m.relu = relu;
  PD_ASSIGN_OR_RETURN(PrimitivePtr made, MatmulForward(m));
  PD_ASSIGN_OR_RETURN(LayoutPtr weights, made->LayoutOf(Arg::kWeights));
  if (p.transposed) {
    Tensor as_matmul(DType::kFloat32, m.weights.shape);
    as_matmul.set_layout(weights);
    weights = Transposed(as_matmul);
  }
  return Product{std::move(made), std::move(weights)};
}

absl::StatusOr<Product> TrainedProduct(const InnerProductProblem& p,
                                       const Tensor& y, bool bias,
                                       const Relu& relu) {
  InnerProduct ip = Describe(p, y);
  if (bias) ip.bias.shape = {p.n};
  ip.relu = relu;
  PD_ASSIGN_OR_RETURN(PrimitivePtr made, InnerProductForward(ip));
  PD_ASSIGN_OR_RETURN(const LayoutPtr weights, made->LayoutOf(Arg::kWeights));
  return Product{std::move(made), Swapped(p, weights, ip.weights.shape)};
}

}  // namespace

absl::StatusOr<Step> BindInnerProduct(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const InnerProductProblem p,
                      ReadInnerProductProblem(context));
  Tensor* y = context->Input("Y");
  Tensor* bias = context->Input("Bias");
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", p.dtype, p.n));
  const std::string activation =
      context->op().AttrOr<std::string>("activation", "none");
  if (activation != "none" && activation != "relu")
    return Unimplemented("it has no activation '%s'", activation);
  Relu relu;
  relu.on = activation == "relu";
  PD_ASSIGN_OR_RETURN(const Product product,
                      MayChooseLayout(*context, *y)
                          ? ConstantProduct(p, bias != nullptr, relu)
                          : TrainedProduct(p, *y, bias != nullptr, relu));
  const PrimitivePtr& forward = product.primitive;
  PD_ASSIGN_OR_RETURN(y, context->In(y, product.weights));
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  forward->Bind(Arg::kSrc, x);
  forward->Bind(Arg::kWeights, y);
  if (bias != nullptr) forward->Bind(Arg::kBias, bias);
  forward->Bind(Arg::kDst, out);
  BindScratchpad(context, forward.get());
  return Step([forward](const RunContext&) { return forward->Run(); });
}

namespace {

// The slots of a gradient op.
struct GradSlots {
  const char *dout, *dx, *dy, *dbias;
};

GradSlots SlotsOf(const OpDesc& op) {
  if (op.type == "fused_gemm_epilogue_grad")
    return {"DOut", "DX", "DY", "DBias"};
  return {"Out@GRAD", "X@GRAD", "Y@GRAD", ""};
}

// A row-major matrix [columns, rows] of a tensor, read as [rows, columns].
ArgSpec TransposedSpec(DType dtype, int64_t rows, int64_t columns) {
  ArgSpec spec;
  spec.dtype = dtype;
  spec.shape = {rows, columns};
  spec.layout = Transposed(Tensor(dtype, {columns, rows}));
  return spec;
}

ArgSpec MatrixSpec(DType dtype, int64_t rows, int64_t columns) {
  ArgSpec spec;
  spec.dtype = dtype;
  spec.shape = {rows, columns};
  return spec;
}

// dX[rows, k] = dOut[rows, n] W^T
absl::StatusOr<PrimitivePtr> BindInnerProductDataGrad(
    BindContext* context, const InnerProductProblem& p, Tensor* dout,
    Tensor* dx) {
  Matmul m;
  m.src = MatrixSpec(p.dtype, p.rows, p.n);
  m.weights = p.transposed ? MatrixSpec(p.dtype, p.n, p.k)
                           : TransposedSpec(p.dtype, p.n, p.k);
  m.dst = MatrixSpec(p.dtype, p.rows, p.k);
  PD_ASSIGN_OR_RETURN(PrimitivePtr primitive, MatmulForward(m));
  PD_ASSIGN_OR_RETURN(Tensor * y, context->In(context->Input("Y"), nullptr));
  PD_ASSIGN_OR_RETURN(dx, context->Out(dx, nullptr));
  primitive->Bind(Arg::kSrc, dout);
  primitive->Bind(Arg::kWeights, y);
  primitive->Bind(Arg::kDst, dx);
  BindScratchpad(context, primitive.get());
  return primitive;
}

// The computation of dY and the bias's gradient.
using Run = std::function<absl::Status()>;

// dY = X^T dOut or, transposed, dOut^T X: [k or n, rows] [rows, n or k].
absl::StatusOr<Run> BindNarrowWeightGrad(BindContext* context,
                                         const InnerProductProblem& p,
                                         Tensor* dout, Tensor* dy,
                                         Tensor* dbias) {
  const int64_t height = p.transposed ? p.n : p.k;
  const int64_t width = p.transposed ? p.k : p.n;
  Matmul m;
  m.src = TransposedSpec(p.dtype, height, p.rows);
  m.weights = MatrixSpec(p.dtype, p.rows, width);
  m.dst = MatrixSpec(p.dtype, height, width);
  PD_ASSIGN_OR_RETURN(PrimitivePtr primitive, MatmulForward(m));
  PD_ASSIGN_OR_RETURN(dy, context->Out(dy, nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  primitive->Bind(Arg::kSrc, p.transposed ? dout : x);
  primitive->Bind(Arg::kWeights, p.transposed ? x : dout);
  primitive->Bind(Arg::kDst, dy);
  BindScratchpad(context, primitive.get());
  const ReducePlan columns = MakeReducePlan({p.rows, p.n}, {true, false});
  return Run([=] {
    if (dbias != nullptr) {
      float* sums = dbias->data<float>();
      Reduce(columns, dout->data<float>(), SumReducer<float>(),
             [=](int64_t i, double sum) { sums[i] = static_cast<float>(sum); });
    }
    return primitive->Run();
  });
}

absl::StatusOr<Run> BindWideWeightGrad(BindContext* context,
                                       const InnerProductProblem& p,
                                       Tensor* dout, Tensor* dy,
                                       Tensor* dbias) {
  // The gradient lies as the weights do, where oneDNN can write it so.
  const Tensor* y = context->Input("Y");
  InnerProduct ip = Describe(p, *y);
  if (dbias != nullptr) ip.bias.shape = {p.n};
  absl::StatusOr<PrimitivePtr> made = InnerProductBackwardWeights(ip);
  if (made.status().code() == absl::StatusCode::kUnimplemented) {
    ip.weights.any = true;
    made = InnerProductBackwardWeights(ip);
  }
  PD_ASSIGN_OR_RETURN(PrimitivePtr primitive, std::move(made));
  PD_ASSIGN_OR_RETURN(const LayoutPtr weights,
                      primitive->LayoutOf(Arg::kDiffWeights));
  PD_ASSIGN_OR_RETURN(dy, context->Out(dy, Swapped(p, weights, {p.n, p.k})));
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  primitive->Bind(Arg::kSrc, x);
  primitive->Bind(Arg::kDiffDst, dout);
  primitive->Bind(Arg::kDiffWeights, dy);
  if (dbias != nullptr) primitive->Bind(Arg::kDiffBias, dbias);
  BindScratchpad(context, primitive.get());
  return Run([primitive] { return primitive->Run(); });
}

}  // namespace

absl::StatusOr<Step> BindInnerProductGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const InnerProductProblem p,
                      ReadInnerProductProblem(context));
  const GradSlots slots = SlotsOf(context->op());
  if (context->op().AttrOr<std::string>("activation_grad", "none") != "none")
    return Unimplemented("it has no gradient of activations");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, slots.dout, p.dtype, p.rows * p.n));
  PD_ASSIGN_OR_RETURN(Tensor * dout,
                      context->In(context->Input(slots.dout), nullptr));
  Tensor* dx = context->Output(slots.dx);
  Tensor* dy = context->Output(slots.dy);
  Tensor* dbias = context->Output(slots.dbias);
  if (dbias != nullptr && dy == nullptr)
    return Unimplemented("the gradient of the bias is wanted without Y's");
  PrimitivePtr data;
  Run weights;
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(data, BindInnerProductDataGrad(context, p, dout, dx));
  } else {
    context->NoBuffer(context->Input("Y"));
  }
  if (dy != nullptr) {
    constexpr int64_t kNarrow = 512;
    const bool narrow =
        p.dtype == DType::kFloat32 && (p.transposed ? p.k : p.n) <= kNarrow;
    PD_ASSIGN_OR_RETURN(weights,
                        (narrow ? BindNarrowWeightGrad : BindWideWeightGrad)(
                            context, p, dout, dy, dbias));
  } else {
    context->NoBuffer(context->Input("X"));
  }
  return Step([data, weights](const RunContext&) -> absl::Status {
    if (weights != nullptr) PD_RETURN_IF_ERROR(weights());
    return data != nullptr ? data->Run() : absl::OkStatus();
  });
}

}  // namespace onednn
}  // namespace pd
