// SPDX-License-Identifier: Apache-2.0
// Deformable convolutional networks' pooling (Dai et al. 2017). Bin (i, j) of
// output channel c of a roi is the mean of sample_per_part^2 bilinear samples
// of input channel (c * group_h + g_i) * group_w + g_j, where g is the group of
// the bin. Its start is moved by Trans [R, 2 classes, part_h, part_w] *
// trans_std
// * (width, height of the roi), of the part of the bin and the class of c.
// Samples more than half a pixel outside are left out; TopCount counts the
// others. Gradients: Input@GRAD by the bilinear weights, Trans@GRAD by their
// slopes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct DeformablePooling {
  RoiPooling p;
  Tensor* trans = nullptr;  // null: nothing moves
  int64_t channels = 0;     // of the output
  int64_t group_h = 1, group_w = 1, part_h = 1, part_w = 1;
  int64_t samples = 1, classes = 1;
  float trans_std = 0;

  Shape OutShape() const {
    return {p.count, channels, p.pooled_height, p.pooled_width};
  }
};

absl::StatusOr<int64_t> Positive(const BindContext& context, const char* name) {
  const int64_t value = context.Attr<int32_t>(name);
  if (value > 0 && value <= 1024) return value;
  return InvalidArgument("attr '%s' is %d; expected 1 to 1024", name, value);
}

absl::Status ReadPair(const BindContext& context, const char* name,
                      int64_t* height, int64_t* width) {
  const auto& pair = context.Attr<std::vector<int32_t>>(name);
  if (pair.size() != 2 || pair[0] <= 0 || pair[1] <= 0)
    return InvalidArgument("attr '%s' has %d numbers; expected 2 above 0", name,
                           pair.size());
  *height = pair[0];
  *width = pair[1];
  return absl::OkStatus();
}

absl::StatusOr<DeformablePooling> ReadDeformable(const BindContext& context) {
  DeformablePooling d;
  PD_ASSIGN_OR_RETURN(d.p, ReadRoiPooling(context, "Input"));
  PD_RETURN_IF_ERROR(ReadPair(context, "group_size", &d.group_h, &d.group_w));
  PD_ASSIGN_OR_RETURN(d.samples, Positive(context, "sample_per_part"));
  d.channels = context.Attr<int32_t>("output_dim");
  d.trans_std = context.Attr<float>("trans_std");
  if (d.channels <= 0 || d.p.channels / d.group_h / d.group_w < d.channels)
    return InvalidArgument(
        "'Input' has %d channels; expected %d times groups of %d x %d",
        d.p.channels, d.channels, d.group_h, d.group_w);
  if (context.Attr<bool>("no_trans")) return d;
  PD_RETURN_IF_ERROR(ReadPair(context, "part_size", &d.part_h, &d.part_w));
  d.trans = context.Input("Trans");
  const Shape& trans = d.trans->shape();
  d.classes = trans.size() == 4 ? trans[1] / 2 : 0;
  PD_RETURN_IF_ERROR(
      ExpectInput(context, "Trans", d.p.x->dtype(),
                  Shape{d.p.count, d.classes * 2, d.part_h, d.part_w}));
  if (d.classes < 1 || d.channels % d.classes != 0)
    return InvalidArgument("'Trans' has %d classes for %d channels", d.classes,
                           d.channels);
  return d;
}

// A bin of a roi: where its samples begin and how far apart they are.
template <typename T>
struct DeformableBin {
  int64_t plane = 0;  // first element of its channel of Input
  int64_t trans = 0;  // its element of Trans for x; y is one plane later
  T start[2], step[2], roi[2];  // x, y

  DeformableBin(const DeformablePooling& d, int64_t index, int64_t image) {
    const RoiPooling& p = d.p;
    const int64_t bin = index % p.bins();
    const int64_t place[2] = {bin % p.pooled_width, bin / p.pooled_width};
    const int64_t pooled[2] = {p.pooled_width, p.pooled_height};
    const int64_t parts[2] = {d.part_w, d.part_h};
    const int64_t groups[2] = {d.group_w, d.group_h};
    const int64_t channel = index / p.bins() % d.channels;
    const int64_t roi_index = index / p.bins() / d.channels;
    int64_t part[2], group[2];
    for (int k = 0; k < 2; ++k) {
      part[k] = place[k] * parts[k] / pooled[k];
      group[k] = place[k] * groups[k] / pooled[k];
    }
    const int64_t label =
        channel / std::max<int64_t>(d.channels / d.classes, 1);
    trans =
        ((roi_index * d.classes + label) * 2 * d.part_h + part[1]) * d.part_w +
        part[0];
    plane = (image * p.channels + (channel * d.group_h + group[1]) * d.group_w +
             group[0]) *
            p.pixels();
    const T* box = p.rois->data<T>() + roi_index * 4;
    for (int k = 0; k < 2; ++k) {
      const T scale = static_cast<T>(p.scale);
      const T begin = std::round(box[k]) * scale - T(0.5);
      const T end = (std::round(box[k + 2]) + 1) * scale - T(0.5);
      roi[k] = std::max(end - begin, T(0.1));
      const T size = roi[k] / static_cast<T>(pooled[k]);
      step[k] = size / static_cast<T>(d.samples);
      start[k] = static_cast<T>(place[k]) * size + begin;
      if (d.trans != nullptr)
        start[k] += d.trans->data<T>()[trans + k * d.part_h * d.part_w] *
                    static_cast<T>(d.trans_std) * roi[k];
    }
  }
};

// Four neighbours and the distance from the first one.
template <typename T>
struct Corners {
  int64_t at[4];  // (x0, y0), (x1, y0), (x0, y1), (x1, y1)
  T dx, dy;
  T Weight(int i) const {
    return (i % 2 == 0 ? 1 - dx : dx) * (i / 2 == 0 ? 1 - dy : dy);
  }
};

// Calls body(corners) for the samples that count.
template <typename T, typename Body>
void ForSamples(const DeformablePooling& d, const DeformableBin<T>& bin,
                const Body& body) {
  const T width = static_cast<T>(d.p.width),
          height = static_cast<T>(d.p.height);
  for (int64_t i = 0; i < d.samples; ++i)
    for (int64_t j = 0; j < d.samples; ++j) {
      T x = bin.start[0] + static_cast<T>(j) * bin.step[0];
      T y = bin.start[1] + static_cast<T>(i) * bin.step[1];
      if (!(x >= T(-0.5) && x <= width - T(0.5) && y >= T(-0.5) &&
            y <= height - T(0.5)))
        continue;
      x = std::min(std::max(x, T(0)), width - 1);
      y = std::min(std::max(y, T(0)), height - 1);
      const auto x0 = static_cast<int64_t>(x), y0 = static_cast<int64_t>(y);
      const auto x1 = static_cast<int64_t>(std::ceil(x));
      const auto y1 = static_cast<int64_t>(std::ceil(y));
      const int64_t w = d.p.width;
      body(Corners<T>{{y0 * w + x0, y0 * w + x1, y1 * w + x0, y1 * w + x1},
                      x - static_cast<T>(x0),
                      y - static_cast<T>(y0)});
    }
}

// Calls body(index in Output, bin) for all bins.
template <typename T, typename Body>
absl::Status ForDeformableRoiBins(const DeformablePooling& d,
                                  const Body& body) {
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> images, d.p.Images());
  const int64_t each = d.channels * d.p.bins();
  for (int64_t i = 0; i < d.p.count * each; ++i)
    body(i, DeformableBin<T>(d, i, images[static_cast<size_t>(i / each)]));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDeformable(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const DeformablePooling d, ReadDeformable(*context));
  Tensor* out = context->Output("Output");
  Tensor* count = context->Output("TopCount");
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([d, out, count](const RunContext&) {
      const T* x = d.p.x->data<T>();
      return ForDeformableRoiBins<T>(
          d, [&](int64_t i, const DeformableBin<T>& bin) {
            T sum = T(0);
            int64_t n = 0;
            ForSamples(d, bin, [&](const Corners<T>& corners) {
              for (int k = 0; k < 4; ++k)
                sum += corners.Weight(k) * x[bin.plane + corners.at[k]];
              ++n;
            });
            out->data<T>()[i] = n == 0 ? T(0) : sum / static_cast<T>(n);
            if (count != nullptr) count->data<T>()[i] = static_cast<T>(n);
          });
    });
  });
}

absl::StatusOr<Step> BindDeformableGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const DeformablePooling d, ReadDeformable(*context));
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* count = context->Input("TopCount");
  Tensor* dx = context->Output("Input@GRAD");
  Tensor* dtrans = context->Output("Trans@GRAD");
  const DType dtype = d.p.x->dtype();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Output@GRAD", dtype, d.OutShape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "TopCount", dtype, d.OutShape()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([d, dout, count, dx, dtrans](const RunContext&) {
      const T* x = d.p.x->data<T>();
      for (Tensor* grad : {dx, dtrans})
        if (grad != nullptr) std::fill_n(grad->data<T>(), grad->size(), T(0));
      return ForDeformableRoiBins<T>(
          d, [&](int64_t i, const DeformableBin<T>& bin) {
            const T n = count->data<T>()[i];
            if (!(n > 0)) return;
            const T share = dout->data<T>()[i] / n;
            ForSamples(d, bin, [&](const Corners<T>& c) {
              if (dx != nullptr)
                for (int k = 0; k < 4; ++k)
                  dx->data<T>()[bin.plane + c.at[k]] += c.Weight(k) * share;
              if (dtrans == nullptr || d.trans == nullptr) return;
              const auto at = [&](int k) { return x[bin.plane + c.at[k]]; };
              const T slope[2] = {
                  (at(1) - at(0)) * (1 - c.dy) + (at(3) - at(2)) * c.dy,
                  (at(2) - at(0)) * (1 - c.dx) + (at(3) - at(1)) * c.dx};
              for (int k = 0; k < 2; ++k)
                dtrans->data<T>()[bin.trans + k * d.part_h * d.part_w] +=
                    slope[k] * static_cast<T>(d.trans_std) * bin.roi[k] * share;
            });
          });
    });
  });
}

absl::Status InferDeformable(InferContext* context) {
  PD_ASSIGN_OR_RETURN(
      const Shape shape,
      InferRoiPooling(*context, context->Attr<int32_t>("output_dim"), "Input"));
  const DType dtype = context->Input("Input").dtype;
  context->SetOutput("Output", shape, dtype);
  context->SetOutput("TopCount", shape, dtype);
  return absl::OkStatus();
}

void AddDeformableRoiAttrs(OpDef* op) {
  op->Input("Input").Input("ROIs").Input("Trans");
  op->RequiredAttr("no_trans", AttrType::kBoolean);
  op->RequiredAttr("spatial_scale", AttrType::kFloat);
  op->RequiredAttr("trans_std", AttrType::kFloat);
  for (const char* name :
       {"output_dim", "pooled_height", "pooled_width", "sample_per_part"})
    op->RequiredAttr(name, AttrType::kInt);
  op->RequiredAttr("group_size", AttrType::kInts);
  op->RequiredAttr("part_size", AttrType::kInts);
}

}  // namespace

absl::Status RegisterDeformablePsroiPooling(OpRegistry* registry) {
  OpDef op("deformable_psroi_pooling");
  AddDeformableRoiAttrs(&op);
  op.Output("TopCount").Output("Output");
  op.Infer(InferDeformable).Reference(BindDeformable);
  op.Grad(GradSpec{"deformable_psroi_pooling_grad",
                   {"Input", "ROIs", "Trans"},
                   {"TopCount"},
                   {"Output"},
                   {"Input", "Trans"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("deformable_psroi_pooling_grad");
  AddDeformableRoiAttrs(&grad);
  grad.Input("TopCount").Input("Output@GRAD");
  grad.OptionalOutput("Input@GRAD").OptionalOutput("Trans@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindDeformableGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
