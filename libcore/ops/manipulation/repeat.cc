// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/manipulation/repeat.h"

#include <complex>
#include <cstring>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/reduce_loop.h"

namespace pd {
namespace {

// Out's axes cut in two: how often, and x's extent.
struct Repetition {
  Shape shape;               // [times 0, extent 0, times 1, extent 1, ...]
  std::vector<bool> repeat;  // the times
};

absl::StatusOr<Repetition> RepetitionOf(const Shape& x_shape,
                                        const Shape& out) {
  const Shape x = PaddedShape(x_shape, out.size());
  Repetition r;
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t times = x[i] == 0 ? 1 : out[i] / x[i];
    if (x.size() != out.size() || times * x[i] != out[i])
      return InvalidArgument("X has shape %s, Out %s; expected multiples",
                             ToString(x_shape), ToString(out));
    r.shape.insert(r.shape.end(), {times, x[i]});
    r.repeat.insert(r.repeat.end(), {true, false});
  }
  if (x.size() != out.size())
    return InvalidArgument("X has shape %s, Out %s", ToString(x_shape),
                           ToString(out));
  return r;
}

absl::Status CheckTypes(const Tensor& x, const Tensor& out) {
  if (x.dtype() == out.dtype()) return absl::OkStatus();
  return InvalidArgument("X is %s; Out is %s", Name(x.dtype()),
                         Name(out.dtype()));
}

}  // namespace

Shape PaddedShape(const Shape& shape, size_t rank) {
  Shape padded(rank > shape.size() ? rank - shape.size() : 0, 1);
  padded.insert(padded.end(), shape.begin(), shape.end());
  return padded;
}

absl::StatusOr<Step> RepeatStep(BindContext* context, Tensor* x,
                                const Shape& shape, Tensor* out) {
  PD_RETURN_IF_ERROR(CheckTypes(*x, *out));
  PD_ASSIGN_OR_RETURN(const Repetition r, RepetitionOf(shape, out->shape()));
  if (x->size() == out->size()) {
    context->Alias(x, out);
    return Step();
  }
  Shape extents;
  for (size_t i = 1; i < r.shape.size(); i += 2) extents.push_back(r.shape[i]);
  const auto strides = RowMajorStrides(extents);
  const auto out_strides = RowMajorStrides(r.shape);
  StridedLoop<2> loop;
  for (size_t i = 0; i < r.shape.size(); ++i)
    loop.Add(r.shape[i], {r.repeat[i] ? 0 : strides[i / 2], out_strides[i]});
  return CopyStep(loop, x, out);
}

absl::StatusOr<Step> SumRepeatsStep(BindContext* context, Tensor* dout,
                                    Tensor* dx, const Shape& shape) {
  PD_RETURN_IF_ERROR(CheckTypes(*dx, *dout));
  PD_ASSIGN_OR_RETURN(const Repetition r, RepetitionOf(shape, dout->shape()));
  if (dx->size() == dout->size()) {
    context->Alias(dout, dx);
    return Step();
  }
  const ReducePlan plan = MakeReducePlan(r.shape, r.repeat);
  return DispatchArithmetic(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([plan, dout, dx](const RunContext&) {
      T* result = dx->data<T>();
      if (dout->size() == 0) {
        std::fill_n(result, dx->size(), T(0));
        return absl::OkStatus();
      }
      Reduce(plan, dout->data<T>(), SumReducer<T>(),
             [&](int64_t i, auto total) { result[i] = static_cast<T>(total); });
      return absl::OkStatus();
    });
  });
}

}  // namespace pd
