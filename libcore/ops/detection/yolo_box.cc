// SPDX-License-Identifier: Apache-2.0
// YOLOv3's boxes (Redmon and Farhadi 2018). X [N, A (5 + C), H, W]: for each
// anchor and cell tx, ty, tw, th, objectness, C classes. Where the confidence
// sigma(objectness) is conf_thresh at least,
//   centre = (cell + scale_x_y sigma(t) - (scale_x_y - 1) / 2) / grid
//   extent = anchor exp(t) / (downsample_ratio grid)
// in units of ImgSize [N, 2] (height, width), clipped to the image if asked;
// Scores = confidence sigma(class). Elsewhere both are 0. With iou_aware, A
// channels of predicted IoU come first, and the confidence is
// objectness^(1 - factor) iou^factor. No gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/yolov3_loss.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct YoloBox {
  std::vector<int32_t> anchors;
  int64_t images = 0, height = 0, width = 0, classes = 0;
  int64_t downsample = 32;
  float threshold = 0, scale = 1, factor = 0.5f;
  bool clip = true, iou_aware = false;

  int64_t count() const { return static_cast<int64_t>(anchors.size()) / 2; }
  int64_t cells() const { return height * width; }
  int64_t channels() const { return count() * (classes + (iou_aware ? 6 : 5)); }
};

absl::StatusOr<YoloBox> ReadYoloBox(const OpDesc& op, const Shape& x) {
  YoloBox yolo;
  yolo.anchors = std::get<std::vector<int32_t>>(*op.FindAttr("anchors"));
  yolo.classes = std::get<int32_t>(*op.FindAttr("class_num"));
  yolo.threshold = std::get<float>(*op.FindAttr("conf_thresh"));
  yolo.downsample = std::get<int32_t>(*op.FindAttr("downsample_ratio"));
  yolo.clip = std::get<bool>(*op.FindAttr("clip_bbox"));
  yolo.scale = std::get<float>(*op.FindAttr("scale_x_y"));
  yolo.iou_aware = std::get<bool>(*op.FindAttr("iou_aware"));
  yolo.factor = std::get<float>(*op.FindAttr("iou_aware_factor"));
  if (yolo.anchors.empty() || yolo.anchors.size() % 2 != 0)
    return InvalidArgument("attr 'anchors' has %d numbers; expected pairs",
                           yolo.anchors.size());
  if (yolo.classes <= 0 || yolo.downsample <= 0)
    return InvalidArgument(
        "attr 'class_num' is %d and 'downsample_ratio' %d; expected more than "
        "0",
        yolo.classes, yolo.downsample);
  if (x.size() != 4 || (x[1] >= 0 && x[1] != yolo.channels()))
    return InvalidArgument("'X' has shape %s; expected rank 4 and %d channels",
                           ToString(x), yolo.channels());
  if (yolo.iou_aware && !(yolo.factor >= 0 && yolo.factor <= 1))
    return InvalidArgument("attr 'iou_aware_factor' is %g; expected 0 to 1",
                           yolo.factor);
  yolo.images = x[0];
  yolo.height = x[2];
  yolo.width = x[3];
  return yolo;
}

// One cell of one anchor: its values lie `stride` apart.
template <typename T>
struct Cell {
  const T* values;
  int64_t stride;
  T At(int64_t i) const { return values[i * stride]; }
};

template <typename T>
void DecodeBox(const YoloBox& yolo, const Cell<T>& cell, int64_t anchor,
               int64_t at, const int32_t* image, T* box) {
  const int64_t extents[2] = {yolo.width, yolo.height};
  const int64_t places[2] = {at % yolo.width, at / yolo.width};
  const T scale = static_cast<T>(yolo.scale);
  const T bias = static_cast<T>(-0.5f * (yolo.scale - 1.0f));
  for (int k = 0; k < 2; ++k) {
    const T size = static_cast<T>(image[1 - k]);
    const T grid = static_cast<T>(extents[k]);
    const T centre =
        (static_cast<T>(places[k]) + YoloSigmoid(cell.At(k)) * scale + bias) *
        size / grid;
    const T extent =
        std::exp(cell.At(2 + k)) *
        static_cast<T>(yolo.anchors[static_cast<size_t>(2 * anchor + k)]) *
        size / static_cast<T>(yolo.downsample * extents[k]);
    box[k] = centre - extent / 2;
    box[k + 2] = centre + extent / 2;
    if (!yolo.clip) continue;
    box[k] = box[k] > 0 ? box[k] : T(0);
    box[k + 2] = box[k + 2] < size - 1 ? box[k + 2] : size - 1;
  }
}

template <typename T>
void RunYoloBox(const YoloBox& yolo, const T* x, const int32_t* sizes, T* boxes,
                T* scores) {
  const int64_t cells = yolo.cells();
  const int64_t rows = yolo.images * yolo.count() * cells;
  std::fill_n(boxes, rows * 4, T(0));
  std::fill_n(scores, rows * yolo.classes, T(0));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row % cells;
    const int64_t anchor = row / cells % yolo.count();
    const int64_t image = row / cells / yolo.count();
    const T* own = x + image * yolo.channels() * cells;
    const int64_t before =
        (yolo.iou_aware ? yolo.count() : 0) + anchor * (yolo.classes + 5);
    const Cell<T> cell = {own + before * cells + at, cells};
    T confidence = YoloSigmoid(cell.At(4));
    if (yolo.iou_aware)
      confidence = std::pow(confidence, static_cast<T>(1.0 - yolo.factor)) *
                   std::pow(YoloSigmoid(own[anchor * cells + at]),
                            static_cast<T>(yolo.factor));
    if (confidence < static_cast<T>(yolo.threshold)) continue;
    DecodeBox(yolo, cell, anchor, at, sizes + 2 * image, boxes + row * 4);
    for (int64_t c = 0; c < yolo.classes; ++c)
      scores[row * yolo.classes + c] = confidence * YoloSigmoid(cell.At(5 + c));
  }
}

absl::StatusOr<Step> BindYoloBox(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* sizes = context->Input("ImgSize");
  Tensor* boxes = context->Output("Boxes");
  Tensor* scores = context->Output("Scores");
  PD_ASSIGN_OR_RETURN(const YoloBox yolo,
                      ReadYoloBox(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ImgSize", DType::kInt32, Shape{yolo.images, 2}));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      RunYoloBox(yolo, x->data<T>(), sizes->data<int32_t>(), boxes->data<T>(),
                 scores->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferYoloBox(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const YoloBox yolo, ReadYoloBox(context->op(), x.shape));
  const int64_t rows =
      yolo.height < 0 || yolo.width < 0 ? -1 : yolo.count() * yolo.cells();
  context->SetOutput("Boxes", {x.shape[0], rows, 4}, x.dtype);
  context->SetOutput("Scores", {x.shape[0], rows, yolo.classes}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterYoloBox(OpRegistry* registry) {
  OpDef op("yolo_box");
  op.Input("X").Input("ImgSize").Output("Boxes").Output("Scores");
  op.Attr("anchors", std::vector<int32_t>{}).Attr("class_num", int32_t{1});
  op.Attr("conf_thresh", 0.01f).Attr("downsample_ratio", int32_t{32});
  op.Attr("clip_bbox", true).Attr("scale_x_y", 1.0f);
  op.Attr("iou_aware", false).Attr("iou_aware_factor", 0.5f);
  op.Infer(InferYoloBox).NoGrad().Reference(BindYoloBox);
  return registry->Add(std::move(op));
}

}  // namespace pd
