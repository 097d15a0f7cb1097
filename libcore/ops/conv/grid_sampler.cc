// SPDX-License-Identifier: Apache-2.0
// Samples X [n, c, (d,) h, w] at the places of Grid [n, (d',) h', w', 2 or 3];
// its last axis is x, y(, z) in [-1, 1]:
//   s = (g + 1) / 2 * (extent - 1) when align_corners, else
//       ((g + 1) * extent - 1) / 2
// padding_mode "border" clamps s to [0, extent - 1], "reflection" mirrors it at
// the outer centres (align_corners) or edges and clamps; "zeros" reads 0
// outside.
//   nearest:  Output = X[round(s)], away from zero at ties as in PaddlePaddle's
//             CPU kernel, or to even where the attribute kGridTiesToEven is
//             true, as in ONNX; Grid@GRAD = 0; in volumes s itself must lie
//             inside, as in PaddlePaddle's CPU kernel, but not in ONNX's
//   bilinear: Output = sum over the 2^axes neighbours of weight * X
// X@GRAD and Grid@GRAD are the derivatives; where s was clamped or mirrored
// Grid's follows.
#include "libcore/ops/conv/grid_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status CheckShapes(const Shape& x, const Shape& grid) {
  const bool fits =
      (x.size() == 4 || x.size() == 5) && grid.size() == x.size() &&
      (grid[0] == x[0] || grid[0] < 0 || x[0] < 0) &&
      (grid.back() == static_cast<int64_t>(x.size()) - 2 || grid.back() < 0);
  if (fits) return absl::OkStatus();
  return InvalidArgument(
      "'X' has shape %s and 'Grid' %s; expected [n, c, h, w] and [n, h', w', "
      "2], or one axis more",
      ToString(x), ToString(grid));
}

}  // namespace

absl::StatusOr<GridSampler> ReadGridSampler(const OpDesc& op, const Shape& x,
                                            const Shape& grid) {
  PD_RETURN_IF_ERROR(CheckShapes(x, grid));
  GridSampler s;
  s.axes = x.size() - 2;
  s.images = x[0];
  s.channels = x[1];
  s.in_size = NumElements(x, 2, x.size());
  s.out_size = NumElements(grid, 1, grid.size() - 1);
  int64_t step = 1;
  for (size_t i = 0; i < 3; ++i) {
    s.extent[i] = i < s.axes ? x[x.size() - 1 - i] : 1;
    s.step[i] = step;
    step *= s.extent[i];
  }
  if (s.in_size == 0 && s.out_size > 0)
    return InvalidArgument("'X' %s has nothing to sample", ToString(x));
  const auto mode = op.Attr<std::string>("mode");
  const auto padding = op.Attr<std::string>("padding_mode");
  s.nearest = mode == "nearest";
  if (!s.nearest && mode != "bilinear")
    return InvalidArgument("attr 'mode' is '%s'; expected bilinear or nearest",
                           mode);
  if (padding == "zeros")
    s.padding = GridPadding::kZeros;
  else if (padding == "border")
    s.padding = GridPadding::kBorder;
  else if (padding == "reflection")
    s.padding = GridPadding::kReflection;
  else
    return InvalidArgument(
        "attr 'padding_mode' is '%s'; expected zeros, border or reflection",
        padding);
  s.align_corners = op.Attr<bool>("align_corners");
  s.ties_to_even = op.AttrOr(kGridTiesToEven, false);
  s.cubic = op.AttrOr(kGridCubic, false);
  if (s.cubic && s.axes != 2)
    return InvalidArgument("'X' has shape %s; cubic weights are for images",
                           ToString(x));
  return s;
}

namespace {

// A place on one axis of X, and its derivative by the grid's number.
template <typename T>
struct Place {
  T at = 0, slope = 0;
};

template <typename T>
void Clamp(T last, Place<T>* p) {
  if (p->at >= T(0) && p->at <= last) return;
  if (!(p->at > last)) p->at = T(0);  // a NaN too
  if (p->at > last) p->at = last;
  p->slope = T(0);
}

template <typename T>
Place<T> PlaceOf(const GridSampler& s, T g, int64_t extent) {
  Place<T> p;
  const T last = static_cast<T>(extent - 1);
  if (s.align_corners) {
    p.slope = last / T(2);
    p.at = (g + T(1)) * p.slope;
  } else {
    p.slope = static_cast<T>(extent) / T(2);
    p.at = (g + T(1)) * p.slope - T(0.5);
  }
  if (s.padding == GridPadding::kZeros) return p;
  if (s.padding == GridPadding::kReflection) {
    const T low = s.align_corners ? T(0) : T(-0.5);
    const T span = s.align_corners ? last : last + T(1);
    if (span <= T(0)) return Place<T>{};
    const bool left = p.at < low;
    const T away = std::fabs(p.at - low);
    const T turns = std::floor(away / span);
    const T rest = away - turns * span;
    const bool odd = std::fmod(turns, T(2)) != T(0);
    p.at = odd ? low + span - rest : low + rest;
    if (left != odd) p.slope = -p.slope;
  }
  Clamp(last, &p);
  return p;
}

// Calls body(offset, corner) for those of the 2^axes neighbours that lie in X.
template <typename T, typename Body>
void ForEachNeighbour(const GridSampler& s, const Place<T>* places,
                      const Body& body) {
  int64_t low[3] = {0, 0, 0};
  for (size_t i = 0; i < s.axes; ++i) {
    // Far outside is outside: keep the conversion defined.
    const T limit = static_cast<T>(s.extent[i] + 2);
    const T at = std::floor(places[i].at);
    low[i] = at >= T(-2) && at <= limit ? static_cast<int64_t>(at) : -2;
  }
  for (unsigned corner = 0; corner < 1u << s.axes; ++corner) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t i = 0; i < s.axes; ++i) {
      const int64_t at = low[i] + ((corner >> i) & 1u);
      inside = inside && at >= 0 && at < s.extent[i];
      offset += at * s.step[i];
    }
    if (inside) body(offset, corner);
  }
}

// The weight of a neighbour on axis i.
template <typename T>
T Weight(const Place<T>& place, unsigned corner, size_t i) {
  const T f = place.at - std::floor(place.at);
  return (corner >> i) & 1u ? f : T(1) - f;
}

template <typename T>
T Product(const GridSampler& s, const Place<T>* places, unsigned corner,
          size_t but = 3) {
  T w = T(1);
  for (size_t i = 0; i < s.axes; ++i)
    if (i != but) w *= Weight(places[i], corner, i);
  return w;
}

// The nearest element's offset; -1: outside.
template <typename T>
int64_t Nearest(const GridSampler& s, const Place<T>* places) {
  int64_t offset = 0;
  for (size_t i = 0; i < s.axes; ++i) {
    const T at = s.ties_to_even ? std::nearbyint(places[i].at)
                                : std::round(places[i].at);
    const T bounded = s.axes == 3 && !s.ties_to_even ? places[i].at : at;
    if (!(bounded >= T(0) && bounded <= static_cast<T>(s.extent[i] - 1)))
      return -1;
    offset += static_cast<int64_t>(at) * s.step[i];
  }
  return offset;
}

// The pixel that stands for number `at` of an axis; -1: a zero.
int64_t CubicPixel(const GridSampler& s, int64_t at, int64_t extent) {
  if (at >= 0 && at < extent) return at;
  if (s.padding == GridPadding::kZeros) return -1;
  if (s.padding == GridPadding::kBorder || extent == 1)
    return std::clamp<int64_t>(at, 0, extent - 1);
  const int64_t last = s.align_corners ? extent - 1 : extent;
  const int64_t turn = (at % (2 * last) + 2 * last) % (2 * last);
  if (s.align_corners) return turn <= last ? turn : 2 * last - turn;
  return turn < last ? turn : 2 * last - 1 - turn;
}

// Four pixels of an axis and their weights, which sum up to 1.
template <typename T>
struct CubicTaps {
  int64_t pixel[4];
  T weight[4];
};

template <typename T>
CubicTaps<T> CubicTapsOf(const GridSampler& s, T g, int64_t extent) {
  constexpr T kFar = T(1 << 24);  // keeps the conversion defined, for NaN too
  GridSampler plain = s;
  plain.padding = GridPadding::kZeros;  // for pixels, not for the place
  T at = PlaceOf(plain, g, extent).at;
  if (!(at > -kFar)) at = -kFar;
  if (at > kFar) at = kFar;
  const T low = std::floor(at);
  CubicTaps<T> taps;
  constexpr T a = T(-0.75);
  for (int i = 0; i < 4; ++i) {
    taps.pixel[i] = CubicPixel(s, static_cast<int64_t>(low) + i - 1, extent);
    const T d = std::fabs(at - low - static_cast<T>(i - 1));
    taps.weight[i] = d <= T(1) ? ((a + 2) * d - (a + 3)) * d * d + 1
                               : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
  return taps;
}

template <typename T>
void CubicImage(const GridSampler& s, const T* x, const T* grid, T* out) {
  for (int64_t p = 0; p < s.out_size; ++p) {
    const auto columns = CubicTapsOf(s, grid[2 * p], s.extent[0]);
    const auto rows = CubicTapsOf(s, grid[2 * p + 1], s.extent[1]);
    for (int64_t c = 0; c < s.channels; ++c) {
      T sum = T(0);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          if (rows.pixel[i] >= 0 && columns.pixel[j] >= 0)
            sum += rows.weight[i] * columns.weight[j] *
                   x[c * s.in_size + rows.pixel[i] * s.extent[0] +
                     columns.pixel[j]];
      out[c * s.out_size + p] = sum;
    }
  }
}

// Places of an image and the four neighbours of each: what all channels share.
template <typename T>
struct PlaceBlock {
  static constexpr int64_t kMost = 64;
  int64_t offset[4][kMost];  // 0 for a neighbour outside
  T inside[4][kMost];        // 1, or 0 outside
  T weight[4][kMost];
  Place<T> places[kMost][2];

  PlaceBlock(const GridSampler& s, const T* grid, int64_t count) {
    std::memset(offset, 0, sizeof(offset));
    std::memset(inside, 0, sizeof(inside));
    std::memset(weight, 0, sizeof(weight));
    for (int64_t p = 0; p < count; ++p) {
      for (size_t i = 0; i < 2; ++i)
        places[p][i] =
            PlaceOf(s, grid[2 * p + static_cast<int64_t>(i)], s.extent[i]);
      ForEachNeighbour(s, places[p], [&](int64_t at, unsigned corner) {
        offset[corner][p] = at;
        inside[corner][p] = T(1);
        weight[corner][p] = Product(s, places[p], corner);
      });
    }
  }
  // A neighbour's element of a channel; 0 outside, whatever is there.
  T At(const T* channel, int corner, int64_t p) const {
    return inside[corner][p] != T(0) ? channel[offset[corner][p]] : T(0);
  }
};

template <typename T, typename Body>
void ForPlaceBlocks(const GridSampler& s, const T* grid, const Body& body) {
  constexpr int64_t kMost = PlaceBlock<T>::kMost;
  for (int64_t first = 0; first < s.out_size; first += kMost) {
    const int64_t count = std::min(kMost, s.out_size - first);
    body(PlaceBlock<T>(s, grid + 2 * first, count), first, count);
  }
}

template <typename T>
void BilinearForward(const GridSampler& s, const T* x, const T* grid, T* out) {
  ForPlaceBlocks(
      s, grid, [&](const PlaceBlock<T>& block, int64_t first, int64_t count) {
        for (int64_t c = 0; c < s.channels; ++c) {
          const T* channel = x + c * s.in_size;
          T* to = out + c * s.out_size + first;
          for (int64_t p = 0; p < count; ++p) {
            T sum = T(0);
            for (int corner = 0; corner < 4; ++corner)
              sum += block.weight[corner][p] * block.At(channel, corner, p);
            to[p] = sum;
          }
        }
      });
}

// dx (cleared) and dgrid may be null.
template <typename T>
void BilinearBackward(const GridSampler& s, const T* x, const T* grid,
                      const T* dout, T* dx, T* dgrid) {
  ForPlaceBlocks(s, grid,
                 [&](const PlaceBlock<T>& block, int64_t first, int64_t count) {
                   T dots[4][PlaceBlock<T>::kMost] = {};
                   for (int64_t c = 0; c < s.channels; ++c) {
                     const T* channel = x + c * s.in_size;
                     const T* from = dout + c * s.out_size + first;
                     T* to = dx != nullptr ? dx + c * s.in_size : nullptr;
                     for (int corner = 0; corner < 4; ++corner)
                       for (int64_t p = 0; p < count; ++p) {
                         if (block.inside[corner][p] == T(0)) continue;
                         const int64_t at = block.offset[corner][p];
                         if (to != nullptr)
                           to[at] += block.weight[corner][p] * from[p];
                         dots[corner][p] += from[p] * channel[at];
                       }
                   }
                   for (int64_t p = 0; dgrid != nullptr && p < count; ++p)
                     for (size_t i = 0; i < 2; ++i) {
                       T slope = T(0);
                       for (unsigned corner = 0; corner < 4; ++corner) {
                         // The weights of a place that is NaN are NaN.
                         if (block.inside[corner][p] == T(0)) continue;
                         const T dot = dots[corner][p];
                         slope += ((corner >> i) & 1u ? dot : -dot) *
                                  Product(s, block.places[p], corner, i);
                       }
                       dgrid[2 * (first + p) + static_cast<int64_t>(i)] =
                           slope * block.places[p][i].slope;
                     }
                 });
}

template <typename T>
void ForwardImage(const GridSampler& s, const T* x, const T* grid, T* out) {
  if (s.cubic) return CubicImage(s, x, grid, out);
  if (s.axes == 2 && !s.nearest) return BilinearForward(s, x, grid, out);
  for (int64_t p = 0; p < s.out_size; ++p) {
    Place<T> places[3];
    for (size_t i = 0; i < s.axes; ++i)
      places[i] = PlaceOf(s, grid[p * s.axes + i], s.extent[i]);
    if (s.nearest) {
      const int64_t from = Nearest(s, places);
      for (int64_t c = 0; c < s.channels; ++c)
        out[c * s.out_size + p] = from < 0 ? T(0) : x[c * s.in_size + from];
      continue;
    }
    for (int64_t c = 0; c < s.channels; ++c) out[c * s.out_size + p] = T(0);
    ForEachNeighbour(s, places, [&](int64_t from, unsigned corner) {
      const T w = Product(s, places, corner);
      for (int64_t c = 0; c < s.channels; ++c)
        out[c * s.out_size + p] += w * x[c * s.in_size + from];
    });
  }
}

// dx (cleared) and dgrid may be null.
template <typename T>
void BackwardImage(const GridSampler& s, const T* x, const T* grid,
                   const T* dout, T* dx, T* dgrid) {
  if (s.axes == 2 && !s.nearest)
    return BilinearBackward(s, x, grid, dout, dx, dgrid);
  for (int64_t p = 0; p < s.out_size; ++p) {
    Place<T> places[3];
    for (size_t i = 0; i < s.axes; ++i)
      places[i] = PlaceOf(s, grid[p * s.axes + i], s.extent[i]);
    T slopes[3] = {0, 0, 0};
    if (s.nearest) {
      const int64_t to = Nearest(s, places);
      for (int64_t c = 0; dx != nullptr && to >= 0 && c < s.channels; ++c)
        dx[c * s.in_size + to] += dout[c * s.out_size + p];
    } else {
      ForEachNeighbour(s, places, [&](int64_t to, unsigned corner) {
        const T w = Product(s, places, corner);
        T dot = T(0);
        for (int64_t c = 0; c < s.channels; ++c) {
          const T d = dout[c * s.out_size + p];
          if (dx != nullptr) dx[c * s.in_size + to] += w * d;
          dot += d * x[c * s.in_size + to];
        }
        for (size_t i = 0; i < s.axes; ++i)
          slopes[i] +=
              ((corner >> i) & 1u ? dot : -dot) * Product(s, places, corner, i);
      });
    }
    for (size_t i = 0; dgrid != nullptr && i < s.axes; ++i)
      dgrid[p * s.axes + i] = slopes[i] * places[i].slope;
  }
}

template <typename Body>
void ForEachImage(const GridSampler& s, const Body& body) {
  ParallelFor(s.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      body(n * s.channels * s.in_size,
           n * s.out_size * static_cast<int64_t>(s.axes),
           n * s.channels * s.out_size);
  });
}

absl::StatusOr<Step> BindSampler(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* grid = context->Input("Grid");
  Tensor* out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(
      const GridSampler s,
      ReadGridSampler(context->op(), x->shape(), grid->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Grid", x->dtype(), grid->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ForEachImage(s, [&](int64_t image, int64_t places, int64_t to) {
        ForwardImage(s, x->data<T>() + image, grid->data<T>() + places,
                     out->data<T>() + to);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindSamplerGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* grid = context->Input("Grid");
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dgrid = context->Output("Grid@GRAD");
  PD_ASSIGN_OR_RETURN(
      const GridSampler s,
      ReadGridSampler(context->op(), x->shape(), grid->shape()));
  if (s.cubic) return Unimplemented("the gradient of cubic weights");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Grid", x->dtype(), grid->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Output@GRAD", x->dtype(),
                                    s.images * s.channels * s.out_size));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (dx != nullptr) std::fill_n(dx->data<T>(), dx->size(), T(0));
      ForEachImage(s, [&](int64_t image, int64_t places, int64_t from) {
        BackwardImage(s, x->data<T>() + image, grid->data<T>() + places,
                      dout->data<T>() + from,
                      dx != nullptr ? dx->data<T>() + image : nullptr,
                      dgrid != nullptr ? dgrid->data<T>() + places : nullptr);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferSampler(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& grid = context->Input("Grid");
  PD_RETURN_IF_ERROR(CheckShapes(x.shape, grid.shape));
  Shape shape = {x.shape[0] < 0 ? grid.shape[0] : x.shape[0], x.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  context->SetOutput("Output", std::move(shape), x.dtype);
  return absl::OkStatus();
}

void AddGridSamplerAttrs(OpDef* def) {
  def->Attr("mode", std::string("bilinear"))
      .Attr("padding_mode", std::string("zeros"))
      .Attr("align_corners", true);
}

}  // namespace

absl::Status RegisterGridSampler(OpRegistry* registry) {
  OpDef op("grid_sampler");
  op.Input("X").Input("Grid").Output("Output");
  AddGridSamplerAttrs(&op);
  op.Infer(InferSampler).Reference(BindSampler);
  op.Grad(GradSpec{
      "grid_sampler_grad", {"X", "Grid"}, {}, {"Output"}, {"X", "Grid"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("grid_sampler_grad");
  grad.Input("X").Input("Grid").Input("Output@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Grid@GRAD");
  AddGridSamplerAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSamplerGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
