// SPDX-License-Identifier: Apache-2.0
// yolo_loss: paddle.vision.ops.yolo_loss.
#include <vector>

#include "libcore/base/error.h"
#include "libcore/nn/losses/loss_context.h"

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

}  // namespace

void AddDetectionLosses(LossTable* table) {
  (*table)[job::Loss::kYoloLoss] = Yolo;
}

}  // namespace pd
