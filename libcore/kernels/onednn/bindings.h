// SPDX-License-Identifier: Apache-2.0
// The bind functions of this room, for its list in attach_onednn.cc.
#ifndef PD_LIBCORE_KERNELS_ONEDNN_BINDINGS_H_
#define PD_LIBCORE_KERNELS_ONEDNN_BINDINGS_H_

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {
namespace onednn {

// matmul_v2, mul, fused_gemm_epilogue with a matrix of weights, and their
// gradients.
absl::StatusOr<Step> BindInnerProduct(BindContext* context);
absl::StatusOr<Step> BindInnerProductGrad(BindContext* context);

// matmul_v2, matmul and bmm of matrices, and their gradients.
absl::StatusOr<Step> BindMatmul(BindContext* context);
absl::StatusOr<Step> BindMatmulGrad(BindContext* context);

// scaled_dot_product_attention.
absl::StatusOr<Step> BindAttention(BindContext* context);
absl::StatusOr<Step> BindAttentionGrad(BindContext* context);

// addmm.
absl::StatusOr<Step> BindAddmm(BindContext* context);
absl::StatusOr<Step> BindAddmmGrad(BindContext* context);

// rnn.
absl::StatusOr<Step> BindRnn(BindContext* context);
absl::StatusOr<Step> BindRnnGrad(BindContext* context);

// conv2d, depthwise_conv2d, fused_conv2d, conv3d and their gradients.
absl::StatusOr<Step> BindConv(BindContext* context);
absl::StatusOr<Step> BindConvGrad(BindContext* context);
// conv2d_transpose, conv3d_transpose and their gradients.
absl::StatusOr<Step> BindConvTranspose(BindContext* context);
absl::StatusOr<Step> BindConvTransposeGrad(BindContext* context);
// pool2d.
absl::StatusOr<Step> BindPool(BindContext* context);
absl::StatusOr<Step> BindPoolGrad(BindContext* context);
}  // namespace onednn
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_ONEDNN_BINDINGS_H_
