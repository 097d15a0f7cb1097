// SPDX-License-Identifier: Apache-2.0
// The bind functions of this room, for its list in attach_cpu.cc.
#ifndef PD_LIBCORE_KERNELS_CPU_BINDINGS_H_
#define PD_LIBCORE_KERNELS_CPU_BINDINGS_H_

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {
namespace cpu {

// conv2d, fused_conv2d and their gradients.
absl::StatusOr<Step> BindConvBatchInner(BindContext* context);
absl::StatusOr<Step> BindConvGradBatchInner(BindContext* context);
// conv2d and fused_conv2d.
absl::StatusOr<Step> BindConvPanels(BindContext* context);
absl::StatusOr<Step> BindConvWinograd(BindContext* context);
// depthwise_conv2d_grad.
absl::StatusOr<Step> BindDepthwiseGrad(BindContext* context);
// concat and split along blocks of channels.
absl::StatusOr<Step> BindConcat(BindContext* context);
absl::StatusOr<Step> BindConcatGrad(BindContext* context);
absl::StatusOr<Step> BindSplit(BindContext* context);
// pool2d.
absl::StatusOr<Step> BindPoolBatchInner(BindContext* context);
absl::StatusOr<Step> BindPoolGradBatchInner(BindContext* context);
// softmax_with_cross_entropy.
absl::StatusOr<Step> BindCrossEntropy(BindContext* context);
absl::StatusOr<Step> BindCrossEntropyGrad(BindContext* context);
// batch_norm in any layout that has the channels in one place.
absl::StatusOr<Step> BindBatchNorm(BindContext* context);
absl::StatusOr<Step> BindBatchNormGrad(BindContext* context);
// softmax and log_softmax over the last axis, and over others.
absl::StatusOr<Step> BindSoftmax(BindContext* context);
absl::StatusOr<Step> BindLogSoftmax(BindContext* context);
absl::StatusOr<Step> BindSoftmaxGrad(BindContext* context);
absl::StatusOr<Step> BindLogSoftmaxGrad(BindContext* context);
absl::StatusOr<Step> BindColumnSoftmax(BindContext* context);
absl::StatusOr<Step> BindColumnSoftmaxGrad(BindContext* context);
// group_norm and instance_norm with channels first.
absl::StatusOr<Step> BindGroupNorm(BindContext* context);
absl::StatusOr<Step> BindGroupNormGrad(BindContext* context);
// sigmoid_cross_entropy_with_logits.
absl::StatusOr<Step> BindSigmoidCrossEntropy(BindContext* context);
absl::StatusOr<Step> BindSigmoidCrossEntropyGrad(BindContext* context);
// layer_norm.
absl::StatusOr<Step> BindLayerNorm(BindContext* context);
absl::StatusOr<Step> BindLayerNormGrad(BindContext* context);
// Products of four rows at most: mul, matmul_v2, fused_gemm_epilogue.
absl::StatusOr<Step> BindFewRows(BindContext* context);
// logsumexp over the last axes.
absl::StatusOr<Step> BindLogsumexp(BindContext* context);
absl::StatusOr<Step> BindLogsumexpGrad(BindContext* context);
// atan2, elementwise_pow and pow of float32.
absl::StatusOr<Step> BindAtan2(BindContext* context);
absl::StatusOr<Step> BindAtan2Grad(BindContext* context);
absl::StatusOr<Step> BindElementwisePow(BindContext* context);
absl::StatusOr<Step> BindElementwisePowGrad(BindContext* context);
absl::StatusOr<Step> BindPow(BindContext* context);
absl::StatusOr<Step> BindPowGrad(BindContext* context);
// fft_c2c, fft_r2c and fft_c2r of float32.
absl::StatusOr<Step> BindFftC2c(BindContext* context);
absl::StatusOr<Step> BindFftR2c(BindContext* context);
absl::StatusOr<Step> BindFftC2r(BindContext* context);
// gelu.
absl::StatusOr<Step> BindCast(BindContext* context);
absl::StatusOr<Step> BindGelu(BindContext* context);
absl::StatusOr<Step> BindGeluGrad(BindContext* context);
// dropout in training.
absl::StatusOr<Step> BindDropout(BindContext* context);
absl::StatusOr<Step> BindDropoutGrad(BindContext* context);
// relu, relu6, leaky_relu, hard_swish, swish, silu, sigmoid, tanh, erf, in any
// layout.
absl::StatusOr<Step> BindActivation(BindContext* context);
absl::StatusOr<Step> BindActivationGrad(BindContext* context);
// elementwise_add of equal shapes and sum, in any layout.
absl::StatusOr<Step> BindAdd(BindContext* context);
absl::StatusOr<Step> BindAddGrad(BindContext* context);
absl::StatusOr<Step> BindSum(BindContext* context);
// transpose and transpose2 that exchange the axes of matrices; row-major.
absl::StatusOr<Step> BindTransposeOp(BindContext* context);
absl::StatusOr<Step> BindTransposeOpGrad(BindContext* context);
// fake_quantize_dequantize_..., moving_average_abs_max_scale and their
// gradient, in any layout.
absl::StatusOr<Step> BindFakeQuantDequant(BindContext* context);
absl::StatusOr<Step> BindObserveScale(BindContext* context);
absl::StatusOr<Step> BindStraightThrough(BindContext* context);
// squared_l2_norm, and elementwise_mul by one number, in any layout.
absl::StatusOr<Step> BindSquaredL2Norm(BindContext* context);
absl::StatusOr<Step> BindMulByNumber(BindContext* context);
// elementwise_mul by a number for each channel.
absl::StatusOr<Step> BindMulByChannels(BindContext* context);
absl::StatusOr<Step> BindMulByChannelsGrad(BindContext* context);
// Parameter updates in any layout.
absl::StatusOr<Step> BindAdagrad(BindContext* context);
absl::StatusOr<Step> BindAdam(BindContext* context);
absl::StatusOr<Step> BindSgd(BindContext* context);
absl::StatusOr<Step> BindMomentum(BindContext* context);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_BINDINGS_H_
