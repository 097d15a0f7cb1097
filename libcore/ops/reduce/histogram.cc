// SPDX-License-Identifier: Apache-2.0
// Counting and looking up.
//   histogram: Out[i] = how many elements of X lie in the i-th of `bins` equal
//     parts of [min, max]; min = max = 0 asks for X's own range
//   bincount: Out[v] = how often v is in X, or the sum of its Weights; as long
//     as X's maximum and `minlength` ask for (known only when the op runs)
//   searchsorted: Out = where Values would go into the rows of SortedSequence:
//     before equal elements, or after them with `right`; infinite values and
//     NaN go to the end, as with PaddlePaddle
// No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferHistogram(InferContext* context) {
  const int64_t bins = context->Attr<int64_t>("bins");
  const int32_t min = context->Attr<int32_t>("min");
  const int32_t max = context->Attr<int32_t>("max");
  if (bins < 1 || max < min)
    return InvalidArgument(
        "attrs 'bins', 'min', 'max' are %d, %d, %d; expected a bin and "
        "min <= max",
        bins, min, max);
  context->SetOutput("Out", {bins}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindHistogram(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t bins = context->Attr<int64_t>("bins");
  const double min = context->Attr<int32_t>("min");
  const double max = context->Attr<int32_t>("max");
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const T* data = x->data<T>();
          const int64_t n = x->size();
          int64_t* count = out->data<int64_t>();
          std::fill_n(count, bins, 0);
          if (n == 0) return absl::OkStatus();
          T low = static_cast<T>(min), high = static_cast<T>(max);
          if (low == high) {
            const auto range = std::minmax_element(data, data + n);
            low = *range.first;
            high = *range.second;
          }
          if (low == high) {
            low -= T(1);
            high += T(1);
          }
          if (!std::isfinite(static_cast<double>(low)) ||
              !std::isfinite(static_cast<double>(high)))
            return InvalidArgument(
                "the range of X is [%g, %g]; expected "
                "finite numbers",
                static_cast<double>(low), static_cast<double>(high));
          for (int64_t i = 0; i < n; ++i) {
            if (!(data[i] >= low && data[i] <= high)) continue;
            const int64_t bin = static_cast<int64_t>(
                (data[i] - low) * static_cast<T>(bins) / (high - low));
            ++count[std::min(std::max<int64_t>(bin, 0), bins - 1)];
          }
          return absl::OkStatus();
        });
      });
}

// The dtype of sums of weights.
DType SumType(const DType* weights) {
  if (weights == nullptr) return DType::kInt64;
  return *weights == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

absl::Status InferBincount(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (!IsInteger(x.dtype) || x.shape.size() != 1)
    return InvalidArgument("X is %s %s; expected integers of rank 1",
                           Name(x.dtype), ToString(x.shape));
  if (context->Attr<int32_t>("minlength") < 0)
    return InvalidArgument("attr 'minlength' is %d",
                           context->Attr<int32_t>("minlength"));
  DType dtype = DType::kInt64;
  if (context->HasInput("Weights")) {
    const TensorMeta& weights = context->Input("Weights");
    if (!IsDynamic(weights.shape) && !IsDynamic(x.shape) &&
        weights.shape != x.shape)
      return InvalidArgument("Weights has shape %s; X has %s",
                             ToString(weights.shape), ToString(x.shape));
    dtype = SumType(&weights.dtype);
  }
  context->SetOutput("Out", {-1}, dtype);
  return absl::OkStatus();
}

// The extent of Out; every element of X is in [0, extent) then.
absl::StatusOr<int64_t> Length(const Tensor& x, int64_t least) {
  int64_t length = least;
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t v = LabelAt(x, i);
    if (v < 0) return InvalidArgument("X holds %d at %d", v, i);
    // Out is as long as the largest number, wherever it came from.
    if (v >= int64_t{1} << 31)
      return OutOfRange("X holds %d at %d; expected less than 2^31", v, i);
    length = std::max(length, v + 1);
  }
  return x.size() == 0 ? int64_t{0} : length;
}

absl::StatusOr<Step> BindBincount(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* weights = context->Input("Weights");
  Tensor* out = context->Output("Out");
  const int64_t least = context->Attr<int32_t>("minlength");
  if (weights == nullptr)
    return Step([=](const RunContext&) {
      PD_ASSIGN_OR_RETURN(const int64_t length, Length(*x, least));
      PD_RETURN_IF_ERROR(out->Resize(DType::kInt64, {length}));
      int64_t* count = out->data<int64_t>();
      std::fill_n(count, length, 0);
      for (int64_t i = 0; i < x->size(); ++i) ++count[LabelAt(*x, i)];
      return absl::OkStatus();
    });
  if (weights->size() != x->size())
    return InvalidArgument("there are %d weights for %d elements",
                           weights->size(), x->size());
  return DispatchTypes<float, double, int32_t, int64_t>(
      weights->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        using Sum = std::conditional_t<std::is_same_v<T, float>, float, double>;
        return Step([=](const RunContext&) {
          PD_ASSIGN_OR_RETURN(const int64_t length, Length(*x, least));
          PD_RETURN_IF_ERROR(out->Resize(DTypeOf<Sum>(), {length}));
          Sum* sum = out->data<Sum>();
          std::fill_n(sum, length, Sum(0));
          for (int64_t i = 0; i < x->size(); ++i)
            sum[LabelAt(*x, i)] += static_cast<Sum>(weights->data<T>()[i]);
          return absl::OkStatus();
        });
      });
}

absl::Status InferSearchsorted(InferContext* context) {
  const TensorMeta& sorted = context->Input("SortedSequence");
  TensorMeta out = context->Input("Values");
  out.value = nullptr;
  bool fits =
      !sorted.shape.empty() && sorted.dtype == out.dtype &&
      (sorted.shape.size() == 1 || sorted.shape.size() == out.shape.size());
  for (size_t i = 0; fits && i + 1 < sorted.shape.size(); ++i)
    fits = sorted.shape[i] < 0 || out.shape[i] < 0 ||
           sorted.shape[i] == out.shape[i];
  if (!fits)
    return InvalidArgument(
        "SortedSequence is %s %s, Values %s %s; expected one dtype, and rank 1 "
        "or equal extents but for the last",
        Name(sorted.dtype), ToString(sorted.shape), Name(out.dtype),
        ToString(out.shape));
  out.dtype = context->Attr<bool>("out_int32") ? DType::kInt32 : DType::kInt64;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSearchsorted(BindContext* context) {
  Tensor* sorted = context->Input("SortedSequence");
  Tensor* values = context->Input("Values");
  Tensor* out = context->Output("Out");
  const bool right = context->Attr<bool>("right");
  const int64_t length = sorted->shape().back();
  const int64_t row = sorted->rank() == 1 || values->rank() == 0
                          ? std::max<int64_t>(values->size(), 1)
                          : values->shape().back();
  return DispatchTypes<float, double, int32_t, int64_t>(
      values->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          for (int64_t i = 0; i < values->size(); ++i) {
            const T* begin = sorted->data<T>() + i / row * length;
            const T v = values->data<T>()[i];
            int64_t at = length;
            if (std::isfinite(static_cast<double>(v)))
              at = (right ? std::upper_bound(begin, begin + length, v)
                          : std::lower_bound(begin, begin + length, v)) -
                   begin;
            if (out->dtype() == DType::kInt32)
              out->data<int32_t>()[i] = static_cast<int32_t>(at);
            else
              out->data<int64_t>()[i] = at;
          }
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterHistogram(OpRegistry* registry) {
  OpDef histogram("histogram");
  histogram.Input("X").Output("Out").Attr("bins", int64_t{100});
  histogram.Attr("min", int32_t{0}).Attr("max", int32_t{0});
  histogram.Infer(InferHistogram).NoGrad().Reference(BindHistogram);
  PD_RETURN_IF_ERROR(registry->Add(std::move(histogram)));

  OpDef bincount("bincount");
  bincount.Input("X").OptionalInput("Weights").Output("Out");
  bincount.Attr("minlength", int32_t{0}).Infer(InferBincount);
  bincount.ShapeFromData().NoGrad().Reference(BindBincount);
  PD_RETURN_IF_ERROR(registry->Add(std::move(bincount)));

  OpDef search("searchsorted");
  search.Input("SortedSequence").Input("Values").Output("Out");
  search.Attr("out_int32", false).Attr("right", false);
  search.Infer(InferSearchsorted).NoGrad().Reference(BindSearchsorted);
  return registry->Add(std::move(search));
}

}  // namespace pd
