// SPDX-License-Identifier: Apache-2.0
// Detection: boxes of YOLO and SSD, suppression of overlapping ones, RoI align.
// NonMaxSuppression of ONNX gives rows (image, class, box), by image and class
// and in each by falling score, as PaddlePaddle orders its detections. Boxes
// whose corners are the wrong way round overlap nothing in PaddlePaddle and
// something in ONNX.
#include "libcore/base/error.h"
#include "libcore/deploy/onnx/box_nodes.h"
#include "libcore/deploy/onnx/converters.h"
#include "libcore/ops/detection/rois.h"

namespace pd {
namespace {

using Ints = std::vector<int64_t>;

// The boxes [n, m, 4] and scores [n, classes, m] of some images; with `own`
// each class has boxes of its own, [m, classes, 4] of all images, and the
// scores of the boxes of other images are the lowest.
struct Candidates {
  bool own = false;
  std::string boxes, scores;
  std::string ranked;                   // scores, the background's the lowest
  std::string images, classes, places;  // extents, scalars
  std::string lowest;
  DType dtype = DType::kFloat32;
};

// The scores [m, classes] of boxes of all images.
void ReadOwnBoxes(OnnxOp* op, Candidates* c) {
  c->own = true;
  c->dtype = op->TypeOf("Scores");
  c->boxes = op->In("BBoxes");
  const std::string rows = op->In("Scores");
  c->lowest = op->Const(kLowest, c->dtype);
  c->classes = Extent(op, rows, op->ShapeOf("Scores"), 1);
  c->places = op->Extent(rows, 0);
  c->images = op->Extent(op->In("RoisNum"), 0);
  const std::string image = ImageOfRows(op, op->In("RoisNum"), c->places);
  const std::string owned = op->Emit(
      "Equal", {op->Unsqueeze(op->Counting(c->images), {1, 2}), image});
  c->scores = c->ranked =
      op->Emit("Where", {owned, op->Transpose(rows, {1, 0}), c->lowest});
}

Candidates ReadCandidates(OnnxOp* op) {
  Candidates c;
  const Shape boxes = op->ShapeOf("BBoxes"), scores = op->ShapeOf("Scores");
  const bool own = scores.size() == 2 && boxes.size() == 3 && boxes[2] == 4 &&
                   op->Has("RoisNum");
  if (!own && (scores.size() != 3 || boxes.size() != 3 ||
               (boxes[2] != 4 && boxes[2] != -1))) {
    op->Fail(Unimplemented(
        "boxes of shape %s with scores of shape %s; ONNX has [n, m, 4] with "
        "[n, classes, m] or, with 'RoisNum', [m, classes, 4] with [m, "
        "classes], and no polygons",
        ToString(boxes), ToString(scores)));
    return c;
  }
  if (own) {
    ReadOwnBoxes(op, &c);
  } else {
    op->Ignore("RoisNum");
    c.dtype = op->TypeOf("Scores");
    c.boxes = op->In("BBoxes");
    c.scores = c.ranked = op->In("Scores");
    c.images = Extent(op, c.scores, scores, 0);
    c.classes = Extent(op, c.scores, scores, 1);
    c.places = Extent(op, c.scores, scores, 2);
    c.lowest = op->Const(kLowest, c.dtype);
  }
  const int64_t background = op->Int("background_label");
  if (background >= 0) {
    const std::string is_it =
        op->Emit("Equal", {op->Counting(c.classes), op->ConstInt(background)});
    c.ranked =
        op->Emit("Where", {op->Unsqueeze(is_it, {1}), c.lowest, c.scores});
  }
  return c;
}

// Detections, each an element of four vectors.
struct Detections {
  std::string image, label, place, score;
};

void GiveDetections(OnnxOp* op, const Candidates& c, const Detections& d,
                    const char* count_slot) {
  const std::string at =
      op->Emit("Concat",
               {op->Unsqueeze(c.own ? d.place : d.image, {1}),
                op->Unsqueeze(c.own ? d.label : d.place, {1})},
               {{"axis", int64_t{1}}});
  op->Give("Out", "Concat",
           {op->Unsqueeze(op->Cast(d.label, c.dtype), {1}),
            op->Unsqueeze(d.score, {1}), op->Emit("GatherND", {c.boxes, at})},
           {{"axis", int64_t{1}}});
  if (op->HasOut("Index")) {
    const std::string index =
        c.own ? Add(op, Mul(op, d.place, c.classes), d.label)
              : Add(op, Mul(op, d.image, c.places), d.place);
    op->Alias("Index",
              op->Unsqueeze(op->Cast(index, op->OutVar("Index").dtype), {1}));
  }
  if (op->HasOut(count_slot)) GiveCounts(op, d.image, c.images, count_slot);
}

// The rows of `selected` (image, class, box) that are the best `keep` of their
// image: their scores are put at their places among those of all boxes.
std::string KeepBest(OnnxOp* op, const Candidates& c,
                     const std::string& selected, int64_t keep) {
  const std::string of_image = Mul(op, c.classes, c.places);
  const std::string in_image = Add(
      op, Mul(op, Column(op, selected, 1), c.places), Column(op, selected, 2));
  const std::string at =
      Add(op, Mul(op, Column(op, selected, 0), of_image), in_image);
  const std::string all = op->Reshape(c.scores, {-1});
  const std::string scores =
      op->Emit("ScatterElements",
               {op->Emit("Expand", {c.lowest, op->Emit("Shape", {all})}), at,
                op->Emit("Gather", {all, at}, {{"axis", int64_t{0}}})},
               {{"axis", int64_t{0}}});
  const std::string by_image =
      op->Emit("Reshape", {scores, Vector(op, {c.images, of_image})});
  const std::string best = TopK(op, by_image, AtMost(op, keep, of_image), 1)[1];
  const std::string zero = op->Const(0, DType::kFloat32);
  const std::string one = op->Const(1, DType::kFloat32);
  const std::string mask =
      op->Emit("ScatterElements",
               {op->Emit("Expand", {zero, op->Emit("Shape", {by_image})}), best,
                op->Emit("Expand", {one, op->Emit("Shape", {best})})},
               {{"axis", int64_t{1}}});
  const std::string kept =
      op->Emit("Gather", {op->Reshape(mask, {-1}), at}, {{"axis", int64_t{0}}});
  return op->Emit("Compress", {selected, op->Cast(kept, DType::kBool)},
                  {{"axis", int64_t{0}}});
}

// The rows (image, class, box) that are left. Where classes have boxes of their
// own, each image and class is an image of ONNX's operator.
std::string Suppressed(OnnxOp* op, const Candidates& c,
                       const std::string& boxes, const std::string& ranked) {
  std::string all_boxes = boxes, all_scores = ranked;
  if (c.own) {
    const std::string four = op->ConstInt(4);
    const std::string spread =
        op->Emit("Expand", {op->Transpose(boxes, {1, 0, 2}),
                            Vector(op, {c.images, c.classes, c.places, four})});
    const std::string pairs = Mul(op, c.images, c.classes);
    all_boxes =
        op->Emit("Reshape", {spread, Vector(op, {pairs, c.places, four})});
    all_scores = op->Emit(
        "Reshape", {ranked, Vector(op, {pairs, op->ConstInt(1), c.places})});
  }
  const std::string selected = op->Emit(
      "NonMaxSuppression",
      {all_boxes, all_scores,
       c.own ? op->ConstInts({kAllBoxes}) : op->Reshape(c.places, {1}),
       op->ConstFloats({static_cast<float>(op->Float("nms_threshold"))}),
       op->ConstFloats({static_cast<float>(op->Float("score_threshold"))})});
  if (!c.own) return selected;
  const std::string pair = Column(op, selected, 0);
  const std::string image = Div(op, pair, c.classes);
  OnnxValues columns;
  for (const std::string& column :
       {image, Sub(op, pair, Mul(op, image, c.classes)),
        Column(op, selected, 2)})
    columns.push_back(op->Unsqueeze(column, {1}));
  return op->Emit("Concat", columns, {{"axis", int64_t{1}}});
}

// Rows in the order of their images, classes and places: what PaddlePaddle
// gives where classes have boxes of their own.
std::string ByPlace(OnnxOp* op, const Candidates& c,
                    const std::string& selected) {
  const std::string order =
      Add(op,
          Mul(op,
              Add(op, Mul(op, Column(op, selected, 0), c.classes),
                  Column(op, selected, 1)),
              c.places),
          Column(op, selected, 2));
  const OnnxValues sorted =
      op->EmitSeveral(2, "TopK", {order, op->Emit("Shape", {order})},
                      {{"axis", int64_t{0}}, {"largest", int64_t{0}}});
  return op->Emit("Gather", {selected, sorted[1]}, {{"axis", int64_t{0}}});
}

void ConvertMulticlassNms(OnnxOp* op) {
  const double threshold = op->Float("nms_threshold");
  if (op->Float("nms_eta") < 1 && threshold > 0.5) {
    op->Fail(Unimplemented(
        "attr 'nms_eta' is %g; ONNX's NonMaxSuppression has one threshold",
        op->Float("nms_eta")));
    return;
  }
  if (!(threshold >= 0 && threshold <= 1)) {
    op->Fail(Unimplemented("attr 'nms_threshold' is %g; ONNX takes 0 to 1",
                           threshold));
    return;
  }
  const Candidates c = ReadCandidates(op);
  if (!op->status().ok()) return;
  std::string ranked = c.ranked;
  const int64_t top_k = op->Int("nms_top_k");
  const int64_t places = c.own ? -1 : op->ShapeOf("Scores")[2];
  if (top_k >= 0 && (places < 0 || top_k < places)) {
    const OnnxValues best = TopK(op, ranked, AtMost(op, top_k, c.places), 2);
    ranked =
        op->Emit("ScatterElements",
                 {op->Emit("Expand", {c.lowest, op->Emit("Shape", {ranked})}),
                  best[1], best[0]},
                 {{"axis", int64_t{2}}});
  }
  std::string boxes = c.boxes;
  if (!op->Bool("normalized"))  // corners name the last pixel
    boxes = Add(op, boxes, op->Cast(op->ConstFloats({0, 0, 1, 1}), c.dtype));
  std::string scores = c.scores;
  if (c.dtype != DType::kFloat32) {
    boxes = op->Cast(boxes, DType::kFloat32);
    ranked = op->Cast(ranked, DType::kFloat32);
  }
  std::string selected = Suppressed(op, c, boxes, ranked);
  const int64_t keep = op->Int("keep_top_k");
  if (keep >= 0) selected = KeepBest(op, c, selected, keep);
  if (c.own) selected = ByPlace(op, c, selected);
  Detections d;
  d.image = Column(op, selected, 0);
  d.label = Column(op, selected, 1);
  d.place = Column(op, selected, 2);
  d.score = op->Emit("GatherND", {scores, selected});
  GiveDetections(op, c, d, "NmsRoisNum");
}

// Both corners' product of extents, 0 where the corners are the wrong way
// round.
std::string Area(OnnxOp* op, const std::string& low, const std::string& high,
                 const std::string& extra, DType dtype) {
  const std::string fits =
      op->Cast(op->Emit("Not", {op->Emit("Less", {high, low})}), dtype);
  return op->Reduce("ReduceProd",
                    Mul(op, Add(op, Sub(op, high, low), extra), fits), {-1},
                    false);
}

// Intersection over union of all pairs of boxes [n, classes, k, 4]: [n,
// classes, k, k].
std::string Overlaps(OnnxOp* op, const std::string& boxes, DType dtype) {
  const std::string extra = op->Const(op->Bool("normalized") ? 0 : 1, dtype);
  const std::string low = op->Slice(boxes, {3}, {0}, {2});
  const std::string high = op->Slice(boxes, {3}, {2}, {4});
  const std::string area = Area(op, low, high, extra, dtype);
  const std::string common = Area(
      op, op->Emit("Max", {op->Unsqueeze(low, {3}), op->Unsqueeze(low, {2})}),
      op->Emit("Min", {op->Unsqueeze(high, {3}), op->Unsqueeze(high, {2})}),
      extra, dtype);
  const std::string both = Sub(
      op, Add(op, op->Unsqueeze(area, {3}), op->Unsqueeze(area, {2})), common);
  const std::string none = op->Emit("Equal", {common, op->Const(0, dtype)});
  return Div(op, common, op->Emit("Where", {none, op->Const(1, dtype), both}));
}

// The factors of the scores [n, classes, k], which fall.
std::string Decay(OnnxOp* op, const std::string& boxes, const std::string& k,
                  DType dtype) {
  const std::string one = op->Const(1, dtype);
  const std::string order = op->Counting(k);
  const std::string better =  // [k, k]: the second box of a pair is
      op->Emit("Less", {order, op->Unsqueeze(order, {1})});
  const std::string iou =
      Mul(op, Overlaps(op, boxes, dtype), op->Cast(better, dtype));
  const std::string most =  // of the second box's own
      op->Unsqueeze(op->Reduce("ReduceMax", iou, {3}, false), {2});
  std::string decay;
  if (op->Bool("use_gaussian")) {
    decay = op->Emit("Exp",
                     {Mul(op, Sub(op, Mul(op, most, most), Mul(op, iou, iou)),
                          op->Const(op->Float("gaussian_sigma"), dtype))});
  } else {
    const std::string rest = Sub(op, one, most);
    const std::string none = op->Emit("Equal", {rest, op->Const(0, dtype)});
    decay = op->Emit("Where", {none, one, Div(op, Sub(op, one, iou), rest)});
  }
  return op->Reduce("ReduceMin", op->Emit("Where", {better, decay, one}), {3},
                    false);
}

void ConvertMatrixNms(OnnxOp* op) {
  const Candidates c = ReadCandidates(op);
  if (!op->status().ok()) return;
  const std::string k = AtMost(op, op->Int("nms_top_k"), c.places);
  const OnnxValues best = TopK(op, c.ranked, k, 2);  // [n, classes, k]
  const std::string first =
      Mul(op, op->Counting(c.images), c.places);  // row of an image
  const std::string rows = Add(op, best[1], op->Unsqueeze(first, {1, 2}));
  const std::string boxes = op->Emit(
      "Gather", {op->Reshape(c.boxes, {-1, 4}), rows}, {{"axis", int64_t{0}}});
  const std::string scores = Mul(op, best[0], Decay(op, boxes, k, c.dtype));
  const std::string found = op->Emit(
      "And",
      {op->Emit("Greater",
                {best[0], op->Const(op->Float("score_threshold"), c.dtype)}),
       op->Emit("Greater",
                {scores, op->Const(op->Float("post_threshold"), c.dtype)})});
  const std::string of_image = Mul(op, c.classes, k);
  const std::string by_image = Vector(op, {c.images, of_image});
  const OnnxValues kept =
      TopK(op,
           op->Emit("Reshape",
                    {op->Emit("Where", {found, scores, c.lowest}), by_image}),
           AtMost(op, op->Int("keep_top_k"), of_image), 1);
  const std::string place = op->Emit(
      "GatherElements", {op->Emit("Reshape", {best[1], by_image}), kept[1]},
      {{"axis", int64_t{1}}});
  const std::string image =
      op->Emit("Expand", {op->Unsqueeze(op->Counting(c.images), {1}),
                          op->Emit("Shape", {kept[1]})});
  const std::string real =
      op->Reshape(op->Emit("Greater", {kept[0], c.lowest}), {-1});
  const auto of_real = [&](const std::string& x) {
    return op->Emit("Compress", {op->Reshape(x, {-1}), real},
                    {{"axis", int64_t{0}}});
  };
  GiveDetections(op, c,
                 {of_real(image), of_real(Div(op, kept[1], k)), of_real(place),
                  of_real(kept[0])},
                 "RoisNum");
}

// One prediction of each anchor and cell [n, anchors, h, w].
struct YoloHead {
  std::string values;      // [n, anchors, 5 + classes, h, w]
  std::string extents[2];  // w, h: scalars
  std::string images[2];   // extents of the images: [n, 1, 1, 1]
  std::string zero;
  DType dtype = DType::kFloat32;

  std::string Value(OnnxOp* op, int64_t i) const {
    return op->Emit("Gather", {values, op->ConstInt(i)},
                    {{"axis", int64_t{2}}});
  }
};

// Both ends of the boxes along one axis: 0 across, 1 down.
std::pair<std::string, std::string> YoloEnds(OnnxOp* op, const YoloHead& head,
                                             int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  const double scale = op->Float("scale_x_y");
  const auto number = [&](double v) { return op->Const(v, head.dtype); };
  std::string cells = op->Cast(op->Counting(head.extents[at]), head.dtype);
  if (axis == 1) cells = op->Unsqueeze(cells, {1});
  const std::string grid = op->Cast(head.extents[at], head.dtype);
  const std::string inside =
      Mul(op, op->Emit("Sigmoid", {head.Value(op, axis)}), number(scale));
  const std::string centre =
      Div(op,
          Mul(op, Add(op, Add(op, cells, inside), number(-0.5 * (scale - 1))),
              head.images[at]),
          grid);
  const Ints anchors = op->Ints("anchors");
  std::vector<float> own;
  for (size_t i = at; i < anchors.size(); i += 2)
    own.push_back(static_cast<float>(anchors[i]));
  const std::string sizes =
      op->Cast(op->Reshape(op->ConstFloats(own), {-1, 1, 1}), head.dtype);
  const std::string extent = Div(
      op,
      Mul(op, Mul(op, op->Emit("Exp", {head.Value(op, 2 + axis)}), sizes),
          head.images[at]),
      Mul(op, grid, number(static_cast<double>(op->Int("downsample_ratio")))));
  const std::string half = Div(op, extent, number(2));
  std::string low = Sub(op, centre, half), high = Add(op, centre, half);
  if (op->Bool("clip_bbox")) {
    low = op->Emit("Max", {low, head.zero});
    high = op->Emit("Min", {high, Sub(op, head.images[at], number(1))});
  }
  return {low, high};
}

void ConvertYoloBox(OnnxOp* op) {
  const Shape& shape = op->ShapeOf("X");
  const auto anchors = static_cast<int64_t>(op->Ints("anchors").size()) / 2;
  const int64_t classes = op->Int("class_num");
  if (shape.size() != 4 || anchors < 1 || classes < 1) {
    op->Fail(InvalidArgument("X of shape %s, %d anchors, %d classes",
                             ToString(shape), anchors, classes));
    return;
  }
  YoloHead head;
  head.dtype = op->TypeOf("X");
  const std::string x = op->In("X");
  head.zero = op->Const(0, head.dtype);
  head.extents[0] = Extent(op, x, shape, 3);
  head.extents[1] = Extent(op, x, shape, 2);
  const std::string sizes = op->Cast(op->In("ImgSize"), head.dtype);
  for (const int64_t axis : {0, 1})
    head.images[axis] = op->Unsqueeze(Column(op, sizes, 1 - axis), {1, 2, 3});
  const bool iou_aware = op->Bool("iou_aware");
  const std::string rest =
      iou_aware ? op->Slice(x, {1}, {anchors}, {anchors * (classes + 6)}) : x;
  head.values =
      op->Emit("Reshape",
               {rest, op->Emit("Concat",
                               {op->ConstInts({0, anchors, classes + 5}),
                                Vector(op, {head.extents[1], head.extents[0]})},
                               {{"axis", int64_t{0}}})});
  std::string confidence = op->Emit("Sigmoid", {head.Value(op, 4)});
  if (iou_aware) {
    const double factor = op->Float("iou_aware_factor");
    const std::string iou =
        op->Emit("Sigmoid", {op->Slice(x, {1}, {0}, {anchors})});
    confidence = Mul(
        op, op->Emit("Pow", {confidence, op->Const(1 - factor, head.dtype)}),
        op->Emit("Pow", {iou, op->Const(factor, head.dtype)}));
  }
  const std::string unsure = op->Emit(
      "Less", {confidence, op->Const(op->Float("conf_thresh"), head.dtype)});
  const auto across = YoloEnds(op, head, 0), down = YoloEnds(op, head, 1);
  OnnxValues ends;
  for (const std::string& end :
       {across.first, down.first, across.second, down.second})
    ends.push_back(op->Unsqueeze(end, {4}));
  const std::string boxes = op->Emit("Concat", ends, {{"axis", int64_t{4}}});
  op->Give("Boxes", "Reshape",
           {op->Emit("Where", {op->Unsqueeze(unsure, {4}), head.zero, boxes}),
            op->ConstInts({0, -1, 4})});
  const std::string scores = Mul(
      op,
      op->Emit("Sigmoid", {op->Slice(head.values, {2}, {5}, {5 + classes})}),
      op->Unsqueeze(confidence, {2}));
  op->Give("Scores", "Reshape",
           {op->Transpose(op->Emit("Where", {op->Unsqueeze(unsure, {2}),
                                             head.zero, scores}),
                          {0, 1, 3, 4, 2}),
            op->ConstInts({0, -1, classes})});
}

// Boxes around cells are computed before (fixed_boxes.h), unless they hang on
// what is known only when the model runs.
void RefuseBoxesOfCells(OnnxOp* op) {
  op->Ignore("Input");
  op->Ignore("Image");
  op->Fail(Unimplemented(
      "Input of shape %s; ONNX gets its boxes as constants, which needs known "
      "heights and widths",
      ToString(op->ShapeOf("Input"))));
}

// Boxes as centres and sizes [..., 2], across and down.
struct CentredBoxes {
  std::string centre, size;
};

CentredBoxes Centred(OnnxOp* op, const std::string& boxes, int64_t rank,
                     const std::string& extra, const std::string& half) {
  const std::string low = op->Slice(boxes, {rank - 1}, {0}, {2});
  const std::string high = op->Slice(boxes, {rank - 1}, {2}, {4});
  const std::string size = Add(op, Sub(op, high, low), extra);
  return {Add(op, low, Mul(op, size, half)), size};
}

// Offsets from prior boxes, in units of their variances, or the opposite.
void ConvertBoxCoder(OnnxOp* op) {
  const DType dtype = op->TypeOf("TargetBox");
  const auto number = [&](double v) { return op->Const(v, dtype); };
  const bool encodes = op->Str("code_type") == "encode_center_size";
  const std::string extra = number(op->Bool("box_normalized") ? 0 : 1);
  const std::string half = number(0.5);
  // The axis of [N, M, 4] that the priors do not lie along.
  const int64_t other = encodes ? 0 : op->Int("axis");
  const CentredBoxes prior =
      Centred(op, op->Unsqueeze(op->In("PriorBox"), {other}), 3, extra, half);
  std::string variance;
  if (op->Has("PriorBoxVar")) {
    variance = op->Unsqueeze(op->In("PriorBoxVar"), {other});
  } else if (!op->Floats("variance").empty()) {
    variance = op->Cast(
        op->Reshape(op->ConstFloats(op->Floats("variance")), {1, 1, 4}), dtype);
  }
  std::string target = op->In("TargetBox");
  if (encodes) {
    const std::string boxes = op->Unsqueeze(target, {1});
    CentredBoxes box = Centred(op, boxes, 3, extra, half);
    // PaddlePaddle takes the middle of the corners here.
    box.centre = Mul(op,
                     Add(op, op->Slice(boxes, {2}, {0}, {2}),
                         op->Slice(boxes, {2}, {2}, {4})),
                     half);
    const std::string sizes =
        op->Emit("Log", {op->Emit("Abs", {Div(op, box.size, prior.size)})});
    const OnnxValues parts = {
        Div(op, Sub(op, box.centre, prior.centre), prior.size), sizes};
    if (variance.empty()) {
      op->Give("OutputBox", "Concat", parts, {{"axis", int64_t{2}}});
      return;
    }
    op->Give("OutputBox", "Div",
             {op->Emit("Concat", parts, {{"axis", int64_t{2}}}), variance});
    return;
  }
  if (!variance.empty()) target = Mul(op, target, variance);
  const std::string centre = Add(
      op, Mul(op, op->Slice(target, {2}, {0}, {2}), prior.size), prior.centre);
  const std::string reach = Mul(
      op,
      Mul(op, op->Emit("Exp", {op->Slice(target, {2}, {2}, {4})}), prior.size),
      half);
  op->Give("OutputBox", "Concat",
           {Sub(op, centre, reach), Sub(op, Add(op, centre, reach), extra)},
           {{"axis", int64_t{2}}});
}

// The image of each roi.
std::string ImagesOfRois(OnnxOp* op, const std::string& rois) {
  const std::string count = op->Extent(rois, 0);
  if (op->Has("RoisNum")) return ImageOfRows(op, op->In("RoisNum"), count);
  if (op->ShapeOf("X").empty() || op->ShapeOf("X")[0] != 1)
    op->Fail(Unimplemented(
        "X of shape %s without 'RoisNum'; the LoD that tells whose the rois "
        "are is not in ONNX, so there must be one image",
        ToString(op->ShapeOf("X"))));
  return op->Emit("Expand", {op->ConstInt(0), op->Reshape(count, {1})});
}

void ConvertRoiAlign(OnnxOp* op) {
  const std::string rois = op->In("ROIs");
  OnnxAttrs attrs = {
      {"mode",
       std::string(op->desc().AttrOr(kRoiAlignMax, false) ? "max" : "avg")},
      {"output_height", op->Int("pooled_height")},
      {"output_width", op->Int("pooled_width")},
      {"sampling_ratio", std::max<int64_t>(op->Int("sampling_ratio"), 0)},
      {"spatial_scale", static_cast<float>(op->Float("spatial_scale"))}};
  const bool aligned = op->Bool("aligned");
  if (op->opset() >= 16)
    attrs.emplace_back(
        "coordinate_transformation_mode",
        std::string(aligned ? "half_pixel" : "output_half_pixel"));
  else if (aligned)
    op->Fail(Unimplemented("attr 'aligned' is true"));
  op->Give("Out", "RoiAlign", {op->In("X"), rois, ImagesOfRois(op, rois)},
           attrs);
}

}  // namespace

OnnxConverters DetectionConverters() {
  return {
      {"anchor_generator", RefuseBoxesOfCells},
      {"box_coder", ConvertBoxCoder},
      {"density_prior_box", RefuseBoxesOfCells},
      {"matrix_nms", ConvertMatrixNms},
      {"multiclass_nms2", ConvertMulticlassNms},
      {"multiclass_nms3", ConvertMulticlassNms},
      {"prior_box", RefuseBoxesOfCells},
      {"roi_align", ConvertRoiAlign},
      {"yolo_box", ConvertYoloBox},
  };
}

}  // namespace pd
