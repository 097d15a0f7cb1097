// SPDX-License-Identifier: Apache-2.0
// Sparse tensors out of dense ones and back.
//   sparse_sparse_coo_tensor: COO of the values at the places `indices`
//   sparse_values, sparse_indices: its parts; the indices of COO
//   sparse_to_dense: the whole tensor
//   sparse_to_sparse_coo, sparse_to_sparse_csr: another form
//   sparse_coalesce: each place once, in order, values of one place added up
#include "libcore/base/status_macros.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

absl::Status InferCooTensor(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedDense(*context, "values"));
  PD_RETURN_IF_ERROR(NeedDense(*context, "indices"));
  SetSparse(context, "out", VarKind::kSparseCoo,
            context->Attr<std::vector<int64_t>>("shape"),
            context->Input("values").dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCooTensor(BindContext* context) {
  Tensor* values = context->Input("values");
  Tensor* indices = context->Input("indices");
  const auto shape = context->Attr<std::vector<int64_t>>("shape");
  return Giving(context->Output("out"), [=](const Eager&) {
    return MakeCoo(CloneOf(*indices), CloneOf(*values), shape);
  });
}

absl::Status InferValues(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  // How many axes are sparse is not known before it runs.
  context->SetOutput(
      "out", x.value != nullptr ? SparseValues(*x.value).shape() : Shape{-1},
      x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindValues(BindContext* context) {
  Tensor* x = context->Input("x");
  return Giving(
      context->Output("out"),
      [=](const Eager&) -> absl::StatusOr<Tensor> { return SparseValues(*x); });
}

absl::Status InferIndices(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  if (!IsCoo(context->Input("x").kind))
    return InvalidArgument("x is a CSR tensor; expected COO");
  context->SetOutput("out", {-1, -1}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindIndices(BindContext* context) {
  Tensor* x = context->Input("x");
  return Giving(
      context->Output("out"),
      [=](const Eager&) -> absl::StatusOr<Tensor> { return CooIndices(*x); });
}

absl::Status InferToDense(InferContext* context) {
  PD_RETURN_IF_ERROR(NeedSparse(*context, "x"));
  const TensorMeta& x = context->Input("x");
  context->SetOutput("out", x.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindToDense(BindContext* context) {
  Tensor* x = context->Input("x");
  return Giving(context->Output("out"),
                [=](const Eager&) { return SparseToDense(*x); });
}

absl::Status InferToCoo(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  SetSparse(context, "out", VarKind::kSparseCoo, x.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindToCoo(BindContext* context) {
  Tensor* x = context->Input("x");
  const int64_t sparse_dim = context->Attr<int64_t>("sparse_dim");
  return Giving(context->Output("out"), [=](const Eager&) {
    return x->kind() == VarKind::kLodTensor ? DenseToCoo(*x, sparse_dim)
                                            : AsCoo(*x);
  });
}

absl::Status InferToCsr(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  SetSparse(context, "out", VarKind::kSparseCsr, x.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindToCsr(BindContext* context) {
  Tensor* x = context->Input("x");
  return Giving(
      context->Output("out"), [=](const Eager&) -> absl::StatusOr<Tensor> {
        if (IsCsr(x->kind())) return *x;
        if (IsCoo(x->kind())) return CooToCsr(*x);
        PD_ASSIGN_OR_RETURN(const Tensor coo,
                            DenseToCoo(*x, static_cast<int64_t>(x->rank())));
        return CooToCsr(coo);
      });
}

absl::Status InferCoalesce(InferContext* context) {
  PD_RETURN_IF_ERROR(InferLikeX(context));
  if (IsCoo(context->Input("x").kind)) return absl::OkStatus();
  return InvalidArgument("x is a CSR tensor; expected COO");
}

absl::StatusOr<Step> BindCoalesce(BindContext* context) {
  Tensor* x = context->Input("x");
  return Giving(context->Output("out"),
                [=](const Eager&) { return Coalesced(*x); });
}

absl::StatusOr<Step> BindCooTensorGrad(BindContext* context) {
  Tensor* out_grad = context->Input("out@GRAD");
  return Giving(context->Output("values@GRAD"),
                [=](const Eager&) -> absl::StatusOr<Tensor> {
                  return SparseValues(*out_grad);
                });
}

absl::StatusOr<Step> BindValuesGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  return Giving(context->Output("x@GRAD"),
                [=](const Eager&) -> absl::StatusOr<Tensor> {
                  return WithValues(*x, CloneOf(*out_grad));
                });
}

absl::StatusOr<Step> BindToDenseGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  return Giving(context->Output("x@GRAD"),
                [=](const Eager&) -> absl::StatusOr<Tensor> {
                  PD_ASSIGN_OR_RETURN(Tensor values, ValuesAt(*out_grad, *x));
                  return WithValues(*x, std::move(values));
                });
}

// The order of the values of COO and CSR forms of a tensor is the same, but for
// the form that sorts.
absl::StatusOr<Step> BindToFormGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out_grad = context->Input("out@GRAD");
  return Giving(
      context->Output("x@GRAD"), [=](const Eager&) -> absl::StatusOr<Tensor> {
        if (x->kind() == VarKind::kLodTensor) return SparseToDense(*out_grad);
        Tensor values = SparseValues(*out_grad);
        if (IsCoo(x->kind()) && IsCsr(out_grad->kind())) {
          const std::vector<int64_t> order = CsrOrder(*x);
          PD_ASSIGN_OR_RETURN(
              values,
              SumRowsBy(values, order, static_cast<int64_t>(order.size())));
        }
        return WithValues(*x, std::move(values));
      });
}

OpDef OfX(const char* type) {
  OpDef op(type);
  op.Input("x").Output("out");
  return op;
}

}  // namespace

absl::Status RegisterSparseCreate(OpRegistry* registry) {
  OpDef make("sparse_sparse_coo_tensor");
  make.Input("values").Input("indices").Output("out");
  make.Attr("shape", std::vector<int64_t>());
  absl::Status status =
      AddSparse(registry, std::move(make), InferCooTensor, BindCooTensor,
                {"values", "indices"}, {}, {"values"}, BindCooTensorGrad);
  OpDef coo = OfX("sparse_to_sparse_coo");
  coo.RequiredAttr("sparse_dim", AttrType::kLong);
  status.Update(AddSparse(registry, std::move(coo), InferToCoo, BindToCoo,
                          {"x"}, {}, {"x"}, BindToFormGrad));
  status.Update(AddSparse(registry, OfX("sparse_to_sparse_csr"), InferToCsr,
                          BindToCsr, {"x"}, {}, {"x"}, BindToFormGrad));
  status.Update(AddSparse(registry, OfX("sparse_values"), InferValues,
                          BindValues, {"x"}, {}, {"x"}, BindValuesGrad));
  status.Update(
      AddSparse(registry, OfX("sparse_indices"), InferIndices, BindIndices));
  status.Update(AddSparse(registry, OfX("sparse_to_dense"), InferToDense,
                          BindToDense, {"x"}, {}, {"x"}, BindToDenseGrad));
  status.Update(
      AddSparse(registry, OfX("sparse_coalesce"), InferCoalesce, BindCoalesce));
  return status;
}

}  // namespace pd
