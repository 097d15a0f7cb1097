// SPDX-License-Identifier: Apache-2.0
// Detectors: boxes of cells (prior_box, anchor_generator), boxes of predictions
// (yolo_box, box_coder), boxes left over (multiclass_nms, matrix_nms). SSD's
// multi_box_head and detection_output are the compositions that
// paddle.static.nn and fluid.layers.detection of their names append.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/sublayers.h"

namespace pd {
namespace {

using Floats = std::vector<float>;
using Made = absl::StatusOr<std::vector<std::string>>;

template <typename List>
Floats FloatsOf(const List& list, Floats otherwise = {}) {
  if (list.empty()) return otherwise;
  Floats floats;
  for (const double value : list) floats.push_back(static_cast<float>(value));
  return floats;
}

const Floats kVariances = {0.1f, 0.1f, 0.2f, 0.2f};

bool MayBe(int64_t extent, int64_t expected) {
  return extent < 0 || expected < 0 || extent == expected;
}

// Height and width of every image, int32 [N, 2]: the second input, or those
// that the job writes out.
absl::StatusOr<std::string> ImageSizes(LayerContext* c) {
  const auto& sizes = c->layer().yolo_box().img_size();
  if (sizes.empty() == (c->input_count() < 2))
    return InvalidArgument(
        "the images' sizes are %s; 'img_size' or the second input says them",
        sizes.empty() ? "missing" : "given twice");
  if (sizes.empty()) return c->input(1);
  std::string parts[2];
  for (int i = 0; i < 2; ++i) {
    OpDesc op;
    op.type = "fill_constant_batch_size_like";
    op.SetInput("Input", {c->input()});
    op.attrs = {{"shape", Ints{-1, 1}},
                {"dtype", static_cast<int32_t>(DType::kInt32)},
                {"value", static_cast<float>(sizes[sizes.size() > 1 ? i : 0])}};
    PD_ASSIGN_OR_RETURN(parts[i], c->Append(std::move(op), {"Out"}));
  }
  OpDesc op;
  op.type = "concat";
  op.SetInput("X", {parts[0], parts[1]});
  op.attrs = {{"axis", int32_t{1}}};
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildYoloBox(LayerContext* c) {
  const job::YoloBox& p = c->layer().yolo_box();
  PD_RETURN_IF_ERROR(ExpectSpace(c, Space()));
  PD_ASSIGN_OR_RETURN(const std::string sizes, ImageSizes(c));
  OpDesc op;
  op.type = "yolo_box";
  op.SetInput("X", {c->input()});
  op.SetInput("ImgSize", {sizes});
  op.attrs = {{"anchors", Ints(p.anchors().begin(), p.anchors().end())},
              {"class_num", p.class_num()},
              {"conf_thresh", static_cast<float>(p.conf_thresh())},
              {"downsample_ratio", p.downsample_ratio()},
              {"clip_bbox", p.clip_bbox()},
              {"scale_x_y", static_cast<float>(p.scale_x_y())},
              {"iou_aware", p.iou_aware()},
              {"iou_aware_factor", static_cast<float>(p.iou_aware_factor())}};
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> made,
                      c->AppendAll(std::move(op), {"Boxes", "Scores"}));
  c->AddOutput("scores", made[1]);
  return made[0];
}

// Boxes and scores into an op of non-maximum suppression, whose outputs are
// rows, their places and how many each image has.
absl::StatusOr<std::string> AppendNms(LayerContext* c, OpDesc op,
                                      const std::string& boxes,
                                      const std::string& scores) {
  op.SetInput("BBoxes", {boxes});
  op.SetInput("Scores", {scores});
  const char* number = op.type == "matrix_nms" ? "RoisNum" : "NmsRoisNum";
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> made,
                      c->AppendAll(std::move(op), {"Out", "Index", number}));
  c->AddOutput("index", made[1]);
  c->AddOutput("rois_num", made[2]);
  return made[0];
}

absl::Status ExpectBoxesAndScores(LayerContext* c) {
  const Shape &boxes = c->shape(0), &scores = c->shape(1);
  if (boxes.size() != 3 || !MayBe(boxes[2], 4))
    return c->Misfit("boxes [N, M, 4]");
  if (scores.size() != 3 || !MayBe(scores[2], boxes[1]))
    return c->Misfit(
        absl::StrCat("scores [N, classes, M] of boxes ", ToString(boxes)), 1);
  return absl::OkStatus();
}

// NMS with the limits that `fields` gives.
template <typename Fields>
OpDesc MulticlassNms(const Fields& fields, bool normalized) {
  OpDesc op;
  op.type = "multiclass_nms3";
  op.attrs = {{"background_label", fields.background_label()},
              {"score_threshold", static_cast<float>(fields.score_threshold())},
              {"nms_top_k", fields.nms_top_k()},
              {"nms_threshold", static_cast<float>(fields.nms_threshold())},
              {"keep_top_k", fields.keep_top_k()},
              {"nms_eta", static_cast<float>(fields.nms_eta())},
              {"normalized", normalized}};
  return op;
}

absl::StatusOr<std::string> BuildMulticlassNms(LayerContext* c) {
  const job::MulticlassNMS& p = c->layer().multiclass_nms();
  PD_RETURN_IF_ERROR(ExpectBoxesAndScores(c));
  return AppendNms(c, MulticlassNms(p, p.normalized()), c->input(0),
                   c->input(1));
}

absl::StatusOr<std::string> BuildMatrixNms(LayerContext* c) {
  const job::MatrixNMS& p = c->layer().matrix_nms();
  PD_RETURN_IF_ERROR(ExpectBoxesAndScores(c));
  OpDesc op;
  op.type = "matrix_nms";
  op.attrs = {{"background_label", p.background_label()},
              {"score_threshold", static_cast<float>(p.score_threshold())},
              {"post_threshold", static_cast<float>(p.post_threshold())},
              {"nms_top_k", p.nms_top_k()},
              {"keep_top_k", p.keep_top_k()},
              {"use_gaussian", p.use_gaussian()},
              {"gaussian_sigma", static_cast<float>(p.gaussian_sigma())},
              {"normalized", p.normalized()}};
  return AppendNms(c, std::move(op), c->input(0), c->input(1));
}

// Boxes, and variances of the same shape.
Made AppendPriors(LayerContext* c, const std::string& map,
                  const std::string& images,
                  std::map<std::string, Attribute> attrs) {
  OpDesc op;
  op.type = "prior_box";
  op.SetInput("Input", {map});
  op.SetInput("Image", {images});
  op.attrs = std::move(attrs);
  return c->AppendAll(std::move(op), {"Boxes", "Variances"});
}

absl::StatusOr<std::string> BuildPriorBox(LayerContext* c) {
  const job::PriorBox& p = c->layer().prior_box();
  for (size_t i = 0; i < 2; ++i) PD_RETURN_IF_ERROR(ExpectSpace(c, Space(), i));
  const Floats steps = FloatsOf(p.steps(), {0, 0});
  PD_ASSIGN_OR_RETURN(
      const std::vector<std::string> made,
      AppendPriors(
          c, c->input(0), c->input(1),
          {{"min_sizes", FloatsOf(p.min_sizes())},
           {"max_sizes", FloatsOf(p.max_sizes())},
           {"aspect_ratios", FloatsOf(p.aspect_ratios(), {1})},
           {"variances", FloatsOf(p.variance(), kVariances)},
           {"flip", p.flip()},
           {"clip", p.clip()},
           {"step_w", steps[0]},
           {"step_h", steps[1]},
           {"offset", static_cast<float>(p.offset())},
           {"min_max_aspect_ratios_order", p.min_max_aspect_ratios_order()}}));
  c->AddOutput("variances", made[1]);
  return made[0];
}

absl::StatusOr<std::string> BuildAnchorGenerator(LayerContext* c) {
  const job::AnchorGenerator& p = c->layer().anchor_generator();
  PD_RETURN_IF_ERROR(ExpectSpace(c, Space()));
  OpDesc op;
  op.type = "anchor_generator";
  op.SetInput("Input", {c->input()});
  op.attrs = {{"anchor_sizes", FloatsOf(p.anchor_sizes(), {64, 128, 256, 512})},
              {"aspect_ratios", FloatsOf(p.aspect_ratios(), {0.5f, 1, 2})},
              {"variances", FloatsOf(p.variance(), kVariances)},
              {"stride", FloatsOf(p.stride(), {16, 16})},
              {"offset", static_cast<float>(p.offset())}};
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> made,
                      c->AppendAll(std::move(op), {"Anchors", "Variances"}));
  c->AddOutput("variances", made[1]);
  return made[0];
}

absl::StatusOr<std::string> BuildBoxCoder(LayerContext* c) {
  const job::BoxCoder& p = c->layer().box_coder();
  const size_t last = c->input_count() - 1;
  if (last == 2 && !p.variance().empty())
    return InvalidArgument(
        "the variances are given twice, as 'variance' and as the second input");
  for (size_t i = 0; i < last; ++i)
    if (c->shape(i).size() != 2 || !MayBe(c->shape(i)[1], 4))
      return c->Misfit(i == 0 ? "prior boxes [M, 4]" : "variances [M, 4]", i);
  const bool encodes = p.code_type() == job::BoxCoder::encode_center_size;
  const Shape& target = c->shape(last);
  if (target.size() != (encodes ? 2 : 3) || !MayBe(target.back(), 4))
    return c->Misfit(encodes ? "true boxes [N, 4]" : "offsets [N, M, 4]", last);
  OpDesc op;
  op.type = "box_coder";
  op.SetInput("PriorBox", {c->input(0)});
  if (last == 2) op.SetInput("PriorBoxVar", {c->input(1)});
  op.SetInput("TargetBox", {c->input(last)});
  op.attrs = {{"code_type", job::BoxCoder::CodeType_Name(p.code_type())},
              {"box_normalized", p.box_normalized()},
              {"axis", p.axis()},
              {"variance", FloatsOf(p.variance())}};
  return c->Append(std::move(op), {"OutputBox"});
}

// Smallest and largest squares of each feature map.
absl::Status SquaresOf(const job::MultiBoxHead& p, int maps, Floats* least,
                       Floats* most) {
  *least = FloatsOf(p.min_sizes());
  *most = FloatsOf(p.max_sizes());
  const bool ratios =
      p.has_min_ratio() && p.has_max_ratio() && p.has_base_size() && maps > 2;
  if (least->empty() && !ratios)
    return InvalidArgument(
        "the sizes of boxes are missing: give 'min_sizes' and 'max_sizes', or "
        "for 3 feature maps or more 'base_size', 'min_ratio' and 'max_ratio'");
  if (least->empty()) {
    const double base = p.base_size();
    const int step = (p.max_ratio() - p.min_ratio()) / (maps - 2);
    if (step < 1)
      return InvalidArgument(
          "'min_ratio' is %d and 'max_ratio' %d; for %d feature maps the "
          "latter "
          "is larger by %d at least",
          p.min_ratio(), p.max_ratio(), maps, maps - 2);
    *least = {static_cast<float>(base * .10)};
    *most = {static_cast<float>(base * .20)};
    for (int r = p.min_ratio(); r <= p.max_ratio(); r += step) {
      least->push_back(static_cast<float>(base * r / 100.));
      most->push_back(static_cast<float>(base * (r + step) / 100.));
    }
    // Steps are whole percents, so that there may be one more than maps.
    if (least->size() > static_cast<size_t>(maps)) {
      least->resize(static_cast<size_t>(maps));
      most->resize(static_cast<size_t>(maps));
    }
  }
  for (const auto& [name, count] :
       {std::pair("min_sizes", least->size()),
        std::pair("max_sizes", most->size()),
        std::pair("aspect_ratios", static_cast<size_t>(p.aspect_ratios_size())),
        std::pair("steps", p.steps().empty()
                               ? static_cast<size_t>(maps)
                               : static_cast<size_t>(p.steps_size()))})
    if (count != static_cast<size_t>(maps) &&
        !(count == 0 && absl::string_view(name) == "max_sizes"))
      return InvalidArgument(
          "'%s' is given %d times; there are %d feature maps", name, count,
          maps);
  return absl::OkStatus();
}

// The predictions of one feature map: [N, boxes * numbers, H, W] as [N, boxes
// of the map, numbers].
absl::StatusOr<std::string> AppendHead(LayerContext* c, const std::string& path,
                                       const std::string& map, int64_t boxes,
                                       int32_t numbers) {
  const job::MultiBoxHead& p = c->layer().multi_box_head();
  const LayerContext::Sublayer sublayer(c, "conv2d", path);
  const int64_t in = c->ShapeOf(map)[1];
  const int64_t out = boxes * numbers;
  const int32_t k = p.kernel_size();
  const double reads = static_cast<double>(in) * k * k;
  PD_ASSIGN_OR_RETURN(const std::string sum,
                      Convolve({out, k, p.stride(), p.pad(),
                                NormalInitializer(std::sqrt(2.0 / reads))},
                               map, c));
  const Shape size = c->ShapeOf(sum);
  const Shape wanted = c->ShapeOf(map);  // ops move descriptions
  if (size[2] != wanted[2] || size[3] != wanted[3])
    return InvalidArgument(
        "the convolutions make feature maps of %d x %d out of %d x %d; boxes "
        "need the same size: see 'kernel_size', 'pad' and 'stride'",
        size[2], size[3], wanted[2], wanted[3]);
  OpDesc turn;
  turn.type = "transpose2";
  turn.SetInput("X", {sum});
  turn.attrs = {{"axis", Ints{0, 2, 3, 1}}};
  PD_ASSIGN_OR_RETURN(const std::string turned,
                      c->Append(std::move(turn), {"Out", "XShape"}));
  return Reshape(
      c, turned,
      {0, static_cast<int32_t>(boxes * wanted[2] * wanted[3]), numbers});
}

absl::StatusOr<std::string> JoinAlong(LayerContext* c, int32_t axis,
                                      std::vector<std::string> parts) {
  if (parts.size() == 1) return parts[0];
  OpDesc op;
  op.type = "concat";
  op.SetInput("X", std::move(parts));
  op.attrs = {{"axis", axis}};
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> BuildMultiBoxHead(LayerContext* c) {
  const job::MultiBoxHead& p = c->layer().multi_box_head();
  const size_t maps = c->input_count() - 1;
  for (size_t i = 0; i <= maps; ++i) {
    PD_RETURN_IF_ERROR(ExpectSpace(c, Space(), i));
    for (const size_t axis : {1, 2, 3})
      if (c->shape(i)[axis] < 1) return c->Misfit("images of a known size", i);
  }
  Floats least, most;
  PD_RETURN_IF_ERROR(SquaresOf(p, static_cast<int>(maps), &least, &most));
  // Of each feature map: offsets, scores, boxes, variances.
  std::vector<std::string> parts[4];
  for (size_t i = 0; i < maps; ++i) {
    const int at = static_cast<int>(i);
    const float step =
        p.steps().empty() ? 0.0f : static_cast<float>(p.steps(at));
    PD_ASSIGN_OR_RETURN(
        const std::vector<std::string> priors,
        AppendPriors(
            c, c->input(i), c->input(maps),
            {{"min_sizes", Floats{least[i]}},
             {"max_sizes",
              most.empty() || most[i] == 0 ? Floats() : Floats{most[i]}},
             {"aspect_ratios", FloatsOf(p.aspect_ratios(at).value())},
             {"variances", FloatsOf(p.variance(), kVariances)},
             {"flip", p.flip()},
             {"clip", p.clip()},
             {"step_w", step},
             {"step_h", step},
             {"offset", static_cast<float>(p.offset())},
             {"min_max_aspect_ratios_order",
              p.min_max_aspect_ratios_order()}}));
    const int64_t boxes = c->ShapeOf(priors[0])[2];
    PD_ASSIGN_OR_RETURN(
        const std::string offsets,
        AppendHead(c, absl::StrCat("loc", i), c->input(i), boxes, 4));
    PD_ASSIGN_OR_RETURN(const std::string scores,
                        AppendHead(c, absl::StrCat("conf", i), c->input(i),
                                   boxes, p.num_classes()));
    PD_ASSIGN_OR_RETURN(const std::string places,
                        Reshape(c, priors[0], {-1, 4}));
    PD_ASSIGN_OR_RETURN(const std::string variances,
                        Reshape(c, priors[1], {-1, 4}));
    const std::string* const made[] = {&offsets, &scores, &places, &variances};
    for (size_t k = 0; k < 4; ++k) parts[k].push_back(*made[k]);
  }
  const char* const kNames[] = {"offsets", "confidences", "boxes", "variances"};
  std::string first;
  for (size_t k = 0; k < 4; ++k) {
    PD_ASSIGN_OR_RETURN(const std::string joined,
                        JoinAlong(c, k < 2 ? 1 : 0, std::move(parts[k])));
    if (k == 0)
      first = joined;
    else
      c->AddOutput(kNames[k], joined);
  }
  return first;
}

// Inputs: offsets, scores before softmax, prior boxes, their variances.
absl::StatusOr<std::string> BuildDetectionOutput(LayerContext* c) {
  const job::DetectionOutput& p = c->layer().detection_output();
  const Shape &offsets = c->shape(0), &scores = c->shape(1);
  if (offsets.size() != 3 || !MayBe(offsets[2], 4))
    return c->Misfit("offsets [N, M, 4]");
  if (scores.size() != 3 || !MayBe(scores[1], offsets[1]))
    return c->Misfit(
        absl::StrCat("scores [N, M, classes] of offsets ", ToString(offsets)),
        1);
  for (const size_t i : {2, 3})
    if (c->shape(i).size() != 2 || !MayBe(c->shape(i)[1], 4) ||
        !MayBe(c->shape(i)[0], offsets[1]))
      return c->Misfit(absl::StrCat(i == 2 ? "prior boxes" : "variances",
                                    " [M, 4] of offsets ", ToString(offsets)),
                       i);
  OpDesc decode;
  decode.type = "box_coder";
  decode.SetInput("PriorBox", {c->input(2)});
  decode.SetInput("PriorBoxVar", {c->input(3)});
  decode.SetInput("TargetBox", {c->input(0)});
  decode.attrs = {{"code_type", std::string("decode_center_size")},
                  {"box_normalized", true},
                  {"axis", int32_t{0}}};
  PD_ASSIGN_OR_RETURN(const std::string boxes,
                      c->Append(std::move(decode), {"OutputBox"}));
  PD_ASSIGN_OR_RETURN(
      const std::string probabilities,
      c->Unary("softmax", c->input(1), {{"axis", int32_t{-1}}}));
  OpDesc turn;
  turn.type = "transpose2";
  turn.SetInput("X", {probabilities});
  turn.attrs = {{"axis", Ints{0, 2, 1}}};
  PD_ASSIGN_OR_RETURN(const std::string turned,
                      c->Append(std::move(turn), {"Out", "XShape"}));
  return AppendNms(c, MulticlassNms(p, true), boxes, turned);
}

}  // namespace

void AddDetectionLayers(LayerTable* table) {
  (*table)[job::Layer::kYoloBox] = {BuildYoloBox, 1, 2};
  (*table)[job::Layer::kMulticlassNms] = {BuildMulticlassNms, 2, 2};
  (*table)[job::Layer::kMatrixNms] = {BuildMatrixNms, 2, 2};
  (*table)[job::Layer::kPriorBox] = {BuildPriorBox, 2, 2};
  (*table)[job::Layer::kAnchorGenerator] = {BuildAnchorGenerator};
  (*table)[job::Layer::kBoxCoder] = {BuildBoxCoder, 2, 3};
  (*table)[job::Layer::kMultiBoxHead] = {BuildMultiBoxHead, 2, kAnyInputs};
  (*table)[job::Layer::kDetectionOutput] = {BuildDetectionOutput, 4, 4};
}

}  // namespace pd
