// SPDX-License-Identifier: Apache-2.0
// yolov3_loss and its gradient; the kernels are in yolov3_loss.cu.
#include <limits>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/yolov3_loss_arguments.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/yolov3_loss.h"

namespace pd::cuda {
namespace {

using StartYolov3Loss = Starter<YoloArgs>;

struct YoloInputs {
  Tensor *x, *boxes, *labels, *scores;
  YoloArgs args{};

  YoloArgs Now() const {
    YoloArgs now = args;
    now.x = At(x);
    now.boxes = At(boxes);
    now.scores = At(scores);
    now.labels = labels->data<int32_t>();
    return now;
  }
  int64_t places() const {
    return args.images * args.count * args.side * args.side;
  }
};

absl::StatusOr<YoloInputs> ReadInputs(BindContext* context) {
  YoloInputs t{context->Input("X"), context->Input("GTBox"),
               context->Input("GTLabel"), context->Input("GTScore")};
  PD_RETURN_IF_ERROR(OnlyFloat32({t.x, t.boxes, t.scores}));
  PD_ASSIGN_OR_RETURN(
      const YoloLoss loss,
      ReadYoloLoss(context->op(), t.x->shape(), t.boxes->shape()));
  const Shape truths = {loss.images, loss.truths};
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GTBox", DType::kFloat32,
                                 Shape{loss.images, loss.truths, 4}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GTLabel", DType::kInt32, truths));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "GTScore", DType::kFloat32, truths));
  const size_t anchors = loss.anchors.size() / 2;
  if (anchors > kMostAnchors || loss.mask.size() > kMostAnchors ||
      loss.images * loss.truths > std::numeric_limits<int32_t>::max())
    return Unimplemented("%d anchors, %d truths", anchors,
                         loss.images * loss.truths);
  YoloArgs& args = t.args;
  std::copy(loss.anchors.begin(), loss.anchors.end(), args.anchor);
  std::copy(loss.mask.begin(), loss.mask.end(), args.mask);
  args.anchors = static_cast<int32_t>(anchors);
  args.count = static_cast<int32_t>(loss.count());
  args.images = loss.images;
  args.side = loss.side;
  args.truths = loss.truths;
  args.classes = loss.classes;
  args.same = loss.Target<float>(true);
  args.other = loss.Target<float>(false);
  args.ignore = loss.ignore;
  args.scale = loss.scale;
  args.input_size = static_cast<float>(loss.input_size());
  return t;
}

absl::StatusOr<Step> BindYolo(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const YoloInputs t, ReadInputs(context));
  Tensor *loss = context->Output("Loss"),
         *objectness = context->Output("ObjectnessMask"),
         *match = context->Output("GTMatchMask");
  if (loss == nullptr || objectness == nullptr || match == nullptr)
    return Unimplemented("an output is missing");
  PD_RETURN_IF_ERROR(OnlyFloat32({loss, objectness}));
  PD_ASSIGN_OR_RETURN(const auto to_match,
                      StartYolov3Loss::Find(binding, "yolo_match"));
  PD_ASSIGN_OR_RETURN(const auto to_mask,
                      StartYolov3Loss::Find(binding, "yolo_mask"));
  PD_ASSIGN_OR_RETURN(const auto to_loss,
                      StartYolov3Loss::Find(binding, "yolo_loss"));
  return Step([=](const RunContext&) {
    YoloArgs run = t.Now();
    run.loss = At(loss);
    run.objectness = At(objectness);
    run.match = match->data<int32_t>();
    if (run.truths > 0)
      PD_RETURN_IF_ERROR(to_match.Elements(run.images * run.truths, run));
    PD_RETURN_IF_ERROR(to_mask.Elements(t.places(), run));
    return to_loss.Items(run.images, run);
  });
}

absl::StatusOr<Step> BindYoloGrad(BindContext* context,
                                  DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const YoloInputs t, ReadInputs(context));
  Tensor *objectness = context->Input("ObjectnessMask"),
         *match = context->Input("GTMatchMask"),
         *dloss = context->Input("Loss@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({objectness, dloss, dx}));
  const YoloArgs& args = t.args;
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Loss@GRAD", DType::kFloat32, Shape{args.images}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ObjectnessMask", DType::kFloat32,
                  Shape{args.images, args.count, args.side, args.side}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "GTMatchMask", DType::kInt32,
                                 Shape{args.images, args.truths}));
  PD_ASSIGN_OR_RETURN(const auto to_owners,
                      StartYolov3Loss::Find(binding, "yolo_owners"));
  PD_ASSIGN_OR_RETURN(const auto to_dx,
                      StartYolov3Loss::Find(binding, "yolo_grad"));
  Tensor* const owners =
      context->Scratch(static_cast<size_t>(t.places()) * sizeof(int32_t));
  return Step([=](const RunContext&) {
    YoloArgs run = t.Now();
    run.objectness = At(objectness);
    run.match = match->data<int32_t>();
    run.owners = owners->data<int32_t>();
    run.dloss = At(dloss);
    run.dx = At(dx);
    PD_RETURN_IF_ERROR(to_owners.Elements(t.places(), run));
    return to_dx.Elements(dx->size(), run);
  });
}

}  // namespace

void AddYolov3Loss(KernelTable* kernels) {
  kernels->Add("yolov3_loss", {"cuda", BindYolo});
  kernels->Add("yolov3_loss_grad", {"cuda", BindYoloGrad});
}

}  // namespace pd::cuda
