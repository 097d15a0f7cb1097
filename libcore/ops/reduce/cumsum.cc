// SPDX-License-Identifier: Apache-2.0
// Out[i] = X[0] + ... + X[i] along `axis` (of all elements with `flatten`);
// exclusive: without X[i]; reverse: from the end.
// X@GRAD = the same of Out@GRAD in the other direction.
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferCumsum(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (!context->Attr<bool>("flatten")) return InferUnary(context);
  context->SetOutput("Out", {IsDynamic(x.shape) ? -1 : NumElements(x.shape)},
                     x.dtype);
  return absl::OkStatus();
}

constexpr int64_t kLine = 256;  // elements side by side, which stay in a cache

// Sums of `count` <= kLine neighbouring elements along an axis of n elements
// that lie `inner` apart.
template <typename T>
void SumLines(const T* in, int64_t n, int64_t inner, int64_t count,
              bool exclusive, bool reverse, T* out) {
  T sum[kLine] = {};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = (reverse ? n - 1 - i : i) * inner;
    const T* from = in + at;
    T* to = out + at;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      const T before = sum[j];
      sum[j] = static_cast<T>(before + from[j]);
      to[j] = exclusive ? before : sum[j];
    }
  }
}

// `shape` is X's; a gradient runs the other way.
absl::StatusOr<Step> BindSums(BindContext* context, const Shape& shape,
                              Tensor* half_from, Tensor* half_to,
                              bool backward) {
  if (half_from == nullptr || half_from->size() != half_to->size())
    return InvalidArgument(
        "the sums have %d elements; expected a tensor of as many",
        half_to->size());
  Upcaster upcaster(context);
  Tensor* from = upcaster.In(half_from);
  Tensor* to = upcaster.Out(half_to);
  int64_t n = from->size(), inner = 1;
  if (!context->Attr<bool>("flatten") && !shape.empty()) {
    PD_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(context->Attr<int32_t>("axis"), shape.size()));
    n = shape[static_cast<size_t>(axis)];
    inner = NumElements(shape, static_cast<size_t>(axis) + 1, shape.size());
  }
  const bool exclusive = context->Attr<bool>("exclusive");
  const bool reverse = context->Attr<bool>("reverse") != backward;
  return upcaster.Wrap(DispatchTypes<float, double, int32_t, int64_t, int16_t>(
      from->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        if (inner > 1 && n > 0) {
          // A line of sums moves along the axis.
          return Step([=](const RunContext&) {
            const int64_t lines = from->size() / n;
            ParallelFor(
                lines, 8192 / (n + 1) + 1, [&](int64_t begin, int64_t end) {
                  for (int64_t at = begin; at < end;) {
                    const int64_t count =
                        std::min({end - at, inner - at % inner, kLine});
                    const int64_t start = at / inner * n * inner + at % inner;
                    SumLines(from->data<T>() + start, n, inner, count,
                             exclusive, reverse, to->data<T>() + start);
                    at += count;
                  }
                });
            return absl::OkStatus();
          });
        }
        return Step([=](const RunContext&) {
          const int64_t rows = n == 0 ? 0 : from->size() / n;
          ParallelFor(
              rows, 8192 / (n + 1) + 1, [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const int64_t start = row / inner * n * inner + row % inner;
                  const T* in = from->data<T>() + start;
                  T* out = to->data<T>() + start;
                  T sum = T(0);
                  for (int64_t i = 0; i < n; ++i) {
                    const int64_t at = (reverse ? n - 1 - i : i) * inner;
                    const T v = in[at];
                    out[at] = static_cast<T>(exclusive ? sum : sum + v);
                    sum = static_cast<T>(sum + v);
                  }
                }
              });
          return absl::OkStatus();
        });
      }));
}

absl::StatusOr<Step> BindCumsum(BindContext* context) {
  Tensor* x = context->Input("X");
  return BindSums(context, x->shape(), x, context->Output("Out"), false);
}

absl::StatusOr<Step> BindCumsumGrad(BindContext* context) {
  context->NoBuffer(context->Input("X"));
  Tensor* dx = context->Output("X@GRAD");
  return BindSums(context, dx->shape(), context->Input("Out@GRAD"), dx, true);
}

void AddCumsumAttrs(OpDef* op) {
  op->Attr("axis", int32_t{-1}).Attr("flatten", false);
  op->Attr("exclusive", false).Attr("reverse", false);
}

}  // namespace

absl::Status RegisterCumsum(OpRegistry* registry) {
  OpDef op("cumsum");
  op.Input("X").Output("Out").Infer(InferCumsum).Reference(BindCumsum);
  AddCumsumAttrs(&op);
  op.Grad(GradSpec{"cumsum_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("cumsum_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  AddCumsumAttrs(&grad);
  grad.Infer(InferGradLikeInput).Reference(BindCumsumGrad);
  grad.Grad(ForwardAgain("cumsum", "X", "Out"));
  return registry->Add(std::move(grad));
}

}  // namespace pd
