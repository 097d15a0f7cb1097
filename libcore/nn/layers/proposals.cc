// SPDX-License-Identifier: Apache-2.0
// Faster R-CNN (Ren et al. 2015): where something may be (rpn_head,
// generate_proposals), which of these regions are learnt from
// (generate_proposal_labels), what is in them (rcnn_head, rcnn_output).
// Coordinates of regions are pixels, the last of which belongs to the box; what
// goes in and out of the network is parts of the image.
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/sublayers.h"
#include "libcore/nn/op_chain.h"
#include "libcore/nn/true_boxes.h"

namespace pd {
namespace {

template <typename List>
std::vector<float> NumbersOr(const List& list, std::vector<float> otherwise) {
  if (list.empty()) return otherwise;
  std::vector<float> numbers;
  for (const double value : list) numbers.push_back(static_cast<float>(value));
  return numbers;
}

const std::vector<float> kUnits = {0.1f, 0.1f, 0.2f, 0.2f};

// A convolution called `path`, with zero padding.
absl::StatusOr<std::string> RpnConvolution(LayerContext* c, const char* path,
                                           const std::string& x, int64_t out,
                                           int32_t kernel) {
  const LayerContext::Sublayer sublayer(c, "conv2d", path);
  return Convolve({out, kernel, 1, kernel / 2, NormalInitializer(0.01)}, x, c);
}

absl::StatusOr<std::string> BuildRpnHead(LayerContext* c) {
  const job::RPNHead& p = c->layer().rpn_head();
  PD_RETURN_IF_ERROR(ExpectSpace(c, Space()));
  if (p.kernel_size() % 2 == 0)
    return InvalidArgument(
        "'kernel_size' is %d; the maps keep their size where it is odd",
        p.kernel_size());
  PD_ASSIGN_OR_RETURN(const int64_t in,
                      c->Extent(1, nullptr, "input channels", "channels"));
  OpDesc op;
  op.type = "anchor_generator";
  op.SetInput("Input", {c->input()});
  op.attrs = {
      {"anchor_sizes", NumbersOr(p.anchor_sizes(), {64, 128, 256, 512})},
      {"aspect_ratios", NumbersOr(p.aspect_ratios(), {0.5f, 1, 2})},
      {"variances", std::vector<float>{1, 1, 1, 1}},
      {"stride", NumbersOr(p.stride(), {16, 16})},
      {"offset", static_cast<float>(p.offset())}};
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> anchors,
                      c->AppendAll(std::move(op), {"Anchors", "Variances"}));
  const int64_t count = c->ShapeOf(anchors[0])[2];
  PD_ASSIGN_OR_RETURN(
      const std::string map,
      RpnConvolution(c, "conv", c->input(),
                     p.has_channels() ? p.channels() : in, p.kernel_size()));
  PD_ASSIGN_OR_RETURN(const std::string active, c->Unary("relu", map));
  PD_ASSIGN_OR_RETURN(const std::string scores,
                      RpnConvolution(c, "score", active, count, 1));
  PD_ASSIGN_OR_RETURN(const std::string offsets,
                      RpnConvolution(c, "delta", active, 4 * count, 1));
  PD_ASSIGN_OR_RETURN(const std::string probabilities,
                      c->Unary("sigmoid", scores));
  c->AddOutput("probabilities", probabilities);
  c->AddOutput("offsets", offsets);
  c->AddOutput("anchors", anchors[0]);
  c->AddOutput("variances", anchors[1]);
  return scores;
}

absl::StatusOr<std::string> BuildGenerateProposals(LayerContext* c) {
  const job::GenerateProposals& p = c->layer().generate_proposals();
  for (size_t i = 0; i < 2; ++i) PD_RETURN_IF_ERROR(ExpectSpace(c, Space(), i));
  std::string sizes = c->input(2);
  if (c->shape(2).size() == 4) {
    PD_ASSIGN_OR_RETURN(const ImageExtent image, KnownExtent(c->shape(2)));
    OpChain ops(c->main());
    PD_ASSIGN_OR_RETURN(
        sizes, ops.Give(ForEachImage(&ops, c->input(2),
                                     {static_cast<double>(image.height),
                                      static_cast<double>(image.width)})));
  }
  OpDesc op;
  op.type = "generate_proposals_v2";
  op.SetInput("Scores", {c->input(0)});
  op.SetInput("BboxDeltas", {c->input(1)});
  op.SetInput("ImShape", {sizes});
  op.SetInput("Anchors", {c->input(3)});
  op.SetInput("Variances", {c->input(4)});
  op.attrs = {{"pre_nms_topN", p.pre_nms_top_n()},
              {"post_nms_topN", p.post_nms_top_n()},
              {"nms_thresh", static_cast<float>(p.nms_thresh())},
              {"min_size", static_cast<float>(p.min_size())},
              {"eta", static_cast<float>(p.eta())},
              {"pixel_offset", p.pixel_offset()}};
  PD_ASSIGN_OR_RETURN(
      const std::vector<std::string> made,
      c->AppendAll(std::move(op), {"RpnRois", "RpnRoiProbs", "RpnRoisNum"}));
  c->AddOutput("scores", made[1]);
  c->AddOutput("rois_num", made[2]);
  return made[0];
}

// How many rows each sequence has, int32 [N].
std::string CountsOf(OpChain* ops, const std::string& rows) {
  const std::string ones = ops->Scale(ops->Cast(rows, DType::kFloat32), 0, 1);
  const std::string sums =
      ops->Op("sequence_pool", {{"X", ones}}, {"Out", "MaxIndex"},
              {{"pooltype", std::string("SUM")},
               {"is_test", false},
               {"pad_value", 0.0f}});
  return ops->Cast(ops->Squeeze(sums, 1), DType::kInt32);
}

// Inputs: proposals, true boxes, their classes, images.
absl::StatusOr<std::string> BuildProposalLabels(LayerContext* c) {
  const job::GenerateProposalLabels& p = c->layer().generate_proposal_labels();
  const Shape &rois = c->shape(0), &boxes = c->shape(1);
  if (rois.size() != 2 || rois[1] != 4)
    return c->Misfit("boxes [rows, 4] of generate_proposals");
  if (boxes.size() != 3 || (boxes[2] != 4 && boxes[2] >= 0))
    return c->Misfit("true boxes [N, B, 4] as second input", 1);
  if (c->shape(2).size() != 2 || !IsInteger(c->dtype(2)))
    return c->Misfit("integers [N, B] of the true boxes' classes", 2);
  const absl::StatusOr<ImageExtent> image = KnownExtent(c->shape(3));
  if (!image.ok()) return c->Misfit("images of a known size", 3);
  OpChain ops(c->main());
  const TrueBoxes truths =
      UnpadTrueBoxes(&ops, PixelsOfParts(&ops, c->input(1), *image),
                     ops.Cast(c->input(2), DType::kInt32));
  // Class 0 of the operator is the background.
  const std::string classes = ops.Scale(truths.labels, 1, 1);
  const std::string crowd = NoCrowd(&ops, truths.boxes);
  const std::string info = ForEachImage(&ops, c->input(3),
                                        {static_cast<double>(image->height),
                                         static_cast<double>(image->width), 1});
  PD_RETURN_IF_ERROR(ops.Give("").status());
  OpDesc op;
  op.type = "generate_proposal_labels";
  op.SetInput("RpnRois", {c->input(0)});
  op.SetInput("GtClasses", {classes});
  op.SetInput("IsCrowd", {crowd});
  op.SetInput("GtBoxes", {truths.boxes});
  op.SetInput("ImInfo", {info});
  op.attrs = {{"batch_size_per_im", p.batch_size_per_im()},
              {"class_nums", p.num_classes() + 1},
              {"fg_fraction", static_cast<float>(p.fg_fraction())},
              {"fg_thresh", static_cast<float>(p.fg_thresh())},
              {"bg_thresh_hi", static_cast<float>(p.bg_thresh_hi())},
              {"bg_thresh_lo", static_cast<float>(p.bg_thresh_lo())},
              {"bbox_reg_weights", NumbersOr(p.bbox_reg_weights(), kUnits)},
              {"use_random", p.use_random()},
              {"is_cascade_rcnn", false},
              {"is_cls_agnostic", false}};
  PD_ASSIGN_OR_RETURN(
      const std::vector<std::string> made,
      c->AppendAll(std::move(op),
                   {"Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights",
                    "BboxOutsideWeights", "MaxOverlapWithGT"}));
  PD_ASSIGN_OR_RETURN(const std::string counts,
                      ops.Give(CountsOf(&ops, made[1])));
  c->AddOutput("rois_num", counts);
  c->AddOutput("labels", made[1]);
  c->AddOutput("targets", made[2]);
  c->AddOutput("weights", made[3]);
  return made[0];
}

absl::StatusOr<std::string> RcnnLinear(LayerContext* c, const char* path,
                                       int64_t in, int64_t out, double std) {
  const LayerContext::Sublayer sublayer(c, "linear", path);
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->Weight(job::ParamAttr(), {in, out}, NormalInitializer(std)));
  PD_ASSIGN_OR_RETURN(const std::string bias, c->Bias(job::ParamAttr(), {out}));
  OpDesc op;
  op.type = "matmul_v2";
  op.SetInput("X", {c->input()});
  op.SetInput("Y", {weight});
  op.attrs = {{"trans_x", false}, {"trans_y", false}};
  PD_ASSIGN_OR_RETURN(const std::string product,
                      c->Append(std::move(op), {"Out"}));
  return c->Binary("elementwise_add", product, bias);
}

absl::StatusOr<std::string> BuildRcnnHead(LayerContext* c) {
  const int64_t classes = int64_t{c->layer().rcnn_head().num_classes()} + 1;
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 2, "features [rows, C] of regions"));
  PD_ASSIGN_OR_RETURN(const int64_t in,
                      c->Extent(1, nullptr, "input features", "in_features"));
  PD_ASSIGN_OR_RETURN(const std::string scores,
                      RcnnLinear(c, "score", in, classes, 0.01));
  PD_ASSIGN_OR_RETURN(const std::string offsets,
                      RcnnLinear(c, "delta", in, 4 * classes, 0.001));
  c->AddOutput("offsets", offsets);
  return scores;
}

// The boxes [rows, classes, 4] that offsets mean, as parts of the image; the
// background has none.
std::string FoundBoxes(OpChain* ops, const std::string& rois,
                       const std::string& offsets, int32_t classes,
                       const std::vector<float>& units,
                       const ImageExtent& image) {
  const std::string decoded = ops->Op(
      "box_coder",
      {{"PriorBox", rois},
       {"TargetBox",
        ops->Op("slice", {{"Input", ops->Reshape(offsets, {-1, classes, 4})}},
                {"Out"},
                {{"axes", Ints{1}},
                 {"starts", Ints{1}},
                 {"ends", Ints{classes}}})}},
      {"OutputBox"},
      {{"code_type", std::string("decode_center_size")},
       {"box_normalized", false},
       {"axis", int32_t{1}},
       {"variance", units}});
  const double w = static_cast<double>(image.width) - 1;
  const double h = static_cast<double>(image.height) - 1;
  const std::string low =
      ops->Binary("elementwise_max", decoded,
                  ops->Values({4}, DType::kFloat32, {0, 0, 0, 0}));
  const std::string inside = ops->Binary(
      "elementwise_min", low, ops->Values({4}, DType::kFloat32, {w, h, w, h}));
  return PartsOfPixels(ops, inside, image);
}

// Inputs: scores, offsets, regions, how many each image has, images.
absl::StatusOr<std::string> BuildRcnnOutput(LayerContext* c) {
  const job::RCNNOutput& p = c->layer().rcnn_output();
  const Shape &scores = c->shape(0), &offsets = c->shape(1);
  if (scores.size() != 2 || scores[1] < 2)
    return c->Misfit("scores [rows, classes + 1]");
  if (offsets.size() != 2 || offsets[1] != 4 * scores[1])
    return c->Misfit(
        absl::StrCat("offsets [rows, ", 4 * scores[1], "] of the scores"), 1);
  if (c->shape(2).size() != 2 || c->shape(2)[1] != 4)
    return c->Misfit("boxes [rows, 4]", 2);
  if (c->shape(3).size() != 1 || c->dtype(3) != DType::kInt32)
    return c->Misfit("the number of boxes of each image, [N] of int32", 3);
  const absl::StatusOr<ImageExtent> image = KnownExtent(c->shape(4));
  if (!image.ok()) return c->Misfit("images of a known size", 4);
  const auto classes = static_cast<int32_t>(scores[1]);
  OpChain ops(c->main());
  const std::string boxes =
      FoundBoxes(&ops, c->input(2), c->input(1), classes,
                 NumbersOr(p.bbox_reg_weights(), kUnits), *image);
  const std::string real = ops.Op(
      "slice",
      {{"Input", ops.Unary("softmax", c->input(0), {{"axis", int32_t{-1}}})}},
      {"Out"},
      {{"axes", Ints{1}}, {"starts", Ints{1}}, {"ends", Ints{classes}}});
  PD_RETURN_IF_ERROR(ops.Give("").status());
  OpDesc op;
  op.type = "multiclass_nms3";
  op.SetInput("BBoxes", {boxes});
  op.SetInput("Scores", {real});
  op.SetInput("RoisNum", {c->input(3)});
  op.attrs = {{"background_label", int32_t{-1}},
              {"score_threshold", static_cast<float>(p.score_threshold())},
              {"nms_top_k", p.nms_top_k()},
              {"nms_threshold", static_cast<float>(p.nms_threshold())},
              {"keep_top_k", p.keep_top_k()},
              {"nms_eta", 1.0f},
              {"normalized", true}};
  PD_ASSIGN_OR_RETURN(
      const std::vector<std::string> made,
      c->AppendAll(std::move(op), {"Out", "Index", "NmsRoisNum"}));
  c->AddOutput("index", made[1]);
  c->AddOutput("rois_num", made[2]);
  return made[0];
}

}  // namespace

void AddProposalLayers(LayerTable* table) {
  (*table)[job::Layer::kRpnHead] = {BuildRpnHead};
  (*table)[job::Layer::kGenerateProposals] = {BuildGenerateProposals, 5, 5};
  (*table)[job::Layer::kGenerateProposalLabels] = {BuildProposalLabels, 4, 4};
  (*table)[job::Layer::kRcnnHead] = {BuildRcnnHead};
  (*table)[job::Layer::kRcnnOutput] = {BuildRcnnOutput, 5, 5};
}

}  // namespace pd
