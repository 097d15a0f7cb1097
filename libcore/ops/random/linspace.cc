// SPDX-License-Identifier: Apache-2.0
// Sequences of numbers, whose ends are tensors of one element:
//   linspace: Num numbers from Start to Stop, both included
//   logspace: Base to the power of these
//   range: Start, Start + Step, ... before End
// Each half of a linspace is counted from its end, so that both ends are
// exact. Computed in double and converted at the end. No gradients.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/number_of.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// A sequence longer than this is a mistake in the program.
constexpr int64_t kMostElements = int64_t{1} << 40;

absl::Status InferLinspace(InferContext* context) {
  const int32_t code = context->Attr<int32_t>("dtype");
  const auto dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  const TensorMeta& count = context->Input("Num");
  int64_t n = -1;
  if (count.value != nullptr) {
    PD_RETURN_IF_ERROR(CheckNumber(*count.value, "Num"));
    n = NumberOf<int64_t>(*count.value);
    if (n < 1 || n > kMostElements)
      return InvalidArgument("Num is %d; expected a positive number", n);
  }
  context->SetOutput("Out", {n}, *dtype);
  return absl::OkStatus();
}

// Element i of n from start to stop.
struct Line {
  double start, stop, step;
  int64_t n;

  Line(double from, double to, int64_t count)
      : start(from),
        stop(to),
        step(count > 1 ? (to - from) / static_cast<double>(count - 1) : 0.0),
        n(count) {}
  double At(int64_t i) const {
    return i < n / 2 || n == 1 ? start + step * static_cast<double>(i)
                               : stop - step * static_cast<double>(n - 1 - i);
  }
};

template <bool kPowers>
absl::StatusOr<Step> BindLinspace(BindContext* context) {
  Tensor* start = context->Input("Start");
  Tensor* stop = context->Input("Stop");
  Tensor* base = kPowers ? context->Input("Base") : nullptr;
  Upcaster upcaster(context);
  Tensor* out = upcaster.Out(context->Output("Out"));
  PD_RETURN_IF_ERROR(CheckNumber(*start, "Start"));
  PD_RETURN_IF_ERROR(CheckNumber(*stop, "Stop"));
  if (kPowers) PD_RETURN_IF_ERROR(CheckNumber(*base, "Base"));
  return upcaster.Wrap(DispatchTypes<float, double, int32_t, int64_t>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          // The ends are converted to Out's dtype first.
          const Line line(static_cast<double>(NumberOf<T>(*start)),
                          static_cast<double>(NumberOf<T>(*stop)), out->size());
          T* result = out->data<T>();
          for (int64_t i = 0; i < line.n; ++i) {
            if constexpr (kPowers)
              result[i] = static_cast<T>(std::pow(
                  static_cast<double>(NumberOf<T>(*base)), line.At(i)));
            else
              result[i] = static_cast<T>(line.At(i));
          }
          return absl::OkStatus();
        });
      }));
}

// How many numbers a range has.
template <typename T>
absl::StatusOr<int64_t> RangeSize(T start, T end, T step) {
  const double from = static_cast<double>(start), to = static_cast<double>(end);
  const double by = static_cast<double>(step);
  if (step == T(0) || !std::isfinite(to - from) || !std::isfinite(by))
    return InvalidArgument(
        "Start is %g, End %g, Step %g; expected finite "
        "numbers and a step that is not 0",
        from, to, by);
  if ((from < to && by < 0) || (from > to && by > 0))
    return InvalidArgument("Start is %g, End %g, Step %g: it never gets there",
                           from, to, by);
  double size = std::ceil(std::fabs((to - from) / by));
  if (size > static_cast<double>(kMostElements))
    return InvalidArgument("Start is %g, End %g, Step %g: too many numbers",
                           from, to, by);
  return static_cast<int64_t>(size);
}

absl::Status InferRange(InferContext* context) {
  const TensorMeta& start = context->Input("Start");
  const TensorMeta& end = context->Input("End");
  const TensorMeta& step = context->Input("Step");
  if (start.dtype != end.dtype || start.dtype != step.dtype)
    return InvalidArgument(
        "Start is %s, End is %s, Step is %s; expected one "
        "dtype",
        Name(start.dtype), Name(end.dtype), Name(step.dtype));
  int64_t n = -1;
  if (start.value != nullptr && end.value != nullptr && step.value != nullptr) {
    PD_RETURN_IF_ERROR(CheckNumber(*start.value, "Start"));
    PD_RETURN_IF_ERROR(CheckNumber(*end.value, "End"));
    PD_RETURN_IF_ERROR(CheckNumber(*step.value, "Step"));
    PD_ASSIGN_OR_RETURN(n, RangeSize(NumberOf<double>(*start.value),
                                     NumberOf<double>(*end.value),
                                     NumberOf<double>(*step.value)));
  }
  context->SetOutput("Out", {n}, start.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRange(BindContext* context) {
  Tensor* start = context->Input("Start");
  Tensor* step = context->Input("Step");
  Upcaster upcaster(context);
  Tensor* out = upcaster.Out(context->Output("Out"));
  PD_RETURN_IF_ERROR(CheckNumber(*start, "Start"));
  PD_RETURN_IF_ERROR(CheckNumber(*step, "Step"));
  return upcaster.Wrap(DispatchTypes<float, double, int32_t, int64_t>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=, n = out->size()](const RunContext&) {
          const T from = NumberOf<T>(*start), by = NumberOf<T>(*step);
          T* result = out->data<T>();
          for (int64_t i = 0; i < n; ++i)
            result[i] = static_cast<T>(from + static_cast<T>(i) * by);
          return absl::OkStatus();
        });
      }));
}

}  // namespace

absl::Status RegisterLinspace(OpRegistry* registry) {
  OpDef linspace("linspace");
  linspace.Input("Start").Input("Stop").Input("Num").Output("Out");
  linspace.RequiredAttr("dtype", AttrType::kInt).Infer(InferLinspace).NoGrad();
  linspace.Reference(BindLinspace<false>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(linspace)));

  OpDef logspace("logspace");
  logspace.Input("Start").Input("Stop").Input("Num").Input("Base");
  logspace.Output("Out").RequiredAttr("dtype", AttrType::kInt);
  logspace.Infer(InferLinspace).NoGrad().Reference(BindLinspace<true>);
  PD_RETURN_IF_ERROR(registry->Add(std::move(logspace)));

  OpDef range("range");
  range.Input("Start").Input("End").Input("Step").Output("Out");
  range.With(Trait::kShapeArithmetic)
      .Infer(InferRange)
      .NoGrad()
      .Reference(BindRange);
  return registry->Add(std::move(range));
}

}  // namespace pd
