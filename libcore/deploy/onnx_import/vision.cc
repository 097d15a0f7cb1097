// SPDX-License-Identifier: Apache-2.0
// Boxes and sampling grids.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"
#include "libcore/ops/conv/grid_sampler.h"
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
  const int64_t images = node->Extent(x, 0);
  const std::string mode = node->Str("mode", "avg");
  if (mode != "avg" && mode != "max")
    return node->Fail(InvalidArgument("mode '%s'", mode));
  if (images < 0 || images > 65536)
    return node->Fail(Unimplemented("%d images", images));
  const bool aligned =
      node->opset() >= 16 &&
      node->Str("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const std::string image = node->Cast(node->In(2), DType::kInt64);
  const std::string order = Order(node, image, false);
  OnnxNode::Ints numbers(static_cast<size_t>(std::max<int64_t>(0, images)));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int64_t>(i);
  const std::string hits =
      node->Binary("equal", node->Unsqueeze(image, {0}),
                   node->Reshape(node->ConstInts(numbers), {images, 1}));
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

// Corners [y1, x1, y2, x2], the smaller ones first.
std::string Corners(OnnxNode* node, const std::string& boxes, bool centers) {
  const auto parts = node->Split(boxes, 1, 4);
  if (parts.size() != 4) return "";
  if (centers) {  // x, y, width, height
    const std::string w = node->Affine(parts[2], 0.5, 0);
    const std::string h = node->Affine(parts[3], 0.5, 0);
    return node->Concat({node->Sub(parts[1], h), node->Sub(parts[0], w),
                         node->Add(parts[1], h), node->Add(parts[0], w)},
                        1);
  }
  const auto min = [&](size_t i) {
    return node->Binary("elementwise_min", parts[i], parts[i + 2]);
  };
  const auto max = [&](size_t i) {
    return node->Binary("elementwise_max", parts[i], parts[i + 2]);
  };
  return node->Concat({min(0), min(1), max(0), max(1)}, 1);
}

// One image and class: indices of the boxes kept, best first.
std::string KeptBoxes(OnnxNode* node, const std::string& boxes,
                      const std::string& scores, int64_t most, float overlap) {
  const DType dtype = node->TypeOf(scores);
  std::string index;
  std::string left = scores, places = boxes;
  if (node->Has(4)) {
    const std::string limit = node->Reshape(node->In(4), {1});
    const std::string good = node->Emit(
        "where_index",
        {{"Condition",
          {node->Binary("greater_than", scores, node->Cast(limit, dtype))}}});
    index = node->Squeeze(good, {1});
    left = node->Gather(scores, index, 0);
    places = node->Gather(boxes, index, 0);
  }
  const std::string order = Order(node, left, true);
  const std::string kept =
      node->Emit("nms", {{"Boxes", {node->Gather(places, order, 0)}}},
                 {{"iou_threshold", overlap}}, "KeepBoxesIdxs");
  std::string out = node->Gather(order, kept, 0);
  if (!index.empty()) out = node->Gather(index, out, 0);
  return node->Slice(out, {0}, {0}, {most});
}

void ImportNms(OnnxNode* node) {
  const std::string boxes = node->In(0), scores = node->In(1);
  const int64_t images = node->Extent(scores, 0);
  const int64_t classes = node->Extent(scores, 1);
  const double most = node->Has(2) ? node->NeedNumber(2) : 0;
  const double overlap = node->Has(3) ? node->NeedNumber(3) : 0;
  if (!node->ok()) return;
  if (images < 1 || classes < 1 || images > 4096 || classes > 4096 ||
      images * classes > 4096 || !(most < 2e9))
    return node->Fail(
        Unimplemented("%d images of %d classes; each becomes nodes of its own, "
                      "so both must be known and be 4096 together at most",
                      images, classes));
  OnnxNode::Names rows;
  for (int64_t i = 0; i < images; ++i) {
    const std::string all =
        Corners(node, node->Squeeze(node->Slice(boxes, {0}, {i}, {i + 1}), {0}),
                node->Int("center_point_box", 0) != 0);
    for (int64_t c = 0; c < classes; ++c) {
      const std::string one = node->Reshape(
          node->Slice(scores, {0, 1}, {i, c}, {i + 1, c + 1}), {-1});
      const std::string kept =
          node->Unsqueeze(KeptBoxes(node, all, one, static_cast<int64_t>(most),
                                    static_cast<float>(overlap)),
                          {1});
      const auto same = [&](int64_t value) {
        return node->Affine(kept, 0, static_cast<double>(value));
      };
      rows.push_back(node->Concat({same(i), same(c), kept}, 1));
    }
  }
  node->Give(0, node->Concat(rows, 0));
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
