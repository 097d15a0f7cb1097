// SPDX-License-Identifier: Apache-2.0
// roi_pool (Girshick 2015): Out is the maximum of X in each bin of a roi, whose
// corners are rounded to whole pixels; 0 for an empty bin. Argmax says where it
// was, -1 for none.
// psroi_pool (Dai et al. 2016): the mean instead; bin (i, j) of output channel
// c reads its own input channel (c * pooled_height + i) * pooled_width + j.
// X@GRAD goes back where Out came from. ROIs have none.
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

// Pixels [begin, end) of an axis.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

template <typename T>
int64_t Within(T at, int64_t extent) {
  if (!(at > T(0))) return 0;  // NaN too
  return at < static_cast<T>(extent) ? static_cast<int64_t>(at) : extent;
}

template <typename T>
Range BinOf(T start, T size, int64_t bin, int64_t extent) {
  return {Within(std::floor(static_cast<T>(bin) * size + start), extent),
          Within(std::ceil(static_cast<T>(bin + 1) * size + start), extent)};
}

// Both bins are of whole pixels that start at a rounded corner.
template <typename T>
Range MaxBin(T first, T last, float scale, int64_t bins, int64_t bin,
             int64_t extent) {
  const T start = std::round(first * static_cast<T>(scale));
  const T end = std::round(last * static_cast<T>(scale));
  const T size = std::max(end - start + 1, T(1)) / static_cast<T>(bins);
  return {Within(std::floor(static_cast<T>(bin) * size) + start, extent),
          Within(std::ceil(static_cast<T>(bin + 1) * size) + start, extent)};
}

template <typename T>
Range MeanBin(T first, T last, float scale, int64_t bins, int64_t bin,
              int64_t extent) {
  const T start = std::round(first) * static_cast<T>(scale);
  const T end = (std::round(last) + T(1)) * static_cast<T>(scale);
  const T size = std::max(end - start, T(0.1)) / static_cast<T>(bins);
  return BinOf(start, size, bin, extent);
}

// Calls body(image, roi, bin, rows, columns) for each bin of each roi.
template <typename T, typename Bin, typename Body>
absl::Status ForRoiPoolBins(const RoiPooling& p, const Bin& range,
                            const Body& body) {
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> images, p.Images());
  for (int64_t r = 0; r < p.count; ++r) {
    const T* roi = p.rois->data<T>() + r * 4;
    for (int64_t bin = 0; bin < p.bins(); ++bin) {
      const Range rows = range(roi[1], roi[3], p.scale, p.pooled_height,
                               bin / p.pooled_width, p.height);
      const Range columns = range(roi[0], roi[2], p.scale, p.pooled_width,
                                  bin % p.pooled_width, p.width);
      body(images[static_cast<size_t>(r)], r, bin, rows, columns);
    }
  }
  return absl::OkStatus();
}

// The places of a bin in a plane, row by row.
template <typename Body>
void ForPixels(const Range& rows, const Range& columns, int64_t width,
               const Body& body) {
  for (int64_t h = rows.begin; h < rows.end; ++h)
    for (int64_t w = columns.begin; w < columns.end; ++w) body(h * width + w);
}

absl::StatusOr<Step> BindRoiPool(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RoiPooling p, ReadRoiPooling(*context));
  Tensor* out = context->Output("Out");
  Tensor* argmax = context->Output("Argmax");
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([p, out, argmax](const RunContext&) {
      const T* x = p.x->data<T>();
      return ForRoiPoolBins<T>(
          p, MaxBin<T>,
          [&](int64_t image, int64_t r, int64_t bin, const Range& rows,
              const Range& columns) {
            const bool empty = rows.size() == 0 || columns.size() == 0;
            for (int64_t c = 0; c < p.channels; ++c) {
              const T* plane = x + (image * p.channels + c) * p.pixels();
              T max = empty ? T(0) : -std::numeric_limits<T>::max();
              int64_t where = -1;
              ForPixels(rows, columns, p.width, [&](int64_t at) {
                if (plane[at] > max) {
                  max = plane[at];
                  where = at;
                }
              });
              const int64_t to = (r * p.channels + c) * p.bins() + bin;
              out->data<T>()[to] = max;
              if (argmax != nullptr) argmax->data<int64_t>()[to] = where;
            }
          });
    });
  });
}

absl::StatusOr<Step> BindRoiPoolGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RoiPooling p, ReadRoiPooling(*context));
  context->NoBuffer(p.x);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* argmax = context->Input("Argmax");
  Tensor* dx = context->Output("X@GRAD");
  const Shape shape{p.count, p.channels, p.pooled_height, p.pooled_width};
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", p.x->dtype(), shape));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Argmax", DType::kInt64, shape));
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([p, dout, argmax, dx](const RunContext&) -> absl::Status {
      T* result = dx->data<T>();
      std::fill_n(result, dx->size(), T(0));
      PD_ASSIGN_OR_RETURN(const std::vector<int64_t> images, p.Images());
      for (int64_t i = 0; i < dout->size(); ++i) {
        const int64_t at = argmax->data<int64_t>()[i];
        if (at == -1) continue;
        if (at < 0 || at >= p.pixels())
          return InvalidArgument("'Argmax' holds %d; expected -1 to %d", at,
                                 p.pixels() - 1);
        const int64_t plane = i / p.bins();
        const int64_t image = images[static_cast<size_t>(plane / p.channels)];
        result[(image * p.channels + plane % p.channels) * p.pixels() + at] +=
            dout->data<T>()[i];
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<int64_t> OutputChannels(const OpDesc& op, const Shape& x) {
  const Attribute* attr = op.FindAttr("output_channels");
  const int64_t channels = std::get<int32_t>(*attr);
  const int64_t height = std::get<int32_t>(*op.FindAttr("pooled_height"));
  const int64_t width = std::get<int32_t>(*op.FindAttr("pooled_width"));
  if (channels <= 0 ||
      (x.size() == 4 && x[1] >= 0 &&
       (height <= 0 || width <= 0 || x[1] % height != 0 ||
        x[1] / height % width != 0 || x[1] / height / width != channels)))
    return InvalidArgument(
        "X has shape %s; expected %d output channels times %d x %d bins",
        ToString(x), channels, height, width);
  return channels;
}

// The mean pooling and its gradient walk alike; body(place in X's plane, place
// in Out, pixels in the bin).
template <typename T, typename Body>
absl::Status ForMeans(const RoiPooling& p, int64_t channels, const Body& body) {
  return ForRoiPoolBins<T>(
      p, MeanBin<T>,
      [&](int64_t image, int64_t r, int64_t bin, const Range& rows,
          const Range& columns) {
        const T area = static_cast<T>(rows.size() * columns.size());
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t plane =
              (image * p.channels + c * p.bins() + bin) * p.pixels();
          const int64_t out = (r * channels + c) * p.bins() + bin;
          ForPixels(rows, columns, p.width,
                    [&](int64_t at) { body(plane + at, out, area); });
        }
      });
}

absl::StatusOr<Step> BindPsroiPool(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RoiPooling p, ReadRoiPooling(*context));
  PD_ASSIGN_OR_RETURN(const int64_t channels,
                      OutputChannels(context->op(), p.x->shape()));
  Tensor* out = context->Output("Out");
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([p, out, channels](const RunContext&) {
      T* result = out->data<T>();
      const T* x = p.x->data<T>();
      std::fill_n(result, out->size(), T(0));
      return ForMeans<T>(p, channels, [&](int64_t from, int64_t to, T area) {
        result[to] += x[from] / area;
      });
    });
  });
}

absl::StatusOr<Step> BindPsroiPoolGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RoiPooling p, ReadRoiPooling(*context));
  PD_ASSIGN_OR_RETURN(const int64_t channels,
                      OutputChannels(context->op(), p.x->shape()));
  context->NoBuffer(p.x);
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", p.x->dtype(),
                  Shape{p.count, channels, p.pooled_height, p.pooled_width}));
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([p, dout, dx, channels](const RunContext&) {
      T* result = dx->data<T>();
      const T* dy = dout->data<T>();
      std::fill_n(result, dx->size(), T(0));
      return ForMeans<T>(p, channels, [&](int64_t to, int64_t from, T area) {
        result[to] += dy[from] / area;
      });
    });
  });
}

absl::Status InferRoiPool(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const Shape shape, InferRoiPooling(*context));
  context->SetOutput("Out", shape, context->Input("X").dtype);
  context->SetOutput("Argmax", shape, DType::kInt64);
  return absl::OkStatus();
}

absl::Status InferPsroiPool(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const int64_t channels,
                      OutputChannels(context->op(), context->Input("X").shape));
  PD_ASSIGN_OR_RETURN(Shape shape, InferRoiPooling(*context, channels));
  context->SetOutput("Out", std::move(shape), context->Input("X").dtype);
  return absl::OkStatus();
}

void AddRoiPoolAttrs(OpDef* op, bool channels) {
  op->Attr("pooled_height", int32_t{1}).Attr("pooled_width", int32_t{1});
  op->Attr("spatial_scale", 1.0f);
  if (channels) op->Attr("output_channels", int32_t{1});
}

absl::Status AddPsroiPool(OpRegistry* registry) {
  OpDef op("psroi_pool");
  op.Input("X").Input("ROIs").OptionalInput("RoisNum").Output("Out");
  AddRoiPoolAttrs(&op, true);
  op.Infer(InferPsroiPool).Reference(BindPsroiPool);
  op.Grad(GradSpec{
      "psroi_pool_grad", {"X", "ROIs", "RoisNum"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("psroi_pool_grad");
  grad.Input("X").Input("ROIs").OptionalInput("RoisNum").Input("Out@GRAD");
  grad.Output("X@GRAD");
  AddRoiPoolAttrs(&grad, true);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPsroiPoolGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterRoiPool(OpRegistry* registry) {
  OpDef op("roi_pool");
  op.Input("X").Input("ROIs").OptionalInput("RoisNum");
  op.Output("Out").IntermediateOutput("Argmax");
  AddRoiPoolAttrs(&op, false);
  op.Infer(InferRoiPool).Reference(BindRoiPool);
  op.Grad(GradSpec{
      "roi_pool_grad", {"X", "ROIs", "RoisNum"}, {"Argmax"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("roi_pool_grad");
  grad.Input("X").Input("ROIs").OptionalInput("RoisNum").Input("Argmax");
  grad.Input("Out@GRAD").Output("X@GRAD");
  AddRoiPoolAttrs(&grad, false);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRoiPoolGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  return AddPsroiPool(registry);
}

}  // namespace pd
