// SPDX-License-Identifier: Apache-2.0
// Out: one row for each sequence of X, by `pooltype`:
//   SUM, AVERAGE (sum / rows), SQRT (sum / sqrt(rows)), MAX, FIRST, LAST
// A sequence without rows gives `pad_value`. Of a LoD of two levels the inner
// sequences are pooled and the outer level stays. MaxIndex (of MAX): the row of
// X that each element of Out came from, -1 for none.
// X@GRAD: Out@GRAD over the sequence, divided alike; for MAX, FIRST and LAST at
// the row that was taken, 0 elsewhere.
#include "libcore/ops/sequence/sequence_pool.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {

absl::StatusOr<SequencePool> SequencePoolOf(const OpDesc& op) {
  const std::string type = op.Attr<std::string>("pooltype");
  if (type == "SUM") return SequencePool::kSum;
  if (type == "AVERAGE") return SequencePool::kAverage;
  if (type == "SQRT") return SequencePool::kSqrt;
  if (type == "MAX") return SequencePool::kMax;
  if (type == "FIRST") return SequencePool::kFirst;
  if (type == "LAST") return SequencePool::kLast;
  return InvalidArgument(
      "attr 'pooltype' is '%s'; expected SUM, AVERAGE, SQRT, MAX, FIRST or "
      "LAST",
      type);
}

namespace {

using Pool = SequencePool;

// The factor of a sum over `rows` rows.
template <typename T>
T Factor(Pool pool, int64_t rows) {
  if (pool == Pool::kAverage) return T(1) / static_cast<T>(rows);
  if (pool == Pool::kSqrt) return T(1) / std::sqrt(static_cast<T>(rows));
  return T(1);
}

absl::Status InferPool(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Pool pool, SequencePoolOf(context->op()));
  PD_ASSIGN_OR_RETURN(const auto offsets, KnownSequences(x, "X", 2));
  TensorMeta out = WithRows(
      x, offsets.has_value() ? static_cast<int64_t>(offsets->size()) - 1 : -1);
  if (x.lod.size() > 1)
    out.SetLoD({x.lod[0]});
  else if (x.lod.empty())
    out.lod_level = std::max(0, x.lod_level - 1);
  context->SetOutput("MaxIndex", pool == Pool::kMax ? out.shape : Shape{0},
                     DType::kInt32);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// out[k] and its row, over rows [begin, end) of x.
template <typename T>
void PoolMax(const T* x, int64_t width, int64_t begin, int64_t end, T* out,
             int32_t* index) {
  for (int64_t k = 0; k < width; ++k) {
    int64_t best = begin;
    for (int64_t r = begin + 1; r < end; ++r)
      if (x[r * width + k] > x[best * width + k]) best = r;
    out[k] = x[best * width + k];
    if (index != nullptr) index[k] = static_cast<int32_t>(best);
  }
}

template <typename T>
void PoolOne(Pool pool, const T* x, int64_t width, int64_t begin, int64_t end,
             T* out) {
  if (pool == Pool::kFirst || pool == Pool::kLast) {
    const int64_t row = pool == Pool::kFirst ? begin : end - 1;
    std::copy_n(x + row * width, width, out);
    return;
  }
  std::fill(out, out + width, T(0));
  for (int64_t r = begin; r < end; ++r)
    for (int64_t k = 0; k < width; ++k) out[k] += x[r * width + k];
  const T factor = Factor<T>(pool, end - begin);
  for (int64_t k = 0; k < width; ++k) out[k] *= factor;
}

absl::StatusOr<Step> BindPool(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* max_index = context->Output("MaxIndex");
  PD_ASSIGN_OR_RETURN(const Pool pool, SequencePoolOf(context->op()));
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  const float pad = context->Attr<float>("pad_value");
  const int64_t width = RowWidth(x->shape());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      int32_t* index = max_index != nullptr && pool == Pool::kMax
                           ? max_index->data<int32_t>()
                           : nullptr;
      ParallelFor(static_cast<int64_t>(offsets.size()) - 1, 8,
                  [&](int64_t first, int64_t last) {
                    for (int64_t i = first; i < last; ++i) {
                      const int64_t begin = offsets[static_cast<size_t>(i)];
                      const int64_t end = offsets[static_cast<size_t>(i) + 1];
                      T* row = result + i * width;
                      int32_t* at =
                          index != nullptr ? index + i * width : nullptr;
                      if (begin == end) {
                        std::fill(row, row + width, static_cast<T>(pad));
                        if (at != nullptr) std::fill(at, at + width, -1);
                      } else if (pool == Pool::kMax) {
                        PoolMax(in, width, begin, end, row, at);
                      } else {
                        PoolOne(pool, in, width, begin, end, row);
                      }
                    }
                  });
      return absl::OkStatus();
    });
  });
}

template <typename T>
absl::Status MaxGrad(const Tensor& index, const Tensor& dout, int64_t width,
                     Tensor* dx) {
  const int32_t* at = index.data<int32_t>();
  const T* dy = dout.data<T>();
  T* grad = dx->data<T>();
  for (int64_t i = 0; i < index.size(); ++i) {
    if (at[i] == -1) continue;
    if (at[i] < 0 || at[i] >= dx->dim(0))
      return InvalidArgument("'MaxIndex' holds %d; 'X' has %d rows", at[i],
                             dx->dim(0));
    grad[at[i] * width + i % width] += dy[i];
  }
  return absl::OkStatus();
}

template <typename T>
void PoolGrad(Pool pool, const Offsets& offsets, int64_t width,
              const Tensor& dout, Tensor* dx) {
  const T* dy = dout.data<T>();
  T* grad = dx->data<T>();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const T* row = dy + static_cast<int64_t>(i) * width;
    int64_t begin = offsets[i], end = offsets[i + 1];
    if (begin == end) continue;
    const T factor = Factor<T>(pool, end - begin);
    if (pool == Pool::kFirst) end = begin + 1;
    if (pool == Pool::kLast) begin = end - 1;
    for (int64_t r = begin; r < end; ++r)
      for (int64_t k = 0; k < width; ++k) grad[r * width + k] = row[k] * factor;
  }
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* max_index = context->Input("MaxIndex");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const Pool pool, SequencePoolOf(context->op()));
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  const int64_t width = RowWidth(x->shape());
  const int64_t count = (static_cast<int64_t>(offsets.size()) - 1) * width;
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", x->dtype(), count));
  if (pool == Pool::kMax)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "MaxIndex", DType::kInt32, count));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      if (pool == Pool::kMax) return MaxGrad<T>(*max_index, *dout, width, dx);
      PoolGrad<T>(pool, offsets, width, *dout, dx);
      return absl::OkStatus();
    });
  });
}

void AddSequencePoolAttrs(OpDef* op) {
  op->Attr("is_test", false).Attr("pooltype", std::string("AVERAGE"));
  op->Attr("pad_value", 0.0f);
}

absl::StatusOr<std::vector<OpDesc>> MakePoolGrad(const GradRequest& request) {
  if (!request.needs_grad(request.op.In("X"))) return std::vector<OpDesc>();
  OpDesc grad;
  grad.type = "sequence_pool_grad";
  grad.attrs = request.op.attrs;
  grad.SetInput("X", request.op.Input("X"));
  if (request.op.Attr<std::string>("pooltype") == "MAX")
    grad.SetInput("MaxIndex", request.op.Output("MaxIndex"));
  grad.SetInput("Out@GRAD", {GradName(request.op.Out("Out"))});
  grad.SetOutput("X@GRAD", {GradName(request.op.In("X"))});
  return std::vector<OpDesc>{std::move(grad)};
}

}  // namespace

absl::Status RegisterSequencePool(OpRegistry* registry) {
  OpDef op("sequence_pool");
  op.Input("X").Output("Out").IntermediateOutput("MaxIndex");
  AddSequencePoolAttrs(&op);
  op.Infer(InferPool).Reference(BindPool).Grad(MakePoolGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sequence_pool_grad");
  grad.Input("X").OptionalInput("MaxIndex").Input("Out@GRAD");
  grad.Output("X@GRAD");
  AddSequencePoolAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPoolGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
