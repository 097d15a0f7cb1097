// SPDX-License-Identifier: Apache-2.0
// YOLOv3's loss of each image (Redmon and Farhadi 2018). X [N, M (5 + C), H, W]
// as in yolo_box, for the M anchors of anchor_mask; GTBox [N, B, 4] has centre
// and extent in parts of the image, GTLabel [N, B] classes, GTScore [N, B]
// weights (mix-up), 1 without. A box of no extent is none.
// Each ground truth belongs to the anchor among all that fits its extent best
// and the cell of its centre. If that anchor is in anchor_mask: (2 - w h) score
// times cross entropy of x, y and |difference| of w, h; score times cross
// entropy of the classes, labels smoothed by min(1 / C, 1 / 40) if asked.
// Objectness: cross entropy with 1 there (times score), with 0 elsewhere,
// nothing where the predicted box overlaps a ground truth by more than
// ignore_thresh. ObjectnessMask [N, M, H, W] holds score, 0, -1; GTMatchMask
// [N, B] the place in anchor_mask, -1 for none. Only X has a gradient.
#include "libcore/ops/detection/yolov3_loss.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status CheckYoloLoss(const YoloLoss& loss, const Shape& x,
                           const Shape& boxes) {
  const auto anchors = static_cast<int64_t>(loss.anchors.size()) / 2;
  if (anchors == 0 || loss.anchors.size() % 2 != 0)
    return InvalidArgument("attr 'anchors' has %d numbers; expected pairs",
                           loss.anchors.size());
  for (int32_t anchor : loss.anchors)
    if (anchor <= 0)
      return InvalidArgument("an anchor measures %d; expected more than 0",
                             anchor);
  if (loss.mask.empty()) return InvalidArgument("attr 'anchor_mask' is empty");
  for (int32_t m : loss.mask)
    if (m < 0 || m >= anchors)
      return InvalidArgument("attr 'anchor_mask' has %d; there are %d anchors",
                             m, anchors);
  if (loss.classes <= 0 || loss.downsample <= 0)
    return InvalidArgument(
        "attr 'class_num' is %d and 'downsample_ratio' %d; expected more than "
        "0",
        loss.classes, loss.downsample);
  if (x.size() != 4 || x[2] != x[3] ||
      (x[1] >= 0 && x[1] != loss.count() * (loss.classes + 5)))
    return InvalidArgument("'X' has shape %s; expected [-1, %d, h, h]",
                           ToString(x), loss.count() * (loss.classes + 5));
  if (boxes.size() != 3 || (boxes[2] >= 0 && boxes[2] != 4))
    return InvalidArgument("'GTBox' has shape %s; expected [-1, -1, 4]",
                           ToString(boxes));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<YoloLoss> ReadYoloLoss(const OpDesc& op, const Shape& x,
                                      const Shape& boxes) {
  YoloLoss loss;
  loss.anchors = std::get<std::vector<int32_t>>(*op.FindAttr("anchors"));
  loss.mask = std::get<std::vector<int32_t>>(*op.FindAttr("anchor_mask"));
  loss.classes = std::get<int32_t>(*op.FindAttr("class_num"));
  loss.ignore = std::get<float>(*op.FindAttr("ignore_thresh"));
  loss.downsample = std::get<int32_t>(*op.FindAttr("downsample_ratio"));
  loss.smooth = std::get<bool>(*op.FindAttr("use_label_smooth"));
  loss.scale = std::get<float>(*op.FindAttr("scale_x_y"));
  PD_RETURN_IF_ERROR(CheckYoloLoss(loss, x, boxes));
  loss.images = x[0];
  loss.side = x[2];
  loss.truths = boxes[1];
  return loss;
}

namespace {

template <typename T>
T CrossEntropy(T x, T target) {
  return std::max(x, T(0)) - x * target +
         std::log(T(1) + std::exp(-std::abs(x)));
}

// Centre and extent.
template <typename T>
struct CentredBox {
  T at[2], extent[2];
};

template <typename T>
T Overlap(const CentredBox<T>& a, const CentredBox<T>& b) {
  T sides[2];
  for (int k = 0; k < 2; ++k)
    sides[k] = std::min(a.at[k] + a.extent[k] / 2, b.at[k] + b.extent[k] / 2) -
               std::max(a.at[k] - a.extent[k] / 2, b.at[k] - b.extent[k] / 2);
  const T common = sides[0] < 0 || sides[1] < 0 ? T(0) : sides[0] * sides[1];
  return common /
         (a.extent[0] * a.extent[1] + b.extent[0] * b.extent[1] - common);
}

template <typename T>
CentredBox<T> Predicted(const YoloLoss& loss, const T* x, int64_t m,
                        int64_t cell) {
  const T bias = static_cast<T>(-0.5f * (loss.scale - 1.0f));
  const int64_t places[2] = {cell % loss.side, cell / loss.side};
  CentredBox<T> box;
  for (int k = 0; k < 2; ++k) {
    const T* value = x + k * loss.cells();
    box.at[k] = (static_cast<T>(places[k]) +
                 YoloSigmoid(value[0]) * static_cast<T>(loss.scale) + bias) /
                static_cast<T>(loss.side);
    box.extent[k] = std::exp(value[2 * loss.cells()]) *
                    loss.Anchor<T>(loss.mask[static_cast<size_t>(m)], k) /
                    static_cast<T>(loss.input_size());
  }
  return box;
}

// A ground truth where it belongs: the targets and the weight of its box.
template <typename T>
struct Truth {
  int64_t cell = 0;
  T target[4] = {};
  T weight = T(0);

  Truth(const YoloLoss& loss, const T* gt, int64_t m, T score) {
    int64_t places[2];
    const int64_t anchor = loss.mask[static_cast<size_t>(m)];
    for (int k = 0; k < 2; ++k) {
      const T at = gt[k] * static_cast<T>(loss.side);
      // A centre on the far edge or outside belongs to the nearest cell.
      places[k] = at > 0 ? static_cast<int64_t>(
                               std::min(at, static_cast<T>(loss.side - 1)))
                         : 0;
      target[k] = at - static_cast<T>(places[k]);
      target[2 + k] = std::log(gt[2 + k] * static_cast<T>(loss.input_size()) /
                               loss.Anchor<T>(anchor, k));
    }
    cell = places[1] * loss.side + places[0];
    weight = (T(2) - gt[2] * gt[3]) * score;
  }
};

struct YoloTensors {
  Tensor *x, *boxes, *labels, *scores, *objectness, *match;

  template <typename T>
  T Score(int64_t i) const {
    return scores == nullptr ? T(1) : scores->data<T>()[i];
  }
};

template <typename T>
bool IsBox(const T* gt) {
  return gt[2] >= T(1e-6) && gt[3] >= T(1e-6);
}

// ObjectnessMask of one image: -1 where a prediction is good enough.
template <typename T>
void MarkIgnored(const YoloLoss& loss, const YoloTensors& t, int64_t image) {
  const T* x = t.x->data<T>();
  const T* gt = t.boxes->data<T>() + image * loss.truths * 4;
  T* mask = t.objectness->data<T>() + image * loss.count() * loss.cells();
  for (int64_t i = 0; i < loss.count() * loss.cells(); ++i) {
    const int64_t m = i / loss.cells(), cell = i % loss.cells();
    const CentredBox<T> box =
        Predicted(loss, x + loss.Entry(image, m, cell), m, cell);
    T best = T(0);
    for (int64_t b = 0; b < loss.truths; ++b) {
      const T* g = gt + b * 4;
      if (!IsBox(g)) continue;
      best = std::max(best,
                      Overlap(box, CentredBox<T>{{g[0], g[1]}, {g[2], g[3]}}));
    }
    mask[i] = best > static_cast<T>(loss.ignore) ? T(-1) : T(0);
  }
}

// The place in anchor_mask of the anchor that fits best; -1 when it is not
// there.
template <typename T>
int32_t Match(const YoloLoss& loss, const T* gt) {
  if (!IsBox(gt)) return -1;
  const CentredBox<T> shape = {{T(0), T(0)}, {gt[2], gt[3]}};
  const T size = static_cast<T>(loss.input_size());
  T best = T(0);
  int64_t which = 0;
  for (size_t a = 0; 2 * a < loss.anchors.size(); ++a) {
    const auto i = static_cast<int64_t>(a);
    const T overlap = Overlap(CentredBox<T>{{T(0), T(0)},
                                            {loss.Anchor<T>(i, 0) / size,
                                             loss.Anchor<T>(i, 1) / size}},
                              shape);
    if (overlap <= best) continue;
    best = overlap;
    which = i;
  }
  const auto found = std::find(loss.mask.begin(), loss.mask.end(), which);
  return found == loss.mask.end()
             ? -1
             : static_cast<int32_t>(found - loss.mask.begin());
}

template <typename T>
T ImageLoss(const YoloLoss& loss, const YoloTensors& t, int64_t image) {
  const T* x = t.x->data<T>();
  const int64_t cells = loss.cells();
  T* mask = t.objectness->data<T>() + image * loss.count() * cells;
  T sum = T(0);
  for (int64_t b = image * loss.truths; b < (image + 1) * loss.truths; ++b) {
    const T* gt = t.boxes->data<T>() + b * 4;
    const int32_t m = Match(loss, gt);
    t.match->data<int32_t>()[b] = m;
    if (m < 0) continue;
    const T score = t.Score<T>(b);
    const Truth<T> truth(loss, gt, m, score);
    const T* values = x + loss.Entry(image, m, truth.cell);
    for (int k = 0; k < 2; ++k)
      sum += CrossEntropy(values[k * cells], truth.target[k]) * truth.weight;
    for (int k = 2; k < 4; ++k)
      sum += std::abs(truth.target[k] - values[k * cells]) * truth.weight;
    mask[m * cells + truth.cell] = score;
    for (int64_t c = 0; c < loss.classes; ++c)
      sum += CrossEntropy(values[(5 + c) * cells],
                          loss.Target<T>(c == t.labels->data<int32_t>()[b])) *
             score;
  }
  for (int64_t i = 0; i < loss.count() * cells; ++i) {
    const T value = x[loss.Entry(image, i / cells, i % cells) + 4 * cells];
    if (mask[i] > T(1e-5))
      sum += CrossEntropy(value, T(1)) * mask[i];
    else if (mask[i] > T(-0.5))
      sum += CrossEntropy(value, T(0));
  }
  return sum;
}

// Where several ground truths share a cell the last one counts, as in
// PaddlePaddle, though the loss is the sum.
template <typename T>
void ImageGrad(const YoloLoss& loss, const YoloTensors& t, int64_t image,
               T dloss, T* dx) {
  const T* x = t.x->data<T>();
  const int64_t cells = loss.cells();
  for (int64_t b = image * loss.truths; b < (image + 1) * loss.truths; ++b) {
    const int32_t m = t.match->data<int32_t>()[b];
    if (m < 0 || m >= loss.count()) continue;
    const T score = t.Score<T>(b);
    const Truth<T> truth(loss, t.boxes->data<T>() + b * 4, m, score);
    const int64_t at = loss.Entry(image, m, truth.cell);
    for (int k = 0; k < 2; ++k)
      dx[at + k * cells] = (YoloSigmoid(x[at + k * cells]) - truth.target[k]) *
                           truth.weight * dloss;
    for (int k = 2; k < 4; ++k)
      dx[at + k * cells] =
          (x[at + k * cells] > truth.target[k] ? 1 : -1) * truth.weight * dloss;
    for (int64_t c = 5; c < loss.classes + 5; ++c)
      dx[at + c * cells] =
          (YoloSigmoid(x[at + c * cells]) -
           loss.Target<T>(c - 5 == t.labels->data<int32_t>()[b])) *
          score * dloss;
  }
  const T* mask = t.objectness->data<T>() + image * loss.count() * cells;
  for (int64_t i = 0; i < loss.count() * cells; ++i) {
    const int64_t at = loss.Entry(image, i / cells, i % cells) + 4 * cells;
    if (mask[i] > T(1e-5))
      dx[at] = (YoloSigmoid(x[at]) - T(1)) * mask[i] * dloss;
    else if (mask[i] > T(-0.5))
      dx[at] = YoloSigmoid(x[at]) * dloss;
  }
}

absl::StatusOr<YoloLoss> ReadTensors(BindContext* context, YoloTensors* t) {
  t->x = context->Input("X");
  t->boxes = context->Input("GTBox");
  t->labels = context->Input("GTLabel");
  t->scores = context->Input("GTScore");
  PD_ASSIGN_OR_RETURN(
      const YoloLoss loss,
      ReadYoloLoss(context->op(), t->x->shape(), t->boxes->shape()));
  const Shape truths = {loss.images, loss.truths};
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GTBox", t->x->dtype(),
                                 Shape{loss.images, loss.truths, 4}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GTLabel", DType::kInt32, truths));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "GTScore", t->x->dtype(), truths));
  return loss;
}

absl::StatusOr<Step> BindYoloLoss(BindContext* context) {
  YoloTensors t;
  PD_ASSIGN_OR_RETURN(const YoloLoss loss, ReadTensors(context, &t));
  Tensor* out = context->Output("Loss");
  t.objectness = context->Output("ObjectnessMask");
  t.match = context->Output("GTMatchMask");
  // Without a gradient op nobody may have asked for the masks.
  if (t.objectness == nullptr)
    t.objectness = context->Scratch(
        static_cast<size_t>(loss.images * loss.count() * loss.cells() *
                            static_cast<int64_t>(SizeOf(t.x->dtype()))));
  if (t.match == nullptr)
    t.match = context->Scratch(static_cast<size_t>(loss.images * loss.truths) *
                               sizeof(int32_t));
  return DispatchFloat(t.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([loss, t, out](const RunContext&) {
      for (int64_t i = 0; i < loss.images; ++i) {
        MarkIgnored<T>(loss, t, i);
        out->data<T>()[i] = ImageLoss<T>(loss, t, i);
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindYoloLossGrad(BindContext* context) {
  YoloTensors t;
  PD_ASSIGN_OR_RETURN(const YoloLoss loss, ReadTensors(context, &t));
  t.objectness = context->Input("ObjectnessMask");
  t.match = context->Input("GTMatchMask");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const DType dtype = t.x->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Loss@GRAD", dtype, Shape{loss.images}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ObjectnessMask", dtype,
                  Shape{loss.images, loss.count(), loss.side, loss.side}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GTMatchMask", DType::kInt32,
                                 Shape{loss.images, loss.truths}));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([loss, t, dloss, dx](const RunContext&) {
      T* result = dx->data<T>();
      std::fill_n(result, dx->size(), T(0));
      for (int64_t i = 0; i < loss.images; ++i)
        ImageGrad<T>(loss, t, i, dloss->data<T>()[i], result);
      return absl::OkStatus();
    });
  });
}

absl::Status InferYoloLoss(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const Shape& boxes = context->Input("GTBox").shape;
  PD_ASSIGN_OR_RETURN(const YoloLoss loss,
                      ReadYoloLoss(context->op(), x.shape, boxes));
  context->SetOutput("Loss", {x.shape[0]}, x.dtype);
  context->SetOutput("ObjectnessMask",
                     {x.shape[0], loss.count(), x.shape[2], x.shape[3]},
                     x.dtype);
  context->SetOutput("GTMatchMask", {boxes[0], boxes[1]}, DType::kInt32);
  return absl::OkStatus();
}

void AddYolov3LossAttrs(OpDef* op) {
  op->Input("X").Input("GTBox").Input("GTLabel").OptionalInput("GTScore");
  op->Attr("anchors", std::vector<int32_t>{});
  op->Attr("anchor_mask", std::vector<int32_t>{});
  op->Attr("class_num", int32_t{1}).Attr("ignore_thresh", 0.7f);
  op->Attr("downsample_ratio", int32_t{32}).Attr("use_label_smooth", true);
  op->Attr("scale_x_y", 1.0f);
}

}  // namespace

absl::Status RegisterYolov3Loss(OpRegistry* registry) {
  OpDef op("yolov3_loss");
  AddYolov3LossAttrs(&op);
  op.Output("Loss").IntermediateOutput("ObjectnessMask");
  op.IntermediateOutput("GTMatchMask");
  op.Infer(InferYoloLoss).Reference(BindYoloLoss);
  op.Grad(GradSpec{"yolov3_loss_grad",
                   {"X", "GTBox", "GTLabel", "GTScore"},
                   {"ObjectnessMask", "GTMatchMask"},
                   {"Loss"},
                   {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("yolov3_loss_grad");
  AddYolov3LossAttrs(&grad);
  grad.Input("ObjectnessMask").Input("GTMatchMask").Input("Loss@GRAD");
  grad.Output("X@GRAD");
  // PaddlePaddle's op has these slots and never writes them.
  grad.OptionalOutput("GTBox@GRAD").OptionalOutput("GTLabel@GRAD");
  grad.OptionalOutput("GTScore@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindYoloLossGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
