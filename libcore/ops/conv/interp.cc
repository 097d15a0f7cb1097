// SPDX-License-Identifier: Apache-2.0
// Resizing along 1 to 3 axes: nearest_interp, linear_interp, bilinear_interp,
// trilinear_interp, bicubic_interp, and the same with _v2. `interp_method` says
// how. Every method is a product of one rule per axis: output position o reads
// a few input positions ("taps") with weights,
//   Out[o] = sum over taps of weight * X[tap]
//   X@GRAD[tap] += weight * Out@GRAD[o]
// With r = (in - 1) / (out - 1) when align_corners, else in / out, or for _v2
// 1 / scale where a scale is given:
//   nearest: floor(r o + 1/2) when align_corners, else floor(r o)
//   linear:  s = r (o + 1/2) - 1/2, at least 0, when align_mode is 0 and not
//            align_corners, else r o; floor(s) and the next with 1 - f and f
//   cubic:   s = r o when align_corners, else r (o + 1/2) - 1/2; four around s
//            by Keys' kernel with a = -3/4, clamped at the borders
// r is a float, s of linear too, as in PaddlePaddle. Equal extents are a copy.
// The output's extents: SizeTensor's, else OutSize's, else X's times Scale or
// attr `scale`, else out_d, out_h, out_w.
#include "libcore/ops/conv/interp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

enum class Method { kNearest, kLinear, kCubic };

struct Resize {
  Method method;
  bool v2, align_corners, align_mode_0, channels_last;
  size_t axes;

  size_t Axis(size_t i) const { return i + (channels_last ? 1 : 2); }
};

absl::StatusOr<Resize> ReadResize(const OpDesc& op, const Shape& x) {
  Resize r;
  const auto method = op.Attr<std::string>("interp_method");
  const auto layout = op.Attr<std::string>("data_layout");
  r.v2 = op.type.find("_v2") != std::string::npos;
  r.align_corners = op.Attr<bool>("align_corners");
  r.align_mode_0 = op.Attr<int32_t>("align_mode") == 0;
  r.channels_last = layout == "NHWC" || layout == "NDHWC" || layout == "NWC";
  r.axes = x.size() < 2 ? 0 : x.size() - 2;
  const char* linear[] = {"", "linear", "bilinear", "trilinear"};
  if (r.axes < 1 || r.axes > 3)
    return InvalidArgument("'X' has shape %s; expected rank 3 to 5",
                           ToString(x));
  if (method == linear[r.axes])
    r.method = Method::kLinear;
  else if (method == "nearest" && r.axes > 1)
    r.method = Method::kNearest;
  else if (method == "bicubic" && r.axes == 2)
    r.method = Method::kCubic;
  else
    return InvalidArgument("attr 'interp_method' is '%s'; 'X' has shape %s",
                           method, ToString(x));
  return r;
}

// The scale for each axis; 0: none; -1: given by a tensor whose value is not
// known yet.
absl::StatusOr<std::vector<float>> ScalesOf(const OpDesc& op, bool has_tensor,
                                            const Tensor* tensor, size_t axes) {
  std::vector<float> given;
  if (has_tensor) {
    if (tensor == nullptr) return std::vector<float>(axes, -1);
    if (tensor->dtype() != DType::kFloat32)
      return InvalidArgument("'Scale' is %s; expected float32",
                             Name(tensor->dtype()));
    given.assign(tensor->data<float>(), tensor->data<float>() + tensor->size());
  } else if (const Attribute* a = op.FindAttr("scale")) {
    if (const auto* list = std::get_if<std::vector<float>>(a)) given = *list;
    if (const auto* one = std::get_if<float>(a)) given = {*one};
  }
  if (given.empty() || (!has_tensor && given.size() == 1 && given[0] <= 0))
    return std::vector<float>(axes, 0);
  if (given.size() == 1) given.resize(axes, given[0]);
  if (given.size() < axes)
    return InvalidArgument("there are %d scales; 'X' has %d axes to resize",
                           given.size(), axes);
  for (float scale : given)
    if (!(scale > 0))
      return InvalidArgument("a scale is %g; expected more than 0", scale);
  return given;
}

absl::Status InferInterp(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const OpDesc& op = context->op();
  PD_ASSIGN_OR_RETURN(const Resize resize, ReadResize(op, x.shape));
  const bool has_scale = context->HasInput("Scale");
  PD_ASSIGN_OR_RETURN(
      const auto scales,
      ScalesOf(op, has_scale,
               has_scale ? context->Input("Scale").value : nullptr,
               resize.axes));
  const char* attrs[] = {"out_d", "out_h", "out_w"};
  auto sizes = IntsIn(*context, "SizeTensor");
  const bool asked = sizes.has_value() || context->HasInput("OutSize");
  if (!sizes.has_value() && context->HasInput("OutSize"))
    sizes = IntsIn(*context, "OutSize")
                .value_or(std::vector<int64_t>(resize.axes, -1));
  if (sizes.has_value() && sizes->size() < resize.axes)
    return InvalidArgument("there are %d sizes; 'X' has %d axes to resize",
                           sizes->size(), resize.axes);
  Shape shape = x.shape;
  for (size_t i = 0; i < resize.axes; ++i) {
    int64_t& extent = shape[resize.Axis(i)];
    const int64_t in = extent;
    bool known = true;
    if (asked) {
      extent = (*sizes)[i];
      known = extent != -1;
    } else if (scales[i] != 0) {
      known = scales[i] > 0 && in >= 0;
      const float scaled = static_cast<float>(in) * scales[i];
      if (known && !(scaled < 2147483648.0f))
        return InvalidArgument("extent %d times %g is too much", in, scales[i]);
      extent = known ? static_cast<int64_t>(scaled) : -1;
    } else {
      extent = op.Attr<int32_t>(attrs[i + 3 - resize.axes]);
    }
    if (known && (extent <= 0 || in == 0))
      return InvalidArgument("'X' %s would be resized to %d at axis %d",
                             ToString(x.shape), extent, resize.Axis(i));
  }
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

void SetTaps(int64_t count, InterpAxis* axis) {
  axis->taps = count;
  axis->index.resize(static_cast<size_t>(axis->out * count));
  axis->weight.resize(static_cast<size_t>(axis->out * count));
}

void SetTap(int64_t o, int64_t tap, int64_t at, double weight,
            InterpAxis* axis) {
  const size_t i = static_cast<size_t>(o * axis->taps + tap);
  axis->index[i] = std::clamp<int64_t>(at, 0, axis->in - 1);
  axis->weight[i] = weight;
}

void SetNearest(bool align_corners, float ratio, InterpAxis* t) {
  SetTaps(1, t);
  for (int64_t o = 0; o < t->out; ++o) {
    const double at = align_corners ? ratio * static_cast<float>(o) + 0.5
                                    : double{ratio * static_cast<float>(o)};
    SetTap(o, 0, static_cast<int64_t>(at), 1, t);
  }
}

void SetLinear(bool centers, float ratio, InterpAxis* t) {
  SetTaps(2, t);
  for (int64_t o = 0; o < t->out; ++o) {
    float source = ratio * static_cast<float>(o);
    if (centers) {
      const double center = ratio * (static_cast<double>(o) + 0.5) - 0.5;
      source = std::max(static_cast<float>(center), 0.0f);
    }
    const int64_t low = static_cast<int64_t>(source);
    const float f = source - static_cast<float>(low);
    SetTap(o, 0, low, 1.0f - f, t);
    SetTap(o, 1, low + 1, f, t);
  }
}

template <typename T>
void SetCubic(bool align_corners, float ratio, InterpAxis* t) {
  SetTaps(4, t);
  const T a = T(-0.75);
  const auto near = [a](T v) { return ((a + 2) * v - (a + 3)) * v * v + 1; };
  const auto far = [a](T v) {
    return ((a * v - 5 * a) * v + 8 * a) * v - 4 * a;
  };
  for (int64_t o = 0; o < t->out; ++o) {
    const T source = align_corners
                         ? static_cast<T>(ratio * static_cast<float>(o))
                         : static_cast<T>(ratio * (o + 0.5) - 0.5);
    const T low = std::floor(source);
    const T f = source - low;
    const int64_t at = static_cast<int64_t>(low);
    SetTap(o, 0, at - 1, far(f + 1), t);
    SetTap(o, 1, at, near(f), t);
    SetTap(o, 2, at + 1, near(1 - f), t);
    SetTap(o, 3, at + 2, far(2 - f), t);
  }
}

using Tables = InterpTables;

template <typename T>
Tables MakeTables(const Resize& r, const Shape& x, const Shape& out,
                  const std::vector<float>& scales) {
  Tables t;
  InterpAxis* axes[] = {&t.d, &t.h, &t.w};
  bool same = true;
  for (size_t i = 0; i < r.axes; ++i)
    same = same && x[r.Axis(i)] == out[r.Axis(i)];
  for (size_t i = 0; i < r.axes; ++i) {
    InterpAxis* axis = axes[i + 3 - r.axes];
    axis->in = x[r.Axis(i)];
    axis->out = out[r.Axis(i)];
    float ratio = 0;
    if (axis->out > 1) {
      ratio = static_cast<float>(axis->in) / static_cast<float>(axis->out);
      if (r.v2 && scales[i] > 0) ratio = static_cast<float>(1.0 / scales[i]);
      if (r.align_corners)
        ratio = static_cast<float>(axis->in - 1) /
                static_cast<float>(axis->out - 1);
    }
    if (same)
      SetNearest(false, 1, axis);
    else if (r.method == Method::kNearest)
      SetNearest(r.align_corners, ratio, axis);
    else if (r.method == Method::kLinear)
      SetLinear(r.align_mode_0 && !r.align_corners, ratio, axis);
    else
      SetCubic<T>(r.align_corners, ratio, axis);
  }
  t.planes = r.channels_last ? x[0] : x[0] * x[1];
  t.inner = r.channels_last ? x.back() : 1;
  return t;
}

// The taps of a row of the output: rows of the input, by their first element.
struct RowTap {
  int64_t from;
  double weight;
};

// The sums of float are float's.
template <typename T>
using InterpAcc = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A row of a plane, of kTaps columns for each output and all of `rows`.
template <int kTaps, typename T>
void SumRow(const Tables& t, const RowTap* rows, int count, const T* plane,
            T* out) {
  using Acc = InterpAcc<T>;
  const int64_t* index = t.w.index.data();
  const double* weight = t.w.weight.data();
  for (int64_t x = 0; x < t.w.out; ++x, index += kTaps, weight += kTaps) {
    Acc across[kTaps];
#pragma GCC unroll 4
    for (int k = 0; k < kTaps; ++k) across[k] = static_cast<Acc>(weight[k]);
    for (int64_t c = 0; c < t.inner; ++c) {
      Acc sum = 0;
      for (int r = 0; r < count; ++r) {
        const T* from = plane + rows[r].from + c;
        Acc line = 0;
#pragma GCC unroll 4
        for (int k = 0; k < kTaps; ++k)
          line += static_cast<Acc>(from[index[k] * t.inner]) * across[k];
        sum += line * static_cast<Acc>(rows[r].weight);
      }
      out[x * t.inner + c] = static_cast<T>(sum);
    }
  }
}

// The reverse for one row of the input.
template <int kTaps, typename T>
void AddRow(const Tables& t, const RowTap& row, const T* dout, T* plane) {
  using Acc = InterpAcc<T>;
  const int64_t* index = t.w.index.data();
  const double* weight = t.w.weight.data();
  T* const to = plane + row.from;
  const Acc down = static_cast<Acc>(row.weight);
  for (int64_t x = 0; x < t.w.out; ++x, index += kTaps, weight += kTaps) {
#pragma GCC unroll 4
    for (int k = 0; k < kTaps; ++k) {
      const Acc by = down * static_cast<Acc>(weight[k]);
      T* at = to + index[k] * t.inner;
      for (int64_t c = 0; c < t.inner; ++c)
        at[c] += static_cast<T>(static_cast<Acc>(dout[x * t.inner + c]) * by);
    }
  }
}

template <typename T>
void CopyRow(const Tables& t, const T* from, T* out) {
  const int64_t* index = t.w.index.data();
  if (t.inner == 1) {
    for (int64_t x = 0; x < t.w.out; ++x) out[x] = from[index[x]];
    return;
  }
  for (int64_t x = 0; x < t.w.out; ++x)
    std::copy_n(from + index[x] * t.inner, t.inner, out + x * t.inner);
}

// The taps of row (z, y); linear in three axes has four, cubic in two too.
int RowTaps(const Tables& t, int64_t z, int64_t y, RowTap* rows) {
  int count = 0;
  for (int64_t i = z * t.d.taps; i < (z + 1) * t.d.taps; ++i)
    for (int64_t j = y * t.h.taps; j < (y + 1) * t.h.taps; ++j)
      rows[count++] = {
          (t.d.index[i] * t.h.in + t.h.index[j]) * t.w.in * t.inner,
          t.d.weight[i] * t.h.weight[j]};
  return count;
}

// Row (z, y) of a plane.
template <typename T>
void ForwardRow(const Tables& t, int64_t z, int64_t y, const T* plane, T* out) {
  RowTap rows[4];
  const int count = RowTaps(t, z, y, rows);
  const int64_t width = t.w.out * t.inner;
  if (t.w.taps == 1 && count == 1) {
    // An enlarged image repeats its rows.
    if (y > 0 && t.h.index[y] == t.h.index[y - 1])
      std::copy_n(out - width, width, out);
    else
      CopyRow(t, plane + rows[0].from, out);
  } else if (t.w.taps == 2) {
    SumRow<2>(t, rows, count, plane, out);
  } else if (t.w.taps == 4) {
    SumRow<4>(t, rows, count, plane, out);
  } else {
    SumRow<1>(t, rows, count, plane, out);
  }
}

template <typename T>
void InterpForward(const Tables& t, const T* in, T* out) {
  const int64_t in_size = t.d.in * t.h.in * t.w.in * t.inner;
  const int64_t width = t.w.out * t.inner;
  const int64_t rows = t.d.out * t.h.out;
  ParallelFor(t.planes, 4096 / (rows * width + 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p)
                  for (int64_t r = 0; r < rows; ++r)
                    ForwardRow(t, r / t.h.out, r % t.h.out, in + p * in_size,
                               out + (p * rows + r) * width);
              });
}

// Adds what row (z, y) of the output's gradient is worth to a plane.
template <typename T>
void BackwardRow(const Tables& t, int64_t z, int64_t y, const T* dout,
                 T* plane) {
  RowTap rows[4];
  const int count = RowTaps(t, z, y, rows);
  for (int r = 0; r < count; ++r) {
    if (t.w.taps == 1)
      AddRow<1>(t, rows[r], dout, plane);
    else if (t.w.taps == 2)
      AddRow<2>(t, rows[r], dout, plane);
    else
      AddRow<4>(t, rows[r], dout, plane);
  }
}

template <typename T>
void InterpBackward(const Tables& t, const T* dout, T* dx) {
  const int64_t in_size = t.d.in * t.h.in * t.w.in * t.inner;
  const int64_t width = t.w.out * t.inner;
  const int64_t rows = t.d.out * t.h.out;
  ParallelFor(t.planes, 4096 / (rows * width + 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                  T* plane = dx + p * in_size;
                  std::fill_n(plane, in_size, T(0));
                  for (int64_t r = 0; r < rows; ++r)
                    BackwardRow(t, r / t.h.out, r % t.h.out,
                                dout + (p * rows + r) * width, plane);
                }
              });
}

// Also checks that `out` is a resized `x`.
absl::StatusOr<Resize> ReadResized(const OpDesc& op, const Shape& x,
                                   const Shape& out) {
  PD_ASSIGN_OR_RETURN(const Resize resize, ReadResize(op, x));
  for (size_t i = 0; i < x.size(); ++i) {
    const bool resized =
        i >= resize.Axis(0) && i <= resize.Axis(resize.axes - 1);
    if (out.size() != x.size() || (!resized && out[i] != x[i]) ||
        (resized && (out[i] < 1 || x[i] < 1)))
      return InvalidArgument("%s is no resized %s", ToString(out), ToString(x));
  }
  return resize;
}

// A step that calls run(tables). The tables are made now, or when the step runs
// where a tensor says the scale.
template <typename T, typename Run>
absl::StatusOr<Step> StepWithTables(BindContext* context, const Shape& x,
                                    const Shape& out, const Run& run) {
  PD_ASSIGN_OR_RETURN(const Resize resize, ReadResized(context->op(), x, out));
  Tensor* scale = context->Input("Scale");
  if (scale != nullptr && resize.v2) {
    const OpDesc op = context->op();
    return Step([=](const RunContext&) {
      PD_ASSIGN_OR_RETURN(const auto scales,
                          ScalesOf(op, true, scale, resize.axes));
      run(MakeTables<T>(resize, x, out, scales));
      return absl::OkStatus();
    });
  }
  PD_ASSIGN_OR_RETURN(const auto scales,
                      ScalesOf(context->op(), false, nullptr, resize.axes));
  return Step(
      [run, tables = MakeTables<T>(resize, x, out, scales)](const RunContext&) {
        run(tables);
        return absl::OkStatus();
      });
}

absl::StatusOr<Step> BindInterp(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return DispatchTypes<float, double, int32_t, int64_t, uint8_t, int16_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return StepWithTables<T>(
            context, x->shape(), out->shape(), [=](const Tables& tables) {
              InterpForward(tables, x->data<T>(), out->data<T>());
            });
      });
}

absl::StatusOr<Step> BindInterpGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), dout->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return StepWithTables<T>(
        context, x->shape(), dout->shape(), [=](const Tables& tables) {
          InterpBackward(tables, dout->data<T>(), dx->data<T>());
        });
  });
}

void AddInterpSlotsAndAttrs(OpDef* def, bool v2) {
  def->Input("X").OptionalInput("OutSize");
  def->OptionalInputs("SizeTensor").OptionalInput("Scale");
  def->Attr("data_layout", std::string("NCHW"));
  for (const char* attr : {"out_d", "out_h", "out_w"})
    def->Attr(attr, int32_t{0});
  v2 ? def->Attr("scale", std::vector<float>{}) : def->Attr("scale", 0.0f);
  def->Attr("interp_method", std::string("bilinear"));
  def->Attr("align_corners", true).Attr("align_mode", int32_t{1});
}

absl::Status AddInterp(OpRegistry* registry, const std::string& type, bool v2) {
  OpDef op(type);
  AddInterpSlotsAndAttrs(&op, v2);
  op.Output("Out").Infer(InferInterp).Reference(BindInterp);
  op.Grad(GradSpec{type + "_grad",
                   {"X", "OutSize", "SizeTensor", "Scale"},
                   {},
                   {"Out"},
                   {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  AddInterpSlotsAndAttrs(&grad, v2);
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindInterpGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::StatusOr<InterpTables> ReadInterp(const BindContext& context,
                                        const Shape& x, const Shape& out) {
  PD_ASSIGN_OR_RETURN(const Resize resize, ReadResized(context.op(), x, out));
  if (context.Input("Scale") != nullptr && resize.v2)
    return Unimplemented("a scale that a tensor says");
  PD_ASSIGN_OR_RETURN(const auto scales,
                      ScalesOf(context.op(), false, nullptr, resize.axes));
  return MakeTables<float>(resize, x, out, scales);
}

absl::Status RegisterInterp(OpRegistry* registry) {
  for (const char* method :
       {"nearest", "linear", "bilinear", "trilinear", "bicubic"})
    for (bool v2 : {false, true})
      PD_RETURN_IF_ERROR(AddInterp(
          registry, std::string(method) + (v2 ? "_interp_v2" : "_interp"), v2));
  return absl::OkStatus();
}

}  // namespace pd
