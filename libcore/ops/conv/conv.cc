// SPDX-License-Identifier: Apache-2.0
// conv2d, depthwise_conv2d, conv3d: cross-correlation with filters.
//   Output[n, o, y, x] = sum over i, kh, kw of
//     Filter[o, i, kh, kw] *
//     Input[n, g * I + i, y * stride + kh * dilation - pad, x * ... ]
// with I = channels / groups inputs a group and g the group of o; positions in
// the padding count as 0. conv3d has one more axis.
//   Input@GRAD[n, c, ...]    = the same sum over o and taps of
//                              Filter * Output@GRAD
//   Filter@GRAD[o, i, kh, kw] = sum over n, y, x of Input * Output@GRAD
// Output is linear in Input and in Filter, so the second gradient is
//   grad_out@GRAD = conv(grad_input@GRAD, Filter)
//                   + conv(Input, grad_filter@GRAD)
//   Input@GRAD, Filter@GRAD = the first gradients with grad_filter@GRAD in
//                             place of Filter, grad_input@GRAD of Input
// Filters are [O, I, ...] for both data formats.
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/bilinear_grad.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/conv_gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// "conv3d", "conv3d_grad": 3, else 2.
size_t ConvAxesOf(const OpDesc& op) {
  return op.type.find("3d") != std::string::npos ? 3 : 2;
}

absl::StatusOr<ConvGeometry> ReadConvGeometry(const OpDesc& op,
                                              const Shape& input,
                                              const Shape& filter) {
  const size_t rank = ConvAxesOf(op) + 2;
  if (input.size() != rank)
    return InvalidArgument("'Input' has shape %s; expected rank %d",
                           ToString(input), rank);
  return ReadConv(op, input, filter);
}

Tensor* ScratchFor(BindContext* context, const ConvGemm& conv, DType dtype) {
  return context->Scratch(static_cast<size_t>(conv.ScratchSize()) *
                          SizeOf(dtype));
}

absl::StatusOr<Step> BindConv(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* output = context->Output("Output");
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      ReadConvGeometry(context->op(), input->shape(), filter->shape()));
  const ConvGemm conv(g);
  Tensor* scratch = ScratchFor(context, conv, input->dtype());
  return DispatchFloat(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ConvForward<T>(conv, input->data<T>(), filter->data<T>(),
                     output->data<T>(), scratch->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindConvGrad(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* filter = context->Input("Filter");
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* din = context->Output("Input@GRAD");
  Tensor* dfilter = context->Output("Filter@GRAD");
  if (dfilter == nullptr) context->NoBuffer(input);
  if (din == nullptr) context->NoBuffer(filter);
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      ReadConvGeometry(context->op(), input->shape(), filter->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Filter", input->dtype(), filter->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Output@GRAD", input->dtype(), g.OutputShape()));
  const ConvGemm conv(g);
  Tensor* scratch = ScratchFor(context, conv, input->dtype());
  return DispatchFloat(input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (din != nullptr)
        ConvBackwardInput<T>(conv, filter->data<T>(), dout->data<T>(),
                             din->data<T>(), scratch->data<T>());
      if (dfilter != nullptr)
        ConvBackwardFilter<T>(conv, input->data<T>(), dout->data<T>(),
                              dfilter->data<T>(), scratch->data<T>());
      return absl::OkStatus();
    });
  });
}

// The tensors of the second gradient. Null: a zero, or not wanted.
struct SecondGrad {
  Tensor *input, *filter, *dout, *ddinput, *ddfilter;
  Tensor *ddout, *dinput, *dfilter;
};

void Clear(Tensor* tensor) {
  if (tensor != nullptr && tensor->bytes() > 0)
    std::fill_n(tensor->data<char>(), tensor->bytes(), '\0');
}

template <typename T>
void RunSecond(const ConvGemm& conv, const SecondGrad& t, T* scratch) {
  if (t.ddout != nullptr) {
    if (t.ddinput == nullptr && t.ddfilter == nullptr) Clear(t.ddout);
    if (t.ddinput != nullptr)
      ConvForward<T>(conv, t.ddinput->data<T>(), t.filter->data<T>(),
                     t.ddout->data<T>(), scratch);
    if (t.ddfilter != nullptr)
      ConvForward<T>(conv, t.input->data<T>(), t.ddfilter->data<T>(),
                     t.ddout->data<T>(), scratch, t.ddinput != nullptr);
  }
  if (t.dinput != nullptr) {
    if (t.ddfilter == nullptr)
      Clear(t.dinput);
    else
      ConvBackwardInput<T>(conv, t.ddfilter->data<T>(), t.dout->data<T>(),
                           t.dinput->data<T>(), scratch);
  }
  if (t.dfilter != nullptr) {
    if (t.ddinput == nullptr)
      Clear(t.dfilter);
    else
      ConvBackwardFilter<T>(conv, t.ddinput->data<T>(), t.dout->data<T>(),
                            t.dfilter->data<T>(), scratch);
  }
}

// The slots of the second gradient: as PaddlePaddle 2.3 calls them, and 2.6.
struct SecondSlots {
  const char *dout, *ddinput, *ddfilter, *ddout, *dinput, *dfilter;
};
constexpr SecondSlots kOldSlots = {"DOutput",  "DDInput", "DDFilter",
                                   "DDOutput", "DInput",  "DFilter"};
constexpr SecondSlots kNewSlots = {"grad_out",         "grad_input@GRAD",
                                   "grad_filter@GRAD", "grad_out@GRAD",
                                   "Input@GRAD",       "Filter@GRAD"};

const SecondSlots& SlotsOf(const OpDesc& op) {
  return op.Input(kOldSlots.dout).empty() ? kNewSlots : kOldSlots;
}

absl::StatusOr<Step> BindConvGradGrad(BindContext* context) {
  const SecondSlots& slots = SlotsOf(context->op());
  SecondGrad t;
  t.input = context->Input("Input");
  t.filter = context->Input("Filter");
  t.dout = context->Input(slots.dout);
  t.ddinput = context->Input(slots.ddinput);
  t.ddfilter = context->Input(slots.ddfilter);
  t.ddout = context->Output(slots.ddout);
  t.dinput = context->Output(slots.dinput);
  t.dfilter = context->Output(slots.dfilter);
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      ReadConvGeometry(context->op(), t.input->shape(), t.filter->shape()));
  const DType dtype = t.input->dtype();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Filter", dtype, t.filter->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, slots.dout, dtype, g.OutputShape()));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, slots.ddinput, dtype, t.input->shape()));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, slots.ddfilter, dtype, t.filter->shape()));
  const ConvGemm conv(g);
  Tensor* scratch = ScratchFor(context, conv, dtype);
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      RunSecond<T>(conv, t, scratch->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferConv(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  const TensorMeta& filter = context->Input("Filter");
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      ReadConvGeometry(context->op(), input.shape, filter.shape));
  if (input.dtype != filter.dtype)
    return InvalidArgument("'Input' is %s; 'Filter' is %s", Name(input.dtype),
                           Name(filter.dtype));
  context->SetOutput("Output", g.OutputShape(), input.dtype);
  return absl::OkStatus();
}

absl::Status InferGradGrad(InferContext* context) {
  const SecondSlots& slots = SlotsOf(context->op());
  if (!context->HasInput(slots.dout))
    return InvalidArgument("'%s' is missing", slots.dout);
  context->Share("Input", slots.dinput);
  context->Share("Filter", slots.dfilter);
  context->Share(slots.dout, slots.ddout);
  return absl::OkStatus();
}

std::string GradOrEmpty(const GradRequest& request, const std::string& name) {
  return request.needs_grad(name) ? GradName(name) : std::string(kEmptyVar);
}

// The gradient op of a gradient op: it wants the gradients of Input@GRAD and of
// Filter@GRAD, those of them that exist.
absl::StatusOr<std::vector<OpDesc>> MakeConvGradGrad(
    const GradRequest& request) {
  const OpDesc& op = request.op;
  OpDesc second;
  second.type = op.type + "_grad";
  second.attrs = op.attrs;
  second.SetInput("Input", op.Input("Input"));
  second.SetInput("Filter", op.Input("Filter"));
  second.SetInput(kNewSlots.dout, op.Input("Output@GRAD"));
  const std::pair<const char*, const char*> seconds[] = {
      {"Input@GRAD", kNewSlots.ddinput}, {"Filter@GRAD", kNewSlots.ddfilter}};
  for (const auto& [first, slot] : seconds)
    if (!op.Output(first).empty() && op.Output(first)[0] != kEmptyVar)
      second.SetInput(slot, {GradName(op.Output(first)[0])});
  const std::pair<const char*, const char*> wanted[] = {
      {"Output@GRAD", kNewSlots.ddout},
      {"Input", kNewSlots.dinput},
      {"Filter", kNewSlots.dfilter}};
  bool needed = false;
  for (const auto& [from, slot] : wanted) {
    const std::string name = GradOrEmpty(request, op.Input(from)[0]);
    needed = needed || name != kEmptyVar;
    second.SetOutput(slot, {name});
  }
  std::vector<OpDesc> ops;
  if (needed) ops.push_back(std::move(second));
  return ops;
}

void AddConvAttrs(OpDef* def, size_t axes) {
  def->Attr("strides", std::vector<int32_t>(axes, 1))
      .Attr("paddings", std::vector<int32_t>(axes, 0))
      .Attr("padding_algorithm", std::string("EXPLICIT"))
      .Attr("dilations", std::vector<int32_t>(axes, 1))
      .Attr("groups", int32_t{1})
      .Attr("data_format", std::string(axes == 2 ? "NCHW" : "NCDHW"));
}

absl::Status AddConv(OpRegistry* registry, const std::string& type,
                     size_t axes) {
  OpDef conv(type);
  conv.Input("Input").Input("Filter").Output("Output");
  AddConvAttrs(&conv, axes);
  conv.Infer(InferConv).Reference(BindConv);
  conv.Grad(GradSpec{type + "_grad",
                     {"Input", "Filter"},
                     {},
                     {"Output"},
                     {"Input", "Filter"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(conv)));

  OpDef grad(type + "_grad");
  grad.Input("Input").Input("Filter").Input("Output@GRAD");
  grad.OptionalOutput("Input@GRAD").OptionalOutput("Filter@GRAD");
  AddConvAttrs(&grad, axes);
  grad.Infer(InferGradLikeInput).Reference(BindConvGrad);
  grad.Grad(GradMaker(MakeConvGradGrad));
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef second(type + "_grad_grad");
  second.Input("Input").Input("Filter");
  for (const SecondSlots& slots : {kOldSlots, kNewSlots}) {
    for (const char* slot : {slots.dout, slots.ddinput, slots.ddfilter})
      second.OptionalInput(slot);
    for (const char* slot : {slots.ddout, slots.dinput, slots.dfilter})
      second.OptionalOutput(slot);
  }
  AddConvAttrs(&second, axes);
  second.Infer(InferGradGrad).Reference(BindConvGradGrad);
  second.Grad(
      BilinearThird(type + "_grad",
                    {kNewSlots.dout, kNewSlots.ddinput, kNewSlots.ddfilter,
                     kNewSlots.ddout, kNewSlots.dinput, kNewSlots.dfilter},
                    {"Input", "Filter", "Output"}));
  return registry->Add(std::move(second));
}

}  // namespace

absl::Status RegisterConv(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddConv(registry, "conv2d", 2));
  PD_RETURN_IF_ERROR(AddConv(registry, "depthwise_conv2d", 2));
  return AddConv(registry, "conv3d", 3);
}

}  // namespace pd
