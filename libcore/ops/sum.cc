// SPDX-License-Identifier: Apache-2.0
// Out = X[0] + X[1] + ...: tensors of one shape.
// Each X@GRAD is Out@GRAD, made by a scale op as PaddlePaddle does.
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/strided_loop.h"

namespace pd {
namespace {

absl::Status InferSum(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  for (size_t i = 1; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    bool fits = x.dtype == out.dtype && x.shape.size() == out.shape.size();
    for (size_t d = 0; fits && d < x.shape.size(); ++d) {
      if (out.shape[d] < 0) out.shape[d] = x.shape[d];
      fits = x.shape[d] == out.shape[d] || x.shape[d] < 0;
    }
    if (!fits)
      return InvalidArgument("X[0] is %s %s, X[%d] is %s %s; expected the same",
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
  for (int64_t i = begin; i < end; ++i) out[i] = first[i] + second[i];
  for (size_t k = 2; k < terms.size(); ++k) {
    const T* term = terms[k]->data<T>();
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) out[i] += term[i];
  }
}

absl::StatusOr<Step> BindSum(BindContext* context) {
  Tensor* out = context->Output("Out");
  std::vector<Tensor*> terms;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    if (x == nullptr) continue;
    terms.push_back(x);
    // A variable that is summed into itself comes first: it is overwritten.
    if (x == out) std::swap(terms.front(), terms.back());
  }
  context->MayShare(terms.front(), out);
  return DispatchTypes<float, double, int32_t, int64_t, std::complex<float>,
                       std::complex<double>>(
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
  op.Infer(InferSum).Grad(GradMaker(SumGrad)).Reference(BindSum);
  return registry->Add(std::move(op));
}

}  // namespace pd
