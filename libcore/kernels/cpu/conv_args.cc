// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/conv_args.h"

#include <limits>
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/blocked_channels.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace cpu {

absl::StatusOr<ConvVariables> BindConvVariables(BindContext* context) {
  const OpDesc& op = context->op();
  ConvVariables v;
  const std::string activation = op.AttrOr<std::string>("fuse_activation", "");
  if (!activation.empty() && activation != "relu" && activation != "relu6")
    return Unimplemented("it has no activation '%s'", activation);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  v.low = activation.empty() ? -kInfinity : 0;
  v.high = activation == "relu6" ? op.Attr<float>("fuse_alpha") : kInfinity;
  v.y = context->Output("Output");
  const LayoutPtr layout = BlockedChannels(v.y->shape());
  v.bias = context->Input("Bias");
  if (v.bias != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Bias", DType::kFloat32, v.y->dim(1)));
  v.residual = context->Input("ResidualData");
  if (v.residual != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "ResidualData", DType::kFloat32, v.y->shape()));
  v.x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(v.x, context->In(v.x, BlockedChannels(v.x->shape())));
  PD_ASSIGN_OR_RETURN(v.y, context->Out(v.y, layout));
  if (v.residual != nullptr) {
    PD_ASSIGN_OR_RETURN(v.residual, context->In(v.residual, layout));
  }
  return v;
}

ConvArgs ConvVariables::Args() const {
  ConvArgs args;
  args.x = x->data<float>();
  args.bias = bias != nullptr ? bias->data<float>() : nullptr;
  args.residual = residual != nullptr ? residual->data<float>() : nullptr;
  args.low = low;
  args.high = high;
  args.y = y->data<float>();
  return args;
}

}  // namespace cpu
}  // namespace pd
