// SPDX-License-Identifier: Apache-2.0
// Convolution in the batch-inner layout [C, H, W, N]: the batch is the
// contiguous dimension, so every operation is vectorised over samples and no
// channel count is padded. It wins where oneDNN's blocks of 16 channels are
// mostly padding.
#ifndef PD_LIBCORE_KERNELS_CPU_BATCH_INNER_H_
#define PD_LIBCORE_KERNELS_CPU_BATCH_INNER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pd {
namespace batch_inner {

/// A 2-D convolution with one group.
struct Geometry {
  int64_t batch = 0;
  int64_t in_channels = 0, in_h = 0, in_w = 0;
  int64_t out_channels = 0, out_h = 0, out_w = 0;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t dilation_h = 1, dilation_w = 1;
};

/// One weight that reaches a pixel, relative to the pixel's base.
struct Tap {
  int32_t source;  ///< offset in the source plane
  int32_t weight;  ///< offset in the [KH, KW] plane of the weights
};

/// For each pixel to compute, the source pixels and weights that it is the sum
/// of. Pixels with the same pattern share a list.
struct GatherTable {
  int64_t height = 0, width = 0;      ///< of the plane to compute
  std::vector<int32_t> row_class;     ///< [height]
  std::vector<int64_t> row_base;      ///< [height], offset in the source
  std::vector<int32_t> column_class;  ///< [width]
  std::vector<int64_t> column_base;   ///< [width]
  int32_t column_classes = 0;
  std::vector<Tap> taps;
  std::vector<int32_t> first;  ///< list of (row class, column class) in taps
};

/// The table of y = conv(x), and that of dx from dy.
GatherTable ForwardTable(const Geometry& g);
GatherTable BackwardDataTable(const Geometry& g);

/// destination[o] = act(bias[o] + sum over channels c and taps of
/// weight[o, c, tap] * source[c, tap]).
struct GatherArgs {
  const GatherTable* table = nullptr;
  const float* source = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;  ///< null: none
  float* destination = nullptr;
  int64_t batch = 0;
  int64_t channels = 0, outputs = 0;
  int64_t source_channel_stride = 0;
  int64_t weight_channel_stride = 0, weight_output_stride = 0;
  bool relu = false;
};

/// Splits the work over the compute threads.
void Gather(const GatherArgs& args);

GatherArgs ForwardArgs(const Geometry& g, const GatherTable& table);
GatherArgs BackwardDataArgs(const Geometry& g, const GatherTable& table);

/// Columns [begin, end) of the output at which the taps [first_tap,
/// first_tap + taps) of a group are inside the input.
struct Segment {
  int64_t begin = 0, end = 0;
  int first_tap = 0, taps = 0;
};

/// Weights whose gradients one register tile sums up: neighbours in a kernel
/// row, or of 1x1 kernels in neighbouring input channels.
struct TapGroup {
  int taps = 0;
  int64_t row_begin = 0, row_end = 0;  ///< output rows that it reaches
  std::vector<int64_t> offsets;        ///< per tap, in x at output (0, 0)
  std::vector<Segment> segments;
};

/// How the weight gradient is computed on this machine; made once per shape.
struct WeightGradPlan {
  Geometry geometry;
  std::vector<TapGroup> groups;
  std::vector<int32_t> place;  ///< where each sum goes in dweight
  int64_t channel_block = 1;   ///< output channels of a tile
  int64_t block_rows = 1, block_columns = 1;
  int64_t sum_floats = 0;    ///< per thread
  int64_t block_floats = 0;  ///< per thread, for the cut gradient
  int parts = 1;             ///< threads
  int64_t ScratchBytes() const {
    return parts * (sum_floats + block_floats) *
           static_cast<int64_t>(sizeof(float));
  }
};
WeightGradPlan PlanWeightGrad(const Geometry& g, int threads);

/// The gradient of weights and bias. With `activated` (the output of a fused
/// ReLU) the gradient that comes in is first cut where the output is 0;
/// `masked`, where given, receives it, in the layout of dy.
struct WeightGradArgs {
  const WeightGradPlan* plan = nullptr;
  const float* x = nullptr;
  const float* dy = nullptr;
  const float* activated = nullptr;
  float* masked = nullptr;
  float* dweight = nullptr;  ///< [OC, IC, KH, KW]
  float* dbias = nullptr;    ///< null: not wanted
  float* scratch = nullptr;  ///< plan->ScratchBytes(), 64-byte aligned
};
void WeightGrad(const WeightGradArgs& args);

}  // namespace batch_inner
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_BATCH_INNER_H_
