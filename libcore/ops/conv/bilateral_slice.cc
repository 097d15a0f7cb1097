// SPDX-License-Identifier: Apache-2.0
// A picture's colours by an affine map of its own for each pixel (M. Gharbi et
// al., "Deep bilateral learning for real-time image enhancement", 2017). Grid
// [N, coefficients, depth, rows, columns] has the maps; pixel (y, x) of X [N,
// C, H, W] reads, between the eight cells around it, the one at row (y + 1/2)
// rows / H, column (x + 1/2) columns / W and depth Guide[y, x] depth, whose
// cells have their middles at 1/2, 3/2, ...; outside the outermost ones go on.
//   Out[o] = sum over i of coefficient[o, i] X[i] (+ coefficient[o, C] with
//   has_offset)
// As in PaddlePaddle, a distance d in depth counts as sqrt(d^2 + 1e-8).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct SliceDims {
  int64_t images, channels, height, width;
  int64_t coefficients, depth, rows, columns;
  bool offset;

  int64_t inputs() const { return channels + (offset ? 1 : 0); }
  int64_t outputs() const { return coefficients / inputs(); }
  int64_t pixels() const { return height * width; }
  int64_t cells() const { return depth * rows * columns; }
};

absl::StatusOr<SliceDims> SliceDimsOf(const Shape& x, const Shape& grid,
                                      const Shape& guide, bool offset) {
  const auto differ = [](int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a != b;
  };
  if (x.size() != 4 || grid.size() != 5 || guide.size() != 3 ||
      differ(x[0], grid[0]) || differ(x[0], guide[0]) ||
      differ(x[2], guide[1]) || differ(x[3], guide[2]))
    return InvalidArgument(
        "'X' has shape %s, 'Grid' %s and 'Guide' %s; expected [n, c, h, w], "
        "[n, coefficients, depth, rows, columns] and [n, h, w]",
        ToString(x), ToString(grid), ToString(guide));
  const SliceDims d = {x[0],    x[1],    x[2],    x[3],  grid[1],
                       grid[2], grid[3], grid[4], offset};
  const bool known = d.channels >= 0 && d.coefficients >= 0;
  if (known && (d.inputs() < 1 || d.coefficients % d.inputs() != 0))
    return InvalidArgument(
        "'Grid' has %d coefficients; expected a multiple of %d, one for each "
        "channel%s",
        d.coefficients, d.inputs(), offset ? " and the offset" : "");
  for (size_t k = 2; k < 5; ++k)
    if (grid[k] == 0)
      return InvalidArgument("'Grid' has shape %s and no cells",
                             ToString(grid));
  return d;
}

// The eight cells that a pixel reads: their numbers and weights, and how the
// weights change with the guide.
template <typename T>
struct Corners {
  int64_t cell[8];
  T weight[8], slope[8];
};

// The number of a cell on an axis; those outside are the outermost ones. NaN
// is 0.
inline int64_t CellAt(double at, int64_t n) {
  const auto last = static_cast<double>(n - 1);
  return static_cast<int64_t>(at >= 0 ? (at < last ? at : last) : 0);
}

template <typename T>
Corners<T> CornersOf(const SliceDims& d, int64_t y, int64_t x, T guide) {
  const double middle[3] = {
      static_cast<double>(guide) * static_cast<double>(d.depth),
      (static_cast<double>(y) + .5) * static_cast<double>(d.rows) /
          static_cast<double>(d.height),
      (static_cast<double>(x) + .5) * static_cast<double>(d.columns) /
          static_cast<double>(d.width)};
  const int64_t extent[3] = {d.depth, d.rows, d.columns};
  int64_t cell[3][2];
  double weight[3][2], slope[2];
  for (int axis = 0; axis < 3; ++axis)
    for (int side = 0; side < 2; ++side) {
      const double at = std::floor(middle[axis] - .5) + side;
      const double far = at + .5 - middle[axis];
      const double apart =
          axis == 0 ? std::sqrt(far * far + 1e-8) : std::abs(far);
      cell[axis][side] = CellAt(at, extent[axis]);
      weight[axis][side] = 1 - apart < 0 ? 0 : 1 - apart;
      if (axis == 0)
        slope[side] =
            apart > 1 ? 0 : static_cast<double>(d.depth) * far / apart;
    }
  Corners<T> c;
  for (int k = 0; k < 8; ++k) {
    const int z = k >> 2, r = (k >> 1) & 1, s = k & 1;
    c.cell[k] = (cell[0][z] * d.rows + cell[1][r]) * d.columns + cell[2][s];
    const double flat = weight[1][r] * weight[2][s];
    c.weight[k] = static_cast<T>(flat * weight[0][z]);
    c.slope[k] = static_cast<T>(flat * slope[z]);
  }
  return c;
}

template <typename T>
struct SliceData {
  const T *x, *grid, *guide, *dout;
  T *out, *dx, *dgrid, *dguide;
};

template <typename T>
void SliceForward(const SliceDims& d, const SliceData<T>& t) {
  ParallelFor(d.images * d.pixels(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / d.pixels(), at = p % d.pixels();
      const Corners<T> c = CornersOf(d, at / d.width, at % d.width, t.guide[p]);
      const T* x = t.x + n * d.channels * d.pixels() + at;
      const T* grid = t.grid + n * d.coefficients * d.cells();
      for (int64_t o = 0; o < d.outputs(); ++o) {
        T sum = T(0);
        for (int64_t i = 0; i < d.inputs(); ++i, grid += d.cells()) {
          T coefficient = T(0);
          for (int k = 0; k < 8; ++k)
            coefficient += grid[c.cell[k]] * c.weight[k];
          sum += i < d.channels ? coefficient * x[i * d.pixels()] : coefficient;
        }
        t.out[(n * d.outputs() + o) * d.pixels() + at] = sum;
      }
    }
  });
}

// One image at a time: pixels of one share cells.
template <typename T>
void SliceBackwardImage(const SliceDims& d, const SliceData<T>& t, int64_t n) {
  for (int64_t at = 0; at < d.pixels(); ++at) {
    const Corners<T> c =
        CornersOf(d, at / d.width, at % d.width, t.guide[n * d.pixels() + at]);
    const int64_t first = n * d.channels * d.pixels() + at;
    int64_t plane = n * d.coefficients * d.cells();
    T to_guide = T(0);
    for (int64_t o = 0; o < d.outputs(); ++o) {
      const T g = t.dout[(n * d.outputs() + o) * d.pixels() + at];
      for (int64_t i = 0; i < d.inputs(); ++i, plane += d.cells()) {
        const int64_t pixel = first + i * d.pixels();
        const T value = i < d.channels ? g * t.x[pixel] : g;
        T coefficient = T(0), slope = T(0);
        for (int k = 0; k < 8; ++k) {
          const int64_t cell = plane + c.cell[k];
          coefficient += t.grid[cell] * c.weight[k];
          slope += t.grid[cell] * c.slope[k];
          if (t.dgrid != nullptr) t.dgrid[cell] += value * c.weight[k];
        }
        to_guide += value * slope;
        if (t.dx != nullptr && i < d.channels) t.dx[pixel] += g * coefficient;
      }
    }
    if (t.dguide != nullptr) t.dguide[n * d.pixels() + at] = to_guide;
  }
}

absl::StatusOr<SliceDims> ReadSlice(const BindContext& context) {
  const Tensor* x = context.Input("X");
  PD_ASSIGN_OR_RETURN(const SliceDims d,
                      SliceDimsOf(x->shape(), context.Input("Grid")->shape(),
                                  context.Input("Guide")->shape(),
                                  context.Attr<bool>("has_offset")));
  for (const char* slot : {"Grid", "Guide"})
    PD_RETURN_IF_ERROR(
        ExpectInput(context, slot, x->dtype(), context.Input(slot)->shape()));
  return d;
}

absl::StatusOr<Step> BindSlice(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* grid = context->Input("Grid");
  Tensor* guide = context->Input("Guide");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const SliceDims d, ReadSlice(*context));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      SliceData<T> t = {};
      t.x = x->data<T>();
      t.grid = grid->data<T>();
      t.guide = guide->data<T>();
      t.out = out->data<T>();
      SliceForward(d, t);
      return absl::OkStatus();
    });
  });
}

// The elements of a gradient, zeroed; null where nobody wants it.
template <typename T>
T* ZeroedSlice(Tensor* gradient) {
  if (gradient == nullptr) return nullptr;
  std::fill_n(gradient->data<T>(), gradient->size(), T(0));
  return gradient->data<T>();
}

absl::StatusOr<Step> BindSliceGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* grid = context->Input("Grid");
  Tensor* guide = context->Input("Guide");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dgrid = context->Output("Grid@GRAD");
  Tensor* dguide = context->Output("Guide@GRAD");
  PD_ASSIGN_OR_RETURN(const SliceDims d, ReadSlice(*context));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(),
                                 {d.images, d.outputs(), d.height, d.width}));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const SliceData<T> t = {x->data<T>(),
                              grid->data<T>(),
                              guide->data<T>(),
                              dout->data<T>(),
                              nullptr,
                              ZeroedSlice<T>(dx),
                              ZeroedSlice<T>(dgrid),
                              ZeroedSlice<T>(dguide)};
      ParallelFor(d.images, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) SliceBackwardImage(d, t, n);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSlice(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const SliceDims d,
                      SliceDimsOf(x.shape, context->Input("Grid").shape,
                                  context->Input("Guide").shape,
                                  context->Attr<bool>("has_offset")));
  const bool known = d.channels >= 0 && d.coefficients >= 0;
  context->SetOutput(
      "Out", {d.images, known ? d.outputs() : -1, d.height, d.width}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterBilateralSlice(OpRegistry* registry) {
  OpDef op("bilateral_slice");
  op.Input("X").Input("Grid").Input("Guide").Output("Out");
  op.Attr("has_offset", false).Infer(InferSlice).Reference(BindSlice);
  op.Grad(GradSpec{"bilateral_slice_grad",
                   {"X", "Grid", "Guide"},
                   {},
                   {"Out"},
                   {"X", "Grid", "Guide"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("bilateral_slice_grad");
  grad.Input("X").Input("Grid").Input("Guide").Input("Out@GRAD");
  for (const char* slot : {"X@GRAD", "Grid@GRAD", "Guide@GRAD"})
    grad.OptionalOutput(slot);
  grad.Attr("has_offset", false);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSliceGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
