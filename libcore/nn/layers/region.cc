// SPDX-License-Identifier: Apache-2.0
// paddle.vision.ops: deform_conv2d, pools over boxes (roi_align, roi_pool,
// psroi_pool).
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

// Inputs: images, offsets, and maybe a mask (version 2 of the layer).
absl::StatusOr<std::string> BuildDeformConv2D(LayerContext* c) {
  const job::DeformConv2D& p = c->layer().deform_conv2d();
  for (size_t i = 0; i < c->input_count(); ++i)
    PD_RETURN_IF_ERROR(ExpectSpace(c, Space(), i));
  const int64_t given = p.in_channels();
  PD_ASSIGN_OR_RETURN(const int64_t in,
                      c->Extent(1, p.has_in_channels() ? &given : nullptr,
                                "input channels", "in_channels"));
  if (in % p.groups() != 0 || p.out_channels() % p.groups() != 0)
    return InvalidArgument(
        "'groups' is %d; it must divide the %d input channels and the %d "
        "output channels",
        p.groups(), in, p.out_channels());
  Windows w;
  w.kernel = Spread(p.kernel_size(), 2, 1);
  w.dilation = Spread(p.dilation(), 2, 1);
  w.padding = Spread(p.padding(), 2, 0);
  PD_RETURN_IF_ERROR(CheckFits(c, Space(), w, c->input()));
  const double reads = static_cast<double>(in) * w.kernel[0] * w.kernel[1];
  PD_ASSIGN_OR_RETURN(
      const std::string filter,
      c->Weight(p.weight_attr(),
                {p.out_channels(), in / p.groups(), w.kernel[0], w.kernel[1]},
                NormalInitializer(std::sqrt(2.0 / reads))));
  OpDesc op;
  op.type = c->input_count() > 2 ? "deformable_conv" : "deformable_conv_v1";
  op.SetInput("Input", {c->input()});
  op.SetInput("Offset", {c->input(1)});
  if (c->input_count() > 2) op.SetInput("Mask", {c->input(2)});
  op.SetInput("Filter", {filter});
  op.attrs = {{"strides", Spread(p.stride(), 2, 1)},
              {"paddings", w.padding},
              {"dilations", w.dilation},
              {"groups", p.groups()},
              {"deformable_groups", p.deformable_groups()},
              {"im2col_step", int32_t{1}}};
  PD_ASSIGN_OR_RETURN(const std::string out,
                      c->Append(std::move(op), {"Output"}));
  if (!p.bias()) return out;
  PD_ASSIGN_OR_RETURN(const std::string bias,
                      c->Bias(p.bias_attr(), {p.out_channels()}));
  return c->Binary("elementwise_add", out, bias, 1);
}

// Inputs: images, boxes [R, 4] of all of them, and how many each image has.
template <typename P>
absl::StatusOr<OpDesc> RegionOp(LayerContext* c, const P& p, const char* type) {
  PD_RETURN_IF_ERROR(ExpectSpace(c, Space()));
  const Shape& boxes = c->shape(1);
  if (boxes.size() != 2 || (boxes[1] != 4 && boxes[1] >= 0))
    return c->Misfit("boxes [R, 4] as second input", 1);
  if (c->shape(2).size() != 1 || c->dtype(2) != DType::kInt32)
    return c->Misfit("the number of boxes of each image, [N] of int32", 2);
  const Ints size = Spread(p.output_size(), 2, 1);
  OpDesc op;
  op.type = type;
  op.SetInput("X", {c->input()});
  op.SetInput("ROIs", {c->input(1)});
  op.SetInput("RoisNum", {c->input(2)});
  op.attrs = {{"pooled_height", size[0]},
              {"pooled_width", size[1]},
              {"spatial_scale", static_cast<float>(p.spatial_scale())}};
  return op;
}

absl::StatusOr<std::string> BuildRoiAlign(LayerContext* c) {
  const job::RoIAlign& p = c->layer().roi_align();
  PD_ASSIGN_OR_RETURN(OpDesc op, RegionOp(c, p, "roi_align"));
  op.attrs["sampling_ratio"] = p.sampling_ratio();
  op.attrs["aligned"] = p.aligned();
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildRoiPool(LayerContext* c) {
  PD_ASSIGN_OR_RETURN(OpDesc op,
                      RegionOp(c, c->layer().roi_pool(), "roi_pool"));
  return c->Append(std::move(op), {"Out", "Argmax"});
}

absl::StatusOr<std::string> BuildPsRoiPool(LayerContext* c) {
  const job::PSRoIPool& p = c->layer().psroi_pool();
  PD_ASSIGN_OR_RETURN(OpDesc op, RegionOp(c, p, "psroi_pool"));
  const Ints size = Spread(p.output_size(), 2, 1);
  PD_ASSIGN_OR_RETURN(const int64_t in,
                      c->Extent(1, nullptr, "input channels", "channels"));
  const int64_t parts = int64_t{size[0]} * size[1];
  if (in % parts != 0)
    return c->Misfit(
        absl::StrCat("channels that the ", parts, " parts of a box divide"));
  op.attrs["output_channels"] = static_cast<int32_t>(in / parts);
  return c->Append(std::move(op), {"Out"});
}

}  // namespace

void AddRegionLayers(LayerTable* table) {
  (*table)[job::Layer::kDeformConv2D] = {BuildDeformConv2D, 2, 3};
  (*table)[job::Layer::kRoiAlign] = {BuildRoiAlign, 3, 3};
  (*table)[job::Layer::kRoiPool] = {BuildRoiPool, 3, 3};
  (*table)[job::Layer::kPsroiPool] = {BuildPsRoiPool, 3, 3};
}

}  // namespace pd
