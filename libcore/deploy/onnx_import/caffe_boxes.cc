// SPDX-License-Identifier: Apache-2.0
// SSD's layers of Caffe: boxes of the cells of a map, and the detections that
// are left of offsets to them and of scores.
#include <cmath>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/caffe_layer.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Floats = std::vector<float>;

Floats CaffeFloats(OnnxNode* node, const char* name) {
  const std::vector<double> numbers = CaffeNumbers(node, name);
  return {numbers.begin(), numbers.end()};
}

// The fields of a PriorBox. Sizes that are no integers count as they are, as in
// OpenCV; the SSD branch of Caffe cuts their fractions off.
struct PriorFields {
  Floats min_sizes, max_sizes, aspect_ratios, variances;
  Floats step, image;  // height and width; empty: those of the inputs
};

Floats HeightAndWidth(OnnxNode* node, const std::string& name,
                      const std::string& plain) {
  const std::string h = name + "_h", w = name + "_w";
  const double both = CaffeNumber(node, plain.c_str(), 0);
  const double height = CaffeNumber(node, h.c_str(), both);
  const double width = CaffeNumber(node, w.c_str(), both);
  if (!(height >= 0) || !(width >= 0) || (height == 0) != (width == 0))
    node->Fail(InvalidArgument("%s and %s are %g and %g", h, w, height, width));
  if (!node->ok() || height == 0) return {};
  return {static_cast<float>(height), static_cast<float>(width)};
}

PriorFields FieldsOfPriors(OnnxNode* node) {
  PriorFields f;
  f.min_sizes = CaffeFloats(node, "min_size");
  f.max_sizes = CaffeFloats(node, "max_size");
  f.aspect_ratios = CaffeFloats(node, "aspect_ratio");
  f.variances = CaffeFloats(node, "variance");
  if (f.variances.empty()) f.variances = {0.1f};
  if (f.variances.size() == 1) f.variances.resize(4, f.variances[0]);
  f.step = HeightAndWidth(node, "step", "step");
  f.image = HeightAndWidth(node, "img", "img_size");
  if (f.variances.size() != 4 || f.min_sizes.empty() ||
      (!f.max_sizes.empty() && f.max_sizes.size() != f.min_sizes.size()))
    node->Fail(InvalidArgument(
        "%d min_size, %d max_size, %d variance; expected one max_size for each "
        "min_size or none, and 4 or 1 or no variance",
        f.min_sizes.size(), f.max_sizes.size(), f.variances.size()));
  for (const Floats* numbers :
       {&f.min_sizes, &f.max_sizes, &f.aspect_ratios, &f.variances})
    for (const float number : *numbers)
      if (!(number > 0) || std::isinf(number))
        node->Fail(InvalidArgument("a size, ratio or variance is %g", number));
  return f;
}

// Boxes in the first row, their variances in the second: [1, 2, 4 boxes]. A
// picture of other extents than the second bottom's is one of a point here, by
// whose extents the boxes are divided afterwards.
void ImportPriorBox(OnnxNode* node) {
  const std::string map = node->In(0);
  PriorFields f = FieldsOfPriors(node);
  std::string image;
  const bool own = !f.image.empty();
  if (own) {
    image = node->Full({1, 1, 1, 1}, 0, DType::kFloat32);
    for (size_t i = 0; i < 2 && node->ok() && f.step.size() < 2; ++i) {
      const int64_t extent = node->Extent(map, static_cast<int64_t>(i) + 2);
      if (extent < 1)
        return node->Fail(
            InvalidArgument("a map of shape %s", ToString(node->ShapeOf(map))));
      f.step.push_back(f.image[i] / static_cast<float>(extent));
    }
  } else {
    image = node->In(1);
  }
  if (!node->ok()) return;
  if (f.step.empty()) f.step = {0, 0};
  const bool clip = CaffeInteger(node, "clip", 0) != 0;
  auto made = node->EmitMany(
      "prior_box", {{"Input", {map}}, {"Image", {image}}},
      {{"Boxes", 1}, {"Variances", 1}},
      {{"min_sizes", f.min_sizes},
       {"max_sizes", f.max_sizes},
       {"aspect_ratios", f.aspect_ratios},
       {"variances", f.variances},
       {"flip", CaffeInteger(node, "flip", 1) != 0},
       {"clip", clip && !own},
       {"step_w", f.step[1]},
       {"step_h", f.step[0]},
       {"offset", static_cast<float>(CaffeNumber(node, "offset", 0.5))},
       {"min_max_aspect_ratios_order", true}});
  if (!node->ok()) return;
  if (own) {
    const Floats extents = {f.image[1], f.image[0], f.image[1], f.image[0]};
    made[0] =
        node->Div(made[0], node->Constant(MakeArray<float>({4}, extents)));
    if (clip)
      made[0] = node->Unary("clip", made[0], {{"min", 0.0f}, {"max", 1.0f}});
  }
  for (std::string& part : made) part = node->Reshape(part, {1, 1, -1});
  node->Give(0, node->Concat(made, 1));
}

// A row of the priors: [boxes, 4].
std::string RowOfPriors(OnnxNode* node, const std::string& priors,
                        int64_t row) {
  return node->Reshape(node->Slice(priors, {1}, {row}, {row + 1}), {-1, 4});
}

// Offsets [N, boxes, 4] to priors as boxes: of their corners, of center and
// logarithm of the size, of corners in sizes of the prior.
std::string DecodedBoxes(OnnxNode* node, std::string offsets,
                         const std::string& priors) {
  const bool in_target = CaffeInteger(node, "variance_encoded_in_target", 0);
  const std::string boxes = RowOfPriors(node, priors, 0);
  const std::string variances = in_target ? "" : RowOfPriors(node, priors, 1);
  const int64_t code = CaffeInteger(node, "code_type", 1);
  if (node->ok() && (code < 1 || code > 3))
    node->Fail(InvalidArgument("code_type is %d", code));
  if (code == 2) {
    OnnxNode::Slots slots = {{"PriorBox", {boxes}}, {"TargetBox", {offsets}}};
    if (!in_target) slots.push_back({"PriorBoxVar", {variances}});
    return node->Emit("box_coder", slots,
                      {{"code_type", std::string("decode_center_size")},
                       {"box_normalized", true}},
                      "OutputBox");
  }
  if (!in_target) offsets = node->Mul(offsets, variances);
  if (code == 3) {
    const std::string size = node->Sub(node->Slice(boxes, {1}, {2}, {4}),
                                       node->Slice(boxes, {1}, {0}, {2}));
    offsets = node->Mul(offsets, node->Concat({size, size}, 1));
  }
  return node->Add(boxes, offsets);
}

// An extent as a variable, int64 [1].
std::string ExtentVar(OnnxNode* node, const std::string& x) {
  return node->Slice(node->ShapeVar(x), {0}, {0}, {1});
}

// Where nothing is detected at all Caffe gives a row for each picture: its
// number and -1 in all other places.
std::string RowsOrNone(OnnxNode* node, const std::string& rows,
                       const std::string& pictures) {
  const std::string zero = node->ConstInts({0});
  const std::string none = node->Cast(
      node->Binary("equal", ExtentVar(node, rows), zero), DType::kInt64);
  const std::string numbers = node->Unsqueeze(
      node->Cast(node->Emit("range", {{"Start", {zero}},
                                      {"End", {node->Mul(none, pictures)}},
                                      {"Step", {node->ConstInts({1})}}}),
                 DType::kFloat32),
      {1});
  OnnxNode::Names columns(7, node->Affine(numbers, 0, -1));
  columns[0] = numbers;
  return node->Concat({rows, node->Concat(columns, 1)}, 0);
}

// Rows [picture, class, score, box] as [1, 1, rows, 7].
void ImportDetectionOutput(OnnxNode* node) {
  const std::string offsets = node->In(0), priors = node->In(2);
  const int64_t classes = CaffeInteger(node, "num_classes", 0);
  if (node->ok() && classes < 1)
    node->Fail(InvalidArgument("num_classes is %d", classes));
  if (node->ok() && CaffeInteger(node, "share_location", 1) == 0)
    node->Fail(Unimplemented("boxes of each class's own (share_location)"));
  if (node->ok() && node->Rank(priors) != 3)
    node->Fail(InvalidArgument("its boxes have shape %s; expected [1, 2, n]",
                               ToString(node->ShapeOf(priors))));
  if (!node->ok()) return;
  const std::string boxes =
      DecodedBoxes(node, node->Reshape(offsets, {0, -1, 4}), priors);
  const std::string scores =
      node->Transpose(node->Reshape(node->In(1), {0, -1, classes}), {0, 2, 1});
  const auto integer = [&](const char* name, int64_t otherwise) {
    return OnnxAttrInts({CaffeInteger(node, name, otherwise)})[0];
  };
  const auto number = [&](const char* name, double otherwise) {
    return static_cast<float>(CaffeNumber(node, name, otherwise));
  };
  const auto left = node->EmitMany(
      "multiclass_nms3", {{"BBoxes", {boxes}}, {"Scores", {scores}}},
      {{"Out", 1}, {"Index", 1}, {"NmsRoisNum", 1}},
      {{"background_label", integer("background_label_id", 0)},
       {"score_threshold",
        number("confidence_threshold", -std::numeric_limits<float>::max())},
       {"nms_top_k", integer("nms_param.top_k", -1)},
       {"keep_top_k", integer("keep_top_k", -1)},
       {"nms_threshold", number("nms_param.nms_threshold", 0.3)},
       {"nms_eta", number("nms_param.eta", 1)},
       {"normalized", true}});
  if (!node->ok()) return;
  // A box's place among those of all pictures tells the picture.
  const std::string picture =
      node->Binary("elementwise_floordiv", node->Cast(left[1], DType::kInt64),
                   ExtentVar(node, RowOfPriors(node, priors, 0)));
  const std::string rows =
      node->Concat({node->Cast(picture, DType::kFloat32), left[0]}, 1);
  node->Give(0, node->Unsqueeze(
                    RowsOrNone(node, rows, ExtentVar(node, offsets)), {0, 1}));
}

}  // namespace

OnnxImportEntries CaffeBoxImports() {
  return {
      {"caffe:DetectionOutput", ImportDetectionOutput},
      {"caffe:PriorBox", ImportPriorBox},
  };
}

}  // namespace pd
