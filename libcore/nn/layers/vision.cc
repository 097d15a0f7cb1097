// SPDX-License-Identifier: Apache-2.0
// Images: other sizes (upsample), other positions (affine_grid, grid_sample),
// pixels from channels and back, channels of neighbours in time, windows as
// columns (unfold, fold); and what compares two inputs: cosine_similarity,
// pairwise_distance, bilinear.
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

struct Resize {
  Space space;
  Ints size;
  std::vector<float> scale;
  std::string mode;
  bool align_corners = false;
  int32_t align_mode = 0;
};

// paddle.nn.functional.interpolate.
absl::StatusOr<std::string> AppendResize(LayerContext* c, const Resize& r) {
  const Space& space = r.space;
  OpDesc op;
  op.SetInput("X", {c->input()});
  if (r.mode == "area") {
    if (r.size.empty())
      return InvalidArgument("mode area needs 'size', not 'scale_factor'");
    op.type = space.axes == 3 ? "pool3d" : "pool2d";
    PD_ASSIGN_OR_RETURN(const std::string x, Lift(c, space, c->input()));
    op.SetInput("X", {x});
    const Ints ksize = Lift(space, r.size, 1);
    op.attrs = {{"pooling_type", std::string("avg")},
                {"ksize", ksize},
                {"strides", Ints(ksize.size(), 1)},
                {"paddings", Ints(ksize.size(), 0)},
                {"adaptive", true},
                {"data_format", space.format()}};
    PD_ASSIGN_OR_RETURN(const std::string out,
                        c->Append(std::move(op), {"Out"}));
    return Lower(c, space, out);
  }
  op.type = r.mode + "_interp_v2";
  op.attrs = {
      {"interp_method", r.mode},
      {"align_corners", r.align_corners},
      {"align_mode", r.align_mode},
      {"data_layout", std::string(space.channels_last ? "NHWC" : "NCHW")},
      {"scale", r.scale}};
  const char* const kOut[] = {"out_d", "out_h", "out_w"};
  for (int i = 0; i < 3; ++i) {
    const int axis = i - (3 - space.axes);
    op.attrs[kOut[i]] = axis < 0 || r.size.empty()
                            ? int32_t{-1}
                            : r.size[static_cast<size_t>(axis)];
  }
  return c->Append(std::move(op), {"Out"});
}

// Size and factors, one of which is given.
template <typename P>
absl::Status ReadSize(const P& p, Resize* r) {
  if (p.size().empty() == p.scale_factor().empty())
    return InvalidArgument("'size' and 'scale_factor' are %s; expected one",
                           p.size().empty() ? "both missing" : "both given");
  for (const int count : {p.size_size(), p.scale_factor_size()})
    if (count > 1 && count != r->space.axes)
      return InvalidArgument(
          "there are %d numbers for the size; the input has %d axes of "
          "positions",
          count, r->space.axes);
  if (!p.size().empty()) r->size = Spread(p.size(), r->space.axes, 1);
  for (int i = 0; !p.scale_factor().empty() && i < r->space.axes; ++i)
    r->scale.push_back(
        static_cast<float>(p.scale_factor(p.scale_factor_size() > 1 ? i : 0)));
  return absl::OkStatus();
}

absl::StatusOr<std::string> BuildUpsample(LayerContext* c) {
  const job::Upsample& p = c->layer().upsample();
  PD_RETURN_IF_ERROR(c->ExpectRank(3, 5, "3 to 5 axes"));
  Resize r;
  r.space = {static_cast<int>(c->shape().size()) - 2, p.data_format() != 0};
  r.mode = job::Upsample::Mode_Name(p.mode());
  const bool known =
      p.mode() == job::Upsample::area ||
      (p.mode() == job::Upsample::nearest && r.space.axes > 1) ||
      (p.mode() == job::Upsample::linear && r.space.axes == 1) ||
      (p.mode() == job::Upsample::trilinear && r.space.axes == 3);
  const bool images =
      r.space.axes == 2 && (p.mode() == job::Upsample::bilinear ||
                            p.mode() == job::Upsample::bicubic);
  if (!known && !images)
    return Annotate(
        InvalidArgument("mode %s is not for %d axes", r.mode, r.space.axes + 2),
        c->Described());
  if (p.align_corners() &&
      (p.mode() == job::Upsample::nearest || p.mode() == job::Upsample::area))
    return InvalidArgument("'align_corners' does not go with mode %s", r.mode);
  PD_RETURN_IF_ERROR(ReadSize(p, &r));
  r.align_corners = p.align_corners();
  r.align_mode = p.align_mode();
  return AppendResize(c, r);
}

template <typename P>
absl::StatusOr<std::string> UpsampleImages(LayerContext* c, const P& p,
                                           const char* mode,
                                           bool align_corners) {
  Resize r;
  r.space = {2, p.data_format() != 0};
  PD_RETURN_IF_ERROR(ExpectSpace(c, r.space));
  PD_RETURN_IF_ERROR(ReadSize(p, &r));
  r.mode = mode;
  r.align_corners = align_corners;
  return AppendResize(c, r);
}

absl::StatusOr<std::string> BuildUpsampling2D(LayerContext* c) {
  const job::Layer& l = c->layer();
  if (l.has_upsampling_nearest2d())
    return UpsampleImages(c, l.upsampling_nearest2d(), "nearest", false);
  return UpsampleImages(c, l.upsampling_bilinear2d(), "bilinear", true);
}

// Pixels and channels of images by an op with one number.
absl::StatusOr<std::string> Rearrange(LayerContext* c, const char* type,
                                      const char* field, int32_t number,
                                      bool channels_last) {
  const Space space = {2, channels_last};
  PD_RETURN_IF_ERROR(ExpectSpace(c, space));
  return c->Unary(type, c->input(),
                  {{field, number}, {"data_format", space.format()}});
}

absl::StatusOr<std::string> BuildRearranged(LayerContext* c) {
  const job::Layer& l = c->layer();
  if (l.has_pixel_shuffle()) {
    const job::PixelShuffle& p = l.pixel_shuffle();
    return Rearrange(c, "pixel_shuffle", "upscale_factor", p.upscale_factor(),
                     p.data_format() != 0);
  }
  if (l.has_pixel_unshuffle()) {
    const job::PixelUnshuffle& p = l.pixel_unshuffle();
    return Rearrange(c, "pixel_unshuffle", "downscale_factor",
                     p.downscale_factor(), p.data_format() != 0);
  }
  const job::ChannelShuffle& p = l.channel_shuffle();
  return Rearrange(c, "channel_shuffle", "groups", p.groups(),
                   p.data_format() != 0);
}

absl::StatusOr<std::string> BuildTemporalShift(LayerContext* c) {
  const job::TemporalShift& p = c->layer().temporal_shift();
  const Space space = {2, p.data_format() != 0};
  PD_RETURN_IF_ERROR(ExpectSpace(c, space));
  const int64_t pictures = c->shape()[0];
  if (pictures >= 0 && pictures % p.seg_num() != 0)
    return c->Misfit(
        absl::StrCat("a multiple of ", p.seg_num(), " pictures ('seg_num')"));
  return c->Unary("temporal_shift", c->input(),
                  {{"seg_num", int32_t{p.seg_num()}},
                   {"shift_ratio", static_cast<float>(p.shift_ratio())},
                   {"data_format", space.format()}});
}

absl::StatusOr<std::string> BuildAffineGrid(LayerContext* c) {
  const job::AffineGrid& p = c->layer().affine_grid();
  const int axes = p.out_shape_size() - 2;
  const Shape& theta = c->shape();
  if (theta.size() != 3 || theta[1] != axes || theta[2] != axes + 1)
    return c->Misfit(absl::StrCat("matrices [N, ", axes, ", ", axes + 1,
                                  "] for an 'out_shape' of ", axes + 2,
                                  " numbers"));
  Ints shape(p.out_shape().begin(), p.out_shape().end());
  for (int i = 1; i < p.out_shape_size(); ++i)
    if (p.out_shape(i) < 1 || p.out_shape(i) > INT32_MAX)
      return InvalidArgument("'out_shape' holds %d; expected 1 or more",
                             p.out_shape(i));
  OpDesc op;
  op.type = "affine_grid";
  op.SetInput("Theta", {c->input()});
  op.attrs = {{"output_shape", std::move(shape)},
              {"align_corners", p.align_corners()}};
  return c->Append(std::move(op), {"Output"});
}

absl::StatusOr<std::string> BuildGridSample(LayerContext* c) {
  const job::GridSample& p = c->layer().grid_sample();
  PD_RETURN_IF_ERROR(
      c->ExpectRank(4, 5, "images [N, C, H, W] or [N, C, D, H, W]"));
  const size_t rank = c->shape().size();
  const Shape& grid = c->shape(1);
  if (grid.size() != rank || grid.back() != static_cast<int64_t>(rank) - 2)
    return c->Misfit(
        rank == 4 ? "positions [N, H, W, 2]" : "positions [N, D, H, W, 3]", 1);
  OpDesc op;
  op.type = "grid_sampler";
  op.SetInput("X", {c->input(0)});
  op.SetInput("Grid", {c->input(1)});
  op.attrs = {{"mode", job::GridSample::Mode_Name(p.mode())},
              {"padding_mode", job::GridSample::Padding_Name(p.padding_mode())},
              {"align_corners", p.align_corners()}};
  return c->Append(std::move(op), {"Output"});
}

template <typename P>
absl::StatusOr<std::string> Columns(LayerContext* c, const P& p, OpDesc op) {
  op.SetInput("X", {c->input()});
  Ints paddings = Spread(p.paddings(), 2, 0);
  if (paddings.size() == 2)
    paddings.insert(paddings.end(), {paddings[0], paddings[1]});
  op.attrs["kernel_sizes"] = Spread(p.kernel_sizes(), 2, 1);
  op.attrs["strides"] = Spread(p.strides(), 2, 1);
  op.attrs["dilations"] = Spread(p.dilations(), 2, 1);
  op.attrs["paddings"] = std::move(paddings);
  return c->Append(std::move(op), {"Y"});
}

absl::StatusOr<std::string> BuildUnfold(LayerContext* c) {
  PD_RETURN_IF_ERROR(ExpectSpace(c, Space()));
  OpDesc op;
  op.type = "unfold";
  return Columns(c, c->layer().unfold(), std::move(op));
}

absl::StatusOr<std::string> BuildFold(LayerContext* c) {
  const job::Fold& p = c->layer().fold();
  PD_RETURN_IF_ERROR(c->ExpectRank(3, 3, "columns [N, C * kernel, L]"));
  OpDesc op;
  op.type = "fold";
  op.attrs["output_sizes"] = Spread(p.output_sizes(), 2, 1);
  return Columns(c, p, std::move(op));
}

absl::StatusOr<std::string> SumAlong(LayerContext* c, const std::string& x,
                                     const std::string& y, int32_t axis) {
  PD_ASSIGN_OR_RETURN(const std::string product,
                      c->Binary("elementwise_mul", x, y));
  return c->Unary(
      "reduce_sum", product,
      {{"dim", Ints{axis}}, {"keep_dim", false}, {"reduce_all", false}});
}

absl::StatusOr<std::string> BuildCosineSimilarity(LayerContext* c) {
  const job::CosineSimilarity& p = c->layer().cosine_similarity();
  const std::string &x = c->input(0), &y = c->input(1);
  PD_ASSIGN_OR_RETURN(const std::string dot, SumAlong(c, x, y, p.axis()));
  PD_ASSIGN_OR_RETURN(const std::string xx, SumAlong(c, x, x, p.axis()));
  PD_ASSIGN_OR_RETURN(const std::string yy, SumAlong(c, y, y, p.axis()));
  PD_ASSIGN_OR_RETURN(const std::string squares,
                      c->Binary("elementwise_mul", xx, yy));
  PD_ASSIGN_OR_RETURN(const std::string clipped,
                      c->Unary("clip", squares,
                               {{"min", static_cast<float>(p.eps() * p.eps())},
                                {"max", std::numeric_limits<float>::max()}}));
  PD_ASSIGN_OR_RETURN(const std::string lengths, c->Unary("sqrt", clipped));
  return c->Binary("elementwise_div", dot, lengths);
}

absl::StatusOr<std::string> BuildPairwiseDistance(LayerContext* c) {
  const job::PairwiseDistance& p = c->layer().pairwise_distance();
  PD_ASSIGN_OR_RETURN(const std::string difference,
                      c->Binary("elementwise_sub", c->input(0), c->input(1)));
  PD_ASSIGN_OR_RETURN(const std::string moved,
                      Scale(c, difference, 1, p.epsilon()));
  return c->Unary("p_norm", moved,
                  {{"porder", static_cast<float>(p.p())},
                   {"axis", int32_t{-1}},
                   {"epsilon", 0.0f},
                   {"keepdim", p.keepdim()},
                   {"asvector", false}});
}

absl::StatusOr<std::string> BuildBilinear(LayerContext* c) {
  const job::Bilinear& p = c->layer().bilinear();
  int64_t features[2] = {p.in1_features(), p.in2_features()};
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = c->shape(i);
    if (shape.size() != 2) return c->Misfit("[N, features]", i);
    if (features[i] == 0) features[i] = shape[1];
    if (shape[1] >= 0 && shape[1] != features[i])
      return c->Misfit(absl::StrCat(features[i], " features"), i);
    if (features[i] < 0) return c->Misfit("a known number of features", i);
  }
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->Weight(p.weight_attr(), {p.out_features(), features[0], features[1]},
                XavierUniformInitializer()));
  OpDesc op;
  op.type = "bilinear_tensor_product";
  op.SetInput("X", {c->input(0)});
  op.SetInput("Y", {c->input(1)});
  op.SetInput("Weight", {weight});
  if (p.bias()) {
    PD_ASSIGN_OR_RETURN(const std::string bias,
                        c->Bias(p.bias_attr(), {1, p.out_features()}));
    op.SetInput("Bias", {bias});
  }
  return c->Append(std::move(op), {"Out"});
}

}  // namespace

void AddVisionLayers(LayerTable* table) {
  (*table)[job::Layer::kUpsample] = {BuildUpsample};
  (*table)[job::Layer::kUpsamplingNearest2D] = {BuildUpsampling2D};
  (*table)[job::Layer::kUpsamplingBilinear2D] = {BuildUpsampling2D};
  for (const int kind : {job::Layer::kPixelShuffle, job::Layer::kPixelUnshuffle,
                         job::Layer::kChannelShuffle})
    (*table)[kind] = {BuildRearranged};
  (*table)[job::Layer::kTemporalShift] = {BuildTemporalShift};
  (*table)[job::Layer::kAffineGrid] = {BuildAffineGrid};
  (*table)[job::Layer::kGridSample] = {BuildGridSample, 2, 2};
  (*table)[job::Layer::kUnfold] = {BuildUnfold};
  (*table)[job::Layer::kFold] = {BuildFold};
  (*table)[job::Layer::kCosineSimilarity] = {BuildCosineSimilarity, 2, 2};
  (*table)[job::Layer::kPairwiseDistance] = {BuildPairwiseDistance, 2, 2};
  (*table)[job::Layer::kBilinear] = {BuildBilinear, 2, 2};
}

}  // namespace pd
