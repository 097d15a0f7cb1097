// SPDX-License-Identifier: Apache-2.0
// Mask R-CNN's pooling (He et al. 2017): the box of each roi, scaled to X, is
// split into bins; Out is the mean of bilinear samples on a regular grid in
// each bin, `sampling_ratio` along an axis or, when that is not positive, one
// for each pixel begun. `aligned` shifts by half a pixel; otherwise a side is 1
// at least. A sample farther than one pixel outside X is 0.
// X@GRAD: each sample's weights times Out@GRAD / samples, of the forward's
// samples. (PaddlePaddle's takes a side of an aligned roi to be 1 at least:
// wrong for smaller ones.) ROIs have none.
// With kRoiAlignMax, which imported ONNX models carry, Out is the largest of
// the samples' weighted neighbours, as ONNX's mode "max" has it; no gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr double kMostSamples = 1 << 24;  // of a roi; a hostile box asks more

// Four neighbours in a channel and their weights.
template <typename T>
struct Sample {
  int64_t at[4] = {0, 0, 0, 0};
  T weight[4] = {T(0), T(0), T(0), T(0)};
};

// The pixels below and above a coordinate, and the weight of the lower one.
template <typename T>
struct Between {
  int64_t low, high;
  T weight;
};

template <typename T>
Between<T> Neighbours(T at, int64_t extent) {
  at = std::max(at, T(0));
  const auto low = static_cast<int64_t>(at);
  if (low >= extent - 1) return {extent - 1, extent - 1, T(0)};
  return {low, low + 1, static_cast<T>(low + 1) - at};
}

template <typename T>
Sample<T> SampleAt(T y, T x, int64_t height, int64_t width) {
  if (!(y >= T(-1) && y <= static_cast<T>(height) && x >= T(-1) &&
        x <= static_cast<T>(width)))
    return {};
  const Between<T> v = Neighbours(y, height);
  const Between<T> h = Neighbours(x, width);
  return {{v.low * width + h.low, v.low * width + h.high,
           v.high * width + h.low, v.high * width + h.high},
          {v.weight * h.weight, v.weight * (1 - h.weight),
           (1 - v.weight) * h.weight, (1 - v.weight) * (1 - h.weight)}};
}

struct RoiAlign {
  RoiPooling pooling;
  int64_t sampling = 0;
  bool aligned = false;
  bool max = false;

  // Samples along an axis in each bin.
  template <typename T>
  double Grid(T extent, int64_t bins) const {
    if (sampling > 0) return static_cast<double>(sampling);
    return std::ceil(static_cast<double>(extent / static_cast<T>(bins)));
  }

  // All samples of a roi, bin after bin; returns how many a bin has.
  template <typename T>
  absl::StatusOr<int64_t> Samples(const T* roi,
                                  std::vector<Sample<T>>* samples) const {
    const RoiPooling& p = pooling;
    const T shift = aligned ? T(0.5) : T(0);
    T box[4];
    for (int i = 0; i < 4; ++i)
      box[i] = roi[i] * static_cast<T>(p.scale) - shift;
    T height = box[3] - box[1], width = box[2] - box[0];
    if (!aligned) {
      height = std::max(height, T(1));
      width = std::max(width, T(1));
    }
    const double grid_h = std::max(Grid(height, p.pooled_height), 0.0);
    const double grid_w = std::max(Grid(width, p.pooled_width), 0.0);
    if (!(grid_h * grid_w * static_cast<double>(p.bins()) <= kMostSamples))
      return InvalidArgument("a roi of %g x %g asks for %g x %g samples a bin",
                             static_cast<double>(height),
                             static_cast<double>(width), grid_h, grid_w);
    const auto rows = static_cast<int64_t>(grid_h);
    const auto columns = static_cast<int64_t>(grid_w);
    const T bin_h = height / static_cast<T>(p.pooled_height);
    const T bin_w = width / static_cast<T>(p.pooled_width);
    const auto place = [](T start, T bin, int64_t i, int64_t j, int64_t n) {
      return start + bin * (static_cast<T>(i) +
                            (static_cast<T>(j) + T(0.5)) / static_cast<T>(n));
    };
    samples->clear();
    for (int64_t bin = 0; bin < p.bins(); ++bin)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          samples->push_back(
              SampleAt(place(box[1], bin_h, bin / p.pooled_width, i, rows),
                       place(box[0], bin_w, bin % p.pooled_width, j, columns),
                       p.height, p.width));
    return rows * columns;
  }
};

absl::StatusOr<RoiAlign> ReadRoiAlign(const BindContext& context) {
  RoiAlign align;
  PD_ASSIGN_OR_RETURN(align.pooling, ReadRoiPooling(context));
  align.sampling = context.Attr<int32_t>("sampling_ratio");
  align.aligned = context.Attr<bool>("aligned");
  align.max = context.op().AttrOr(kRoiAlignMax, false);
  return align;
}

// Calls body(channel's first element, bin's number in Out, its samples, how
// many) for every bin of every roi and channel.
template <typename T, typename Body>
absl::Status ForRoiAlignBins(const RoiAlign& align, const Body& body) {
  const RoiPooling& p = align.pooling;
  if (p.pixels() == 0) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> images, p.Images());
  std::vector<Sample<T>> samples;
  for (int64_t r = 0; r < p.count; ++r) {
    PD_ASSIGN_OR_RETURN(
        const int64_t n,
        align.Samples(p.rois->template data<T>() + r * 4, &samples));
    for (int64_t c = 0; c < p.channels; ++c) {
      const int64_t plane =
          (images[static_cast<size_t>(r)] * p.channels + c) * p.pixels();
      const int64_t out = (r * p.channels + c) * p.bins();
      for (int64_t b = 0; b < p.bins(); ++b)
        body(plane, out + b, samples.data() + b * n, n);
    }
  }
  return absl::OkStatus();
}

template <typename T>
T LargestOf(const T* plane, const Sample<T>* samples, int64_t n) {
  T best = n == 0 ? T(0) : std::numeric_limits<T>::lowest();
  for (int64_t i = 0; i < n; ++i)
    for (int k = 0; k < 4; ++k)
      best = std::max(best, samples[i].weight[k] * plane[samples[i].at[k]]);
  return best;
}

absl::StatusOr<Step> BindRoiAlign(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RoiAlign align, ReadRoiAlign(*context));
  Tensor* out = context->Output("Out");
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([align, out](const RunContext&) {
      const T* x = align.pooling.x->data<T>();
      T* result = out->data<T>();
      std::fill_n(result, out->size(), T(0));
      return ForRoiAlignBins<T>(
          align,
          [&](int64_t plane, int64_t at, const Sample<T>* samples, int64_t n) {
            if (align.max) {
              result[at] = LargestOf(x + plane, samples, n);
              return;
            }
            T sum = T(0);
            for (int64_t i = 0; i < n; ++i)
              for (int k = 0; k < 4; ++k)
                sum += samples[i].weight[k] * x[plane + samples[i].at[k]];
            result[at] = n == 0 ? T(0) : sum / static_cast<T>(n);
          });
    });
  });
}

absl::StatusOr<Step> BindRoiAlignGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RoiAlign align, ReadRoiAlign(*context));
  if (align.max) return Unimplemented("the gradient of the largest sample");
  const RoiPooling& p = align.pooling;
  context->NoBuffer(p.x);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", p.x->dtype(),
                  Shape{p.count, p.channels, p.pooled_height, p.pooled_width}));
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([align, dout, dx](const RunContext&) {
      const T* dy = dout->data<T>();
      T* result = dx->data<T>();
      std::fill_n(result, dx->size(), T(0));
      return ForRoiAlignBins<T>(
          align,
          [&](int64_t plane, int64_t at, const Sample<T>* samples, int64_t n) {
            for (int64_t i = 0; i < n; ++i)
              for (int k = 0; k < 4; ++k)
                result[plane + samples[i].at[k]] +=
                    dy[at] * samples[i].weight[k] / static_cast<T>(n);
          });
    });
  });
}

absl::Status InferRoiAlign(InferContext* context) {
  PD_ASSIGN_OR_RETURN(Shape shape, InferRoiPooling(*context));
  context->SetOutput("Out", std::move(shape), context->Input("X").dtype);
  return absl::OkStatus();
}

void AddRoiAlignAttrs(OpDef* op) {
  op->Attr("pooled_height", int32_t{1}).Attr("pooled_width", int32_t{1});
  op->Attr("spatial_scale", 1.0f).Attr("sampling_ratio", int32_t{-1});
  op->Attr("aligned", false);
}

}  // namespace

absl::Status RegisterRoiAlign(OpRegistry* registry) {
  OpDef op("roi_align");
  op.Input("X").Input("ROIs").OptionalInput("RoisNum").Output("Out");
  AddRoiAlignAttrs(&op);
  op.Infer(InferRoiAlign).Reference(BindRoiAlign);
  op.Grad(
      GradSpec{"roi_align_grad", {"X", "ROIs", "RoisNum"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("roi_align_grad");
  grad.Input("X").Input("ROIs").OptionalInput("RoisNum").Input("Out@GRAD");
  grad.Output("X@GRAD");
  AddRoiAlignAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRoiAlignGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
