// SPDX-License-Identifier: Apache-2.0
// The list of oneDNN's implementations, in the order in which they are asked.
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"

namespace pd {

absl::Status AttachOnednnKernels(OpRegistry* registry) {
  struct Entry {
    const char *type, *label;
    BindFn bind;
  };
  const Entry kEntries[] = {
      {"conv2d", "onednn", onednn::BindConv},
      {"conv2d_grad", "onednn", onednn::BindConvGrad},
      {"depthwise_conv2d", "onednn", onednn::BindConv},
      {"depthwise_conv2d_grad", "onednn", onednn::BindConvGrad},
      {"fused_conv2d", "onednn", onednn::BindConv},
      {"fused_conv2d_grad", "onednn", onednn::BindConvGrad},
      {"conv3d", "onednn", onednn::BindConv},
      {"conv3d_grad", "onednn", onednn::BindConvGrad},
      {"conv2d_transpose", "onednn", onednn::BindConvTranspose},
      {"conv2d_transpose_grad", "onednn", onednn::BindConvTransposeGrad},
      {"conv3d_transpose", "onednn", onednn::BindConvTranspose},
      {"conv3d_transpose_grad", "onednn", onednn::BindConvTransposeGrad},
      {"pool2d", "onednn", onednn::BindPool},
      {"pool2d_grad", "onednn", onednn::BindPoolGrad},
      {"matmul_v2", "onednn:inner_product", onednn::BindInnerProduct},
      {"matmul_v2_grad", "onednn:inner_product", onednn::BindInnerProductGrad},
      {"matmul_v2", "onednn:matmul", onednn::BindMatmul},
      {"matmul_v2_grad", "onednn:matmul", onednn::BindMatmulGrad},
      {"matmul", "onednn:matmul", onednn::BindMatmul},
      {"matmul_grad", "onednn:matmul", onednn::BindMatmulGrad},
      {"bmm", "onednn:matmul", onednn::BindMatmul},
      {"bmm_grad", "onednn:matmul", onednn::BindMatmulGrad},
      {"addmm", "onednn:gemm", onednn::BindAddmm},
      {"addmm_grad", "onednn:gemm", onednn::BindAddmmGrad},
      {"rnn", "onednn:gemm", onednn::BindRnn},
      {"rnn_grad", "onednn:gemm", onednn::BindRnnGrad},
      {"scaled_dot_product_attention", "onednn:gemm", onednn::BindAttention},
      {"scaled_dot_product_attention_grad", "onednn:gemm",
       onednn::BindAttentionGrad},
      {"mul", "onednn:inner_product", onednn::BindInnerProduct},
      {"mul_grad", "onednn:inner_product", onednn::BindInnerProductGrad},
      {"fused_gemm_epilogue", "onednn:inner_product", onednn::BindInnerProduct},
      {"fused_gemm_epilogue_grad", "onednn:inner_product",
       onednn::BindInnerProductGrad},
  };
  for (const Entry& e : kEntries)
    PD_RETURN_IF_ERROR(registry->AddImplementation(
        e.type, Implementation(e.label, e.bind).TakesLayouts()));
  return onednn::CompileSgemm();
}

}  // namespace pd
