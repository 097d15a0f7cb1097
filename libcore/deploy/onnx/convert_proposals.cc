// SPDX-License-Identifier: Apache-2.0
// Region proposals of Faster R-CNN: the best anchors of each image, moved,
// clipped to the image, without small ones, suppressed. Of equal scores
// PaddlePaddle takes the last, ONNX the first.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/box_nodes.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

// The best anchors [n, k, 4] of each image, their offsets and scores.
struct BestAnchors {
  std::string anchors, offsets, scores;
  std::string count;  // k, a scalar
  DType dtype = DType::kFloat32;
};

BestAnchors FindBestAnchors(OnnxOp* op) {
  BestAnchors best;
  best.dtype = op->TypeOf("Scores");
  const auto by_anchor = [&](const char* slot) {
    return op->Transpose(op->In(slot), {0, 2, 3, 1});
  };
  const std::string scores = op->Reshape(by_anchor("Scores"), {0, -1});
  const std::string offsets = op->Reshape(by_anchor("BboxDeltas"), {0, -1, 4});
  const int64_t before = op->Int("pre_nms_topN");
  best.count = AtMost(op, before > 0 ? before : -1, op->Extent(scores, 1));
  const OnnxValues top = TopK(op, scores, best.count, 1);
  const auto chosen = [&](const char* slot) {
    return op->Emit("Gather", {op->Reshape(op->In(slot), {-1, 4}), top[1]},
                    {{"axis", int64_t{0}}});
  };
  const std::string places = op->Unsqueeze(top[1], {2});
  const std::string four =
      op->Emit("Concat", {op->Emit("Shape", {top[1]}), op->ConstInts({4})},
               {{"axis", int64_t{0}}});
  best.scores = top[0];
  best.anchors = chosen("Anchors");
  best.offsets = Mul(
      op, chosen("Variances"),
      op->Emit("GatherElements", {offsets, op->Emit("Expand", {places, four})},
               {{"axis", int64_t{1}}}));
  return best;
}

// Widths and heights of the images [n, 1, 2].
std::string ImageSides(OnnxOp* op) {
  const std::string sizes =
      op->Emit("Gather", {op->In("ImShape"), op->ConstInts({1, 0})},
               {{"axis", int64_t{1}}});
  return op->Unsqueeze(sizes, {1});
}

// Both corners [n, k, 2].
struct Corners {
  std::string low, high;
};

Corners MoveAnchors(OnnxOp* op, const BestAnchors& best,
                    const std::string& sides, const std::string& extra) {
  const auto number = [&](double v) { return op->Const(v, best.dtype); };
  const std::string first = op->Slice(best.anchors, {2}, {0}, {2});
  const std::string size =
      Add(op, Sub(op, op->Slice(best.anchors, {2}, {2}, {4}), first), extra);
  const std::string centre = Add(
      op, Add(op, Mul(op, op->Slice(best.offsets, {2}, {0}, {2}), size), first),
      Mul(op, size, number(0.5)));
  const std::string growth =
      op->Emit("Exp", {op->Emit("Min", {op->Slice(best.offsets, {2}, {2}, {4}),
                                        number(std::log(1000.0 / 16.0))})});
  const std::string reach = Mul(op, Mul(op, growth, size), number(0.5));
  const std::string last = Sub(op, sides, extra);
  const auto clip = [&](const std::string& x) {
    return op->Emit("Max", {op->Emit("Min", {x, last}), number(0)});
  };
  return {clip(Sub(op, centre, reach)),
          clip(Sub(op, Add(op, centre, reach), extra))};
}

// Which boxes are large enough, and where pixels count have their centre in the
// image: bool [n, k].
std::string LargeOnes(OnnxOp* op, const Corners& box, const std::string& sides,
                      const std::string& extra, DType dtype) {
  const double least = std::max(op->Float("min_size"), 1.0);
  const std::string size = Add(op, Sub(op, box.high, box.low), extra);
  std::string fits =
      op->Emit("Not", {op->Emit("Less", {size, op->Const(least, dtype)})});
  if (op->Bool("pixel_offset")) {
    const std::string centre =
        Add(op, box.low, Mul(op, size, op->Const(0.5, dtype)));
    fits = op->Emit(
        "And", {fits, op->Emit("Not", {op->Emit("Greater", {centre, sides})})});
  }
  return op->Cast(
      op->Reduce("ReduceMin", op->Cast(fits, DType::kInt32), {2}, false),
      DType::kBool);
}

void ConvertGenerateProposals(OnnxOp* op) {
  const double threshold = op->Float("nms_thresh");
  if (!(threshold > 0 && threshold <= 1) ||
      (op->Float("eta") < 1 && threshold > 0.5)) {
    op->Fail(
        Unimplemented("attr 'nms_thresh' is %g and 'eta' %g; ONNX's "
                      "NonMaxSuppression has one "
                      "threshold above 0 and up to 1",
                      threshold, op->Float("eta")));
    return;
  }
  const BestAnchors best = FindBestAnchors(op);
  const DType dtype = best.dtype;
  const std::string extra = op->Const(op->Bool("pixel_offset") ? 1 : 0, dtype);
  const std::string sides = ImageSides(op);
  const Corners corners = MoveAnchors(op, best, sides, extra);
  const std::string large = LargeOnes(op, corners, sides, extra, dtype);
  // An image without any has one box of zeros: it stands behind the others,
  // with a score where they have none.
  const std::string zero = op->Const(0, dtype);
  const std::string lowest = op->Const(kLowest, dtype);
  const std::string some = op->Cast(
      op->Reduce("ReduceMax", op->Cast(large, DType::kInt32), {1}, true),
      DType::kBool);
  const std::string scores =
      op->Emit("Concat",
               {op->Emit("Where", {large, best.scores, lowest}),
                op->Emit("Where", {some, lowest, zero})},
               {{"axis", int64_t{1}}});
  const std::string boxes = op->Pad(
      op->Emit("Concat", {corners.low, corners.high}, {{"axis", int64_t{2}}}),
      {0, 0, 0, 0, 1, 0}, "constant", 0, dtype);
  // Corners name the last pixel.
  const std::string whole = Add(
      op, boxes,
      op->Emit("Mul", {extra, op->Cast(op->ConstFloats({0, 0, 1, 1}), dtype)}));
  const int64_t after = op->Int("post_nms_topN");
  const std::string selected =
      op->Emit("NonMaxSuppression",
               {op->Cast(whole, DType::kFloat32),
                op->Cast(op->Unsqueeze(scores, {1}), DType::kFloat32),
                op->ConstInts({after > 0 ? after : kAllBoxes}),
                op->ConstFloats({static_cast<float>(threshold)}),
                op->ConstFloats({static_cast<float>(kLowest)})});
  const std::string image = Column(op, selected, 0);
  const std::string at = op->Emit(
      "Concat",
      {op->Unsqueeze(image, {1}), op->Unsqueeze(Column(op, selected, 2), {1})},
      {{"axis", int64_t{1}}});
  op->Give("RpnRois", "GatherND", {boxes, at});
  op->Alias("RpnRoiProbs",
            op->Unsqueeze(op->Emit("GatherND", {scores, at}), {1}));
  if (op->HasOut("RpnRoisNum"))
    GiveCounts(op, image, op->Extent(scores, 0), "RpnRoisNum");
}

}  // namespace

OnnxConverters ProposalConverters() {
  return {{"generate_proposals_v2", ConvertGenerateProposals}};
}

}  // namespace pd
