// SPDX-License-Identifier: Apache-2.0
// Attention at the places of a CSR matrix alone. Q, K, V: [n, heads, length,
// d]; row i of a head may look at the columns from Offset[i] up to Offset[i +
// 1]:
//   SparseDotSdd = Q K^T at these places
//   Softmax = softmax(SparseDotSdd / sqrt(d)) of each row, 0 where
//             KeyPaddingMask [n, length] or AttnMask [length, length] is 0
//   Out = Softmax V;  rows without a place are 0
// Gradients with S for Softmax, P = S (dS - sum(S dS)) / sqrt(d), dS = dOut
// V^T:
//   V@GRAD = S^T Out@GRAD, Q@GRAD = P K, K@GRAD = P^T Q
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferSparseAttentionForward(InferContext* context) {
  const TensorMeta& q = context->Input("Q");
  if (q.shape.size() != 4)
    return InvalidArgument("Q has shape %s; expected [n, heads, length, d]",
                           ToString(q.shape));
  const Shape places = context->Input("Columns").shape;
  context->SetOutput("SparseDotSdd", places, q.dtype);
  context->SetOutput("Softmax", places, q.dtype);
  context->Share("Q", "Out");
  return absl::OkStatus();
}

// The sparse matrices of all heads.
struct Places {
  const Tensor* offset = nullptr;
  const Tensor* columns = nullptr;
  int64_t heads = 0;  // of all examples
  int64_t length = 0, size = 0;

  int64_t capacity() const { return columns->dim(2); }
  const int32_t* Rows(int64_t head) const {
    return offset->data<int32_t>() + head * (length + 1);
  }
  const int32_t* Columns(int64_t head) const {
    return columns->data<int32_t>() + head * capacity();
  }

  absl::Status Check() const {
    for (int64_t head = 0; head < heads; ++head) {
      const int32_t* rows = Rows(head);
      for (int64_t i = 0; i <= length; ++i)
        if (rows[i] < (i == 0 ? 0 : rows[i - 1]) || rows[i] > capacity())
          return OutOfRange(
              "'Offset' holds %d; expected rising numbers from 0 to %d",
              rows[i], capacity());
      for (int64_t k = rows[0]; k < rows[length]; ++k)
        if (Columns(head)[k] < 0 || Columns(head)[k] >= length)
          return OutOfRange("'Columns' holds %d; expected 0 to %d",
                            Columns(head)[k], length - 1);
    }
    return absl::OkStatus();
  }

  // Calls body(head) for each head, several at a time.
  template <typename Body>
  void ForEachHead(const Body& body) const {
    const int64_t grain = 8192 / (capacity() * size + 1) + 1;
    ParallelFor(heads, grain, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) body(head);
    });
  }
};

absl::StatusOr<Places> ReadPlaces(BindContext* context) {
  const Tensor* q = context->Input("Q");
  if (q->shape().size() != 4)
    return InvalidArgument("Q has shape %s; expected [n, heads, length, d]",
                           ToString(q->shape()));
  for (const char* slot : {"K", "V"})
    PD_RETURN_IF_ERROR(ExpectInput(*context, slot, q->dtype(), q->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Offset", DType::kInt32,
                                 {q->dim(0), q->dim(1), q->dim(2) + 1}));
  Places places;
  places.offset = context->Input("Offset");
  places.columns = context->Input("Columns");
  if (places.columns->rank() != 3)
    return InvalidArgument("Columns has shape %s; expected [n, heads, places]",
                           ToString(places.columns->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Columns", DType::kInt32,
                  {q->dim(0), q->dim(1), places.columns->dim(2)}));
  places.heads = q->dim(0) * q->dim(1);
  places.length = q->dim(2);
  places.size = q->dim(3);
  return places;
}

template <typename T>
T Dot(const T* a, const T* b, int64_t n) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename T>
void AddScaled(T factor, const T* x, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * x[i];
}

// softmax(dots / sqrt(size)) of places begin to end; `hidden(k)` are left out.
template <typename T, typename Hidden>
void RowSoftmax(const T* dots, int64_t begin, int64_t end, T scale,
                const Hidden& hidden, T* weights) {
  T max = -std::numeric_limits<T>::infinity(), sum = T(0);
  for (int64_t k = begin; k < end; ++k)
    if (!hidden(k)) max = std::max(max, dots[k] * scale);
  for (int64_t k = begin; k < end; ++k)
    sum += weights[k] = hidden(k) ? T(0) : std::exp(dots[k] * scale - max);
  for (int64_t k = begin; sum > T(0) && k < end; ++k) weights[k] /= sum;
}

absl::StatusOr<Step> BindSparseAttentionForward(BindContext* context) {
  Tensor* q = context->Input("Q");
  Tensor* k = context->Input("K");
  Tensor* v = context->Input("V");
  Tensor* keys = context->Input("KeyPaddingMask");
  Tensor* pairs = context->Input("AttnMask");
  Tensor* dots = context->Output("SparseDotSdd");
  Tensor* softmax = context->Output("Softmax");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Places p, ReadPlaces(context));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "KeyPaddingMask", q->dtype(),
                                         {q->dim(0), p.length}));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "AttnMask", q->dtype(),
                                         {p.length, p.length}));
  const int64_t heads_each = q->dim(1);
  return DispatchFloat(q->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    const auto scale = static_cast<T>(1 / std::sqrt(double(p.size)));
    const auto head_step = [=](int64_t head) {
      const int64_t at = head * p.length * p.size, n = p.size;
      const int32_t* rows = p.Rows(head);
      const int32_t* columns = p.Columns(head);
      T* dot = dots->data<T>() + head * p.capacity();
      T* weights = softmax->data<T>() + head * p.capacity();
      std::fill_n(dot, p.capacity(), T(0));
      std::fill_n(weights, p.capacity(), T(0));
      std::fill_n(out->data<T>() + at, p.length * n, T(0));
      const T* key_mask = keys == nullptr
                              ? nullptr
                              : keys->data<T>() + head / heads_each * p.length;
      for (int64_t i = 0; i < p.length; ++i) {
        const T* pair_mask =
            pairs == nullptr ? nullptr : pairs->data<T>() + i * p.length;
        for (int64_t m = rows[i]; m < rows[i + 1]; ++m)
          dot[m] = Dot(q->data<T>() + at + i * n,
                       k->data<T>() + at + columns[m] * n, n);
        const auto hidden = [=](int64_t m) {
          return (key_mask != nullptr && key_mask[columns[m]] == T(0)) ||
                 (pair_mask != nullptr && pair_mask[columns[m]] == T(0));
        };
        RowSoftmax(dot, rows[i], rows[i + 1], scale, hidden, weights);
        for (int64_t m = rows[i]; m < rows[i + 1]; ++m)
          AddScaled(weights[m], v->data<T>() + at + columns[m] * n, n,
                    out->data<T>() + at + i * n);
      }
    };
    return Step([p, head_step](const RunContext&) {
      PD_RETURN_IF_ERROR(p.Check());
      p.ForEachHead(head_step);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindGrad(BindContext* context) {
  Tensor* q = context->Input("Q");
  Tensor* k = context->Input("K");
  Tensor* v = context->Input("V");
  Tensor* softmax = context->Input("Softmax");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* grads[] = {context->Output("Q@GRAD"), context->Output("K@GRAD"),
                     context->Output("V@GRAD")};
  PD_ASSIGN_OR_RETURN(const Places p, ReadPlaces(context));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", q->dtype(), q->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Softmax", q->dtype(), p.columns->shape()));
  Tensor* dq = grads[0];
  Tensor* dk = grads[1];
  Tensor* dv = grads[2];
  return DispatchFloat(q->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    const auto scale = static_cast<T>(1 / std::sqrt(double(p.size)));
    const auto head_step = [=](int64_t head) {
      const int64_t at = head * p.length * p.size, n = p.size;
      const int32_t* rows = p.Rows(head);
      const int32_t* columns = p.Columns(head);
      const T* weights = softmax->data<T>() + head * p.capacity();
      for (Tensor* grad : {dq, dk, dv})
        if (grad != nullptr)
          std::fill_n(grad->data<T>() + at, p.length * n, T(0));
      for (int64_t i = 0; i < p.length; ++i) {
        const T* dy = dout->data<T>() + at + i * n;
        const auto slope = [&](int64_t m) {
          return Dot(dy, v->data<T>() + at + columns[m] * n, n);
        };
        T mean = T(0);
        for (int64_t m = rows[i]; m < rows[i + 1]; ++m)
          mean += weights[m] * slope(m);
        for (int64_t m = rows[i]; m < rows[i + 1]; ++m) {
          const int64_t row = at + i * n, column = at + columns[m] * n;
          const T d = weights[m] * (slope(m) - mean) * scale;
          if (dv != nullptr)
            AddScaled(weights[m], dy, n, dv->data<T>() + column);
          if (dq != nullptr)
            AddScaled(d, k->data<T>() + column, n, dq->data<T>() + row);
          if (dk != nullptr)
            AddScaled(d, q->data<T>() + row, n, dk->data<T>() + column);
        }
      }
    };
    return Step([p, head_step](const RunContext&) {
      PD_RETURN_IF_ERROR(p.Check());
      p.ForEachHead(head_step);
      return absl::OkStatus();
    });
  });
}

absl::Status InferSparseAttentionGrad(InferContext* context) {
  for (const char* slot : {"Q", "K", "V"})
    context->Share(slot, std::string(slot) + "@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterSparseAttention(OpRegistry* registry) {
  OpDef op("sparse_attention"), grad("sparse_attention_grad");
  for (const char* slot : {"Q", "K", "V", "Offset", "Columns"}) {
    op.Input(slot);
    grad.Input(slot);
  }
  op.OptionalInput("KeyPaddingMask").OptionalInput("AttnMask");
  op.Output("Out").Output("SparseDotSdd").Output("Softmax");
  op.Infer(InferSparseAttentionForward).Reference(BindSparseAttentionForward);
  op.Grad(GradSpec{"sparse_attention_grad",
                   {"Q", "K", "V", "Offset", "Columns"},
                   {"SparseDotSdd", "Softmax"},
                   {"Out"},
                   {"Q", "K", "V"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("SparseDotSdd").Input("Softmax").Input("Out@GRAD");
  for (const char* slot : {"Q@GRAD", "K@GRAD", "V@GRAD"})
    grad.OptionalOutput(slot);
  grad.Infer(InferSparseAttentionGrad).NoGrad().Reference(BindGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
