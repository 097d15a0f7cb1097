// SPDX-License-Identifier: Apache-2.0
// Resize (bilinear) and CenterCrop of pictures as operators that PaddlePaddle
// and ONNX have, for pictures of any size. Their own operators for resizing do
// not shrink as Pillow does, whose filter grows with the scale; here a picture
// is multiplied by matrices of that filter's weights, from the left for its
// columns and from the right for its rows, which are computed from its extents.
#ifndef PD_LIBCORE_DEPLOY_PICTURE_FIT_H_
#define PD_LIBCORE_DEPLOY_PICTURE_FIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/program/block_builder.h"

namespace pd {

struct PictureFit {
  /// As transforms::Resize has it: the shorter edge, or height and width; empty
  /// where pictures are not resized.
  std::vector<int64_t> size;
  /// Of the result: what is resized, or the middle of it.
  int64_t height = 0, width = 0;
  bool crops = false;
};

/// Appends ops that make float32 [records, height, width, channels] of pixels
/// `x`, float32 [records, -1, -1, channels] with whole numbers in [0, 255].
/// They are those of the data pipeline. `name` is the beginning of the new
/// parameters' names. Gives the result's name.
absl::StatusOr<std::string> AppendPictureFit(const PictureFit& fit,
                                             const std::string& name,
                                             const std::string& x,
                                             BlockBuilder* builder,
                                             InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_PICTURE_FIT_H_
