// SPDX-License-Identifier: Apache-2.0
// Boxes and sampling grids.
#include <algorithm>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"
#include "libcore/ops/conv/grid_sampler.h"
#include "libcore/ops/detection/nms.h"
#include "libcore/ops/detection/rois.h"

namespace pd {
namespace {

using Ints = OnnxNode::Ints;

std::string Order(OnnxNode* node, const std::string& keys, bool descending) {
  return node->EmitMany(
      "argsort", {{"X", {keys}}}, {{"Out", 1}, {"Indices", 1}},
      {{"axis", static_cast<int32_t>(-1)}, {"descending", descending}})[1];
}

// PaddlePaddle takes boxes image by image and their number for each: they are
// put in that order, and the answers back.
void ImportRoiAlign(OnnxNode* node) {
  const std::string x = node->In(0);
  const std::string mode = node->Str("mode", "avg");
  if (mode != "avg" && mode != "max")
    return node->Fail(InvalidArgument("mode '%s'", mode));
  const bool aligned =
      node->opset() >= 16 &&
      node->Str("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const std::string image = node->Cast(node->In(2), DType::kInt64);
  const std::string order = Order(node, image, false);
  const std::string hits =
      node->Binary("equal", node->Unsqueeze(image, {0}),
                   node->Unsqueeze(node->Positions(x, 0), {1}));
  const std::string counts =
      node->Reduce("reduce_sum", node->Cast(hits, DType::kInt32), {1}, false);
  OnnxNode::Attrs attrs = {
      {"pooled_height", OnnxAttrInts({node->Int("output_height", 1)})[0]},
      {"pooled_width", OnnxAttrInts({node->Int("output_width", 1)})[0]},
      {"spatial_scale", node->Float("spatial_scale", 1)},
      {"sampling_ratio",
       node->Int("sampling_ratio", 0) == 0
           ? static_cast<int32_t>(-1)
           : OnnxAttrInts({node->Int("sampling_ratio", 0)})[0]},
      {"aligned", aligned}};
  if (mode == "max") attrs[kRoiAlignMax] = true;
  const std::string out =
      node->Emit("roi_align",
                 {{"X", {x}},
                  {"ROIs", {node->Gather(node->In(1), order, 0)}},
                  {"RoisNum", {node->Cast(counts, DType::kInt32)}}},
                 std::move(attrs));
  node->Give(0, node->Gather(out, Order(node, order, false), 0));
}

void ImportGridSample(OnnxNode* node) {
  std::string mode = node->Str("mode", "bilinear");
  if (mode == "linear") mode = "bilinear";
  const bool cubic = mode == "cubic" || mode == "bicubic";
  if (cubic) mode = "bilinear";  // the attribute below takes its place
  if (mode != "bilinear" && mode != "nearest")
    return node->Fail(InvalidArgument("mode '%s'", mode));
  std::map<std::string, Attribute> attrs = {
      {"mode", mode},
      {"padding_mode", node->Str("padding_mode", "zeros")},
      {"align_corners", node->Int("align_corners", 0) != 0}};
  if (mode == "nearest") attrs[kGridTiesToEven] = true;
  if (cubic) attrs[kGridCubic] = true;
  node->Give(0, node->Emit("grid_sampler",
                           {{"X", {node->In(0)}}, {"Grid", {node->In(1)}}},
                           std::move(attrs), "Output"));
}

void ImportAffineGrid(OnnxNode* node) {
  const auto size = node->NeedInts(1);
  node->Give(0,
             node->Emit("affine_grid", {{"Theta", {node->In(0)}}},
                        {{"output_shape", OnnxAttrInts(size)},
                         {"align_corners", node->Int("align_corners", 0) != 0}},
                        "Output"));
}

// A convolution whose taps are moved: inputs x, filter, offsets, bias, mask.
void ImportDeformConv(OnnxNode* node) {
  const std::string x = node->In(0), filter = node->In(1);
  const Shape taps = node->ShapeOf(filter);
  const Ints strides = node->AttrInts("strides", {1, 1});
  const Ints dilations = node->AttrInts("dilations", {1, 1});
  const Ints pads = node->AttrInts("pads", {0, 0, 0, 0});
  if (!node->ok()) return;
  if (taps.size() != 4 || strides.size() != 2 || dilations.size() != 2 ||
      pads.size() != 4)
    return node->Fail(InvalidArgument(
        "a filter %s, %d strides, %d dilations, %d pads; expected 4 and those "
        "of 2 axes",
        ToString(taps), strides.size(), dilations.size(), pads.size()));
  if (pads[0] != pads[2] || pads[1] != pads[3])
    return node->Fail(Unimplemented("pads %s", ToString(pads)));
  const int64_t groups = node->Int("group", 1);
  const int64_t moved = node->Int("offset_group", 1);
  if (groups < 1 || groups > 65536 || moved < 1 || moved > 65536)
    return node->Fail(
        InvalidArgument("%d groups, %d of offsets", groups, moved));
  const bool masked = node->Has(4);
  OnnxNode::Slots inputs = {
      {"Input", {x}}, {"Filter", {filter}}, {"Offset", {node->In(2)}}};
  if (masked) inputs.push_back({"Mask", {node->In(4)}});
  std::string y =
      node->Emit(masked ? "deformable_conv" : "deformable_conv_v1", inputs,
                 {{"strides", OnnxAttrInts(strides)},
                  {"paddings", OnnxAttrInts({pads[0], pads[1]})},
                  {"dilations", OnnxAttrInts(dilations)},
                  {"groups", static_cast<int32_t>(groups)},
                  {"deformable_groups", static_cast<int32_t>(moved)},
                  {"im2col_step", int32_t{1}}},
                 "Output");
  if (node->Has(3)) y = node->Add(y, node->Reshape(node->In(3), {1, -1, 1, 1}));
  node->Give(0, y);
}

// Corners [y1, x1, y2, x2] of boxes [images, n, 4], the smaller ones first.
std::string Corners(OnnxNode* node, const std::string& boxes, bool centers) {
  const auto parts = node->Split(boxes, 2, 4);
  if (parts.size() != 4) return "";
  if (centers) {  // x, y, width, height
    const std::string w = node->Affine(parts[2], 0.5, 0);
    const std::string h = node->Affine(parts[3], 0.5, 0);
    return node->Concat({node->Sub(parts[1], h), node->Sub(parts[0], w),
                         node->Add(parts[1], h), node->Add(parts[0], w)},
                        2);
  }
  const auto min = [&](size_t i) {
    return node->Binary("elementwise_min", parts[i], parts[i + 2]);
  };
  const auto max = [&](size_t i) {
    return node->Binary("elementwise_max", parts[i], parts[i + 2]);
  };
  return node->Concat({min(0), min(1), max(0), max(1)}, 2);
}

// [images, classes, ...] -> [images * classes, ...].
std::string Pairs(OnnxNode* node, const std::string& x) {
  return node->Unary("flatten_contiguous_range", x,
                     {{"start_axis", int32_t{0}}, {"stop_axis", int32_t{1}}});
}

// Only boxes that score higher may be kept: where that many is known only when
// the model runs, others have the lowest score of all.
std::string AboveThreshold(OnnxNode* node, const std::string& scores,
                           double* threshold) {
  *threshold = -std::numeric_limits<double>::infinity();
  const DType dtype = node->TypeOf(scores);
  if (!node->Has(4))
    return node->Binary(
        "elementwise_max", scores,
        node->Scalar(std::numeric_limits<float>::lowest(), dtype));
  if (node->Known(4) != nullptr) {
    *threshold = node->NeedNumber(4);
    return scores;
  }
  const std::string limit = node->Cast(node->Reshape(node->In(4), {1}), dtype);
  return node->Where(node->Binary("greater_than", scores, limit), scores,
                     node->Scalar(*threshold, dtype));
}

// Each class of each image is an image of multiclass_nms3, which keeps so many
// of each; its Index is the number of a box among those of all such images.
void ImportNms(OnnxNode* node) {
  const std::string boxes = node->In(0), scores = node->In(1);
  const double most = node->Has(2) ? node->NeedNumber(2) : 0;
  const double overlap = node->Has(3) ? node->NeedNumber(3) : 0;
  if (node->Rank(boxes) != 3 || node->Rank(scores) != 3)
    node->Fail(InvalidArgument("boxes of shape %s, scores of shape %s",
                               ToString(node->ShapeOf(boxes)),
                               ToString(node->ShapeOf(scores))));
  if (!node->ok()) return;
  if (!(most > 0)) return node->Give(0, node->Full({0, 3}, 0, DType::kInt64));
  double threshold = 0;
  const std::string ranked = AboveThreshold(node, scores, &threshold);
  std::string corners =
      Corners(node, boxes, node->Int("center_point_box", 0) != 0);
  if (node->Extent(scores, 1) != 1)
    corners = Pairs(
        node,
        node->Broadcast(
            {node->Unsqueeze(corners, {1}),
             node->Unsqueeze(node->FullLike(scores, 0, node->TypeOf(boxes)),
                             {3})})[0]);
  const auto found = node->EmitMany(
      "multiclass_nms3",
      {{"BBoxes", {corners}},
       {"Scores", {node->Unsqueeze(Pairs(node, ranked), {1})}}},
      {{"Out", 1}, {"Index", 1}, {"NmsRoisNum", 1}},
      {{"background_label", int32_t{-1}},
       {"score_threshold", static_cast<float>(threshold)},
       {"nms_threshold", static_cast<float>(overlap)},
       {"nms_top_k", int32_t{-1}},
       {"keep_top_k",
        OnnxAttrInts({static_cast<int64_t>(std::min(most, 2e9))})[0]},
       {kNmsEmptyBoxes, true}});
  const std::string at = node->Cast(found[1], DType::kInt64);
  // No boxes: nothing is divided, but a divisor of 0 is an error.
  const std::string shape =
      node->Binary("elementwise_max", node->ShapeVar(scores),
                   node->Scalar(1, DType::kInt64));
  const auto over = [&](const char* op, const std::string& x, int64_t axis) {
    return node->Binary(op, x, node->Slice(shape, {0}, {axis}, {axis + 1}));
  };
  const std::string pair = over("elementwise_floordiv", at, 2);
  node->Give(0, node->Concat({over("elementwise_floordiv", pair, 1),
                              over("elementwise_mod", pair, 1),
                              over("elementwise_mod", at, 2)},
                             1));
}

}  // namespace

OnnxImportEntries VisionImports() {
  return {
      {"AffineGrid", ImportAffineGrid}, {"DeformConv", ImportDeformConv},
      {"GridSample", ImportGridSample}, {"NonMaxSuppression", ImportNms},
      {"RoiAlign", ImportRoiAlign},
  };
}

}  // namespace pd
