// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/detection/rois.h"

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"

namespace pd {
namespace {

absl::Status CheckOffsets(absl::string_view slot, const Tensor& rows,
                          const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    if (offsets[i] > offsets[i + 1])
      return InvalidArgument("image %d of '%s' has %d rows; expected 0 or more",
                             i, slot, offsets[i + 1] - offsets[i]);
  const int64_t have = rows.rank() == 0 ? 0 : rows.dim(0);
  if (offsets.empty() || offsets.front() != 0 || offsets.back() > have)
    return InvalidArgument("'%s' has %d rows; its images claim %d", slot, have,
                           offsets.empty() ? 0 : offsets.back());
  return absl::OkStatus();
}

absl::Status CheckPooled(int64_t height, int64_t width) {
  if (height > 0 && width > 0) return absl::OkStatus();
  return InvalidArgument("rois are pooled to %d x %d; expected 1 x 1 or more",
                         height, width);
}

absl::Status CheckRoisShapes(const Shape& x, const Shape& rois) {
  if (x.size() != 4)
    return InvalidArgument("the images have shape %s; expected rank 4",
                           ToString(x));
  if (rois.size() != 2 || (rois[1] != 4 && rois[1] >= 0))
    return InvalidArgument("'ROIs' has shape %s; expected [-1, 4]",
                           ToString(rois));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> RowOffsets(absl::string_view slot,
                                                const Tensor& rows,
                                                const Tensor* counts) {
  std::vector<int64_t> offsets;
  if (counts != nullptr) {
    PD_RETURN_IF_ERROR(CheckLabelType("RoisNum", counts->dtype()));
    offsets.push_back(0);
    for (int64_t i = 0; i < counts->size(); ++i) {
      const int64_t n = LabelAt(*counts, i);
      if (n < 0 || n > rows.size())
        return InvalidArgument("image %d has %d rows of '%s'; it has %s", i, n,
                               slot, ToString(rows.shape()));
      offsets.push_back(offsets.back() + n);
    }
  } else {
    if (rows.lod().empty())
      return InvalidArgument("'%s' has no LoD and there are no counts", slot);
    const auto& level = rows.lod().back();
    offsets.assign(level.begin(), level.end());
  }
  PD_RETURN_IF_ERROR(CheckOffsets(slot, rows, offsets));
  return offsets;
}

absl::StatusOr<std::vector<int64_t>> RoiPooling::Images() const {
  if (count == 0) return std::vector<int64_t>();
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                      RowOffsets("ROIs", *rois, counts));
  const auto batch = static_cast<int64_t>(offsets.size()) - 1;
  if (batch != images)
    return InvalidArgument("'ROIs' has rows of %d images; there are %d", batch,
                           images);
  if (offsets.back() != count)
    return InvalidArgument("'ROIs' has %d rows; its images claim %d", count,
                           offsets.back());
  std::vector<int64_t> image_of(static_cast<size_t>(count));
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t r = offsets[static_cast<size_t>(i)];
         r < offsets[static_cast<size_t>(i) + 1]; ++r)
      image_of[static_cast<size_t>(r)] = i;
  return image_of;
}

absl::StatusOr<RoiPooling> ReadRoiPooling(const BindContext& context,
                                          absl::string_view x_slot) {
  RoiPooling pooling;
  pooling.x = context.Input(x_slot);
  pooling.rois = context.Input("ROIs");
  pooling.counts = context.op().Input("RoisNum").empty()
                       ? nullptr
                       : context.Input("RoisNum");
  const Tensor* x = pooling.x;
  PD_RETURN_IF_ERROR(CheckRoisShapes(x->shape(), pooling.rois->shape()));
  if (pooling.rois->dtype() != x->dtype())
    return InvalidArgument("'ROIs' is %s; '%s' is %s",
                           Name(pooling.rois->dtype()), x_slot,
                           Name(x->dtype()));
  pooling.images = x->dim(0);
  pooling.channels = x->dim(1);
  pooling.height = x->dim(2);
  pooling.width = x->dim(3);
  pooling.count = pooling.rois->dim(0);
  pooling.pooled_height = context.Attr<int32_t>("pooled_height");
  pooling.pooled_width = context.Attr<int32_t>("pooled_width");
  PD_RETURN_IF_ERROR(CheckPooled(pooling.pooled_height, pooling.pooled_width));
  pooling.scale = context.Attr<float>("spatial_scale");
  return pooling;
}

absl::StatusOr<Shape> InferRoiPooling(const InferContext& context,
                                      int64_t channels,
                                      absl::string_view x_slot) {
  const Shape& x = context.Input(x_slot).shape;
  const Shape& rois = context.Input("ROIs").shape;
  PD_RETURN_IF_ERROR(CheckRoisShapes(x, rois));
  const int64_t height = context.Attr<int32_t>("pooled_height");
  const int64_t width = context.Attr<int32_t>("pooled_width");
  PD_RETURN_IF_ERROR(CheckPooled(height, width));
  const float scale = context.Attr<float>("spatial_scale");
  if (!(scale > 0))
    return InvalidArgument("attr 'spatial_scale' is %g; expected more than 0",
                           scale);
  return Shape{rois[0], channels < 0 ? x[1] : channels, height, width};
}

}  // namespace pd
