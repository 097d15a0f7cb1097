// SPDX-License-Identifier: Apache-2.0
// Softmax over the values that lie along one axis; places without a value count
// as minus infinity, so they stay without one. CSR: along the rows.
//   sparse_fused_attention: softmax(q k' / sqrt(depth)) v of query, key and
//     value [batch, heads, n, depth] at the places of sparse_mask, CSR of
//     [batch * heads, n, n]; a place is left out where key_padding_mask
//     [batch, n] or attn_mask [n, n] is 0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

// The group of each value: those that differ in the coordinate `axis` alone.
std::vector<int64_t> GroupsAlong(const Places& places, size_t axis,
                                 int64_t* count) {
  std::map<int64_t, int64_t> numbers;
  std::vector<int64_t> groups;
  for (const int64_t others : WithoutAxis(places, axis))
    groups.push_back(
        numbers.emplace(others, static_cast<int64_t>(numbers.size()))
            .first->second);
  *count = static_cast<int64_t>(numbers.size());
  return groups;
}

// Of values [nnz, width], over the values of each group, column by column.
template <typename T>
void SoftmaxOf(const T* x, const std::vector<int64_t>& groups, int64_t count,
               int64_t width, T* out) {
  const auto cells = static_cast<size_t>(count * width);
  std::vector<T> most(cells, -std::numeric_limits<T>::infinity());
  std::vector<T> sums(cells, T(0));
  for (size_t k = 0; k < groups.size(); ++k)
    for (int64_t j = 0; j < width; ++j) {
      T& top = most[static_cast<size_t>(groups[k] * width + j)];
      const T value = x[static_cast<int64_t>(k) * width + j];
      if (!(value <= top)) top = value;
    }
  for (size_t k = 0; k < groups.size(); ++k)
    for (int64_t j = 0; j < width; ++j) {
      const auto cell = static_cast<size_t>(groups[k] * width + j);
      const int64_t at = static_cast<int64_t>(k) * width + j;
      out[at] = std::exp(x[at] - most[cell]);
      sums[cell] += out[at];
    }
  for (size_t k = 0; k < groups.size(); ++k)
    for (int64_t j = 0; j < width; ++j)
      out[static_cast<int64_t>(k) * width + j] /=
          sums[static_cast<size_t>(groups[k] * width + j)];
}

absl::StatusOr<Tensor> Softmax(const Tensor& x, int64_t axis) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(x));
  const Places places = PlacesOf(coo);
  int64_t count = 0;
  const std::vector<int64_t> groups =
      GroupsAlong(places, static_cast<size_t>(axis), &count);
  const Tensor& values = SparseValues(coo);
  Tensor made;
  PD_RETURN_IF_ERROR(made.Resize(values.dtype(), values.shape()));
  PD_RETURN_IF_ERROR(
      DispatchFloat(values.dtype(), [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        SoftmaxOf(values.data<T>(), groups, count,
                  NumElements(values.shape(), 1, values.rank()),
                  made.data<T>());
        return absl::OkStatus();
      }));
  return WithValues(x, std::move(made));
}

// out * (out@GRAD - sum(out@GRAD * out)), the sum over the group.
template <typename T>
void SoftmaxGradOf(const T* out, const T* grad,
                   const std::vector<int64_t>& groups, int64_t count,
                   int64_t width, T* x_grad) {
  std::vector<T> sums(static_cast<size_t>(count * width), T(0));
  for (size_t k = 0; k < groups.size(); ++k)
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = static_cast<int64_t>(k) * width + j;
      sums[static_cast<size_t>(groups[k] * width + j)] += out[at] * grad[at];
    }
  for (size_t k = 0; k < groups.size(); ++k)
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = static_cast<int64_t>(k) * width + j;
      x_grad[at] = out[at] * (grad[at] -
                              sums[static_cast<size_t>(groups[k] * width + j)]);
    }
}

absl::StatusOr<Tensor> SoftmaxGrad(const Tensor& out, const Tensor& out_grad,
                                   int64_t axis) {
  PD_ASSIGN_OR_RETURN(const Tensor coo, AsCoo(out));
  int64_t count = 0;
  const std::vector<int64_t> groups =
      GroupsAlong(PlacesOf(coo), static_cast<size_t>(axis), &count);
  const Tensor& values = SparseValues(coo);
  Tensor made;
  PD_RETURN_IF_ERROR(made.Resize(values.dtype(), values.shape()));
  PD_RETURN_IF_ERROR(
      DispatchFloat(values.dtype(), [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        SoftmaxGradOf(
            values.data<T>(), SparseValues(out_grad).data<T>(), groups, count,
            NumElements(values.shape(), 1, values.rank()), made.data<T>());
        return absl::OkStatus();
      }));
  return WithValues(out, std::move(made));
}

absl::Status NeedFloat(const TensorMeta& x) {
  if (x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64)
    return absl::OkStatus();
  return InvalidArgument("x is %s; expected float32 or float64", Name(x.dtype));
}

absl::Status InferSoftmax(InferContext* context) {
  PD_RETURN_IF_ERROR(InferLikeX(context));
  const TensorMeta& x = context->Input("x");
  PD_RETURN_IF_ERROR(NeedFloat(x));
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("axis"), x.shape.size()));
  if (IsCsr(x.kind) && axis + 1 != static_cast<int>(x.shape.size()))
    return InvalidArgument("attr 'axis' is %d; CSR has the last axis alone",
                           context->Attr<int32_t>("axis"));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSoftmax(BindContext* context) {
  Tensor* x = context->Input("x");
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(context->Attr<int32_t>("axis"), x->rank()));
  return Giving(
      context->Output("out"),
      [=](const Eager& eager) -> absl::StatusOr<Tensor> {
        const auto sparse = IsCsr(x->kind()) ? static_cast<int64_t>(x->rank())
                                             : CooIndices(*x).dim(0);
        if (axis < sparse) return Softmax(*x, axis);
        PD_ASSIGN_OR_RETURN(
            Tensor values,
            eager.Run("softmax", {{"X", &SparseValues(*x)}},
                      {{"axis", static_cast<int32_t>(axis - sparse + 1)}}));
        return WithValues(*x, std::move(values));
      });
}

absl::StatusOr<Step> BindSoftmaxGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Input("out");
  Tensor* out_grad = context->Input("out@GRAD");
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(context->Attr<int32_t>("axis"), x->rank()));
  return Giving(
      context->Output("x@GRAD"),
      [=](const Eager& eager) -> absl::StatusOr<Tensor> {
        const auto sparse = IsCsr(x->kind()) ? static_cast<int64_t>(x->rank())
                                             : CooIndices(*x).dim(0);
        if (axis < sparse) return SoftmaxGrad(*out, *out_grad, axis);
        PD_ASSIGN_OR_RETURN(
            std::vector<Tensor> grads,
            eager.Gradients("softmax", {{"X", &SparseValues(*x)}},
                            {{"axis", static_cast<int32_t>(axis - sparse + 1)}},
                            {{"Out", &SparseValues(*out)}}, "Out",
                            &SparseValues(*out_grad), {"X"}));
        return WithValues(*x, std::move(grads[0]));
      });
}

absl::Status InferAttention(InferContext* context) {
  const TensorMeta& q = context->Input("query");
  const TensorMeta& mask = context->Input("sparse_mask");
  PD_RETURN_IF_ERROR(NeedFloat(q));
  for (const char* slot : {"query", "key", "value"}) {
    PD_RETURN_IF_ERROR(NeedDense(*context, slot));
    const TensorMeta& one = context->Input(slot);
    if (one.shape.size() != 4 || one.dtype != q.dtype ||
        (!IsDynamic(one.shape) && !IsDynamic(q.shape) && one.shape != q.shape))
      return InvalidArgument(
          "%s is %s%s; expected %s%s, [batch, heads, n, depth]", slot,
          Name(one.dtype), ToString(one.shape), Name(q.dtype),
          ToString(q.shape));
  }
  if (!IsCsr(mask.kind) || mask.shape.size() != 3)
    return InvalidArgument("sparse_mask is no CSR tensor of rank 3");
  const auto check = [&](const char* slot, const Shape& want) -> absl::Status {
    const Shape& shape = context->Input(slot).shape;
    if (IsDynamic(shape) || IsDynamic(want) || shape == want)
      return absl::OkStatus();
    return InvalidArgument("%s has shape %s; expected %s", slot,
                           ToString(shape), ToString(want));
  };
  const int64_t n = q.shape[2];
  const bool known = q.shape[0] >= 0 && q.shape[1] >= 0;
  PD_RETURN_IF_ERROR(
      check("sparse_mask", {known ? q.shape[0] * q.shape[1] : -1, n, n}));
  if (context->HasInput("key_padding_mask"))
    PD_RETURN_IF_ERROR(check("key_padding_mask", {q.shape[0], n}));
  if (context->HasInput("attn_mask"))
    PD_RETURN_IF_ERROR(check("attn_mask", {n, n}));
  for (const char* slot : {"key_padding_mask", "attn_mask"})
    if (context->HasInput(slot) && context->Input(slot).dtype != q.dtype)
      return InvalidArgument("%s is %s and query %s", slot,
                             Name(context->Input(slot).dtype), Name(q.dtype));
  context->SetOutput("out", q.shape, q.dtype);
  SetSparse(context, "softmax", mask.kind, mask.shape, q.dtype);
  return absl::OkStatus();
}

struct Attention {
  const Tensor *q, *k, *v, *mask, *padding, *attn;
  Tensor *out, *softmax;

  template <typename T>
  absl::Status Run() const {
    const int64_t heads = q->dim(1), n = q->dim(2), depth = q->dim(3);
    const T scale = T(1) / std::sqrt(static_cast<T>(depth));
    const std::vector<int64_t> crows = IntsOf(CsrRows(*mask));
    const std::vector<int64_t> columns = IntsOf(CsrColumns(*mask));
    Tensor values;
    PD_RETURN_IF_ERROR(values.Resize(q->dtype(), SparseValues(*mask).shape()));
    PD_RETURN_IF_ERROR(out->Resize(q->dtype(), q->shape()));
    std::fill_n(out->data<T>(), out->size(), T(0));
    size_t at = 0;  // of the places
    for (int64_t row = 0; row < q->dim(0) * heads * n; ++row) {
      const int64_t matrix = row / n, r = row % n;
      const int64_t begin = crows[static_cast<size_t>(matrix * (n + 1) + r)];
      const int64_t end = crows[static_cast<size_t>(matrix * (n + 1) + r + 1)];
      T* p = values.data<T>() + at;
      T top = -std::numeric_limits<T>::infinity(), sum = 0;
      for (int64_t i = 0; i < end - begin; ++i) {
        const int64_t c = columns[at + static_cast<size_t>(i)];
        const bool left_out =
            (padding != nullptr &&
             padding->data<T>()[matrix / heads * n + c] == T(0)) ||
            (attn != nullptr && attn->data<T>()[r * n + c] == T(0));
        T score = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += q->data<T>()[row * depth + d] *
                   k->data<T>()[(matrix * n + c) * depth + d];
        p[i] = left_out ? -std::numeric_limits<T>::infinity() : score * scale;
        if (!(p[i] <= top)) top = p[i];
      }
      for (int64_t i = 0; i < end - begin; ++i)
        sum += p[i] = std::exp(p[i] - top);
      for (int64_t i = 0; i < end - begin; ++i) {
        p[i] /= sum;
        const int64_t c = columns[at + static_cast<size_t>(i)];
        for (int64_t d = 0; d < depth; ++d)
          out->data<T>()[row * depth + d] +=
              p[i] * v->data<T>()[(matrix * n + c) * depth + d];
      }
      at += static_cast<size_t>(end - begin);
    }
    if (softmax != nullptr) *softmax = WithValues(*mask, std::move(values));
    return absl::OkStatus();
  }
};

absl::StatusOr<Step> BindAttention(BindContext* context) {
  const Attention attention{context->Input("query"),
                            context->Input("key"),
                            context->Input("value"),
                            context->Input("sparse_mask"),
                            context->Input("key_padding_mask"),
                            context->Input("attn_mask"),
                            context->Output("out"),
                            context->Output("softmax")};
  return Step([attention](const RunContext&) -> absl::Status {
    if (attention.q->dtype() == DType::kFloat64) return attention.Run<double>();
    return attention.Run<float>();
  });
}

struct AttentionGrad {
  const Tensor *q, *k, *v, *softmax, *out_grad;
  Tensor *q_grad, *k_grad, *v_grad;

  // Zeros for a gradient that is asked for.
  template <typename T>
  absl::StatusOr<T*> Zeros(Tensor* grad) const {
    if (grad == nullptr) return nullptr;
    PD_RETURN_IF_ERROR(grad->Resize(q->dtype(), q->shape()));
    std::fill_n(grad->data<T>(), grad->size(), T(0));
    return grad->data<T>();
  }

  template <typename T>
  absl::Status Run() const {
    PD_ASSIGN_OR_RETURN(T * dq, Zeros<T>(q_grad));
    PD_ASSIGN_OR_RETURN(T * dk, Zeros<T>(k_grad));
    PD_ASSIGN_OR_RETURN(T * dv, Zeros<T>(v_grad));
    const int64_t n = q->dim(2), depth = q->dim(3);
    const T scale = T(1) / std::sqrt(static_cast<T>(depth));
    const std::vector<int64_t> crows = IntsOf(CsrRows(*softmax));
    const std::vector<int64_t> columns = IntsOf(CsrColumns(*softmax));
    const T* p = SparseValues(*softmax).data<T>();
    size_t at = 0;
    for (int64_t row = 0; row < q->dim(0) * q->dim(1) * n; ++row) {
      const int64_t matrix = row / n;
      const size_t head = static_cast<size_t>(matrix * (n + 1) + row % n);
      const auto count = static_cast<size_t>(crows[head + 1] - crows[head]);
      const T* g = out_grad->data<T>() + row * depth;
      std::vector<T> inner(count, T(0));
      T sum = 0;
      for (size_t i = 0; i < count; ++i) {
        const int64_t other = (matrix * n + columns[at + i]) * depth;
        for (int64_t d = 0; d < depth; ++d) {
          inner[i] += g[d] * v->data<T>()[other + d];
          if (dv != nullptr) dv[other + d] += p[at + i] * g[d];
        }
        sum += inner[i] * p[at + i];
      }
      for (size_t i = 0; i < count; ++i) {
        const T score = scale * p[at + i] * (inner[i] - sum);
        const int64_t other = (matrix * n + columns[at + i]) * depth;
        for (int64_t d = 0; d < depth; ++d) {
          if (dq != nullptr)
            dq[row * depth + d] += score * k->data<T>()[other + d];
          if (dk != nullptr)
            dk[other + d] += score * q->data<T>()[row * depth + d];
        }
      }
      at += count;
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Step> BindAttentionGrad(BindContext* context) {
  const AttentionGrad grad{
      context->Input("query"),     context->Input("key"),
      context->Input("value"),     context->Input("softmax"),
      context->Input("out@GRAD"),  context->Output("query@GRAD"),
      context->Output("key@GRAD"), context->Output("value@GRAD")};
  return Step([grad](const RunContext&) -> absl::Status {
    if (grad.q->dtype() == DType::kFloat64) return grad.Run<double>();
    return grad.Run<float>();
  });
}

}  // namespace

absl::Status RegisterSparseSoftmax(OpRegistry* registry) {
  OpDef op("sparse_softmax");
  op.Input("x").Output("out").Attr("axis", int32_t{-1});
  PD_RETURN_IF_ERROR(AddSparse(registry, std::move(op), InferSoftmax,
                               BindSoftmax, {"x"}, {"out"}, {"x"},
                               BindSoftmaxGrad));
  OpDef attention("sparse_fused_attention");
  attention.Input("query").Input("key").Input("value").Input("sparse_mask");
  attention.OptionalInput("key_padding_mask").OptionalInput("attn_mask");
  attention.Output("out").IntermediateOutput("softmax");
  return AddSparse(registry, std::move(attention), InferAttention,
                   BindAttention, {"query", "key", "value"}, {"softmax"},
                   {"query", "key", "value"}, BindAttentionGrad);
}

}  // namespace pd
