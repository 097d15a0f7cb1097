// SPDX-License-Identifier: Apache-2.0
// Convolutions, transposed ones, and their gradients by cuDNN: each result is
// one of the three parts of a convolution. A convolution with a bias, a
// residual and an activation is one graph of cuDNN's where it has an engine for
// that, else a convolution and a kernel (conv.cu). cuDNN's paddings are the
// same before and after: where they differ, it works on a padded copy of the
// input.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/flags.h"
#include "libcore/device/cudnn_convolution.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/conv_arguments.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd::cuda {
namespace {

// A convolution, and what its input has before each axis where that is a padded
// copy; then c.input is the copy's shape.
struct Described {
  Convolution c;
  bool padded = false;
  Shape inside;  // of the middle part of the copy: [batch, channels, ...]
  std::vector<int64_t> before;
};

// Whether cuDNN knows the paddings. What is left of the input behind the last
// window is not read.
bool SamePaddings(const ConvGeometry& g) {
  for (const WindowAxis& axis : g.axes) {
    const int64_t window = axis.dilation * (axis.kernel - 1) + 1;
    const int64_t space = axis.in + 2 * axis.pad_before - window;
    if (axis.pad_before < 0 || space < 0 || space / axis.stride + 1 != axis.out)
      return false;
  }
  return true;
}

absl::StatusOr<Described> Describe(const ConvGeometry& g, const Shape& filter,
                                   DType dtype) {
  Described d;
  Convolution& c = d.c;
  d.padded = !SamePaddings(g);
  c.input = d.inside = {g.batch, g.in_channels};
  c.output = {g.batch, g.out_channels};
  c.filter = filter;
  for (const WindowAxis& axis : g.axes) {
    if (d.padded && (axis.pad_before < 0 || axis.pad_after < 0))
      return Unimplemented("paddings of %d and %d", axis.pad_before,
                           axis.pad_after);
    d.inside.push_back(axis.in);
    d.before.push_back(axis.pad_before);
    c.input.push_back(axis.in +
                      (d.padded ? axis.pad_before + axis.pad_after : 0));
    c.output.push_back(axis.out);
    c.paddings.push_back(d.padded ? 0 : axis.pad_before);
    c.strides.push_back(axis.stride);
    c.dilations.push_back(axis.dilation);
  }
  if (NumElements(c.input) == 0 || NumElements(c.output) == 0 ||
      NumElements(c.filter) == 0)
    return Unimplemented("a convolution of nothing");
  c.groups = g.groups;
  c.channels_last = g.channels_last;
  c.dtype = dtype;
  c.tf32 = GetFlag<bool>("FLAGS_enable_cublas_tensor_op_math");
  c.deterministic = GetFlag<bool>("FLAGS_cudnn_deterministic");
  c.exhaustive = GetFlag<bool>("FLAGS_cudnn_exhaustive_search");
  const int64_t limit = GetFlag<int64_t>("FLAGS_conv_workspace_size_limit");
  c.most_workspace = static_cast<size_t>(std::max<int64_t>(limit, 0)) << 20;
  return d;
}

// From the tensor to the middle of its padded copy, or back.
absl::StatusOr<Step> CopyInside(DeviceBinding* binding, const Described& d,
                                Tensor* inside, Tensor* padded, bool back) {
  const size_t rank = d.inside.size();
  std::vector<size_t> order = {0};  // of the axes in memory
  for (size_t i = 2; i < rank; ++i) order.push_back(i);
  order.insert(d.c.channels_last ? order.end() : order.begin() + 1, 1);
  Shape small, large;
  for (const size_t axis : order) {
    small.push_back(d.inside[axis]);
    large.push_back(d.c.input[axis]);
  }
  const auto in = RowMajorStrides(small), out = RowMajorStrides(large);
  StridedCopy copy{back ? padded : inside, back ? inside : padded,
                   NumElements(small)};
  copy.bytes = SizeOf(d.c.dtype);
  int64_t& start = back ? copy.from_start : copy.to_start;
  for (size_t i = 0; i < rank; ++i) {
    if (order[i] >= 2) start += d.before[order[i] - 2] * out[i];
    if (!AddExtent<2>(small[i], {back ? out[i] : in[i], back ? in[i] : out[i]},
                      &copy.walk))
      return TooManyDims();
  }
  return BindCopy(binding, copy);
}

Tensor* PaddedScratch(BindContext* context, const Described& d) {
  return context->Scratch(static_cast<size_t>(NumElements(d.c.input)) *
                          SizeOf(d.c.dtype));
}

// The convolution's input: `tensor`, or a padded copy.
absl::StatusOr<Tensor*> Padded(BindContext* context, DeviceBinding* binding,
                               const Described& d, Tensor* tensor,
                               std::vector<Step>* steps) {
  if (!d.padded || tensor == nullptr) return tensor;
  Tensor* const padded = PaddedScratch(context, d);
  steps->emplace_back([=, device = CudaOf(binding)](const RunContext&) {
    return device->Clear(padded->raw(), padded->bytes());
  });
  PD_ASSIGN_OR_RETURN(Step copy, CopyInside(binding, d, tensor, padded, false));
  steps->push_back(std::move(copy));
  return padded;
}

struct PartTensors {
  Tensor *first, *second, *result;
};

absl::StatusOr<Step> RunPart(BindContext* context, DeviceBinding* binding,
                             const Convolution& c, ConvolutionPart part,
                             const PartTensors& t) {
  PD_ASSIGN_OR_RETURN(auto bound, BindConvolution(CudaOf(binding), c, part));
  Tensor* workspace =
      bound->workspace() == 0 ? nullptr : context->Scratch(bound->workspace());
  return Step([=, bound = std::move(bound)](const RunContext&) {
    return bound->Run({t.first->raw(), t.second->raw(), t.result->raw()},
                      RawOrNull(workspace));
  });
}

// Nothing when nobody wants the result. `first` is the input, or of its
// gradient the filter.
absl::StatusOr<Step> BindConvPart(BindContext* context, DeviceBinding* binding,
                                  const Described& d, ConvolutionPart part,
                                  PartTensors t) {
  if (t.result == nullptr) return Step();
  for (const Tensor* tensor : {t.first, t.second, t.result})
    if (tensor == nullptr || tensor->dtype() != d.c.dtype)
      return Unimplemented("a variable is missing or of another dtype");
  std::vector<Step> steps;
  Tensor* const result = t.result;
  const bool crops = d.padded && part == ConvolutionPart::kInput;
  if (crops) t.result = PaddedScratch(context, d);
  if (part != ConvolutionPart::kInput) {
    PD_ASSIGN_OR_RETURN(t.first, Padded(context, binding, d, t.first, &steps));
  }
  PD_ASSIGN_OR_RETURN(Step step, RunPart(context, binding, d.c, part, t));
  steps.push_back(std::move(step));
  if (crops) {
    PD_ASSIGN_OR_RETURN(Step crop,
                        CopyInside(binding, d, result, t.result, true));
    steps.push_back(std::move(crop));
  }
  return InOrder(std::move(steps));
}

bool IsTransposed(const OpDesc& op) {
  return op.type.find("_transpose") != std::string::npos;
}

absl::StatusOr<Described> ReadOp(const BindContext& context) {
  const Tensor *input = context.Input("Input"),
               *filter = context.Input("Filter");
  if (input == nullptr || filter == nullptr)
    return Unimplemented("a variable is missing");
  const OpDesc& op = context.op();
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      IsTransposed(op) ? ReadConvTranspose(op, input->shape(), filter->shape())
                       : ReadConv(op, input->shape(), filter->shape()));
  return Describe(g, filter->shape(), input->dtype());
}

// The tensors of a convolution, each as its op lists it; null: there is none.
struct InLayouts {
  std::vector<Tensor**> images, filters;     // inputs
  std::vector<Tensor**> made, made_filters;  // outputs
};

// Tensor cores read channels last: images that are row-major in the program
// have copies of that kind for whatever goes there. float32 does so where the
// channels are whole vectors of 16 bytes, or the few of a picture: a network of
// others is quicker without copies.
bool WantsChannelsLast(const Convolution& c) {
  if (c.input.size() != 4 || c.channels_last) return false;
  if (c.dtype != DType::kFloat32) return true;
  const int64_t in = c.input[1], out = c.output[1];
  return c.tf32 && out % 4 == 0 && (in % 4 == 0 || in < 4);
}

// cuDNN's engines are for filters that lie as the images do, so filters of
// images that have channels last in the program are rearranged, too.
absl::Status AskForLayouts(BindContext* context, bool last, Convolution* c,
                           const InLayouts& t) {
  if (last && !WantsChannelsLast(*c))
    return Unimplemented("channels last are for images on tensor cores");
  const bool filters = last || c->channels_last;
  if (last) c->channels_last = true;
  const auto layout = [](bool wanted, const Tensor* tensor) {
    return wanted ? ChannelsLast(tensor->shape()) : nullptr;
  };
  for (const auto& [tensors, wanted] :
       {std::pair(&t.images, last), std::pair(&t.filters, filters)})
    for (Tensor** tensor : *tensors)
      if (*tensor != nullptr) {
        PD_ASSIGN_OR_RETURN(*tensor,
                            context->In(*tensor, layout(wanted, *tensor)));
      }
  for (const auto& [tensors, wanted] :
       {std::pair(&t.made, last), std::pair(&t.made_filters, filters)})
    for (Tensor** tensor : *tensors)
      if (*tensor != nullptr) {
        PD_ASSIGN_OR_RETURN(*tensor,
                            context->Out(*tensor, layout(wanted, *tensor)));
      }
  return absl::OkStatus();
}

template <bool kLast>
absl::StatusOr<Step> BindConv(BindContext* context, DeviceBinding* binding) {
  if (context->Input("Bias") != nullptr)
    return Unimplemented("an input 'Bias'");
  PD_ASSIGN_OR_RETURN(Described d, ReadOp(*context));
  Tensor *input = context->Input("Input"), *filter = context->Input("Filter"),
         *output = context->Output("Output");
  PD_RETURN_IF_ERROR(AskForLayouts(context, kLast, &d.c,
                                   {{&input}, {&filter}, {&output}, {}}));
  if (IsTransposed(context->op()))
    return BindConvPart(context, binding, d, ConvolutionPart::kInput,
                        {filter, input, output});
  return BindConvPart(context, binding, d, ConvolutionPart::kOutput,
                      {input, filter, output});
}

template <bool kLast>
absl::StatusOr<Step> BindConvGrad(BindContext* context,
                                  DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(Described d, ReadOp(*context));
  Tensor *input = context->Input("Input"), *filter = context->Input("Filter"),
         *dout = context->Input("Output@GRAD"),
         *din = context->Output("Input@GRAD"),
         *dfilter = context->Output("Filter@GRAD");
  const bool transposed = IsTransposed(context->op());
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Output@GRAD", d.c.dtype,
                     NumElements(transposed ? d.inside : d.c.output)));
  if (dfilter == nullptr) context->NoBuffer(std::exchange(input, nullptr));
  if (din == nullptr) context->NoBuffer(std::exchange(filter, nullptr));
  PD_RETURN_IF_ERROR(AskForLayouts(
      context, kLast, &d.c, {{&input, &dout}, {&filter}, {&din}, {&dfilter}}));
  std::vector<Step> steps;
  PD_ASSIGN_OR_RETURN(
      Step by_input,
      transposed ? BindConvPart(context, binding, d, ConvolutionPart::kOutput,
                                {dout, filter, din})
                 : BindConvPart(context, binding, d, ConvolutionPart::kInput,
                                {filter, dout, din}));
  PD_ASSIGN_OR_RETURN(
      Step by_filter,
      transposed ? BindConvPart(context, binding, d, ConvolutionPart::kFilter,
                                {dout, input, dfilter})
                 : BindConvPart(context, binding, d, ConvolutionPart::kFilter,
                                {input, dout, dfilter}));
  for (Step* step : {&by_input, &by_filter})
    if (*step != nullptr) steps.push_back(std::move(*step));
  return InOrder(std::move(steps));
}

// Input, filter, residual, bias and output; null: there is none.
struct ConvTensors {
  Tensor *input, *filter, *residual, *bias, *output;
};

Step GraphStep(BindContext* context,
               std::shared_ptr<const BoundConvolution> graph,
               const ConvTensors& t) {
  Tensor* workspace =
      graph->workspace() == 0 ? nullptr : context->Scratch(graph->workspace());
  return Step([=, graph = std::move(graph)](const RunContext&) {
    return graph->Run({t.input->raw(), t.filter->raw(), t.output->raw(),
                       RawOrNull(t.residual), RawOrNull(t.bias)},
                      RawOrNull(workspace));
  });
}

absl::StatusOr<Step> TailStep(DeviceBinding* binding, const Convolution& c,
                              const ConvolutionTail& tail,
                              const ConvTensors& t) {
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<ConvTailArgs>::Find(binding, "conv_tail"));
  ConvTailArgs args{};
  PD_ASSIGN_OR_RETURN(args.type, NumberTypeOf(c.dtype));
  args.n = NumElements(c.output);
  args.channels = c.output[1];
  args.inner = c.channels_last ? 1 : NumElements(c.output, 2, c.output.size());
  args.relu = tail.relu ? 1 : 0;
  args.top = tail.top;
  return Step([=](const RunContext&) {
    ConvTailArgs run = args;
    run.out = RawOrNull(t.output);
    run.residual = RawOrNull(t.residual);
    run.bias = RawOrNull(t.bias);
    return start.Elements(run.n, run);
  });
}

template <bool kLast>
absl::StatusOr<Step> BindFused(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(Described d, ReadOp(*context));
  const Convolution& c = d.c;
  ConvTensors t = {context->Input("Input"), context->Input("Filter"),
                   context->Input("ResidualData"), context->Input("Bias"),
                   context->Output("Output")};
  PD_RETURN_IF_ERROR(
      SameFloats({t.input, t.filter, t.residual, t.bias, t.output}));
  if (t.bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", c.dtype, c.output[1]));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "ResidualData", c.dtype,
                                         t.output->shape()));
  const OpDesc& op = context->op();
  const std::string activation = op.Attr<std::string>("fuse_activation");
  ConvolutionTail tail;
  tail.residual = t.residual != nullptr;
  tail.bias = t.bias != nullptr;
  tail.relu = !activation.empty();
  if (activation == "relu6") tail.top = op.Attr<float>("fuse_alpha");
  if (t.bias != nullptr) {
    PD_ASSIGN_OR_RETURN(t.bias, context->In(t.bias, nullptr));
  }
  PD_RETURN_IF_ERROR(
      AskForLayouts(context, kLast, &d.c,
                    {{&t.input, &t.residual}, {&t.filter}, {&t.output}, {}}));
  std::vector<Step> steps;
  PD_ASSIGN_OR_RETURN(t.input, Padded(context, binding, d, t.input, &steps));
  auto graph =
      BindConvolution(CudaOf(binding), c, ConvolutionPart::kOutput, tail);
  if (graph.ok()) {
    steps.push_back(GraphStep(context, *std::move(graph), t));
    return InOrder(std::move(steps));
  }
  if (!absl::IsUnimplemented(graph.status())) return graph.status();
  PD_ASSIGN_OR_RETURN(Step conv,
                      RunPart(context, binding, c, ConvolutionPart::kOutput,
                              {t.input, t.filter, t.output}));
  PD_ASSIGN_OR_RETURN(Step rest, TailStep(binding, c, tail, t));
  steps.push_back(std::move(conv));
  steps.push_back(std::move(rest));
  return InOrder(std::move(steps));
}

}  // namespace

void AddConv(KernelTable* kernels) {
  for (const std::string type :
       {"conv2d", "depthwise_conv2d", "conv3d", "conv2d_transpose",
        "depthwise_conv2d_transpose", "conv3d_transpose"}) {
    kernels->Add(type, AnyLayout("cudnn", BindConv<true>));
    kernels->Add(type, AnyLayout("cudnn", BindConv<false>));
    kernels->Add(type + "_grad", AnyLayout("cudnn", BindConvGrad<true>));
    kernels->Add(type + "_grad", AnyLayout("cudnn", BindConvGrad<false>));
  }
  kernels->Add("fused_conv2d", AnyLayout("cudnn", BindFused<true>));
  kernels->Add("fused_conv2d", AnyLayout("cudnn", BindFused<false>));
}

}  // namespace pd::cuda
