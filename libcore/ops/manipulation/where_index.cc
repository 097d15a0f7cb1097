// SPDX-License-Identifier: Apache-2.0
// Elements chosen by a condition; how many is known only when the op runs.
//   where_index: Out [n, rank] = the places where Condition is not 0
//   masked_select: Y [n] = the elements of X where Mask holds, both broadcast
// X@GRAD of masked_select: Y@GRAD where it came from, summed where X was
// repeated, 0 elsewhere.
#include <complex>
#include <cstdint>
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferWhereIndex(InferContext* context) {
  const int64_t rank =
      static_cast<int64_t>(context->Input("Condition").shape.size());
  if (rank == 0)
    return InvalidArgument("Condition has rank 0; expected 1 or more");
  context->SetOutput("Out", {-1, rank}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindWhereIndex(BindContext* context) {
  Tensor* condition = context->Input("Condition");
  Tensor* out = context->Output("Out");
  return DispatchTypes<bool, float, double, int32_t, int64_t, int16_t, uint8_t,
                       int8_t>(
      condition->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([condition, out](const RunContext&) {
          const T* data = condition->data<T>();
          const int64_t size = condition->size();
          const int64_t rank = static_cast<int64_t>(condition->rank());
          int64_t count = 0;
          for (int64_t i = 0; i < size; ++i) count += data[i] != T(0);
          PD_RETURN_IF_ERROR(out->Resize(DType::kInt64, {count, rank}));
          int64_t* to = out->data<int64_t>();
          for (int64_t i = 0; i < size; ++i) {
            if (data[i] == T(0)) continue;
            int64_t rest = i;
            for (int64_t d = rank; d-- > 0;) {
              const int64_t extent = condition->dim(static_cast<size_t>(d));
              to[d] = rest % extent;
              rest /= extent;
            }
            to += rank;
          }
          return absl::OkStatus();
        });
      });
}

absl::Status InferMaskedSelect(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& mask = context->Input("Mask");
  if (mask.dtype != DType::kBool)
    return InvalidArgument("Mask is %s; expected bool", Name(mask.dtype));
  PD_RETURN_IF_ERROR(BroadcastShapes(x.shape, mask.shape, -1).status());
  context->SetOutput("Y", {-1}, x.dtype);
  return absl::OkStatus();
}

// Calls body(offset in X) for the elements that are chosen, in order.
template <typename Body>
void ForChosen(const StridedLoop<3>& loop, const bool* mask, const Body& body) {
  const auto strides = loop.row_strides();
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j)
      if (mask[at[1] + j * strides[1]]) body(at[0] + j * strides[0]);
  });
}

absl::StatusOr<Step> BindMaskedSelect(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* mask = context->Input("Mask");
  Tensor* y = context->Output("Y");
  PD_ASSIGN_OR_RETURN(const Broadcast shapes,
                      BroadcastShapes(x->shape(), mask->shape(), -1));
  const StridedLoop<3> loop = BroadcastLoop(shapes);
  return DispatchBytes(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      int64_t count = 0;
      ForChosen(loop, mask->data<bool>(), [&](int64_t) { ++count; });
      PD_RETURN_IF_ERROR(y->Resize(x->dtype(), {count}));
      T* to = y->data<T>();
      ForChosen(loop, mask->data<bool>(),
                [&](int64_t at) { *to++ = x->data<T>()[at]; });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindMaskedSelectGrad(BindContext* context) {
  context->NoBuffer(context->Input("X"));
  Tensor* mask = context->Input("Mask");
  Tensor* dy = context->Input("Y@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Broadcast shapes,
                      BroadcastShapes(dx->shape(), mask->shape(), -1));
  const StridedLoop<3> loop = BroadcastLoop(shapes);
  return DispatchTypes<float, double, int32_t, int64_t>(
      dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          int64_t count = 0;
          ForChosen(loop, mask->data<bool>(), [&](int64_t) { ++count; });
          if (count != dy->size())
            return InvalidArgument("Mask chooses %d elements; Y@GRAD has %d",
                                   count, dy->size());
          std::memset(dx->raw(), 0, dx->bytes());
          const T* from = dy->data<T>();
          ForChosen(loop, mask->data<bool>(),
                    [&](int64_t at) { dx->data<T>()[at] += *from++; });
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterWhereIndex(OpRegistry* registry) {
  OpDef where("where_index");
  where.Input("Condition").Output("Out").Infer(InferWhereIndex);
  where.ShapeFromData().NoGrad().Reference(BindWhereIndex);
  PD_RETURN_IF_ERROR(registry->Add(std::move(where)));

  OpDef select("masked_select");
  select.Input("X").Input("Mask").Output("Y").Infer(InferMaskedSelect);
  select.ShapeFromData().Reference(BindMaskedSelect);
  select.Grad(GradSpec{"masked_select_grad", {"X", "Mask"}, {}, {"Y"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(select)));

  OpDef grad("masked_select_grad");
  grad.Input("X").Input("Mask").Input("Y@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindMaskedSelectGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
