// SPDX-License-Identifier: Apache-2.0
// Sums of tensors of one shape on whatever layout comes (residual connections,
// accumulated gradients): element by element, padding included.
#include <algorithm>
#include <utility>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/half_sums.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd {
namespace cpu {
namespace {

constexpr int64_t kAddGrain = 16384;  // elements per thread at least

// The layout of most elements is kept: that of the first input that is not
// row-major.
LayoutPtr CommonLayout(const std::vector<Tensor*>& inputs) {
  for (const Tensor* tensor : inputs)
    if (tensor->layout() != nullptr) return tensor->layout();
  return nullptr;
}

// The sum of BFloat16 tensors, computed in float32 and rounded once.
Step SumOfBrains(std::vector<Tensor*> inputs, Tensor* out) {
  std::vector<const BFloat16*> places(inputs.size());
  return [inputs = std::move(inputs), out,
          places = std::move(places)](const RunContext&) mutable {
    for (size_t i = 0; i < inputs.size(); ++i)
      places[i] = inputs[i]->data<BFloat16>();
    BFloat16* to = out->data<BFloat16>();
    ParallelFor(out->physical_size(), kAddGrain,
                [&](int64_t begin, int64_t end) {
                  SumBrains(places.data(), places.size(), begin, end, to);
                });
    return absl::OkStatus();
  };
}

absl::StatusOr<Step> BindSumOf(BindContext* context,
                               std::vector<Tensor*> inputs, Tensor* out) {
  for (const Tensor* tensor : inputs)
    if (IsSelectedRows(tensor)) return Unimplemented("it has no sparse form");
  const DType dtype = inputs[0]->dtype();
  const bool brains = dtype == DType::kBFloat16;
  if (!brains && dtype != DType::kFloat32)
    return Unimplemented("it is for float32 and bfloat16");
  for (const Tensor* tensor : inputs)
    if (tensor->dtype() != dtype || tensor->shape() != out->shape())
      return Unimplemented("it is for tensors of one type and shape");
  // The third and later ones are read when `out` is half made.
  const auto is_read_late = [&](const Tensor* tensor) {
    return inputs.size() > 2 &&
           std::find(inputs.begin() + 2, inputs.end(), tensor) != inputs.end();
  };
  if (is_read_late(out))
    return Unimplemented("it writes over a late term of the sum");
  const bool may_share[] = {!is_read_late(inputs[0]), !is_read_late(inputs[1])};
  const LayoutPtr layout = CommonLayout(inputs);
  for (Tensor*& tensor : inputs) {
    PD_ASSIGN_OR_RETURN(tensor, context->In(tensor, layout));
  }
  PD_ASSIGN_OR_RETURN(out, context->Out(out, layout));
  for (size_t i = 0; i < 2; ++i)
    if (may_share[i]) context->MayShare(inputs[i], out);
  if (brains) return SumOfBrains(std::move(inputs), out);
  return Step([inputs, out](const RunContext&) {
    float* to = out->data<float>();
    ParallelFor(out->physical_size(), kAddGrain,
                [&](int64_t begin, int64_t end) {
                  const float *a = inputs[0]->data<float>(),
                              *b = inputs[1]->data<float>();
#pragma omp simd
                  for (int64_t i = begin; i < end; ++i) to[i] = a[i] + b[i];
                  for (size_t k = 2; k < inputs.size(); ++k) {
                    const float* c = inputs[k]->data<float>();
#pragma omp simd
                    for (int64_t i = begin; i < end; ++i) to[i] += c[i];
                  }
                });
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Step> BindAdd(BindContext* context) {
  return BindSumOf(context, {context->Input("X"), context->Input("Y")},
                   context->Output("Out"));
}

absl::StatusOr<Step> BindAddGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* dout = context->Input("Out@GRAD");
  if (x->shape() != y->shape() || x->shape() != dout->shape())
    return Unimplemented("it is for tensors of one shape");
  context->NoBuffer(x);
  context->NoBuffer(y);
  for (const char* slot : {"X@GRAD", "Y@GRAD"}) {
    Tensor* gradient = context->Output(slot);
    if (gradient == nullptr) continue;
    PD_ASSIGN_OR_RETURN(Tensor * placed,
                        context->Out(gradient, dout->layout()));
    if (placed != gradient)
      return Unimplemented("the layout of '%s' is fixed", slot);
    context->Alias(dout, gradient);
  }
  return Step();
}

absl::StatusOr<Step> BindSum(BindContext* context) {
  std::vector<Tensor*> inputs;
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    inputs.push_back(context->Input("X", i));
  if (inputs.size() < 2) return Unimplemented("it is for two inputs or more");
  return BindSumOf(context, std::move(inputs), context->Output("Out"));
}

}  // namespace cpu
}  // namespace pd
