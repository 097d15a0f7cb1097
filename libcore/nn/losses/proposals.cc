// SPDX-License-Identifier: Apache-2.0
// Faster R-CNN's losses, as PaddlePaddle's networks of 1.x and 2.x with
// rpn_target_assign and generate_proposal_labels have them (Ren et al. 2015).
// smooth_l1_loss with sigma is huber_loss of delta 1 / sigma^2 over delta.
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/nn/losses/loss_context.h"
#include "libcore/nn/output_names.h"
#include "libcore/nn/true_boxes.h"

namespace pd {
namespace {

// The layer that a field names, or a further result of `layer`; `field` is
// written in the job where `given`.
std::string ResultOf(LossContext* c, const char* field, bool given,
                     const std::string& name, const std::string& layer,
                     const char* result, const Shape& shape) {
  if (!given && layer.empty()) {
    c->Update(InvalidArgument(
        "'%s' is missing: without 'input' no layer gives '%s'", field, result));
    return "";
  }
  const std::string called = given ? name : absl::StrCat(layer, ":", result);
  const std::string variable = c->Field(called, shape);
  if (!c->ok()) return "";
  if (!given && c->Var(variable).need_check_feed)
    c->Update(InvalidArgument("layer '%s' gives no '%s'", layer, result));
  else if (!SameExtents(c->ShapeOf(variable), shape))
    c->Update(InvalidArgument("'%s' is %s; expected %s", called,
                              ToString(c->ShapeOf(variable)), ToString(shape)));
  return variable;
}

// Sum of the smooth differences where `weights` is 1.
std::string SmoothSum(LossContext* c, const std::string& x,
                      const std::string& target, const std::string& weights,
                      double sigma) {
  const double delta = 1 / (sigma * sigma);
  const std::string each =
      c->Op("huber_loss", {{"X", x}, {"Y", target}}, {"Out", "Residual"},
            {{"delta", static_cast<float>(delta)}});
  return c->Scale(c->Reduce("reduce_sum", c->Mul(each, weights)), 1 / delta);
}

// How many rows there are, 1 at least.
std::string RowCount(LossContext* c, const std::string& rows) {
  return c->Binary("elementwise_max",
                   c->Cast(c->Extent(rows, 0), DType::kFloat32),
                   c->Full({1}, DType::kFloat32, 1));
}

std::string GatherRows(LossContext* c, const std::string& rows,
                       const std::string& index) {
  return c->Op("gather", {{"X", rows}, {"Index", index}}, {"Out"});
}

absl::StatusOr<std::string> Rpn(LossContext* c) {
  const job::RPNLoss& p = c->loss().rpn_loss();
  if (!c->ExpectRank(4, 4, "scores of anchors [N, A, H, W]"))
    return c->Give("");
  const Shape shape = c->prediction().shape;
  const std::string layer = c->loss().input();
  const std::string offsets = ResultOf(
      c, "offsets", p.has_offsets(), p.offsets(), layer, "offsets",
      {shape[0], shape[1] < 0 ? -1 : 4 * shape[1], shape[2], shape[3]});
  const std::string anchors =
      ResultOf(c, "anchors", p.has_anchors(), p.anchors(), layer, "anchors",
               {shape[2], shape[3], shape[1], 4});
  const std::string images = c->Field(p.image(), {shape[0], -1, -1, -1});
  if (!c->ok()) return c->Give("");
  const auto extent = KnownExtent(c->ShapeOf(images));
  if (!extent.ok()) return extent.status();
  const std::string truths =
      UnpadTrueBoxes(
          c, PixelsOfParts(c, c->Field(p.gt_box(), {shape[0], -1, 4}), *extent),
          "")
          .boxes;
  const std::string located = c->Op(
      "rpn_target_assign",
      {{"Anchor", c->Reshape(anchors, {-1, 4})},
       {"GtBoxes", truths},
       {"IsCrowd", NoCrowd(c, truths)},
       {"ImInfo", ForEachImage(c, c->x(),
                               {static_cast<double>(extent->height),
                                static_cast<double>(extent->width), 1})}},
      {"LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel",
       "BBoxInsideWeight"},
      {{"rpn_batch_size_per_im", p.rpn_batch_size_per_im()},
       {"rpn_straddle_thresh", static_cast<float>(p.rpn_straddle_thresh())},
       {"rpn_fg_fraction", static_cast<float>(p.rpn_fg_fraction())},
       {"rpn_positive_overlap", static_cast<float>(p.rpn_positive_overlap())},
       {"rpn_negative_overlap", static_cast<float>(p.rpn_negative_overlap())},
       {"use_random", p.use_random()}});
  const std::string scored = TemporaryBeside(located, 1);
  const std::string by_class =
      c->Op("sigmoid_cross_entropy_with_logits",
            {{"X", GatherRows(c, ByAnchor(c, c->x(), 1), scored)},
             {"Label", c->Cast(TemporaryBeside(located, 3), DType::kFloat32)}},
            {"Out"}, {{"ignore_index", int32_t{-100}}, {"normalize", false}});
  const std::string by_place = SmoothSum(
      c, GatherRows(c, ByAnchor(c, offsets, 4), located),
      TemporaryBeside(located, 2), TemporaryBeside(located, 4), p.sigma());
  return c->Give(c->Div(c->Add(c->Reduce("reduce_sum", by_class), by_place),
                        RowCount(c, by_class)));
}

absl::StatusOr<std::string> Rcnn(LossContext* c) {
  const job::RCNNLoss& p = c->loss().rcnn_loss();
  if (!c->ExpectRank(2, 2, "scores of regions [rows, classes + 1]"))
    return c->Give("");
  const Shape shape = c->prediction().shape;
  const int64_t wide = shape[1] < 0 ? -1 : 4 * shape[1];
  const std::string offsets =
      ResultOf(c, "offsets", p.has_offsets(), p.offsets(), c->loss().input(),
               "offsets", {shape[0], wide});
  const auto sampled = [&](const char* result, const Shape& expected) {
    return ResultOf(c, "samples", false, "", p.samples(), result, expected);
  };
  const std::string labels = sampled("labels", {-1, 1});
  const std::string targets = sampled("targets", {-1, wide});
  const std::string weights = sampled("weights", {-1, wide});
  const std::string by_class =
      c->SoftmaxCrossEntropy(c->x(), c->Cast(labels, DType::kInt64), false);
  const std::string by_place =
      SmoothSum(c, offsets, targets, weights, p.sigma());
  return c->Give(c->Div(c->Add(c->Reduce("reduce_sum", by_class), by_place),
                        RowCount(c, by_class)));
}

}  // namespace

void AddProposalLosses(LossTable* table) {
  (*table)[job::Loss::kRpnLoss] = Rpn;
  (*table)[job::Loss::kRcnnLoss] = Rcnn;
}

}  // namespace pd
