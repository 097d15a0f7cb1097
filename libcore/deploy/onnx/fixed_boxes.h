// SPDX-License-Identifier: Apache-2.0
// Boxes that stand around the cells of a feature map whatever the picture
// shows: their values are constants where the extents are known.
#ifndef PD_LIBCORE_DEPLOY_ONNX_FIXED_BOXES_H_
#define PD_LIBCORE_DEPLOY_ONNX_FIXED_BOXES_H_

#include "absl/status/status.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Computes the outputs of prior_box, density_prior_box and anchor_generator
/// whose feature maps and images have known heights and widths, and puts them
/// in place of the ops as parameters. Ops with other inputs stay.
absl::Status ComputeFixedBoxes(const OpRegistry& registry,
                               InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_FIXED_BOXES_H_
