// SPDX-License-Identifier: Apache-2.0
// The bind functions of this room, for its list in attach_int8.cc.
#ifndef PD_LIBCORE_KERNELS_INT8_BINDINGS_H_
#define PD_LIBCORE_KERNELS_INT8_BINDINGS_H_

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {
namespace int8 {

absl::StatusOr<Step> BindConv(BindContext* context);
absl::StatusOr<Step> BindDepthwise(BindContext* context);
absl::StatusOr<Step> BindTranspose(BindContext* context);
absl::StatusOr<Step> BindMatmul(BindContext* context);
absl::StatusOr<Step> BindDynamicMatmul(BindContext* context);
absl::StatusOr<Step> BindDynamicRnn(BindContext* context);
absl::StatusOr<Step> BindMap(BindContext* context);
absl::StatusOr<Step> BindElementwise(BindContext* context);
absl::StatusOr<Step> BindConcat(BindContext* context);
absl::StatusOr<Step> BindSplit(BindContext* context);
absl::StatusOr<Step> BindPool(BindContext* context);
absl::StatusOr<Step> BindNearest(BindContext* context);
absl::StatusOr<Step> BindPoolFloats(BindContext* context);

/// NHWC of a shape [N, C, H, W]; row-major of others.
LayoutPtr ChannelsLast(const Shape& shape);

}  // namespace int8
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_INT8_BINDINGS_H_
