// SPDX-License-Identifier: Apache-2.0
// The list of our own kernels, in the order in which they are asked.
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/kernels/cpu/bindings.h"

namespace pd {

namespace {

struct Entry {
  const char *type, *label;
  BindFn bind;
  bool selected_rows = false;
  bool row_major = false;  // it does not ask for layouts
};

const Entry kEntries[] = {
    {"conv2d", "cpu:batch_inner", cpu::BindConvBatchInner},
    {"conv2d", "cpu:winograd", cpu::BindConvWinograd},
    {"conv2d", "cpu:panels", cpu::BindConvPanels},
    {"conv2d_grad", "cpu:batch_inner", cpu::BindConvGradBatchInner},
    {"depthwise_conv2d_grad", "cpu:planes", cpu::BindDepthwiseGrad},
    {"fused_conv2d", "cpu:batch_inner", cpu::BindConvBatchInner},
    {"fused_conv2d", "cpu:winograd", cpu::BindConvWinograd},
    {"fused_conv2d", "cpu:panels", cpu::BindConvPanels},
    {"fused_conv2d_grad", "cpu:batch_inner", cpu::BindConvGradBatchInner},
    {"concat", "cpu:blocks", cpu::BindConcat},
    {"concat_grad", "cpu:blocks", cpu::BindConcatGrad},
    {"split", "cpu:blocks", cpu::BindSplit},
    {"pool2d", "cpu:batch_inner", cpu::BindPoolBatchInner},
    {"pool2d_grad", "cpu:batch_inner", cpu::BindPoolGradBatchInner},
    {"softmax_with_cross_entropy", "cpu:rows", cpu::BindCrossEntropy},
    {"softmax_with_cross_entropy_grad", "cpu:rows", cpu::BindCrossEntropyGrad},
    {"batch_norm", "cpu:channels", cpu::BindBatchNorm},
    {"batch_norm_grad", "cpu:channels", cpu::BindBatchNormGrad},
    {"fused_batch_norm_act", "cpu:channels", cpu::BindBatchNorm},
    {"fused_batch_norm_act_grad", "cpu:channels", cpu::BindBatchNormGrad},
    {"softmax", "cpu:rows", cpu::BindSoftmax},
    {"log_softmax", "cpu:rows", cpu::BindLogSoftmax},
    {"softmax_grad", "cpu:rows", cpu::BindSoftmaxGrad},
    {"log_softmax_grad", "cpu:rows", cpu::BindLogSoftmaxGrad},
    {"softmax", "cpu:columns", cpu::BindColumnSoftmax},
    {"log_softmax", "cpu:columns", cpu::BindColumnSoftmax},
    {"softmax_grad", "cpu:columns", cpu::BindColumnSoftmaxGrad},
    {"log_softmax_grad", "cpu:columns", cpu::BindColumnSoftmaxGrad},
    {"layer_norm", "cpu:rows", cpu::BindLayerNorm},
    {"layer_norm_grad", "cpu:rows", cpu::BindLayerNormGrad},
    {"mul", "cpu:few_rows", cpu::BindFewRows},
    {"matmul_v2", "cpu:few_rows", cpu::BindFewRows},
    {"fused_gemm_epilogue", "cpu:few_rows", cpu::BindFewRows},
    {"cast", "cpu:any_layout", cpu::BindCast},
    {"gelu", "cpu:vectors", cpu::BindGelu},
    {"gelu_grad", "cpu:vectors", cpu::BindGeluGrad},
    {"dropout", "cpu:vectors", cpu::BindDropout},
    {"dropout_grad", "cpu:vectors", cpu::BindDropoutGrad},
    {"relu", "cpu:any_layout", cpu::BindActivation},
    {"relu_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"relu6", "cpu:any_layout", cpu::BindActivation},
    {"relu6_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"leaky_relu", "cpu:any_layout", cpu::BindActivation},
    {"leaky_relu_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"hard_swish", "cpu:any_layout", cpu::BindActivation},
    {"hard_swish_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"swish", "cpu:any_layout", cpu::BindActivation},
    {"swish_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"silu", "cpu:any_layout", cpu::BindActivation},
    {"silu_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"sigmoid", "cpu:any_layout", cpu::BindActivation},
    {"sigmoid_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"tanh", "cpu:any_layout", cpu::BindActivation},
    {"tanh_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"erf", "cpu:any_layout", cpu::BindActivation},
    {"erf_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"abs", "cpu:any_layout", cpu::BindActivation},
    {"abs_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"clip", "cpu:any_layout", cpu::BindActivation},
    {"clip_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"softshrink", "cpu:any_layout", cpu::BindActivation},
    {"softshrink_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"hard_shrink", "cpu:any_layout", cpu::BindActivation},
    {"hard_shrink_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"sqrt", "cpu:any_layout", cpu::BindActivation},
    {"sqrt_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"rsqrt", "cpu:any_layout", cpu::BindActivation},
    {"rsqrt_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"exp", "cpu:any_layout", cpu::BindActivation},
    {"exp_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"expm1", "cpu:any_layout", cpu::BindActivation},
    {"expm1_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"log", "cpu:any_layout", cpu::BindActivation},
    {"log_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"log2", "cpu:any_layout", cpu::BindActivation},
    {"log2_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"log10", "cpu:any_layout", cpu::BindActivation},
    {"log10_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"log1p", "cpu:any_layout", cpu::BindActivation},
    {"log1p_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"sin", "cpu:any_layout", cpu::BindActivation},
    {"sin_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"cos", "cpu:any_layout", cpu::BindActivation},
    {"cos_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"tan", "cpu:any_layout", cpu::BindActivation},
    {"tan_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"atan", "cpu:any_layout", cpu::BindActivation},
    {"atan_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"softplus", "cpu:any_layout", cpu::BindActivation},
    {"softplus_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"mish", "cpu:any_layout", cpu::BindActivation},
    {"mish_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"elu", "cpu:any_layout", cpu::BindActivation},
    {"elu_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"selu", "cpu:any_layout", cpu::BindActivation},
    {"selu_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"logsigmoid", "cpu:any_layout", cpu::BindActivation},
    {"logsigmoid_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"tanh_shrink", "cpu:any_layout", cpu::BindActivation},
    {"tanh_shrink_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"logit", "cpu:any_layout", cpu::BindActivation},
    {"logit_grad", "cpu:any_layout", cpu::BindActivationGrad},
    {"floor", "cpu:any_layout", cpu::BindActivation},
    {"ceil", "cpu:any_layout", cpu::BindActivation},
    {"round", "cpu:any_layout", cpu::BindActivation},
    {"transpose", "cpu:matrices", cpu::BindTransposeOp, false, true},
    {"transpose2", "cpu:matrices", cpu::BindTransposeOp, false, true},
    {"transpose_grad", "cpu:matrices", cpu::BindTransposeOpGrad, false, true},
    {"transpose2_grad", "cpu:matrices", cpu::BindTransposeOpGrad, false, true},
    {"elementwise_add", "cpu:any_layout", cpu::BindAdd},
    {"elementwise_add_grad", "cpu:any_layout", cpu::BindAddGrad},
    {"sum", "cpu:any_layout", cpu::BindSum},
    {"squared_l2_norm", "cpu:any_layout", cpu::BindSquaredL2Norm},
    {"elementwise_mul", "cpu:any_layout", cpu::BindMulByNumber},
    {"elementwise_mul", "cpu:channels", cpu::BindMulByChannels},
    {"elementwise_mul_grad", "cpu:channels", cpu::BindMulByChannelsGrad},
    {"fake_quantize_dequantize_moving_average_abs_max", "cpu:any_layout",
     cpu::BindFakeQuantDequant},
    {"fake_quantize_dequantize_abs_max", "cpu:any_layout",
     cpu::BindFakeQuantDequant},
    {"moving_average_abs_max_scale", "cpu:any_layout", cpu::BindObserveScale},
    {"stright_throuth_estimator_grad", "cpu:any_layout",
     cpu::BindStraightThrough},
    {"adagrad", "cpu:any_layout", cpu::BindAdagrad, true},
    {"adam", "cpu:any_layout", cpu::BindAdam},
    {"adamw", "cpu:any_layout", cpu::BindAdam},
    {"merged_adagrad", "cpu:any_layout", cpu::BindAdagrad},
    {"merged_adam", "cpu:any_layout", cpu::BindAdam},
    {"merged_adamw", "cpu:any_layout", cpu::BindAdam},
    {"sgd", "cpu:any_layout", cpu::BindSgd},
    {"merged_sgd", "cpu:any_layout", cpu::BindSgd},
    {"momentum", "cpu:any_layout", cpu::BindMomentum},
    {"merged_momentum", "cpu:any_layout", cpu::BindMomentum},
};

}  // namespace

absl::Status AttachCpuKernels(OpRegistry* registry) {
  for (const Entry& e : kEntries) {
    Implementation implementation(e.label, e.bind);
    if (!e.row_major) implementation.TakesLayouts();
    if (e.selected_rows) implementation.TakesSelectedRows();
    PD_RETURN_IF_ERROR(registry->AddImplementation(e.type, implementation));
  }
  return absl::OkStatus();
}

}  // namespace pd
