// SPDX-License-Identifier: Apache-2.0
// Training targets of the masks of Mask R-CNN (K. He et al., 2017). GtSegms has
// polygons, points [x, y] by polygon, ground truth and image. A roi with a
// label above 0 gets, in the class of its label, the mask of the ground truth
// whose polygons' box overlaps it most, `resolution` pixels square inside of
// the roi; all other numbers of MaskInt32 are -1, to be ignored. Ground truths
// of class 0 and crowds have no mask. MaskRois and RoiHasMaskInt32 are those
// rois and their numbers in the image; an image without any gets one row for
// the background.
// An outline is drawn five times as fine, as the COCO tools do, and a pixel is
// inside where the number of its crossings above, column by column, is odd.
// LoD by image. No gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "libcore/base/memory_limit.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/box_targets.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

constexpr double kFiner = 5;
// An outline far outside of a tiny roi has as many points.
constexpr int64_t kMostOutline = int64_t{1} << 26;

// Draws outlines into a square of `side` pixels.
class PolygonMask {
 public:
  explicit PolygonMask(int64_t side)
      : side_(side), mask_(static_cast<size_t>(side * side)) {}

  // Adds the inside of a polygon: n points [x, y] in pixels of the square.
  absl::Status Add(const std::vector<float>& points);
  bool At(int64_t row, int64_t column) const {
    return mask_[static_cast<size_t>(column * side_ + row)] != 0;
  }

 private:
  struct Point {
    int64_t x, y;
  };
  // The next point of the outline.
  void Visit(int64_t x, int64_t y);
  void DrawEdge(Point from, Point to);

  int64_t side_;
  std::vector<uint8_t> mask_;     // by columns
  std::vector<uint8_t> crossed_;  // odd: the outline crosses above the pixel
  Point last_ = {0, 0};
  bool begun_ = false;
};

void PolygonMask::Visit(int64_t x, int64_t y) {
  const Point before = last_;
  last_ = {x, y};
  if (!begun_ || x == before.x) {
    begun_ = true;
    return;
  }
  const double column =
      (static_cast<double>(x < before.x ? x : x - 1) + .5) / kFiner - .5;
  if (std::floor(column) != column || column < 0 ||
      column > static_cast<double>(side_ - 1))
    return;
  double row = (static_cast<double>(std::min(y, before.y)) + .5) / kFiner - .5;
  row = std::ceil(std::min(std::max(row, 0.0), static_cast<double>(side_)));
  crossed_[static_cast<size_t>(static_cast<int64_t>(column) * side_ +
                               static_cast<int64_t>(row))] ^= 1;
}

void PolygonMask::DrawEdge(Point from, Point to) {
  const int64_t dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  const bool flat = dx >= dy;
  const bool turned = flat ? from.x > to.x : from.y > to.y;
  if (turned) std::swap(from, to);
  const int64_t length = flat ? dx : dy;
  const double slope =
      length == 0 ? 0
                  : static_cast<double>(flat ? to.y - from.y : to.x - from.x) /
                        static_cast<double>(length);
  for (int64_t d = 0; d <= length; ++d) {
    const int64_t t = turned ? length - d : d;
    const double across = slope * static_cast<double>(t);
    if (flat)
      Visit(t + from.x,
            static_cast<int64_t>(static_cast<double>(from.y) + across + .5));
    else
      Visit(static_cast<int64_t>(static_cast<double>(from.x) + across + .5),
            t + from.y);
  }
}

absl::Status PolygonMask::Add(const std::vector<float>& points) {
  const size_t n = points.size() / 2;
  std::vector<Point> corners;
  for (size_t i = 0; i < n; ++i) {
    const double x = kFiner * static_cast<double>(points[2 * i]) + .5;
    const double y = kFiner * static_cast<double>(points[2 * i + 1]) + .5;
    if (!(std::abs(x) < kMostOutline && std::abs(y) < kMostOutline))
      return OutOfRange("a polygon has the point [%g, %g] of a roi",
                        points[2 * i], points[2 * i + 1]);
    corners.push_back({static_cast<int64_t>(x), static_cast<int64_t>(y)});
  }
  if (corners.empty()) return absl::OkStatus();
  corners.push_back(corners.front());
  int64_t length = 0;
  for (size_t i = 0; i < n; ++i)
    length += std::max(std::abs(corners[i + 1].x - corners[i].x),
                       std::abs(corners[i + 1].y - corners[i].y)) +
              1;
  if (length > kMostOutline)
    return OutOfRange("the outline of a polygon is %d points long", length);
  crossed_.assign(mask_.size() + 1, 0);
  begun_ = false;
  for (size_t i = 0; i < n; ++i) DrawEdge(corners[i], corners[i + 1]);
  uint8_t inside = 0;
  for (size_t i = 0; i < mask_.size(); ++i) {
    inside ^= crossed_[i];
    mask_[i] |= inside;
  }
  return absl::OkStatus();
}

using Polygons = std::vector<std::vector<float>>;

struct MaskLabeler {
  Tensor *info, *classes, *crowd, *segments, *rois, *labels;
  Tensor *mask_rois, *has_mask, *masks;
  int64_t class_count, resolution;
  int64_t width() const { return class_count * resolution * resolution; }
};

struct MaskRows {
  std::vector<float> rois;
  std::vector<int32_t> numbers, masks;
  Offsets offsets = {0};
};

// The box around polygons. As in PaddlePaddle, it reaches beyond 0.
std::vector<float> BoxAround(const Polygons& polygons) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::min();
  std::vector<float> box = {kMost, kMost, kLeast, kLeast};
  for (const std::vector<float>& polygon : polygons)
    for (size_t i = 0; i < polygon.size(); ++i) {
      box[i % 2] = std::min(box[i % 2], polygon[i]);
      box[2 + i % 2] = std::max(box[2 + i % 2], polygon[i]);
    }
  return box;
}

// The ground truths of an image that have masks.
absl::StatusOr<std::vector<Polygons>> TruthsOf(const MaskLabeler& l,
                                               const std::vector<Offsets>& lod,
                                               size_t image) {
  std::vector<Polygons> truths;
  for (int64_t g = lod[0][image]; g < lod[0][image + 1]; ++g) {
    if (l.classes->data<int32_t>()[g] <= 0 || l.crowd->data<int32_t>()[g] != 0)
      continue;
    Polygons polygons;
    const auto at = static_cast<size_t>(g);
    for (int64_t p = lod[1][at]; p < lod[1][at + 1]; ++p) {
      const int64_t begin = lod[2][static_cast<size_t>(p)];
      const int64_t end = lod[2][static_cast<size_t>(p) + 1];
      if (begin == end)
        return InvalidArgument("polygon %d of 'GtSegms' has no points", p);
      const float* points = l.segments->data<float>();
      polygons.emplace_back(points + begin * 2, points + end * 2);
    }
    truths.push_back(std::move(polygons));
  }
  return truths;
}

// Draws the polygons as they lie in a box and sets the class's numbers.
absl::Status DrawMask(const MaskLabeler& l, const Polygons& polygons,
                      const float* box, int32_t* to) {
  const float sides[2] = {std::max(box[2] - box[0], 1.0f),
                          std::max(box[3] - box[1], 1.0f)};
  PolygonMask mask(l.resolution);
  const auto side = static_cast<float>(l.resolution);
  for (const std::vector<float>& polygon : polygons) {
    std::vector<float> points = polygon;
    for (size_t i = 0; i < points.size(); ++i)
      points[i] = (points[i] - box[i % 2]) * side / sides[i % 2];
    PD_RETURN_IF_ERROR(mask.Add(points));
  }
  for (int64_t row = 0; row < l.resolution; ++row)
    for (int64_t column = 0; column < l.resolution; ++column)
      to[row * l.resolution + column] = mask.At(row, column) ? 1 : 0;
  return absl::OkStatus();
}

// The rows of one image.
absl::Status LabelImage(const MaskLabeler& l,
                        const std::vector<Polygons>& truths, size_t image,
                        int64_t begin, int64_t end, MaskRows* rows) {
  const float scale = l.info->data<float>()[image * 3 + 2];
  const int32_t* labels = l.labels->data<int32_t>();
  std::vector<std::vector<float>> around;
  for (const Polygons& polygons : truths) around.push_back(BoxAround(polygons));
  const auto add = [&](int64_t roi, int64_t number, const float* box) {
    for (int k = 0; k < 4; ++k) rows->rois.push_back(box[k] * scale);
    rows->numbers.push_back(static_cast<int32_t>(number - begin));
    rows->masks.resize(rows->masks.size() + static_cast<size_t>(l.width()), -1);
    return rows->masks.data() + rows->masks.size() - l.width() +
           std::max(labels[roi], 0) * l.resolution * l.resolution;
  };
  const auto box_of = [&](int64_t roi) {
    std::vector<float> box(4);
    for (size_t k = 0; k < 4; ++k)
      box[k] = l.rois->data<float>()[static_cast<size_t>(roi) * 4 + k] / scale;
    return box;
  };
  bool any = false;
  for (int64_t roi = begin; roi < end; ++roi) {
    if (labels[roi] <= 0) continue;
    any = true;
    if (labels[roi] >= l.class_count || truths.empty())
      return InvalidArgument(
          "roi %d has label %d; there are %d classes and %d masks", roi,
          labels[roi], l.class_count, truths.size());
    const std::vector<float> box = box_of(roi);
    float most = std::numeric_limits<float>::min();
    size_t best = 0;
    for (size_t i = 0; i < truths.size(); ++i) {
      const float overlap = PixelOverlap(box.data(), around[i].data());
      if (overlap > most) {
        most = overlap;
        best = i;
      }
    }
    PD_RETURN_IF_ERROR(
        DrawMask(l, truths[best], box.data(), add(roi, roi, box.data())));
  }
  if (any) return absl::OkStatus();
  const int32_t* background = std::find(labels + begin, labels + end, 0);
  if (background == labels + end)
    return InvalidArgument(
        "image %d has neither a roi with a label nor one of the background",
        image);
  // As in PaddlePaddle, the box is that of the image's first roi.
  add(background - labels, background - labels, box_of(begin).data());
  return absl::OkStatus();
}

absl::Status WriteMasks(const MaskLabeler& l, const MaskRows& rows) {
  const auto n = static_cast<int64_t>(rows.numbers.size());
  PD_RETURN_IF_ERROR(l.mask_rois->Resize(DType::kFloat32, {n, 4}));
  PD_RETURN_IF_ERROR(l.has_mask->Resize(DType::kInt32, {n, 1}));
  PD_RETURN_IF_ERROR(l.masks->Resize(DType::kInt32, {n, l.width()}));
  std::copy(rows.rois.begin(), rows.rois.end(), l.mask_rois->data<float>());
  std::copy(rows.numbers.begin(), rows.numbers.end(),
            l.has_mask->data<int32_t>());
  std::copy(rows.masks.begin(), rows.masks.end(), l.masks->data<int32_t>());
  for (Tensor* out : {l.mask_rois, l.has_mask, l.masks})
    out->set_lod(OneLevel(rows.offsets));
  return absl::OkStatus();
}

// The three levels of GtSegms: ground truths, polygons and points.
absl::StatusOr<std::vector<Offsets>> SegmentLevels(const Tensor& segments,
                                                   size_t images) {
  PD_RETURN_IF_ERROR(CheckLoD(segments.lod(), segments.dim(0), "GtSegms"));
  std::vector<Offsets> levels;
  for (const auto& level : segments.lod())
    levels.emplace_back(level.begin(), level.end());
  if (levels.size() != 3 || levels[0].size() != images + 1)
    return InvalidArgument(
        "the LoD of 'GtSegms' has %d levels, and %d images; expected 3, and %d",
        levels.size(), levels.empty() ? 0 : levels[0].size() - 1, images);
  return levels;
}

absl::Status RunMaskLabels(const MaskLabeler& l) {
  PD_ASSIGN_OR_RETURN(const Offsets rois, SequencesOf(l.rois, "Rois"));
  PD_ASSIGN_OR_RETURN(const Offsets truths,
                      SequencesOf(l.classes, "GtClasses"));
  const size_t images = rois.size() - 1;
  PD_ASSIGN_OR_RETURN(const std::vector<Offsets> levels,
                      SegmentLevels(*l.segments, images));
  if (truths != levels[0] || l.info->dim(0) != static_cast<int64_t>(images))
    return InvalidArgument(
        "'GtClasses' and 'GtSegms' have other ground truths, or 'ImInfo', of "
        "shape %s, other images than the %d of 'Rois'",
        ToString(l.info->shape()), images);
  // A row of masks for each roi at most, or one for its image.
  PD_RETURN_IF_ERROR(
      CheckTensorSize(DType::kInt32, {l.rois->dim(0), l.width()}));
  MaskRows rows;
  for (size_t i = 0; i < images; ++i) {
    if (rois[i] < rois[i + 1]) {
      PD_ASSIGN_OR_RETURN(const std::vector<Polygons> polygons,
                          TruthsOf(l, levels, i));
      PD_RETURN_IF_ERROR(
          LabelImage(l, polygons, i, rois[i], rois[i + 1], &rows));
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.numbers.size()));
  }
  return WriteMasks(l, rows);
}

absl::StatusOr<Step> BindMaskLabels(BindContext* context) {
  MaskLabeler l = {};
  l.info = context->Input("ImInfo");
  l.classes = context->Input("GtClasses");
  l.crowd = context->Input("IsCrowd");
  l.segments = context->Input("GtSegms");
  l.rois = context->Input("Rois");
  l.labels = context->Input("LabelsInt32");
  l.mask_rois = context->Output("MaskRois");
  l.has_mask = context->Output("RoiHasMaskInt32");
  l.masks = context->Output("MaskInt32");
  l.class_count = context->Attr<int32_t>("num_classes");
  l.resolution = context->Attr<int32_t>("resolution");
  const auto rows = [](const Tensor* t) {
    return t->rank() == 0 ? int64_t{0} : t->dim(0);
  };
  const int64_t truths = rows(l.classes), rois = rows(l.rois);
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Rois", DType::kFloat32, {rois, 4}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ImInfo", DType::kFloat32, {rows(l.info), 3}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "GtSegms", DType::kFloat32, {rows(l.segments), 2}));
  for (const char* slot : {"GtClasses", "IsCrowd"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kInt32, truths));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "LabelsInt32", DType::kInt32, rois));
  return Step([l](const RunContext&) { return RunMaskLabels(l); });
}

absl::Status InferMaskLabels(InferContext* context) {
  const int64_t classes = context->Attr<int32_t>("num_classes");
  const int64_t side = context->Attr<int32_t>("resolution");
  if (classes < 1 || side < 1)
    return InvalidArgument(
        "attr 'num_classes' is %d and 'resolution' %d; expected 1 or more",
        classes, side);
  PD_RETURN_IF_ERROR(
      CheckedBytes({classes, side, side}, sizeof(int32_t)).status());
  const auto set = [context](const char* slot, int64_t columns, DType dtype) {
    TensorMeta out;
    out.dtype = dtype;
    out.shape = {-1, columns};
    out.lod_level = 1;
    context->SetOutput(slot, out);
  };
  set("MaskRois", 4, DType::kFloat32);
  set("RoiHasMaskInt32", 1, DType::kInt32);
  set("MaskInt32", classes * side * side, DType::kInt32);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterGenerateMaskLabels(OpRegistry* registry) {
  OpDef op("generate_mask_labels");
  for (const char* slot :
       {"ImInfo", "GtClasses", "IsCrowd", "GtSegms", "Rois", "LabelsInt32"})
    op.Input(slot);
  op.Output("MaskRois").Output("RoiHasMaskInt32").Output("MaskInt32");
  op.RequiredAttr("num_classes", AttrType::kInt);
  op.RequiredAttr("resolution", AttrType::kInt);
  op.ShapeFromData().Infer(InferMaskLabels).NoGrad();
  return registry->Add(std::move(op.Reference(BindMaskLabels)));
}

}  // namespace pd
