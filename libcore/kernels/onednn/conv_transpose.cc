// SPDX-License-Identifier: Apache-2.0
// conv2d_transpose and conv3d_transpose through oneDNN's convolution with the
// roles swapped: the result is the gradient by the convolution's source, and
// the gradient by Input is the convolution forwards.
#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace onednn {
namespace {

// The convolution whose source is Output and whose destination is Input.
absl::StatusOr<Convolution> ReadConvTransposeProblem(BindContext* context) {
  const Tensor* x = context->Input("Input");
  const Tensor* w = context->Input("Filter");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConvTranspose(context->op(), x->shape(), w->shape()));
  if (g.channels_last) return Unimplemented("it is for NCHW");
  if (g.groups != 1) return Unimplemented("it is for one group");
  if (context->Input("Bias") != nullptr)
    return Unimplemented("it adds no bias");
  Convolution c;
  c.src.shape = g.InputShape();
  c.dst.shape = g.OutputShape();
  c.weights.shape = w->shape();
  if (x->size() == 0 || NumElements(c.src.shape) == 0)
    return Unimplemented("the image is empty");
  c.src.any = c.dst.any = c.weights.any = true;
  for (const WindowAxis& axis : g.axes) {
    // Going forwards, the convolution must have the extents of Input.
    const int64_t span = axis.dilation * (axis.kernel - 1) + 1;
    const int64_t room = axis.in + axis.pad_before + axis.pad_after - span;
    if (room / axis.stride + 1 != axis.out)
      return Unimplemented("output_padding is a stride or more");
    c.strides.push_back(axis.stride);
    c.dilations.push_back(axis.dilation);
    c.pad_before.push_back(axis.pad_before);
    c.pad_after.push_back(axis.pad_after);
  }
  return c;
}

}  // namespace

absl::StatusOr<Step> BindConvTranspose(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Convolution c, ReadConvTransposeProblem(context));
  // In training it rounds as little as it can, as conv2d does.
  c.winograd = !context->IsTraining();
  PD_ASSIGN_OR_RETURN(PrimitivePtr data, ConvolutionBackwardData(c));
  PD_RETURN_IF_ERROR(
      BindIn(context, data.get(), Arg::kDiffDst, context->Input("Input")));
  PD_RETURN_IF_ERROR(
      BindIn(context, data.get(), Arg::kWeights, context->Input("Filter")));
  PD_RETURN_IF_ERROR(
      BindOut(context, data.get(), Arg::kDiffSrc, context->Output("Output")));
  BindScratchpad(context, data.get());
  return Step([data](const RunContext&) { return data->Run(); });
}

absl::StatusOr<Step> BindConvTransposeGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Convolution c, ReadConvTransposeProblem(context));
  c.winograd = true;
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* din = context->Output("Input@GRAD");
  Tensor* dfilter = context->Output("Filter@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Output@GRAD", DType::kFloat32, c.src.shape));
  PrimitivePtr data, weights;
  if (din != nullptr) {
    PD_ASSIGN_OR_RETURN(data, ConvolutionForward(c));
    PD_RETURN_IF_ERROR(BindIn(context, data.get(), Arg::kSrc, dout));
    PD_RETURN_IF_ERROR(BindIn(context, data.get(), Arg::kWeights, filter));
    PD_RETURN_IF_ERROR(BindOut(context, data.get(), Arg::kDst, din));
    BindScratchpad(context, data.get());
  } else {
    context->NoBuffer(filter);
  }
  if (dfilter != nullptr) {
    PD_ASSIGN_OR_RETURN(weights, ConvolutionBackwardWeights(c));
    PD_RETURN_IF_ERROR(BindIn(context, weights.get(), Arg::kSrc, dout));
    PD_RETURN_IF_ERROR(BindIn(context, weights.get(), Arg::kDiffDst, input));
    PD_RETURN_IF_ERROR(
        BindOut(context, weights.get(), Arg::kDiffWeights, dfilter));
    BindScratchpad(context, weights.get());
  } else {
    context->NoBuffer(input);
  }
  return Step([=](const RunContext&) -> absl::Status {
    if (data != nullptr) PD_RETURN_IF_ERROR(data->Run());
    return weights != nullptr ? weights->Run() : absl::OkStatus();
  });
}

}  // namespace onednn
}  // namespace pd
