// SPDX-License-Identifier: Apache-2.0
// Out = X with slice i along `dim` Repeats times after itself, or as often as
// element i of RepeatsTensor says.
// X@GRAD: the slices of Out@GRAD added up where they came from.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/row_copies.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferRepeat(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.lod.clear();
  out.lod_level = 0;
  if (out.shape.empty()) out.shape = {1};
  PD_ASSIGN_OR_RETURN(
      const int axis,
      NormalizeAxis(context->Attr<int32_t>("dim"), out.shape.size(), "dim"));
  int64_t& extent = out.shape[static_cast<size_t>(axis)];
  if (context->HasInput("RepeatsTensor")) {
    const TensorMeta& repeats = context->Input("RepeatsTensor");
    PD_RETURN_IF_ERROR(CheckIndexType("RepeatsTensor", repeats.dtype));
    if (repeats.value == nullptr) {
      extent = -1;
    } else {
      extent = 0;
      for (int64_t n : IntsOf(*repeats.value))
        if (n < 0 || __builtin_add_overflow(extent, n, &extent))
          return InvalidArgument("a slice is to be repeated %d times", n);
    }
  } else {
    const int64_t repeats = context->Attr<int32_t>("Repeats");
    if (repeats < 1)
      return InvalidArgument("attr 'Repeats' is %d; expected 1 or more",
                             repeats);
    if (extent >= 0 && __builtin_mul_overflow(extent, repeats, &extent))
      return OutOfRange("%d repetitions overflow", repeats);
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// How often each slice is repeated.
class Repeats {
 public:
  Repeats(BindContext* context, int64_t slices)
      : tensor_(context->Input("RepeatsTensor")),
        each_(context->Attr<int32_t>("Repeats")),
        slices_(slices) {}

  // InvalidArgument unless they add up to `total`.
  absl::Status Check(int64_t total) const {
    int64_t sum = tensor_ == nullptr ? each_ * slices_ : 0;
    if (tensor_ != nullptr) {
      PD_RETURN_IF_ERROR(CheckIndices("RepeatsTensor", *tensor_, 0, total + 1));
      if (tensor_->size() != slices_)
        return InvalidArgument("there are %d repeats for %d slices",
                               tensor_->size(), slices_);
      for (int64_t i = 0; i < slices_; ++i) sum += LabelAt(*tensor_, i);
    }
    if (sum == total) return absl::OkStatus();
    return InvalidArgument("%d slices are to become %d; Out has %d", slices_,
                           sum, total);
  }
  int64_t Of(int64_t i) const {
    return tensor_ != nullptr ? LabelAt(*tensor_, i) : each_;
  }

 private:
  Tensor* tensor_;
  int64_t each_, slices_;
};

// sum = the sum of `count` slices of n elements.
template <typename T>
void SumSlices(const T* slices, int64_t count, int64_t n, T* sum) {
  std::fill_n(sum, n, T(0));
  for (int64_t r = 0; r < count; ++r, slices += n)
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) sum[j] += slices[j];
}

// Both directions: `x` to `out`, or `out` added up in `x`.
absl::StatusOr<Step> RepeatStep(BindContext* context, Tensor* x, Tensor* out,
                                bool back) {
  const int64_t dim = context->Attr<int32_t>("dim");
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(x->shape(), dim));
  PD_ASSIGN_OR_RETURN(const AxisView wide, ViewAxis(out->shape(), dim));
  if (x->dtype() != out->dtype() || wide.outer != view.outer ||
      wide.inner != view.inner)
    return InvalidArgument("X is %s %s; Out is %s %s", Name(x->dtype()),
                           ToString(x->shape()), Name(out->dtype()),
                           ToString(out->shape()));
  const Repeats repeats(context, view.n);
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(repeats.Check(wide.n));
          T* narrow = x->data<T>();
          T* many = out->data<T>();
          const int64_t n = view.inner;
          for (int64_t o = 0; o < view.outer; ++o) {
            for (int64_t i = 0; i < view.n; ++i, narrow += n) {
              const int64_t count = repeats.Of(i);
              if (back)
                SumSlices(many, count, n, narrow);
              else
                for (int64_t r = 0; r < count; ++r)
                  CopyLongRow(many + r * n, narrow,
                              static_cast<size_t>(n) * sizeof(T));
              many += count * n;
            }
          }
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindRepeat(BindContext* context) {
  return RepeatStep(context, context->Input("X"), context->Output("Out"),
                    false);
}

absl::StatusOr<Step> BindRepeatGrad(BindContext* context) {
  context->NoBuffer(context->Input("X"));
  return RepeatStep(context, context->Output("X@GRAD"),
                    context->Input("Out@GRAD"), true);
}

void AddRepeatInterleaveArguments(OpDef* op) {
  op->Input("X").OptionalInput("RepeatsTensor");
  op->Attr("Repeats", int32_t{0}).Attr("dim", int32_t{0});
}

}  // namespace

absl::Status RegisterRepeatInterleave(OpRegistry* registry) {
  OpDef op("repeat_interleave");
  AddRepeatInterleaveArguments(&op);
  op.Output("Out").Infer(InferRepeat).Reference(BindRepeat);
  op.Grad(GradSpec{
      "repeat_interleave_grad", {"X", "RepeatsTensor"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("repeat_interleave_grad");
  AddRepeatInterleaveArguments(&grad);
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRepeatGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
