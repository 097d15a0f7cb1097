// SPDX-License-Identifier: Apache-2.0
// fft_c2c, fft_r2c and fft_c2r of float32 whose lengths have small factors, by
// fft_vectors.cc: axis by axis, as the reference goes
// (libcore/ops/linalg/fft_c2c.cc), in single precision as PaddlePaddle's.
#include <algorithm>
#include <complex>
#include <memory>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/fft_vectors.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/linalg/fft_lines.h"

namespace pd {
namespace cpu {
namespace {

using Complex64 = std::complex<float>;

absl::StatusOr<std::vector<int64_t>> ReadFftAxes(const OpDesc& op,
                                                 const Shape& shape) {
  std::vector<int64_t> axes;
  for (const int64_t axis : IntsAttr(op, "axes")) {
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, shape.size(), "axes"));
    axes.push_back(a);
  }
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (axes.empty() ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return Unimplemented("it takes one axis or several different ones");
  return axes;
}

absl::StatusOr<std::shared_ptr<const FftPlan>> PlanOf(int64_t n) {
  constexpr int64_t kLongest = 1 << 16;  // each thread has 16 MB for it
  if (n < 1 || n > kLongest)
    return Unimplemented("a length of %d is not for vectors", n);
  auto plan = MakeFftPlan(n);
  if (!plan.has_value())
    return Unimplemented("%d has a prime factor above 13", n);
  return std::make_shared<const FftPlan>(*std::move(plan));
}

// The transforms along some axes of a complex tensor, one after the other.
struct ComplexAxes {
  struct One {
    std::shared_ptr<const FftPlan> plan;
    FftLineJob job;
  };
  std::vector<One> axes;

  void Run(const Complex64* from, Complex64* to) const {
    for (const One& one : axes) {
      FftComplex(*one.plan, one.job, from, to);
      from = to;
    }
  }
};

absl::StatusOr<ComplexAxes> ComplexAxesOf(const Shape& shape,
                                          const std::vector<int64_t>& axes,
                                          size_t count, bool inverse) {
  ComplexAxes all;
  for (size_t i = 0; i < count; ++i) {
    ComplexAxes::One one;
    PD_ASSIGN_OR_RETURN(one.job.in, ViewAxis(shape, axes[i]));
    one.job.out = one.job.in;
    one.job.inverse = inverse;
    PD_ASSIGN_OR_RETURN(one.plan, PlanOf(one.job.in.n));
    if (one.job.in.lines() < 4)
      return Unimplemented("there are %d lines", one.job.in.lines());
    all.axes.push_back(std::move(one));
  }
  return all;
}

absl::StatusOr<float> FftScaleOf(const BindContext& context, const Shape& real,
                                 const std::vector<int64_t>& axes) {
  int64_t n = 1;
  for (const int64_t axis : axes) n *= real[static_cast<size_t>(axis)];
  PD_ASSIGN_OR_RETURN(const double scale,
                      FftScale(context.Attr<std::string>("normalization"),
                               context.Attr<bool>("forward"), n));
  return static_cast<float>(scale);
}

// The real axis of fft_r2c and fft_c2r: the last one of `axes`.
struct RealAxis {
  std::shared_ptr<const FftPlan> half, whole;
  FftLineJob job;
};

absl::StatusOr<RealAxis> RealAxisOf(const BindContext& context,
                                    const Shape& real, const Shape& complex,
                                    const std::vector<int64_t>& axes,
                                    bool to_complex) {
  RealAxis axis;
  const int64_t n = real[static_cast<size_t>(axes.back())];
  if (n % 2 != 0) return Unimplemented("the length %d is odd", n);
  PD_ASSIGN_OR_RETURN(axis.whole, PlanOf(n));
  PD_ASSIGN_OR_RETURN(axis.half, PlanOf(n / 2));
  PD_ASSIGN_OR_RETURN(axis.job.in,
                      ViewAxis(to_complex ? real : complex, axes.back()));
  PD_ASSIGN_OR_RETURN(axis.job.out,
                      ViewAxis(to_complex ? complex : real, axes.back()));
  if (axis.job.in.lines() < 4)
    return Unimplemented("there are %d lines", axis.job.in.lines());
  axis.job.inverse = !context.Attr<bool>("forward");
  PD_ASSIGN_OR_RETURN(axis.job.scale, FftScaleOf(context, real, axes));
  return axis;
}

absl::Status ExpectFftInput(const Tensor& x, const Tensor& out, DType dtype) {
  if (x.dtype() != dtype) return Unimplemented("it is for float32");
  if (x.size() == 0 || out.size() == 0) return Unimplemented("it is empty");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Step> BindFftC2c(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectFftInput(*x, *out, DType::kComplex64));
  PD_ASSIGN_OR_RETURN(const auto axes, ReadFftAxes(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(ComplexAxes all,
                      ComplexAxesOf(x->shape(), axes, axes.size(),
                                    !context->Attr<bool>("forward")));
  PD_ASSIGN_OR_RETURN(all.axes.back().job.scale,
                      FftScaleOf(*context, x->shape(), axes));
  return Step([=](const RunContext&) {
    all.Run(x->data<Complex64>(), out->data<Complex64>());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindFftR2c(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectFftInput(*x, *out, DType::kFloat32));
  if (!context->Attr<bool>("onesided"))
    return Unimplemented("both sides are asked for");
  PD_ASSIGN_OR_RETURN(const auto axes, ReadFftAxes(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(
      const RealAxis axis,
      RealAxisOf(*context, x->shape(), out->shape(), axes, true));
  PD_ASSIGN_OR_RETURN(
      const ComplexAxes others,
      ComplexAxesOf(out->shape(), axes, axes.size() - 1, axis.job.inverse));
  return Step([=](const RunContext&) {
    FftReal(*axis.half, *axis.whole, axis.job, x->data<float>(),
            out->data<Complex64>());
    others.Run(out->data<Complex64>(), out->data<Complex64>());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindFftC2r(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(ExpectFftInput(*x, *out, DType::kComplex64));
  PD_ASSIGN_OR_RETURN(const auto axes, ReadFftAxes(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(const RealAxis axis, RealAxisOf(*context, out->shape(),
                                                      x->shape(), axes, false));
  PD_ASSIGN_OR_RETURN(
      const ComplexAxes others,
      ComplexAxesOf(x->shape(), axes, axes.size() - 1, axis.job.inverse));
  Tensor* work = others.axes.empty() ? x : context->Scratch(x->bytes());
  return Step([=](const RunContext&) {
    if (work != x) others.Run(x->data<Complex64>(), work->data<Complex64>());
    FftHermitian(*axis.half, *axis.whole, axis.job, work->data<Complex64>(),
                 out->data<float>());
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
