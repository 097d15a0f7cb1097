// SPDX-License-Identifier: Apache-2.0
// x op y of two sparse tensors of one shape: the places of either, in order,
// where the other counts as 0. sparse_divide divides at every place, so places
// of neither are 0 / 0. sparse_add keeps the places that both have in one
// order, and adds a dense vector y to the last, dense, axis of x.
#include <algorithm>

#include "absl/strings/match.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

// The rows of each tensor at the places of a result; -1: none.
struct Union {
  Places places;
  std::vector<int64_t> x, y;
};

// Both have each place once, in order.
Union Joined(const Places& x, const Places& y, bool everywhere) {
  Union all;
  all.places.extents = x.extents;
  all.places.dtype = x.dtype;
  if (everywhere) {
    const int64_t count = NumElements(x.extents);
    for (int64_t at = 0; at < count; ++at) all.places.flat.push_back(at);
  } else {
    std::set_union(x.flat.begin(), x.flat.end(), y.flat.begin(), y.flat.end(),
                   std::back_inserter(all.places.flat));
  }
  all.x = RowsAt(x, all.places.flat);
  all.y = RowsAt(y, all.places.flat);
  return all;
}

absl::StatusOr<Tensor> Computed(const Eager& eager, const char* dense,
                                const Tensor& x, const Tensor& y) {
  PD_ASSIGN_OR_RETURN(Tensor a, AsCoo(x));
  PD_ASSIGN_OR_RETURN(Tensor b, AsCoo(y));
  if (std::string(dense) == "elementwise_add" && HaveSamePlaces(x, y)) {
    PD_ASSIGN_OR_RETURN(
        Tensor values,
        eager.Run(dense, {{"X", &SparseValues(x)}, {"Y", &SparseValues(y)}}));
    return WithValues(x, std::move(values));
  }
  PD_ASSIGN_OR_RETURN(a, Coalesced(a));
  PD_ASSIGN_OR_RETURN(b, Coalesced(b));
  const Places of_a = PlacesOf(a), of_b = PlacesOf(b);
  if (of_a.extents.size() != of_b.extents.size())
    return InvalidArgument("x has %d sparse axes and y %d", of_a.extents.size(),
                           of_b.extents.size());
  const bool everywhere = std::string(dense) == "elementwise_div";
  if (everywhere)
    PD_RETURN_IF_ERROR(CheckedBytes(x.shape(), sizeof(int64_t)).status());
  const Union all = Joined(of_a, of_b, everywhere);
  PD_ASSIGN_OR_RETURN(Tensor left, GatherRows(SparseValues(a), all.x));
  PD_ASSIGN_OR_RETURN(Tensor right, GatherRows(SparseValues(b), all.y));
  PD_ASSIGN_OR_RETURN(Tensor values,
                      eager.Run(dense, {{"X", &left}, {"Y", &right}}));
  PD_ASSIGN_OR_RETURN(Tensor indices, IndicesOf(all.places));
  PD_ASSIGN_OR_RETURN(
      Tensor made, MakeCoo(std::move(indices), std::move(values), x.shape()));
  return InForm(x.kind(), std::move(made));
}

}  // namespace

absl::StatusOr<Tensor> SparseSum(const Eager& eager, const Tensor& x,
                                 const Tensor& y) {
  return Computed(eager, "elementwise_add", x, y);
}

namespace {

// A dense vector y is added to the rows of the values.
absl::Status InferBias(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  const TensorMeta& y = context->Input("y");
  if (context->op().type != "sparse_add")
    return InvalidArgument("'y' is no sparse tensor");
  if (x.value != nullptr &&
      (SparseValues(*x.value).rank() < 2 || y.shape != Shape{x.shape.back()}))
    return InvalidArgument(
        "y has shape %s; expected the extent of the last axis of x, %s, which "
        "is dense",
        ToString(y.shape), ToString(x.shape));
  if (x.dtype == y.dtype) return absl::OkStatus();
  return InvalidArgument("x is %s and y %s", Name(x.dtype), Name(y.dtype));
}

absl::Status InferTwo(InferContext* context) {
  PD_RETURN_IF_ERROR(InferLikeX(context));
  if (context->Input("y").kind == VarKind::kLodTensor)
    return InferBias(context);
  PD_RETURN_IF_ERROR(NeedSparse(*context, "y"));
  const TensorMeta& x = context->Input("x");
  const TensorMeta& y = context->Input("y");
  if (x.kind != y.kind)
    return InvalidArgument("x and y are COO and CSR; expected one form");
  if (x.dtype != y.dtype)
    return InvalidArgument("x is %s and y %s", Name(x.dtype), Name(y.dtype));
  if (!IsDynamic(x.shape) && !IsDynamic(y.shape) && x.shape != y.shape)
    return InvalidArgument("x has shape %s and y %s; expected the same",
                           ToString(x.shape), ToString(y.shape));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> WithBias(const Eager& eager, const Tensor& x,
                                Tensor* y) {
  PD_ASSIGN_OR_RETURN(
      Tensor values,
      eager.Run("elementwise_add", {{"X", &SparseValues(x)}, {"Y", y}}));
  return WithValues(x, std::move(values));
}

const char* DenseOf(const std::string& type) {
  if (absl::StartsWith(type, "sparse_add")) return "elementwise_add";
  if (absl::StartsWith(type, "sparse_subtract")) return "elementwise_sub";
  if (absl::StartsWith(type, "sparse_multiply")) return "elementwise_mul";
  return "elementwise_div";
}

absl::StatusOr<Step> BindTwo(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  const char* dense = DenseOf(context->op().type);
  return Giving(context->Output("out"), [=](const Eager& eager) {
    if (y->kind() == VarKind::kLodTensor) return WithBias(eager, *x, y);
    return Computed(eager, dense, *x, *y);
  });
}

// The gradient of `of`, which is x or y: that of the dense operator at its
// places, where the other counts as 0.
absl::StatusOr<Tensor> GradOf(const Eager& eager, const char* dense,
                              const Tensor& x, const Tensor& y,
                              const Tensor& out_grad, bool of_y) {
  PD_ASSIGN_OR_RETURN(const Tensor a, AsCoo(x));
  PD_ASSIGN_OR_RETURN(const Tensor b, AsCoo(y));
  PD_ASSIGN_OR_RETURN(const Tensor c, AsCoo(out_grad));
  const std::vector<int64_t> flat = PlacesOf(of_y ? b : a).flat;
  const auto at = [&](const Tensor& coo) {
    return GatherRows(SparseValues(coo), RowsAt(PlacesOf(coo), flat));
  };
  PD_ASSIGN_OR_RETURN(Tensor left, of_y ? at(a) : SparseValues(a));
  PD_ASSIGN_OR_RETURN(Tensor right, of_y ? SparseValues(b) : at(b));
  PD_ASSIGN_OR_RETURN(Tensor grad, at(c));
  PD_ASSIGN_OR_RETURN(Tensor out,
                      eager.Run(dense, {{"X", &left}, {"Y", &right}}));
  PD_ASSIGN_OR_RETURN(
      std::vector<Tensor> grads,
      eager.Gradients(dense, {{"X", &left}, {"Y", &right}}, {}, {{"Out", &out}},
                      "Out", &grad, {of_y ? "Y" : "X"}));
  return WithValues(of_y ? y : x, std::move(grads[0]));
}

absl::StatusOr<Tensor> BiasGrad(const Eager& eager, const Tensor& out_grad) {
  Tensor& values = SparseValues(out_grad);
  std::vector<int32_t> axes;
  for (size_t d = 0; d + 1 < values.rank(); ++d)
    axes.push_back(static_cast<int32_t>(d));
  return eager.Run("reduce_sum", {{"X", &values}}, {{"dim", axes}});
}

absl::StatusOr<Step> BindTwoGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  Tensor* out_grad = context->Input("out@GRAD");
  Tensor* x_grad = context->Output("x@GRAD");
  Tensor* y_grad = context->Output("y@GRAD");
  const char* dense = DenseOf(context->op().type);
  return Step([=](const RunContext& run) -> absl::Status {
    const Eager eager(run);
    const bool bias = y->kind() == VarKind::kLodTensor;
    // The places of both, in one order, are those of the sum.
    const bool same = !bias && std::string(dense) == "elementwise_add" &&
                      HaveSamePlaces(*x, *y);
    if (x_grad != nullptr) {
      PD_ASSIGN_OR_RETURN(Tensor grad,
                          bias || same
                              ? WithValues(*x, SparseValues(*out_grad))
                              : GradOf(eager, dense, *x, *y, *out_grad, false));
      PD_RETURN_IF_ERROR(Give(std::move(grad), x_grad));
    }
    if (y_grad == nullptr) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(
        Tensor grad,
        bias ? BiasGrad(eager, *out_grad)
             : (same ? absl::StatusOr<Tensor>(
                           WithValues(*y, SparseValues(*out_grad)))
                     : GradOf(eager, dense, *x, *y, *out_grad, true)));
    return Give(std::move(grad), y_grad);
  });
}

absl::Status AddTwo(OpRegistry* registry, const char* type) {
  OpDef op(type);
  op.Input("x").Input("y").Output("out");
  return AddSparse(registry, std::move(op), InferTwo, BindTwo, {"x", "y"}, {},
                   {"x", "y"}, BindTwoGrad);
}

}  // namespace

absl::Status RegisterSparseElementwise(OpRegistry* registry) {
  absl::Status status = AddTwo(registry, "sparse_add");
  status.Update(AddTwo(registry, "sparse_subtract"));
  status.Update(AddTwo(registry, "sparse_multiply"));
  status.Update(AddTwo(registry, "sparse_divide"));
  return status;
}

}  // namespace pd
