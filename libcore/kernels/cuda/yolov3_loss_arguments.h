// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in yolov3_loss.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_YOLOV3_LOSS_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_YOLOV3_LOSS_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

inline constexpr int kMostAnchors = 64;

/// yolov3_loss of pd::YoloLoss.
struct YoloArgs {
  const float *x, *boxes, *scores, *dloss;  ///< scores: null for 1
  const int32_t* labels;
  float *loss, *objectness, *dx;
  int32_t* match;
  int32_t* owners;  ///< of each cell: the truth that its gradient is of, or -1
  int64_t images, side, truths, classes;
  float same, other;  ///< targets of the class, and of all others
  float ignore, scale, input_size;
  int32_t anchors, count;
  int32_t anchor[2 * kMostAnchors], mask[kMostAnchors];
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_YOLOV3_LOSS_ARGUMENTS_H_
