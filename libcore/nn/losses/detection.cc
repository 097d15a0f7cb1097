// SPDX-License-Identifier: Apache-2.0
// yolo_loss: paddle.vision.ops.yolo_loss. ssd_loss: what
// fluid.layers.detection.ssd_loss appends, with true boxes that are padded.
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/nn/losses/loss_context.h"
#include "libcore/nn/output_names.h"
#include "libcore/nn/true_boxes.h"

namespace pd {
namespace {

absl::StatusOr<std::string> Yolo(LossContext* c) {
  const job::YoloLoss& p = c->loss().yolo_loss();
  if (!c->ExpectRank(4, 4, "one scale [N, boxes * (5 + classes), H, W]"))
    return c->Give("");
  if (p.anchors_size() % 2 != 0)
    return InvalidArgument(
        "'anchors' holds %d numbers; expected pairs of width "
        "and height",
        p.anchors_size());
  for (const int32_t box : p.anchor_mask())
    if (box >= p.anchors_size() / 2)
      return InvalidArgument("'anchor_mask' is %d; 'anchors' holds %d pairs",
                             box, p.anchors_size() / 2);
  const Shape shape = c->prediction().shape;
  const int64_t channels = int64_t{p.anchor_mask_size()} * (5 + p.class_num());
  if (shape[1] >= 0 && shape[1] != channels)
    return InvalidArgument(
        "the predictions are %s; %d boxes of %d classes need %d channels",
        ToString(shape), p.anchor_mask_size(), p.class_num(), channels);
  const std::string boxes = c->Field(p.gt_box(), {shape[0], -1, 4});
  const std::string label =
      c->Cast(c->Label({shape[0], -1}, DType::kInt64), DType::kInt32);
  const std::string score =
      p.has_gt_score() ? c->Field(p.gt_score(), {shape[0], -1}) : "";
  const std::string each = c->Op(
      "yolov3_loss",
      {{"X", c->x()}, {"GTBox", boxes}, {"GTLabel", label}, {"GTScore", score}},
      {"Loss", "ObjectnessMask", "GTMatchMask"},
      {{"anchors",
        std::vector<int32_t>(p.anchors().begin(), p.anchors().end())},
       {"anchor_mask",
        std::vector<int32_t>(p.anchor_mask().begin(), p.anchor_mask().end())},
       {"class_num", int32_t{p.class_num()}},
       {"ignore_thresh", static_cast<float>(p.ignore_thresh())},
       {"downsample_ratio", int32_t{p.downsample_ratio()}},
       {"use_label_smooth", p.use_label_smooth()},
       {"scale_x_y", static_cast<float>(p.scale_x_y())}});
  return c->Give(c->Reduced(p.reduction(), each));
}

// The layer that one of ssd_loss's fields names, or a further result of the
// layer that it judges.
std::string SsdPart(LossContext* c, const char* field, bool given,
                    const std::string& name, const char* result,
                    const Shape& shape) {
  if (!given && !c->loss().has_input()) {
    c->Update(InvalidArgument(
        "'%s' is missing: without 'input' no layer gives '%s'", field, result));
    return "";
  }
  const std::string layer =
      given ? name : absl::StrCat(c->loss().input(), ":", result);
  const std::string variable = c->Field(layer, shape);
  if (!c->ok()) return "";
  if (c->Var(variable).need_check_feed && !given)
    c->Update(InvalidArgument(
        "'%s' is missing, and layer '%s' gives no '%s' (multi_box_head does)",
        field, c->loss().input(), result));
  else if (!SameExtents(c->ShapeOf(variable), shape))
    c->Update(InvalidArgument("'%s' is %s; expected %s", layer,
                              ToString(c->ShapeOf(variable)), ToString(shape)));
  return variable;
}

// Offsets [N, M, 4], and what goes with them.
struct SsdHead {
  std::string scores, priors, variances;
  int64_t boxes = 0;  // M
  int64_t classes = 0;
};

// The classes and offsets that prior boxes are to predict, a row each of all
// images, and which of them count.
struct SsdTargets {
  std::string labels, counted;
  std::string offsets, matched;
};

std::string Flat(LossContext* c, const std::string& x, int64_t width) {
  return c->Reshape(x, {-1, static_cast<int32_t>(width)});
}

std::string SsdClassLoss(LossContext* c, const SsdHead& head,
                         const std::string& labels) {
  return c->SoftmaxCrossEntropy(Flat(c, head.scores, head.classes),
                                c->Cast(Flat(c, labels, 1), DType::kInt64),
                                false);
}

SsdTargets FindSsdTargets(LossContext* c, const SsdHead& head,
                          const TrueBoxes& truths) {
  const job::SSDLoss& p = c->loss().ssd_loss();
  const std::vector<const char*> target = {"Out", "OutWeight"};
  const OpChain::Attrs mismatch = {{"mismatch_value", p.background_label()}};
  // The true box that each prior box stands for.
  const std::string overlaps = c->Op(
      "iou_similarity", {{"X", truths.boxes}, {"Y", head.priors}}, {"Out"});
  const std::string match =
      c->Op("bipartite_match", {{"DistMat", overlaps}},
            {"ColToRowMatchIndices", "ColToRowMatchDist"},
            {{"match_type", job::SSDLoss::MatchType_Name(p.match_type())},
             {"dist_threshold", static_cast<float>(p.overlap_threshold())}});
  // Of the others, the ones that are hardest to tell from the background.
  const std::string first_labels =
      c->Op("target_assign", {{"X", truths.labels}, {"MatchIndices", match}},
            target, mismatch);
  const std::string negatives = c->Op(
      "mine_hard_examples",
      {{"ClsLoss", Flat(c, SsdClassLoss(c, head, first_labels), head.boxes)},
       {"MatchIndices", match},
       {"MatchDist", TemporaryBeside(match, 1)}},
      {"NegIndices", "UpdatedMatchIndices"},
      {{"neg_pos_ratio", static_cast<float>(p.neg_pos_ratio())},
       {"neg_dist_threshold", static_cast<float>(p.neg_overlap())},
       {"mining_type", std::string("max_negative")},
       {"sample_size", int32_t{0}}});
  const std::string kept = TemporaryBeside(negatives, 1);
  const std::string encoded =
      c->Op("box_coder",
            {{"PriorBox", head.priors},
             {"PriorBoxVar", head.variances},
             {"TargetBox", truths.boxes}},
            {"OutputBox"},
            {{"code_type", std::string("encode_center_size")},
             {"box_normalized", true}});
  SsdTargets targets;
  targets.offsets =
      c->Op("target_assign", {{"X", encoded}, {"MatchIndices", kept}}, target,
            mismatch);
  targets.matched = Flat(c, TemporaryBeside(targets.offsets, 1), 1);
  targets.labels = c->Op(
      "target_assign",
      {{"X", truths.labels}, {"MatchIndices", kept}, {"NegIndices", negatives}},
      target, mismatch);
  targets.counted = Flat(c, TemporaryBeside(targets.labels, 1), 1);
  return targets;
}

SsdHead FindSsdHead(LossContext* c) {
  const job::SSDLoss& p = c->loss().ssd_loss();
  const Shape shape = c->prediction().shape;
  SsdHead head;
  head.boxes = shape[1];
  head.scores = SsdPart(c, "confidence", p.has_confidence(), p.confidence(),
                        "confidences", {shape[0], shape[1], -1});
  head.priors = SsdPart(c, "prior_box", p.has_prior_box(), p.prior_box(),
                        "boxes", {shape[1], 4});
  head.variances = SsdPart(c, "prior_box_var", p.has_prior_box_var(),
                           p.prior_box_var(), "variances", {shape[1], 4});
  if (!c->ok()) return head;
  head.classes = c->ShapeOf(head.scores)[2];
  if (head.classes >= 0 && p.background_label() >= head.classes)
    c->Update(
        InvalidArgument("'background_label' is %d; the scores have %d classes",
                        p.background_label(), head.classes));
  return head;
}

absl::StatusOr<std::string> Ssd(LossContext* c) {
  const job::SSDLoss& p = c->loss().ssd_loss();
  if (!c->ExpectRank(3, 3, "offsets [N, M, 4]")) return c->Give("");
  const Shape shape = c->prediction().shape;
  if (shape[1] < 1 || (shape[2] >= 0 && shape[2] != 4))
    return InvalidArgument(
        "the predictions are %s; expected offsets [N, M, 4] of a known number "
        "of boxes",
        ToString(shape));
  const SsdHead head = FindSsdHead(c);
  const TrueBoxes truths = UnpadTrueBoxes(
      c, c->Field(p.gt_box(), {shape[0], -1, 4}),
      c->Cast(c->Label({shape[0], -1}, DType::kInt64), DType::kInt32));
  if (!c->ok()) return c->Give("");
  const SsdTargets targets = FindSsdTargets(c, head, truths);
  const std::string by_class =
      c->Mul(SsdClassLoss(c, head, targets.labels), targets.counted);
  const std::string distances =
      c->Op("huber_loss",
            {{"X", Flat(c, c->x(), 4)}, {"Y", Flat(c, targets.offsets, 4)}},
            {"Out", "Residual"}, {{"delta", 1.0f}});
  const std::string by_place =
      c->Mul(c->Reduce("reduce_sum", distances, {1}, true), targets.matched);
  std::string each =
      c->Reduce("reduce_sum",
                Flat(c,
                     c->Add(c->Scale(by_class, p.conf_loss_weight()),
                            c->Scale(by_place, p.loc_loss_weight())),
                     head.boxes),
                {1}, true);
  // PaddlePaddle divides by 0 where no image has a box.
  if (p.normalize())
    each = c->Div(each, c->Binary("elementwise_max",
                                  c->Reduce("reduce_sum", targets.matched),
                                  c->Full({1}, DType::kFloat32, 1)));
  return c->Give(c->Reduced(p.reduction(), each));
}

}  // namespace

void AddDetectionLosses(LossTable* table) {
  (*table)[job::Loss::kYoloLoss] = Yolo;
  (*table)[job::Loss::kSsdLoss] = Ssd;
}

}  // namespace pd
