// SPDX-License-Identifier: Apache-2.0
// Out = the rows of X (along its last axis) in the random order ShuffleIdx:
// row i of Out is row ShuffleIdx[i] of X. The order follows from Seed, or from
// startup_seed where Seed is absent or empty; SeedOut is the seed of the next
// run. X@GRAD puts the rows of Out@GRAD back.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferForward(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.shape.empty()) return InvalidArgument("X has no axes");
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < x.shape.size(); ++i)
    rows = rows < 0 || x.shape[i] < 0 ? -1 : rows * x.shape[i];
  context->Share("X", "Out");
  context->SetOutput("ShuffleIdx", {rows}, DType::kInt64);
  context->SetOutput("SeedOut", {1}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* seed = context->Input("Seed");
  Tensor* out = context->Output("Out");
  Tensor* order = context->Output("ShuffleIdx");
  Tensor* next = context->Output("SeedOut");
  if (seed != nullptr && seed->size() > 0)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Seed", DType::kInt64, 1));
  const int64_t start = context->Attr<int32_t>("startup_seed");
  const int64_t row = x->shape().back();
  const int64_t rows = row == 0 ? 0 : x->size() / row;
  if (order == nullptr || order->size() < rows)
    return InvalidArgument("ShuffleIdx has no room for %d rows", rows);
  return DispatchBytes(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const bool given = seed != nullptr && seed->size() > 0;
      const uint64_t number =
          static_cast<uint64_t>(given ? seed->data<int64_t>()[0] : start);
      RandomStream stream(number, StreamOf("shuffle_batch"));
      int64_t* index = order->data<int64_t>();
      std::iota(index, index + order->size(), int64_t{0});
      for (int64_t i = rows - 1; i > 0; --i)
        std::swap(index[i], index[stream.Below(static_cast<uint64_t>(i) + 1)]);
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(x->data<T>() + index[i] * row, row,
                    out->data<T>() + i * row);
      if (next != nullptr)
        next->data<int64_t>()[0] = static_cast<int64_t>(stream.U32());
      return absl::OkStatus();
    });
  });
}

absl::Status InferGrad(InferContext* context) {
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindGrad(BindContext* context) {
  Tensor* order = context->Input("ShuffleIdx");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dout->rank() == 0) return InvalidArgument("Out@GRAD has no axes");
  const int64_t row = dout->shape().back();
  const int64_t rows = row == 0 ? 0 : dout->size() / row;
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "ShuffleIdx", DType::kInt64, rows));
  return DispatchBytes(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      std::fill_n(dx->data<T>(), dx->size(), T{});
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t to = order->data<int64_t>()[i];
        if (to < 0 || to >= rows)
          return InvalidArgument("ShuffleIdx[%d] is %d; there are %d rows", i,
                                 to, rows);
        std::copy_n(dout->data<T>() + i * row, row, dx->data<T>() + to * row);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterShuffleBatch(OpRegistry* registry) {
  OpDef op("shuffle_batch"), grad("shuffle_batch_grad");
  op.Input("X").OptionalInput("Seed").Attr("startup_seed", int32_t{0});
  op.Output("Out").Output("ShuffleIdx").Output("SeedOut");
  op.Infer(InferForward).Reference(BindForward);
  op.Grad(GradSpec{"shuffle_batch_grad", {}, {"ShuffleIdx"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("ShuffleIdx").Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("startup_seed", int32_t{0});
  grad.Infer(InferGrad).NoGrad().Reference(BindGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
