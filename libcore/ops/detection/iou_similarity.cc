// SPDX-License-Identifier: Apache-2.0
// Small ops on boxes and their maps, without gradients.
//   iou_similarity: Out [N, M] = intersection over union of X [N, 4], Y [M, 4]
//   box_clip: Input's boxes moved into their image; ImInfo [N, 3] has height,
//     width and the scale that both are to be divided by
//   polygon_box_transform: Output = 4 column - Input in even channels,
//     4 row - Input in odd ones
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status CheckIouSimilarityBoxes(absl::string_view slot,
                                     const Shape& shape) {
  if (shape.size() == 2 && (shape[1] == 4 || shape[1] < 0))
    return absl::OkStatus();
  return InvalidArgument("'%s' has shape %s; expected [-1, 4]", slot,
                         ToString(shape));
}

// A box that is the wrong way round has a negative area here.
template <typename T>
T Similarity(const T* a, const T* b, T extra) {
  const auto extent = [extra](const T* box, int k) {
    return box[k + 2] - box[k] + extra;
  };
  const auto shared = [&](int k) {
    return std::max(std::min(a[k + 2], b[k + 2]) - std::max(a[k], b[k]) + extra,
                    T(0));
  };
  const T common = shared(0) * shared(1);
  const T areas = extent(a, 0) * extent(a, 1) + extent(b, 0) * extent(b, 1);
  return common / (areas - common + T(1e-10));
}

absl::StatusOr<Step> BindSimilarity(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(CheckIouSimilarityBoxes("X", x->shape()));
  PD_RETURN_IF_ERROR(CheckIouSimilarityBoxes("Y", y->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  const bool normalized = context->Attr<bool>("box_normalized");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* to = out->data<T>();
      for (int64_t i = 0; i < x->dim(0); ++i)
        for (int64_t j = 0; j < y->dim(0); ++j)
          *to++ = Similarity(x->data<T>() + i * 4, y->data<T>() + j * 4,
                             normalized ? T(0) : T(1));
      return absl::OkStatus();
    });
  });
}

absl::Status InferSimilarity(InferContext* context) {
  TensorMeta out = context->Input("X");
  const Shape& y = context->Input("Y").shape;
  PD_RETURN_IF_ERROR(CheckIouSimilarityBoxes("X", out.shape));
  PD_RETURN_IF_ERROR(CheckIouSimilarityBoxes("Y", y));
  out.shape = {out.shape[0], y[0]};
  out.value = nullptr;
  context->SetOutput("Out", out);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBoxClip(BindContext* context) {
  Tensor* boxes = context->Input("Input");
  Tensor* info = context->Input("ImInfo");
  Tensor* out = context->Output("Output");
  context->MayShare(boxes, out);
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                      RowOffsets("Input", *boxes, nullptr));
  const auto images = static_cast<int64_t>(starts.size()) - 1;
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "ImInfo", boxes->dtype(), Shape{images, 3}));
  const int64_t rows = boxes->dim(0);
  if (starts.back() != rows || (rows > 0 && boxes->size() / rows % 4 != 0))
    return InvalidArgument("'Input' has shape %s and LoD for %d rows of boxes",
                           ToString(boxes->shape()), starts.back());
  return DispatchFloat(boxes->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t row = rows == 0 ? 0 : boxes->size() / rows;
      for (size_t i = 0; i + 1 < starts.size(); ++i) {
        const T* size = info->data<T>() + i * 3;
        const T last[2] = {std::round(size[1] / size[2]) - 1,
                           std::round(size[0] / size[2]) - 1};
        for (int64_t k = starts[i] * row; k < starts[i + 1] * row; ++k)
          out->data<T>()[k] =
              std::max(std::min(boxes->data<T>()[k], last[k % 2]), T(0));
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferBoxClip(InferContext* context) {
  const Shape& boxes = context->Input("Input").shape;
  const Shape& info = context->Input("ImInfo").shape;
  if (boxes.size() < 2 || (boxes.back() >= 0 && boxes.back() != 4))
    return InvalidArgument("'Input' has shape %s; expected [..., 4]",
                           ToString(boxes));
  if (info.size() != 2 || (info[1] >= 0 && info[1] != 3))
    return InvalidArgument("'ImInfo' has shape %s; expected [-1, 3]",
                           ToString(info));
  context->Share("Input", "Output");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPolygons(BindContext* context) {
  Tensor* in = context->Input("Input");
  Tensor* out = context->Output("Output");
  context->MayShare(in, out);
  return DispatchFloat(in->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([in, out](const RunContext&) {
      const int64_t width = in->dim(3), plane = in->dim(2) * width;
      for (int64_t i = 0; i < in->size(); ++i) {
        const int64_t at = i / plane % 2 == 0 ? i % width : i % plane / width;
        out->data<T>()[i] = static_cast<T>(at * 4) - in->data<T>()[i];
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferPolygons(InferContext* context) {
  TensorMeta out = context->Input("Input");
  if (out.shape.size() != 4 || out.shape[1] % 2 > 0)
    return InvalidArgument(
        "'Input' has shape %s; expected rank 4 and an even "
        "number of channels",
        ToString(out.shape));
  context->SetOutput("Output", out.shape, out.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterIouSimilarity(OpRegistry* registry) {
  OpDef similarity("iou_similarity");
  similarity.Input("X").Input("Y").Output("Out").Attr("box_normalized", true);
  similarity.Infer(InferSimilarity).NoGrad().Reference(BindSimilarity);
  PD_RETURN_IF_ERROR(registry->Add(std::move(similarity)));

  OpDef clip("box_clip");
  clip.Input("Input").Input("ImInfo").Output("Output");
  clip.Infer(InferBoxClip).NoGrad().Reference(BindBoxClip);
  PD_RETURN_IF_ERROR(registry->Add(std::move(clip)));

  OpDef polygons("polygon_box_transform");
  polygons.Input("Input").Output("Output");
  polygons.Infer(InferPolygons).NoGrad().Reference(BindPolygons);
  return registry->Add(std::move(polygons));
}

}  // namespace pd
