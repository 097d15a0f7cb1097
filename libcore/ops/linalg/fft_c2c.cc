// SPDX-License-Identifier: Apache-2.0
// Fourier transforms over `axes`:
//   fft_c2c: of complex numbers, with exp(-...) when `forward`, else exp(+...)
//   fft_r2c: of real numbers; with `onesided` the first half of the last of
//     the axes only: the other half are conjugates
//   fft_c2r: the inverse of that, to last_dim_size numbers (0: 2 (n - 1))
// `normalization` says which direction is divided by the number of elements
// (fft_lines.h). A gradient is the transform in the other direction with the
// same factor: of fft_r2c its real part, after zeros were put where the second
// half is; of fft_c2r, what both an element and its conjugate get is added.
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/linalg/fft_lines.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

DType RealDType(DType dtype) {
  return dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
}
DType ComplexDType(DType dtype) {
  return dtype == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128;
}

absl::StatusOr<std::vector<size_t>> AxesOf(const OpDesc& op,
                                           const Shape& shape) {
  std::vector<size_t> axes;
  for (int64_t axis : IntsAttr(op, "axes")) {
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, shape.size(), "axes"));
    for (size_t other : axes)
      if (other == static_cast<size_t>(a))
        return InvalidArgument("attr 'axes' names axis %d twice", a);
    axes.push_back(static_cast<size_t>(a));
  }
  if (axes.empty()) return InvalidArgument("attr 'axes' is empty");
  return axes;
}

// One transform along an axis.
struct Pass {
  std::shared_ptr<const Fft> fft;
  AxisView in, out;
};

absl::StatusOr<Pass> MakePass(const Shape& in, const Shape& out, size_t axis,
                              int64_t length) {
  if (length < 1)
    return InvalidArgument("axis %d of shape %s has no elements to transform",
                           axis, ToString(in));
  Pass pass;
  pass.fft = std::make_shared<Fft>(length);
  PD_ASSIGN_OR_RETURN(pass.in, ViewAxis(in, static_cast<int64_t>(axis)));
  PD_ASSIGN_OR_RETURN(pass.out, ViewAxis(out, static_cast<int64_t>(axis)));
  return pass;
}

// Complex transforms over several axes, one after the other; only the last one
// has a factor, which is the factor of all.
struct ComplexPasses {
  std::vector<Pass> passes;
  bool inverse = false;

  template <typename C>
  void Run(const C* from, C* to, int64_t n, double scale) const {
    if (passes.empty() && from != to) std::copy(from, from + n, to);
    for (size_t i = 0; i < passes.size(); ++i)
      FftLines(*passes[i].fft, passes[i].in, inverse,
               i + 1 == passes.size() ? scale : 1.0, i == 0 ? from : to, to);
  }
};

absl::StatusOr<ComplexPasses> MakePasses(const Shape& shape,
                                         const std::vector<size_t>& axes,
                                         size_t count, bool inverse) {
  ComplexPasses passes;
  passes.inverse = inverse;
  for (size_t i = 0; i < count; ++i) {
    PD_ASSIGN_OR_RETURN(Pass pass,
                        MakePass(shape, shape, axes[i], shape[axes[i]]));
    passes.passes.push_back(std::move(pass));
  }
  return passes;
}

absl::StatusOr<double> ScaleOf(const BindContext& context, const Shape& shape,
                               const std::vector<size_t>& axes) {
  int64_t n = 1;
  for (size_t axis : axes) n *= shape[axis];
  return FftScale(context.Attr<std::string>("normalization"),
                  context.Attr<bool>("forward"), n);
}

template <typename Body>
auto DispatchComplex(DType dtype, const Body& body) {
  return DispatchTypes<std::complex<float>, std::complex<double>>(dtype, body);
}

absl::Status ExpectComplex(const TensorMeta& x, bool complex) {
  const bool is =
      complex ? IsComplex(x.dtype)
              : x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64;
  if (is) return absl::OkStatus();
  return InvalidArgument("X is %s; expected %s", Name(x.dtype),
                         complex ? "complex numbers" : "float32 or float64");
}

absl::Status InferC2c(InferContext* context) {
  PD_RETURN_IF_ERROR(ExpectComplex(context->Input("X"), true));
  PD_RETURN_IF_ERROR(AxesOf(context->op(), context->Input("X").shape).status());
  return InferUnary(context);
}

// The transform of `from`; its gradient goes the other way.
absl::StatusOr<Step> BindC2cOf(BindContext* context, Tensor* from, Tensor* to,
                               bool inverse) {
  if (from == nullptr || to == nullptr || from->size() != to->size())
    return InvalidArgument("an operand is missing or has another size");
  PD_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                      AxesOf(context->op(), to->shape()));
  PD_ASSIGN_OR_RETURN(const double scale, ScaleOf(*context, to->shape(), axes));
  if (to->size() == 0)
    return Step([](const RunContext&) { return absl::OkStatus(); });
  PD_ASSIGN_OR_RETURN(const ComplexPasses passes,
                      MakePasses(to->shape(), axes, axes.size(), inverse));
  return DispatchComplex(to->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using C = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      passes.Run(from->data<C>(), to->data<C>(), to->size(), scale);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindC2c(BindContext* context) {
  return BindC2cOf(context, context->Input("X"), context->Output("Out"),
                   !context->Attr<bool>("forward"));
}
absl::StatusOr<Step> BindC2cGrad(BindContext* context) {
  return BindC2cOf(context, context->Input("Out@GRAD"),
                   context->Output("X@GRAD"), context->Attr<bool>("forward"));
}

absl::Status InferC2cGrad(InferContext* context) {
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  PD_RETURN_IF_ERROR(ExpectComplex(context->Input("Out@GRAD"), true));
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

absl::Status InferR2c(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(ExpectComplex(x, false));
  PD_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                      AxesOf(context->op(), x.shape));
  Shape shape = x.shape;
  int64_t& last = shape[axes.back()];
  if (context->Attr<bool>("onesided") && last >= 0) last = last / 2 + 1;
  context->SetOutput("Out", std::move(shape), ComplexDType(x.dtype));
  return absl::OkStatus();
}

// The transform over all axes but the last one, and over that one.
struct MixedPasses {
  Pass last;
  ComplexPasses others;
  double scale = 1.0;
};

// `real` is the shape of the real numbers, `complex` that of the others.
absl::StatusOr<MixedPasses> MakeMixed(const BindContext& context,
                                      const Shape& real, const Shape& complex,
                                      bool to_complex, bool inverse) {
  PD_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                      AxesOf(context.op(), real));
  MixedPasses mixed;
  PD_ASSIGN_OR_RETURN(mixed.scale, ScaleOf(context, real, axes));
  PD_ASSIGN_OR_RETURN(mixed.last, MakePass(to_complex ? real : complex,
                                           to_complex ? complex : real,
                                           axes.back(), real[axes.back()]));
  PD_ASSIGN_OR_RETURN(mixed.others,
                      MakePasses(complex, axes, axes.size() - 1, inverse));
  return mixed;
}

absl::StatusOr<Step> BindR2c(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const bool inverse = !context->Attr<bool>("forward");
  if (x->size() == 0)
    return Step([](const RunContext&) { return absl::OkStatus(); });
  PD_ASSIGN_OR_RETURN(
      const MixedPasses passes,
      MakeMixed(*context, x->shape(), out->shape(), true, inverse));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using R = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      auto* to = out->data<std::complex<R>>();
      const Pass& last = passes.last;
      FftRealLines(*last.fft, last.in, last.out, inverse, passes.scale,
                   x->data<R>(), to);
      passes.others.Run(to, to, out->size(), 1.0);
      return absl::OkStatus();
    });
  });
}

// to[..., k, ...] = from[..., k, ...] where k < from's extent, else 0.
template <typename C>
void PadAxis(const AxisView& from_view, const AxisView& to_view, const C* from,
             C* to) {
  for (int64_t line = 0; line < to_view.outer * to_view.inner; ++line) {
    const C* source = from + from_view.Start(line);
    C* target = to + to_view.Start(line);
    for (int64_t k = 0; k < to_view.n; ++k)
      target[k * to_view.inner] =
          k < from_view.n ? source[k * from_view.inner] : C(0);
  }
}

absl::StatusOr<Step> BindR2cGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                      AxesOf(context->op(), dx->shape()));
  Shape expected = dx->shape();
  if (context->Attr<bool>("onesided") && dx->size() > 0)
    expected[axes.back()] = expected[axes.back()] / 2 + 1;
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", ComplexDType(dx->dtype()), expected));
  if (dx->size() == 0)
    return Step([](const RunContext&) { return absl::OkStatus(); });
  PD_ASSIGN_OR_RETURN(const double scale, ScaleOf(*context, dx->shape(), axes));
  PD_ASSIGN_OR_RETURN(const ComplexPasses passes,
                      MakePasses(dx->shape(), axes, axes.size(),
                                 context->Attr<bool>("forward")));
  const int64_t axis = static_cast<int64_t>(axes.back());
  PD_ASSIGN_OR_RETURN(const AxisView from, ViewAxis(dout->shape(), axis));
  PD_ASSIGN_OR_RETURN(const AxisView to, ViewAxis(dx->shape(), axis));
  Tensor* full =
      context->Scratch(static_cast<size_t>(dx->size()) * SizeOf(dout->dtype()));
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using R = typename decltype(tag)::type;
    using C = std::complex<R>;
    return Step([=](const RunContext&) {
      C* work = full->data<C>();
      PadAxis(from, to, dout->data<C>(), work);
      passes.Run(work, work, dx->size(), scale);
      for (int64_t i = 0, n = dx->size(); i < n; ++i)
        dx->data<R>()[i] = work[i].real();
      return absl::OkStatus();
    });
  });
}

absl::Status InferC2r(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(ExpectComplex(x, true));
  PD_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                      AxesOf(context->op(), x.shape));
  const int64_t asked = context->Attr<int64_t>("last_dim_size");
  Shape shape = x.shape;
  int64_t& last = shape[axes.back()];
  if (asked > 0)
    last = asked;
  else if (last == 1)
    return InvalidArgument(
        "X has shape %s: 1 value along axis %d makes no real number",
        ToString(x.shape), axes.back());
  else if (last >= 0)
    last = 2 * (last - 1);
  context->SetOutput("Out", std::move(shape), RealDType(x.dtype));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindC2r(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const bool inverse = !context->Attr<bool>("forward");
  if (out->size() == 0)
    return Step([](const RunContext&) { return absl::OkStatus(); });
  PD_ASSIGN_OR_RETURN(
      const MixedPasses passes,
      MakeMixed(*context, out->shape(), x->shape(), false, inverse));
  Tensor* work = context->Scratch(x->bytes());
  return DispatchComplex(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using C = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      passes.others.Run(x->data<C>(), work->data<C>(), x->size(), 1.0);
      const Pass& last = passes.last;
      FftHermitianLines(*last.fft, last.in, last.out, inverse, passes.scale,
                        work->data<C>(), out->data<typename C::value_type>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferC2rGrad(InferContext* context) {
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  const TensorMeta& dout = context->Input("Out@GRAD");
  PD_RETURN_IF_ERROR(ExpectComplex(dout, false));
  PD_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                      AxesOf(context->op(), dout.shape));
  Shape shape = dout.shape;
  int64_t& last = shape[axes.back()];
  if (last >= 0) last = last / 2 + 1;
  context->SetOutput("X@GRAD", std::move(shape), ComplexDType(dout.dtype));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindC2rGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const bool inverse = context->Attr<bool>("forward");
  if (dout->size() == 0)
    return Step([](const RunContext&) { return absl::OkStatus(); });
  PD_ASSIGN_OR_RETURN(
      const MixedPasses passes,
      MakeMixed(*context, dout->shape(), dx->shape(), true, inverse));
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using R = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      auto* to = dx->data<std::complex<R>>();
      const Pass& last = passes.last;
      FftRealLines(*last.fft, last.in, last.out, inverse, passes.scale,
                   dout->data<R>(), to);
      // Every element but the first, and the one in the middle, has a
      // conjugate that went into Out too.
      for (int64_t line = 0; line < last.out.lines(); ++line)
        for (int64_t k = 1; k < last.out.n; ++k)
          if (2 * k != last.in.n)
            to[last.out.Start(line) + k * last.out.inner] *= R(2);
      passes.others.Run(to, to, dx->size(), 1.0);
      return absl::OkStatus();
    });
  });
}

void AddFftAttrs(OpDef* op, const char* flag) {
  op->RequiredAttr("axes", AttrType::kLongs);
  op->RequiredAttr("normalization", AttrType::kString);
  op->RequiredAttr("forward", AttrType::kBoolean);
  if (std::string(flag) == "onesided")
    op->RequiredAttr("onesided", AttrType::kBoolean);
  if (std::string(flag) == "last_dim_size")
    op->Attr("last_dim_size", int64_t{0});
}

struct Functions {
  InferFn infer;
  BindFn bind;
};

absl::Status AddFft(OpRegistry* registry, const std::string& type,
                    const char* flag, const Functions& forward,
                    const Functions& backward) {
  const bool reads_x = type == "fft_r2c";
  OpDef op(type);
  op.Input("X").Output("Out").Infer(forward.infer).Reference(forward.bind);
  AddFftAttrs(&op, flag);
  GradSpec spec{type + "_grad", {}, {}, {"Out"}, {"X"}};
  if (reads_x) spec.inputs = {"X"};
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  OpDef grad(type + "_grad");
  if (reads_x) grad.Input("X");
  grad.Input("Out@GRAD").Output("X@GRAD");
  AddFftAttrs(&grad, flag);
  grad.Infer(backward.infer).NoGrad().Reference(backward.bind);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterFftC2c(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddFft(registry, "fft_c2c", "", {InferC2c, BindC2c},
                            {InferC2cGrad, BindC2cGrad}));
  PD_RETURN_IF_ERROR(AddFft(registry, "fft_r2c", "onesided",
                            {InferR2c, BindR2c},
                            {InferGradLikeInput, BindR2cGrad}));
  return AddFft(registry, "fft_c2r", "last_dim_size", {InferC2r, BindC2r},
                {InferC2rGrad, BindC2rGrad});
}

}  // namespace pd
