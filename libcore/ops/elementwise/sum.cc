// SPDX-License-Identifier: Apache-2.0
// Out = X[0] + X[1] + ...: tensors of one shape. Selected rows: when all are,
// Out has all their rows one after the other; else Out is dense. Arrays are
// summed element by element; one that is missing counts as zero.
// Each X@GRAD is Out@GRAD, made by a scale op as PaddlePaddle does.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sparse/sparse_tensor.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

// All are selected rows of one tensor.
absl::Status InferRows(InferContext* context) {
  TensorMeta out = context->Input("X");
  for (size_t i = 1; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    if (x.dtype != out.dtype || x.shape.empty() ||
        x.shape.size() != out.shape.size() ||
        !std::equal(x.shape.begin() + 1, x.shape.end(), out.shape.begin() + 1))
      return InvalidArgument(
          "X[0] is %s %s, X[%d] is %s %s; expected rows of "
          "one width",
          Name(out.dtype), ToString(out.shape), i, Name(x.dtype),
          ToString(x.shape));
    int64_t& n = out.shape[0];
    n = n < 0 || x.shape[0] < 0 ? -1 : n + x.shape[0];
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferSum(InferContext* context) {
  if (context->InputCount("X") > 0 &&
      (context->Input("X").kind == VarKind::kLodTensorArray ||
       IsSparse(context->Input("X").kind))) {
    context->Share("X", "Out");
    return absl::OkStatus();
  }
  // The first dense one says what comes out; rows are added to it.
  size_t dense = 0;
  const size_t count = context->InputCount("X");
  while (dense < count &&
         context->Input("X", dense).kind == VarKind::kSelectedRows)
    ++dense;
  if (count > 0 && dense == count) return InferRows(context);
  TensorMeta out = context->Input("X", dense);
  out.value = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& x = context->Input("X", i);
    if (x.kind == VarKind::kSelectedRows) continue;
    bool fits = x.dtype == out.dtype && x.shape.size() == out.shape.size();
    for (size_t d = 0; fits && d < x.shape.size(); ++d) {
      if (out.shape[d] < 0) out.shape[d] = x.shape[d];
      fits = x.shape[d] == out.shape[d] || x.shape[d] < 0;
    }
    if (!fits)
      return InvalidArgument("X is %s %s, X[%d] is %s %s; expected the same",
                             Name(out.dtype), ToString(out.shape), i,
                             Name(x.dtype), ToString(x.shape));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// out = terms[0] + terms[1] + ... on [begin, end).
template <typename T>
void AddTerms(const std::vector<Tensor*>& terms, Tensor* sum, int64_t begin,
              int64_t end) {
  T* out = sum->data<T>();
  const T* first = terms[0]->data<T>();
  if (terms.size() == 1) {
    if (first != out) std::copy(first + begin, first + end, out + begin);
    return;
  }
  const T* second = terms[1]->data<T>();
#pragma omp simd
  for (int64_t i = begin; i < end; ++i)
    out[i] = Stored<T>(first[i] + second[i]);
  for (size_t k = 2; k < terms.size(); ++k) {
    const T* term = terms[k]->data<T>();
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) out[i] = Stored<T>(out[i] + term[i]);
  }
}

// The rows of all, one after the other.
absl::StatusOr<Step> ConcatRows(const std::vector<Tensor*>& terms,
                                Tensor* out) {
  int64_t rows = 0;
  for (const Tensor* x : terms) rows += x->dim(0);
  if (rows != out->dim(0))
    return InvalidArgument("'X' has %d rows; 'Out' has %d", rows, out->dim(0));
  return Step([terms, out](const RunContext&) {
    out->rows().clear();
    char* to = out->data<char>();
    for (const Tensor* x : terms) {
      out->rows().insert(out->rows().end(), x->rows().begin(), x->rows().end());
      if (x->bytes() > 0) std::memcpy(to, x->raw(), x->bytes());
      to += x->bytes();
    }
    out->set_height(terms.front()->height());
    return absl::OkStatus();
  });
}

// `sum`, and then selected rows are added to what it left in `out`.
absl::StatusOr<Step> ThenAddRows(const std::vector<Tensor*>& sparse,
                                 Tensor* out, Step sum) {
  for (const Tensor* x : sparse)
    if (x->dtype() != out->dtype() || x->rank() != out->rank() ||
        out->rank() == 0 || RowWidth(*x) != RowWidth(*out))
      return InvalidArgument("'X' is rows %s %s; 'Out' is %s %s",
                             Name(x->dtype()), ToString(x->shape()),
                             Name(out->dtype()), ToString(out->shape()));
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, sum = std::move(sum)](const RunContext& run) {
      PD_RETURN_IF_ERROR(sum(run));
      for (const Tensor* x : sparse) {
        PD_RETURN_IF_ERROR(CheckRows("X", *x, out->dim(0)));
        AddRows<T>(*x, out->data<T>());
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> SumDense(const std::vector<Tensor*>& terms, Tensor* out) {
  return DispatchTypes<float, double, Float16, BFloat16, int32_t, int64_t,
                       std::complex<float>, std::complex<double>>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([terms, out, n = out->size()](const RunContext&) {
          // Parts that stay in the cache from term to term.
          constexpr int64_t kPart = 4096;
          ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i += kPart)
              AddTerms<T>(terms, out, i, std::min(end, i + kPart));
          });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> SumArrays(BindContext* context, Tensor* out) {
  std::vector<Tensor*> arrays;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    if (x == nullptr || !x->is_array())
      return InvalidArgument("X[%d] is no array as X[0] is", i);
    arrays.push_back(x);
  }
  Values* values = ValuesOf(context);
  return Step([arrays, values, out](const RunContext&) -> absl::Status {
    Tensor sum;
    sum.set_kind(VarKind::kLodTensorArray);
    for (const Tensor* x : arrays)
      PD_RETURN_IF_ERROR(values->Accumulate(*x, &sum));
    out->elements() = std::move(sum.elements());
    return absl::OkStatus();
  });
}

// Sparse tensors with the same places: the gradients of one.
absl::StatusOr<Step> SumSparse(BindContext* context, Tensor* out) {
  std::vector<Tensor*> terms;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    if (x == nullptr || !x->is_sparse() ||
        !HaveSamePlaces(*context->Input("X"), *x))
      return InvalidArgument("X[%d] has other places than X[0]", i);
    terms.push_back(x);
  }
  return Giving(out, [terms](const Eager& eager) -> absl::StatusOr<Tensor> {
    Tensor sum = SparseValues(*terms[0]);
    for (size_t i = 1; i < terms.size(); ++i) {
      PD_ASSIGN_OR_RETURN(
          sum, eager.Run("elementwise_add",
                         {{"X", &sum}, {"Y", &SparseValues(*terms[i])}}));
    }
    return WithValues(*terms[0], std::move(sum));
  });
}

absl::StatusOr<Step> BindSum(BindContext* context) {
  Tensor* out = context->Output("Out");
  if (out->is_array()) return SumArrays(context, out);
  if (out->is_sparse()) return SumSparse(context, out);
  std::vector<Tensor*> terms, sparse;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    if (x == nullptr) continue;
    if (IsSelectedRows(x)) {
      sparse.push_back(x);
      continue;
    }
    terms.push_back(x);
    // A variable that is summed into itself comes first: it is overwritten.
    if (x == out) std::swap(terms.front(), terms.back());
  }
  if (terms.empty() && sparse.empty()) return InvalidArgument("'X' is empty");
  if (terms.empty()) return ConcatRows(sparse, out);
  // A third term is read when `out` is half made.
  if (terms.size() < 3 ||
      std::find(terms.begin() + 2, terms.end(), terms.front()) == terms.end())
    context->MayShare(terms.front(), out);
  PD_ASSIGN_OR_RETURN(Step step, SumDense(terms, out));
  if (sparse.empty()) return step;
  return ThenAddRows(sparse, out, std::move(step));
}

absl::StatusOr<std::vector<OpDesc>> SumGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  for (const std::string& x : request.op.Input("X")) {
    if (!request.needs_grad(x)) continue;
    OpDesc op;
    op.type = "scale";
    op.SetInput("X", {GradName(request.op.Out("Out"))});
    op.SetOutput("Out", {GradName(x)});
    op.attrs["scale"] = 1.0f;
    op.attrs["bias"] = 0.0f;
    op.attrs["bias_after_scale"] = true;
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace

absl::Status RegisterSum(OpRegistry* registry) {
  OpDef op("sum");
  op.Inputs("X").Output("Out");
  op.With(Trait::kMovesArrays)
      .With(Trait::kReadsSparse)
      .Infer(InferSum)
      .Grad(GradMaker(SumGrad))
      .Reference(BindSum);
  return registry->Add(std::move(op));
}

}  // namespace pd
