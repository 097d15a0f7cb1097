// SPDX-License-Identifier: Apache-2.0
// conv2d_transpose, depthwise_conv2d_transpose, conv3d_transpose: the gradient
// of a convolution by its input, as an op. With conv the convolution that has
// the same attributes and reads Output:
//   Output = dconv/dinput (Filter, Input), so Output's extents are
//     (Input's - 1) * stride - paddings + dilation * (kernel - 1) + 1 and what
//     output_padding or output_size add at the end
//   Input@GRAD = conv(Output@GRAD, Filter)
//   Filter@GRAD = dconv/dfilter (Output@GRAD, Input)
// Filter is [inputs, outputs / groups, ...]. An optional Bias is added to each
// output channel.
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/bilinear_grad.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/conv_gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<ConvGeometry> ReadConvTransposeGeometry(const OpDesc& op,
                                                       const Shape& input,
                                                       const Shape& filter) {
  const size_t rank = op.type.rfind("conv3d", 0) == 0 ? 5 : 4;
  if (input.size() != rank)
    return InvalidArgument("'Input' has shape %s; expected rank %d",
                           ToString(input), rank);
  return ReadConvTranspose(op, input, filter);
}

template <typename T>
void AddBias(const ConvGemm& c, const T* bias, T* out) {
  for (int64_t n = 0; n < c.g.batch; ++n)
    for (int64_t i = 0; i < c.g.in_channels; ++i)
      for (int64_t p = 0; p < c.in_size; ++p)
        out[n * c.in.image + i * c.in.channel + p * c.in.position] += bias[i];
}

absl::StatusOr<Step> BindTranspose(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* bias = context->Input("Bias");
  Tensor* output = context->Output("Output");
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConvTransposeGeometry(context->op(), input->shape(),
                                                filter->shape()));
  const DType dtype = input->dtype();
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", dtype, g.in_channels));
  const ConvGemm conv(g);
  Tensor* scratch =
      context->Scratch(static_cast<size_t>(conv.ScratchSize()) * SizeOf(dtype));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ConvBackwardInput<T>(conv, filter->data<T>(), input->data<T>(),
                           output->data<T>(), scratch->data<T>());
      if (bias != nullptr) AddBias<T>(conv, bias->data<T>(), output->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindTransposeGrad(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* din = context->Output("Input@GRAD");
  Tensor* dfilter = context->Output("Filter@GRAD");
  if (dfilter == nullptr) context->NoBuffer(input);
  if (din == nullptr) context->NoBuffer(filter);
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConvTransposeGeometry(context->op(), input->shape(),
                                                filter->shape()));
  const DType dtype = input->dtype();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Filter", dtype, filter->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Output@GRAD", dtype, g.InputShape()));
  const ConvGemm conv(g);
  Tensor* scratch =
      context->Scratch(static_cast<size_t>(conv.ScratchSize()) * SizeOf(dtype));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (din != nullptr)
        ConvForward<T>(conv, dout->data<T>(), filter->data<T>(), din->data<T>(),
                       scratch->data<T>());
      if (dfilter != nullptr)
        ConvBackwardFilter<T>(conv, dout->data<T>(), input->data<T>(),
                              dfilter->data<T>(), scratch->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferTranspose(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  const TensorMeta& filter = context->Input("Filter");
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      ReadConvTransposeGeometry(context->op(), input.shape, filter.shape));
  if (input.dtype != filter.dtype)
    return InvalidArgument("'Input' is %s; 'Filter' is %s", Name(input.dtype),
                           Name(filter.dtype));
  context->SetOutput("Output", g.InputShape(), input.dtype);
  return absl::OkStatus();
}

void AddConvTransposeAttrs(OpDef* def, size_t axes) {
  def->Attr("strides", std::vector<int32_t>(axes, 1))
      .Attr("paddings", std::vector<int32_t>(axes, 0))
      .Attr("output_padding", std::vector<int32_t>{})
      .Attr("output_size", std::vector<int32_t>{})
      .Attr("padding_algorithm", std::string("EXPLICIT"))
      .Attr("dilations", std::vector<int32_t>(axes, 1))
      .Attr("groups", int32_t{1})
      .Attr("data_format", std::string("NCHW"));
}

absl::Status AddTranspose(OpRegistry* registry, const std::string& type,
                          size_t axes) {
  OpDef conv(type);
  conv.Input("Input").Input("Filter").OptionalInput("Bias").Output("Output");
  AddConvTransposeAttrs(&conv, axes);
  conv.Infer(InferTranspose).Reference(BindTranspose);
  conv.Grad(GradSpec{type + "_grad",
                     {"Input", "Filter"},
                     {},
                     {"Output"},
                     {"Input", "Filter"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(conv)));

  OpDef grad(type + "_grad");
  grad.Input("Input").Input("Filter").Input("Output@GRAD");
  grad.OptionalInput("Bias");
  grad.OptionalOutput("Input@GRAD").OptionalOutput("Filter@GRAD");
  AddConvTransposeAttrs(&grad, axes);
  grad.Infer(InferGradLikeInput).Reference(BindTransposeGrad);
  grad.Grad(BilinearSecond(type, {"Input", "Filter", "Output"}));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterConvTranspose(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddTranspose(registry, "conv2d_transpose", 2));
  PD_RETURN_IF_ERROR(AddTranspose(registry, "depthwise_conv2d_transpose", 2));
  return AddTranspose(registry, "conv3d_transpose", 3);
}

}  // namespace pd
