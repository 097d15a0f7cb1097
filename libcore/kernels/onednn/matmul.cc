// SPDX-License-Identifier: Apache-2.0
// Products of batches of matrices through oneDNN. A transposed operand is the
// same bytes with other strides. In the forward product a batch may be
// broadcast; a gradient would have to sum over it and is left to the reference.
#include <algorithm>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace onednn {
namespace {

// A row-major tensor, its last two axes read as a matrix, transposed or not.
struct Operand {
  Tensor* tensor = nullptr;
  bool transposed = false;
};

// The matrices' rows and columns as the product sees them.
int64_t Rows(const Operand& o) {
  const Shape& s = o.tensor->shape();
  return s[s.size() - (o.transposed ? 1 : 2)];
}
int64_t Columns(const Operand& o) {
  const Shape& s = o.tensor->shape();
  return s[s.size() - (o.transposed ? 2 : 1)];
}

// Axes of 1 go in front, up to `rank`.
ArgSpec SpecOf(const Operand& o, size_t rank) {
  Shape shape = o.tensor->shape();
  shape.insert(shape.begin(), rank - shape.size(), 1);
  ArgSpec spec;
  spec.dtype = o.tensor->dtype();
  spec.shape = shape;
  if (!o.transposed) return spec;
  Layout layout;
  layout.strides = RowMajorStrides(shape);
  std::swap(spec.shape[rank - 1], spec.shape[rank - 2]);
  std::swap(layout.strides[rank - 1], layout.strides[rank - 2]);
  layout.shape = layout.padded = spec.shape;
  spec.layout = Canonical(std::move(layout));
  return spec;
}

// to = a b
absl::StatusOr<PrimitivePtr> BindMatmulOf(BindContext* context, Operand a,
                                          Operand b, Tensor* to) {
  PD_ASSIGN_OR_RETURN(a.tensor, context->In(a.tensor, nullptr));
  PD_ASSIGN_OR_RETURN(b.tensor, context->In(b.tensor, nullptr));
  PD_ASSIGN_OR_RETURN(to, context->Out(to, nullptr));
  const size_t rank =
      std::max({a.tensor->rank(), b.tensor->rank(), to->rank()});
  Matmul m;
  m.src = SpecOf(a, rank);
  m.weights = SpecOf(b, rank);
  m.dst = SpecOf({to, false}, rank);
  PD_ASSIGN_OR_RETURN(PrimitivePtr product, MatmulForward(m));
  product->Bind(Arg::kSrc, a.tensor);
  product->Bind(Arg::kWeights, b.tensor);
  product->Bind(Arg::kDst, to);
  BindScratchpad(context, product.get());
  return product;
}

struct Factors {
  Operand x, y;
};

absl::StatusOr<Factors> ReadFactors(BindContext* context) {
  const OpDesc& op = context->op();
  const bool old = op.type == "matmul" || op.type == "matmul_grad";
  Factors f{{context->Input("X"), false}, {context->Input("Y"), false}};
  if (op.type.rfind("bmm", 0) != 0) {
    f.x.transposed = op.Attr<bool>(old ? "transpose_X" : "trans_x");
    f.y.transposed = op.Attr<bool>(old ? "transpose_Y" : "trans_y");
  }
  const Tensor &x = *f.x.tensor, &y = *f.y.tensor;
  if (x.dtype() != y.dtype()) return Unimplemented("X and Y differ in type");
  PD_RETURN_IF_ERROR(TakesType(x.dtype()));
  if (old && op.Attr<float>("alpha") != 1.0f)
    return Unimplemented("it has no factor");
  if (x.rank() < 2 || y.rank() < 2 || x.size() == 0 || y.size() == 0)
    return Unimplemented("X has shape %s, Y has shape %s; it is for matrices",
                         ToString(x.shape()), ToString(y.shape()));
  if (Columns(f.x) != Rows(f.y))
    return InvalidArgument(
        "X has shape %s, Y has shape %s: %d columns meet %d rows",
        ToString(x.shape()), ToString(y.shape()), Columns(f.x), Rows(f.y));
  return f;
}

bool SameBatch(const Tensor& x, const Tensor& y) {
  return x.rank() == y.rank() &&
         std::equal(x.shape().begin(), x.shape().end() - 2, y.shape().begin());
}

}  // namespace

absl::StatusOr<Step> BindMatmul(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Factors f, ReadFactors(context));
  PD_ASSIGN_OR_RETURN(PrimitivePtr product,
                      BindMatmulOf(context, f.x, f.y, context->Output("Out")));
  return Step([product](const RunContext&) { return product->Run(); });
}

absl::StatusOr<Step> BindMatmulGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Factors f, ReadFactors(context));
  if (!SameBatch(*f.x.tensor, *f.y.tensor))
    return Unimplemented("it does not sum over a batch that was broadcast");
  Shape out(f.x.tensor->shape().begin(), f.x.tensor->shape().end() - 2);
  out.push_back(Rows(f.x));
  out.push_back(Columns(f.y));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", f.x.tensor->dtype(), out));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  const Operand x{f.x.tensor, !f.x.transposed};
  const Operand y{f.y.tensor, !f.y.transposed};
  PrimitivePtr by_x, by_y;
  // dX = dOut op(Y)^T, or its transpose where X is transposed; dY alike.
  if (dx == nullptr) {
    context->NoBuffer(f.y.tensor);
  } else if (f.x.transposed) {
    PD_ASSIGN_OR_RETURN(by_x, BindMatmulOf(context, f.y, {dout, true}, dx));
  } else {
    PD_ASSIGN_OR_RETURN(by_x, BindMatmulOf(context, {dout, false}, y, dx));
  }
  if (dy == nullptr) {
    context->NoBuffer(f.x.tensor);
  } else if (f.y.transposed) {
    PD_ASSIGN_OR_RETURN(by_y, BindMatmulOf(context, {dout, true}, f.x, dy));
  } else {
    PD_ASSIGN_OR_RETURN(by_y, BindMatmulOf(context, x, {dout, false}, dy));
  }
  return Step([by_x, by_y](const RunContext&) -> absl::Status {
    if (by_x != nullptr) PD_RETURN_IF_ERROR(by_x->Run());
    return by_y != nullptr ? by_y->Run() : absl::OkStatus();
  });
}

}  // namespace onednn
}  // namespace pd
