// SPDX-License-Identifier: Apache-2.0
// Batch norm and pooling; the kernels are in images.cu.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/ops/check.h"
#include "libcore/ops/max_pool_with_index.h"
#include "libcore/ops/window.h"

namespace pd::cuda {
namespace {

bool IsLastInProgram(const OpDesc& op, const Shape& shape) {
  return shape.size() > 2 &&
         op.AttrOr<std::string>("data_layout", "NCHW") == "NHWC";
}

// X as channels; `constant` is set where the running statistics are used.
absl::StatusOr<ChannelArgs> ReadChannels(const BindContext& context,
                                         const Tensor& x) {
  const OpDesc& op = context.op();
  const Shape& shape = x.shape();
  if (shape.size() < 2) return Unimplemented("X has shape %s", ToString(shape));
  const bool last = IsLastInProgram(op, shape);
  ChannelArgs a{};
  a.channels = last ? shape.back() : shape[1];
  a.positions = last ? NumElements(shape, 1, shape.size() - 1)
                     : NumElements(shape, 2, shape.size());
  a.last = last || x.layout() != nullptr;
  a.chunk = a.last ? kLastChunk : kChannelChunk;
  a.count = shape[0] * a.positions;
  if (a.count < 1 || a.count > INT32_MAX || a.channels < 1)
    return Unimplemented("%d elements of a channel", a.count);
  a.chunks = (a.count + a.chunk - 1) / a.chunk;
  a.epsilon = op.AttrOr("epsilon", 1e-5f);
  a.keep = op.AttrOr("momentum", 0.9f);
  a.constant = op.AttrOr("use_global_stats", false) ||
               (op.AttrOr("is_test", false) &&
                !op.AttrOr("trainable_statistics", false));
  if (!a.constant && a.count == 1)
    return Unimplemented("channels of one element");
  return a;
}

// The layout of X is that of all images; channels that are last in the program
// are so in memory.
absl::Status AskForImages(BindContext* context,
                          std::initializer_list<Tensor**> inputs,
                          std::initializer_list<Tensor**> outputs) {
  Tensor* const x = **inputs.begin();
  const LayoutPtr layout =
      IsLastInProgram(context->op(), x->shape()) ? nullptr : x->layout();
  for (Tensor** input : inputs) {
    PD_ASSIGN_OR_RETURN(*input, context->In(*input, layout));
  }
  for (Tensor** output : outputs)
    if (*output != nullptr) {
      PD_ASSIGN_OR_RETURN(*output, context->Out(*output, layout));
    }
  return absl::OkStatus();
}

// A block for each chunk, or a thread.
absl::Status StartChunks(const Starter<ChannelArgs>& start,
                         const ChannelArgs& args) {
  const int64_t chunks = args.channels * args.chunks;
  return args.last ? start.Elements(chunks, args) : start.Items(chunks, args);
}

Tensor* PartsOf(BindContext* context, const ChannelArgs& a) {
  return context->Scratch(static_cast<size_t>(a.channels * a.chunks) * 2 *
                          sizeof(float));
}

// What nobody else keeps.
Tensor* OrScratch(BindContext* context, Tensor* tensor, int64_t floats) {
  return tensor != nullptr
             ? tensor
             : context->Scratch(static_cast<size_t>(floats) * sizeof(float));
}

absl::Status ExpectChannels(const BindContext& context, int64_t channels,
                            std::initializer_list<const char*> slots) {
  for (const char* slot : slots)
    if (context.Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(
          ExpectInput(context, slot, DType::kFloat32, {channels}));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBatchNorm(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *bias = context->Input("Bias"), *mean = context->Input("Mean"),
         *variance = context->Input("Variance"), *y = context->Output("Y"),
         *mean_out = context->Output("MeanOut"),
         *variance_out = context->Output("VarianceOut"),
         *saved_mean = context->Output("SavedMean"),
         *saved_inverse = context->Output("SavedVariance");
  if (context->Input("MomentumTensor") != nullptr || mean == nullptr ||
      variance == nullptr)
    return Unimplemented("a momentum in a tensor, or no statistics");
  PD_RETURN_IF_ERROR(SameFloats({x, y}));
  PD_RETURN_IF_ERROR(OnlyFloat32({scale, bias, mean, variance}));
  PD_RETURN_IF_ERROR(AskForImages(context, {&x}, {&y}));
  PD_ASSIGN_OR_RETURN(const ChannelArgs args, ReadChannels(*context, *x));
  PD_RETURN_IF_ERROR(ExpectChannels(*context, args.channels,
                                    {"Scale", "Bias", "Mean", "Variance"}));
  PD_ASSIGN_OR_RETURN(const auto parts,
                      Starter<ChannelArgs>::Find(binding, "norm_parts"));
  PD_ASSIGN_OR_RETURN(const auto join,
                      Starter<ChannelArgs>::Find(binding, "norm_join"));
  PD_ASSIGN_OR_RETURN(const auto apply,
                      Starter<ChannelArgs>::Find(binding, "norm_apply"));
  Tensor* const room = args.constant ? nullptr : PartsOf(context, args);
  if (!args.constant) {
    saved_mean = OrScratch(context, saved_mean, args.channels);
    saved_inverse = OrScratch(context, saved_inverse, args.channels);
    mean_out = OrScratch(context, mean_out, args.channels);
    variance_out = OrScratch(context, variance_out, args.channels);
  }
  return Step([=, device = binding->device()](const RunContext&) {
    ChannelArgs run = args;
    run.x = Read<float>(x);
    run.y = Write<float>(y);
    run.scale = At(scale);
    run.bias = At(bias);
    run.mean = At(mean);
    run.variance = At(variance);
    if (args.constant) {
      for (const auto& [from, to] :
           {std::pair(mean, mean_out), std::pair(variance, variance_out)})
        if (to != nullptr && to->raw() != from->raw())
          PD_RETURN_IF_ERROR(device->Copy(to->raw(), from->raw(), to->bytes()));
      return StartChunks(apply, run);
    }
    run.parts = At(room);
    run.mean_out = At(mean_out);
    run.variance_out = At(variance_out);
    run.saved_mean = At(saved_mean);
    run.saved_inverse = At(saved_inverse);
    PD_RETURN_IF_ERROR(StartChunks(parts, run));
    PD_RETURN_IF_ERROR(join.Items(run.channels, run));
    run.mean = run.saved_mean;
    run.variance = run.saved_inverse;
    run.inverted = 1;
    return StartChunks(apply, run);
  });
}

absl::StatusOr<Step> BindBatchNormGrad(BindContext* context,
                                       DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *dy = context->Input("Y@GRAD"), *dx = context->Output("X@GRAD"),
         *dscale = context->Output("Scale@GRAD"),
         *dbias = context->Output("Bias@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({x, dy, dx}));
  PD_RETURN_IF_ERROR(OnlyFloat32({scale, dscale, dbias}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", x->dtype(), x->shape()));
  PD_RETURN_IF_ERROR(AskForImages(context, {&x, &dy}, {&dx}));
  PD_ASSIGN_OR_RETURN(ChannelArgs args, ReadChannels(*context, *x));
  args.inverted = !args.constant;
  const char* mean_slot = args.constant ? "Mean" : "SavedMean";
  const char* variance_slot = args.constant ? "Variance" : "SavedVariance";
  PD_RETURN_IF_ERROR(ExpectChannels(*context, args.channels,
                                    {"Scale", mean_slot, variance_slot}));
  Tensor *mean = context->Input(mean_slot),
         *variance = context->Input(variance_slot);
  if (mean == nullptr || variance == nullptr)
    return Unimplemented("no statistics");
  PD_ASSIGN_OR_RETURN(const auto parts,
                      Starter<ChannelArgs>::Find(binding, "norm_grad_parts"));
  PD_ASSIGN_OR_RETURN(const auto join,
                      Starter<ChannelArgs>::Find(binding, "norm_grad_join"));
  PD_ASSIGN_OR_RETURN(const auto by_x,
                      Starter<ChannelArgs>::Find(binding, "norm_grad_x"));
  Tensor* const room = PartsOf(context, args);
  dscale = OrScratch(context, dscale, args.channels);
  dbias = OrScratch(context, dbias, args.channels);
  return Step([=](const RunContext&) {
    ChannelArgs run = args;
    run.x = Read<float>(x);
    run.dy = Read<float>(dy);
    run.scale = At(scale);
    run.mean = At(mean);
    run.variance = At(variance);
    run.y = Write<float>(dx);
    run.dscale = At(dscale);
    run.dbias = At(dbias);
    run.parts = At(room);
    PD_RETURN_IF_ERROR(StartChunks(parts, run));
    PD_RETURN_IF_ERROR(join.Items(run.channels, run));
    return dx != nullptr ? StartChunks(by_x, run) : absl::OkStatus();
  });
}

// Asks for channels last on both sides where X has them; says whether it does.
absl::StatusOr<bool> AskForWindows(BindContext* context, const Tensor& like,
                                   std::initializer_list<Tensor**> inputs,
                                   std::initializer_list<Tensor**> outputs) {
  const bool last =
      like.layout() != nullptr &&
      SameLayout(like.layout(), ChannelsLast(like.shape())) &&
      context->op().AttrOr<std::string>("data_format", "NCHW") != "NHWC";
  const auto layout_of = [&](const Tensor& tensor) {
    return last ? ChannelsLast(tensor.shape()) : nullptr;
  };
  for (Tensor** input : inputs)
    if (*input != nullptr) {
      PD_ASSIGN_OR_RETURN(*input, context->In(*input, layout_of(**input)));
    }
  for (Tensor** output : outputs) {
    PD_ASSIGN_OR_RETURN(*output, context->Out(*output, layout_of(**output)));
  }
  return last;
}

absl::StatusOr<Step> BindPool(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameFloats({x, out}));
  const bool masked = context->op().type.rfind("max_", 0) == 0;
  Tensor* mask = masked ? context->Output("Mask") : nullptr;
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      masked ? ReadMaxPool(context->op(), x->shape())
                             : ReadPool(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(PoolArgs args, ReadWindows(g));
  args.n = out->size();
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *x, {&x}, {&out}));
  if (last) args.position_step = args.channels;
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<PoolArgs>::Find(binding, "pool"));
  return Step([=](const RunContext&) {
    PoolArgs run = args;
    run.x = Read<float>(x);
    run.out = Write<float>(out);
    run.mask = mask == nullptr ? nullptr : mask->data<int32_t>();
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({x, dout, dx}));
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), g.OutputShape()));
  PD_ASSIGN_OR_RETURN(PoolArgs args, ReadWindows(g));
  args.n = dx->size();
  if (Tensor* out = context->Input("Out")) context->NoBuffer(out);
  Tensor* const like = x;
  if (!args.max) context->NoBuffer(std::exchange(x, nullptr));
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *like, {&x, &dout}, {&dx}));
  if (last) args.position_step = args.channels;
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<PoolArgs>::Find(binding, "pool_grad"));
  return Step([=](const RunContext&) {
    PoolArgs run = args;
    run.x = Read<float>(x);
    run.dout = Read<float>(dout);
    run.out = Write<float>(dx);
    return start.Elements(run.n, run);
  });
}

}  // namespace

absl::StatusOr<PoolArgs> ReadWindows(const PoolGeometry& g) {
  PoolArgs args{};
  args.channels = g.channels;
  args.position_step = g.channels_last ? g.channels : 1;
  args.max = g.max;
  args.adaptive = g.adaptive;
  args.exclusive = g.exclusive;
  if (g.axes.size() > 3) return Unimplemented("%d axes", g.axes.size());
  for (PoolAxis& axis : args.axes) axis = {1, 1, 1, 1, 0};
  size_t at = 3 - g.axes.size();
  for (const WindowAxis& w : g.axes) {
    for (int64_t n : {w.in, w.out, w.kernel, w.stride, w.pad_before})
      if (n > INT32_MAX / 4) return Unimplemented("an extent of %d", n);
    args.axes[at++] = {static_cast<int32_t>(w.in), static_cast<int32_t>(w.out),
                       static_cast<int32_t>(w.kernel),
                       static_cast<int32_t>(w.stride),
                       static_cast<int32_t>(w.pad_before)};
  }
  return args;
}

void AddImages(DeviceKernels* kernels) {
  kernels->Add("batch_norm", AnyLayout("cuda", BindBatchNorm));
  kernels->Add("batch_norm_grad", AnyLayout("cuda", BindBatchNormGrad));
  for (const std::string type : {"pool2d", "pool3d"}) {
    kernels->Add(type, AnyLayout("cuda", BindPool));
    kernels->Add(type + "_grad", AnyLayout("cuda", BindPoolGrad));
  }
  // Their gradients are in places.cc.
  for (const char* type : {"max_pool2d_with_index", "max_pool3d_with_index"})
    kernels->Add(type, {"cuda", BindPool});
}

}  // namespace pd::cuda
