// SPDX-License-Identifier: Apache-2.0
// pool2d: the maximum or the average of each window of a channel.
//   max: Out = max of the window; X@GRAD: Out@GRAD goes to its first maximum.
//   avg: Out = sum of the window / count; X@GRAD: Out@GRAD / count to each.
// `count` is the window's size inside the image (exclusive), else with its
// padding, but not with what ceil_mode adds beyond the padding. adaptive: the
// `ksize` windows of an axis split it as evenly as possible, overlapping where
// they must. A NaN in a window is its maximum. A window that lies wholly in the
// padding gives the lowest finite number (max) or 0 (avg) and no gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/window.h"

namespace pd {
namespace {

struct Pool {
  struct Strides {
    int64_t n, c, h, w;
  };
  PoolGeometry g;
  WindowAxis h, w;
  Strides in, out;
};

Pool::Strides StridesOf(const Shape& shape, bool channels_last) {
  const std::vector<int64_t> s = RowMajorStrides(shape);
  return channels_last ? Pool::Strides{s[0], s[3], s[1], s[2]}
                       : Pool::Strides{s[0], s[1], s[2], s[3]};
}

absl::StatusOr<Pool> ReadPool2d(const OpDesc& op, const Shape& input) {
  Pool p;
  PD_ASSIGN_OR_RETURN(p.g, ReadPool(op, input));
  if (p.g.axes.size() != 2)
    return InvalidArgument("'X' has shape %s; expected rank 4",
                           ToString(input));
  p.h = p.g.axes[0];
  p.w = p.g.axes[1];
  p.in = StridesOf(input, p.g.channels_last);
  p.out = StridesOf(p.g.OutputShape(), p.g.channels_last);
  return p;
}

// Calls body(in plane, out plane) for the offsets of every image and channel.
template <typename Body>
void ForEachPlane(const Pool& p, const Body& body) {
  ParallelFor(p.g.batch * p.g.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / p.g.channels, c = i % p.g.channels;
      body(n * p.in.n + c * p.in.c, n * p.out.n + c * p.out.c);
    }
  });
}

// Calls body(rows, columns, offset in the output plane) for every window.
template <typename Body>
void ForEachWindow(const Pool& p, const Body& body) {
  for (int64_t y = 0; y < p.h.out; ++y) {
    const PoolWindow rows = WindowAt(p.h, p.g.adaptive, y);
    for (int64_t x = 0; x < p.w.out; ++x)
      body(rows, WindowAt(p.w, p.g.adaptive, x), y * p.out.h + x * p.out.w);
  }
}

// The offset of the first maximum, -1 in an empty window.
template <typename T>
int64_t FirstMaximum(const Pool& p, const PoolWindow& rows,
                     const PoolWindow& columns, const T* plane) {
  int64_t best = -1;
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      const int64_t at = y * p.in.h + x * p.in.w;
      if (best < 0 || plane[at] > plane[best] ||
          (std::isnan(plane[at]) && !std::isnan(plane[best])))
        best = at;
    }
  }
  return best;
}

int64_t CountOf(const Pool& p, const PoolWindow& rows,
                const PoolWindow& columns) {
  if (p.g.exclusive || p.g.adaptive)
    return (rows.end - rows.begin) * (columns.end - columns.begin);
  return rows.padded * columns.padded;
}

template <typename T>
void Forward(const Pool& p, const T* x, T* out) {
  ForEachPlane(p, [&](int64_t in_plane, int64_t out_plane) {
    const T* in = x + in_plane;
    ForEachWindow(
        p, [&](const PoolWindow& rows, const PoolWindow& columns, int64_t to) {
          T& result = out[out_plane + to];
          if (p.g.max) {
            const int64_t at = FirstMaximum(p, rows, columns, in);
            result = at < 0 ? std::numeric_limits<T>::lowest() : in[at];
            return;
          }
          T sum = T(0);
          for (int64_t y = rows.begin; y < rows.end; ++y)
            for (int64_t c = columns.begin; c < columns.end; ++c)
              sum += in[y * p.in.h + c * p.in.w];
          const int64_t count = CountOf(p, rows, columns);
          result = count > 0 ? sum / static_cast<T>(count) : T(0);
        });
  });
}

template <typename T>
void Backward(const Pool& p, const T* x, const T* dout, T* dx) {
  ForEachPlane(p, [&](int64_t in_plane, int64_t out_plane) {
    T* grad = dx + in_plane;
    for (int64_t y = 0; y < p.h.in; ++y)
      for (int64_t c = 0; c < p.w.in; ++c) grad[y * p.in.h + c * p.in.w] = T(0);
    ForEachWindow(p, [&](const PoolWindow& rows, const PoolWindow& columns,
                         int64_t from) {
      const T g = dout[out_plane + from];
      if (p.g.max) {
        const int64_t at = FirstMaximum(p, rows, columns, x + in_plane);
        if (at >= 0) grad[at] += g;
        return;
      }
      const T share = g / static_cast<T>(CountOf(p, rows, columns));
      for (int64_t y = rows.begin; y < rows.end; ++y)
        for (int64_t c = columns.begin; c < columns.end; ++c)
          grad[y * p.in.h + c * p.in.w] += share;
    });
  });
}

absl::StatusOr<Step> BindPool2d(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Pool pool, ReadPool2d(context->op(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Forward<T>(pool, x->data<T>(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindPool2dGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* out = context->Input("Out");
  if (out != nullptr) context->NoBuffer(out);
  PD_ASSIGN_OR_RETURN(const Pool pool, ReadPool2d(context->op(), x->shape()));
  if (!pool.g.max) context->NoBuffer(x);
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), pool.g.OutputShape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Backward<T>(pool, x->data<T>(), dout->data<T>(), dx->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferPool2d(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.shape.size() != 4)
    return InvalidArgument("'X' has shape %s; expected rank 4",
                           ToString(x.shape));
  PD_ASSIGN_OR_RETURN(const PoolGeometry g, ReadPool(context->op(), x.shape));
  context->SetOutput("Out", g.OutputShape(), x.dtype);
  return absl::OkStatus();
}

void AddAttrs(OpDef* def) {
  def->RequiredAttr("pooling_type", AttrType::kString)
      .RequiredAttr("ksize", AttrType::kInts)
      .Attr("strides", std::vector<int32_t>{1, 1})
      .Attr("paddings", std::vector<int32_t>{0, 0})
      .Attr("ceil_mode", false)
      .Attr("exclusive", true)
      .Attr("data_format", std::string("NCHW"))
      .Attr("global_pooling", false)
      .Attr("adaptive", false)
      .Attr("padding_algorithm", std::string("EXPLICIT"));
}

}  // namespace

absl::Status RegisterPool2d(OpRegistry* registry) {
  OpDef pool("pool2d");
  pool.Input("X").Output("Out");
  AddAttrs(&pool);
  pool.Infer(InferPool2d).Reference(BindPool2d);
  pool.Grad(GradSpec{"pool2d_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(pool)));

  OpDef grad("pool2d_grad");
  grad.Input("X").OptionalInput("Out").Input("Out@GRAD").Output("X@GRAD");
  AddAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPool2dGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
