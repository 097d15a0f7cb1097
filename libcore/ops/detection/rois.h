// SPDX-License-Identifier: Apache-2.0
// Regions of interest: rows [xmin, ymin, xmax, ymax] of many images one after
// the other. Which rows are whose is told by a LoD or by a tensor of counts.
#ifndef PD_LIBCORE_OPS_DETECTION_ROIS_H_
#define PD_LIBCORE_OPS_DETECTION_ROIS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"

namespace pd {

/// Where the rows of each image begin, and after the last one the end: out of
/// `counts` when that is not null, else out of the innermost level of the LoD
/// of `rows`, the tensor in `slot`. InvalidArgument when there is neither, or
/// when it tells more rows than there are.
absl::StatusOr<std::vector<int64_t>> RowOffsets(absl::string_view slot,
                                                const Tensor& rows,
                                                const Tensor* counts);

/// A bool of roi_align that only imported ONNX models carry: the largest sample
/// instead of the mean.
inline constexpr char kRoiAlignMax[] = "largest_sample";

/// Inputs and sizes of ops that pool the part of X [N, C, H, W] under each row
/// of ROIs [R, 4] into [pooled_height, pooled_width] bins.
struct RoiPooling {
  Tensor* x = nullptr;
  Tensor* rois = nullptr;
  Tensor* counts = nullptr;  // may be null
  int64_t images = 0, channels = 0, height = 0, width = 0;
  int64_t count = 0;  // of rois
  int64_t pooled_height = 0, pooled_width = 0;
  float scale = 1;  // from the coordinates of rois to those of X

  int64_t bins() const { return pooled_height * pooled_width; }
  int64_t pixels() const { return height * width; }
  /// The image of each roi.
  absl::StatusOr<std::vector<int64_t>> Images() const;
};

/// Reads inputs X, ROIs, RoisNum and the attributes, and checks them.
absl::StatusOr<RoiPooling> ReadRoiPooling(const BindContext& context,
                                          absl::string_view x_slot = "X");

/// Checks X and ROIs, and that pooled sizes are positive; gives the shape
/// [R, channels, pooled_height, pooled_width]. channels < 0: those of X.
absl::StatusOr<Shape> InferRoiPooling(const InferContext& context,
                                      int64_t channels = -1,
                                      absl::string_view x_slot = "X");

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DETECTION_ROIS_H_
