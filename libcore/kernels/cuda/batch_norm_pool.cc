// SPDX-License-Identifier: Apache-2.0
// Batch norm and pooling; the kernels are in batch_norm_pool.cu.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/max_pool_with_index.h"
#include "libcore/ops/conv/window.h"

namespace pd::cuda {
namespace {

bool IsLastInProgram(const OpDesc& op, const Shape& shape) {
  return shape.size() > 2 &&
         op.AttrOr<std::string>("data_layout", "NCHW") == "NHWC";
}

// X as channels; `constant` is set where the running statistics are used.
template <typename T>
absl::StatusOr<ChannelArgsOf<T>> ReadChannels(const BindContext& context,
                                              const Tensor& x) {
  const OpDesc& op = context.op();
  const Shape& shape = x.shape();
  if (shape.size() < 2) return Unimplemented("X has shape %s", ToString(shape));
  const bool last = IsLastInProgram(op, shape);
  ChannelArgsOf<T> a{};
  a.channels = last ? shape.back() : shape[1];
  a.positions = last ? NumElements(shape, 1, shape.size() - 1)
                     : NumElements(shape, 2, shape.size());
  a.last = last || x.layout() != nullptr;
  a.chunk = a.last ? kLastChunk : kChannelChunk;
  const int64_t count = shape[0] * a.positions;
  if (count < 1 || count > INT32_MAX || a.channels < 1)
    return Unimplemented("%d elements of a channel", count);
  a.count = count;
  a.chunks = (a.count + a.chunk - 1) / a.chunk;
  a.epsilon = T{op.AttrOr("epsilon", 1e-5f)};
  a.keep = T{op.AttrOr("momentum", 0.9f)};
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
template <typename T>
absl::Status StartChunks(const Starter<ChannelArgsOf<T>>& start,
                         const ChannelArgsOf<T>& args) {
  const int64_t chunks = args.channels * args.chunks;
  return args.last ? start.Elements(chunks, args) : start.Items(chunks, args);
}

template <typename T>
Tensor* PartsOf(BindContext* context, const ChannelArgsOf<T>& a) {
  return context->Scratch(static_cast<size_t>(a.channels * a.chunks) * 2 *
                          sizeof(T));
}

// The tensor, or scratch memory where it is absent.
template <typename T>
Tensor* OrScratch(BindContext* context, Tensor* tensor, int64_t count) {
  return tensor != nullptr
             ? tensor
             : context->Scratch(static_cast<size_t>(count) * sizeof(T));
}

template <typename T>
absl::Status ExpectChannels(const BindContext& context, int64_t channels,
                            std::initializer_list<const char*> slots) {
  for (const char* slot : slots)
    if (context.Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(ExpectInput(context, slot, DTypeOf<T>(), {channels}));
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<Step> BindBatchNormOf(BindContext* context,
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
  PD_RETURN_IF_ERROR(SameAs<T>({x, y}));
  PD_RETURN_IF_ERROR(OneDType({scale, bias, mean, variance}, {DTypeOf<T>()}));
  PD_RETURN_IF_ERROR(AskForImages(context, {&x}, {&y}));
  PD_ASSIGN_OR_RETURN(const ChannelArgsOf<T> args,
                      ReadChannels<T>(*context, *x));
  PD_RETURN_IF_ERROR(ExpectChannels<T>(*context, args.channels,
                                       {"Scale", "Bias", "Mean", "Variance"}));
  using Start = Starter<ChannelArgsOf<T>>;
  PD_ASSIGN_OR_RETURN(const auto parts,
                      Start::Find(binding, KernelFor<T>("norm_parts")));
  PD_ASSIGN_OR_RETURN(const auto join,
                      Start::Find(binding, KernelFor<T>("norm_join")));
  PD_ASSIGN_OR_RETURN(const auto apply,
                      Start::Find(binding, KernelFor<T>("norm_apply")));
  Tensor* const room = args.constant ? nullptr : PartsOf(context, args);
  if (!args.constant) {
    saved_mean = OrScratch<T>(context, saved_mean, args.channels);
    saved_inverse = OrScratch<T>(context, saved_inverse, args.channels);
    mean_out = OrScratch<T>(context, mean_out, args.channels);
    variance_out = OrScratch<T>(context, variance_out, args.channels);
  }
  return Step([=, device = binding->device()](const RunContext&) {
    ChannelArgsOf<T> run = args;
    run.x = Read<T>(x);
    run.y = Write<T>(y);
    run.scale = At<T>(scale);
    run.bias = At<T>(bias);
    run.mean = At<T>(mean);
    run.variance = At<T>(variance);
    if (args.constant) {
      for (const auto& [from, to] :
           {std::pair(mean, mean_out), std::pair(variance, variance_out)})
        if (to != nullptr && to->raw() != from->raw())
          PD_RETURN_IF_ERROR(device->Copy(to->raw(), from->raw(), to->bytes()));
      return StartChunks(apply, run);
    }
    run.parts = At<T>(room);
    run.mean_out = At<T>(mean_out);
    run.variance_out = At<T>(variance_out);
    run.saved_mean = At<T>(saved_mean);
    run.saved_inverse = At<T>(saved_inverse);
    PD_RETURN_IF_ERROR(StartChunks(parts, run));
    PD_RETURN_IF_ERROR(join.Items(run.channels, run));
    run.mean = run.saved_mean;
    run.variance = run.saved_inverse;
    run.inverted = 1;
    return StartChunks(apply, run);
  });
}

absl::StatusOr<Step> BindBatchNorm(BindContext* context,
                                   DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindBatchNormOf<typename decltype(tag)::type>(context, binding);
  });
}

template <typename T>
absl::StatusOr<Step> BindBatchNormGradOf(BindContext* context,
                                         DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *dy = context->Input("Y@GRAD"), *dx = context->Output("X@GRAD"),
         *dscale = context->Output("Scale@GRAD"),
         *dbias = context->Output("Bias@GRAD");
  PD_RETURN_IF_ERROR(SameAs<T>({x, dy, dx}));
  PD_RETURN_IF_ERROR(OneDType({scale, dscale, dbias}, {DTypeOf<T>()}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", x->dtype(), x->shape()));
  PD_RETURN_IF_ERROR(AskForImages(context, {&x, &dy}, {&dx}));
  PD_ASSIGN_OR_RETURN(ChannelArgsOf<T> args, ReadChannels<T>(*context, *x));
  args.inverted = !args.constant;
  const char* mean_slot = args.constant ? "Mean" : "SavedMean";
  const char* variance_slot = args.constant ? "Variance" : "SavedVariance";
  PD_RETURN_IF_ERROR(ExpectChannels<T>(*context, args.channels,
                                       {"Scale", mean_slot, variance_slot}));
  Tensor *mean = context->Input(mean_slot),
         *variance = context->Input(variance_slot);
  if (mean == nullptr || variance == nullptr)
    return Unimplemented("no statistics");
  using Start = Starter<ChannelArgsOf<T>>;
  PD_ASSIGN_OR_RETURN(const auto parts,
                      Start::Find(binding, KernelFor<T>("norm_grad_parts")));
  PD_ASSIGN_OR_RETURN(const auto join,
                      Start::Find(binding, KernelFor<T>("norm_grad_join")));
  PD_ASSIGN_OR_RETURN(const auto by_x,
                      Start::Find(binding, KernelFor<T>("norm_grad_x")));
  Tensor* const room = PartsOf(context, args);
  dscale = OrScratch<T>(context, dscale, args.channels);
  dbias = OrScratch<T>(context, dbias, args.channels);
  return Step([=](const RunContext&) {
    ChannelArgsOf<T> run = args;
    run.x = Read<T>(x);
    run.dy = Read<T>(dy);
    run.scale = At<T>(scale);
    run.mean = At<T>(mean);
    run.variance = At<T>(variance);
    run.y = Write<T>(dx);
    run.dscale = At<T>(dscale);
    run.dbias = At<T>(dbias);
    run.parts = At<T>(room);
    PD_RETURN_IF_ERROR(StartChunks(parts, run));
    PD_RETURN_IF_ERROR(join.Items(run.channels, run));
    return dx != nullptr ? StartChunks(by_x, run) : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindBatchNormGrad(BindContext* context,
                                       DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindBatchNormGradOf<typename decltype(tag)::type>(context, binding);
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
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  const bool masked = context->op().type.rfind("max_", 0) == 0;
  Tensor* mask = masked ? context->Output("Mask") : nullptr;
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      masked ? ReadMaxPool(context->op(), x->shape())
                             : ReadPool(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(PoolWindows windows, ReadWindows(g));
  windows.n = out->size();
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *x, {&x}, {&out}));
  if (last) windows.position_step = windows.channels;
  return ForReal(*x, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start, Starter<PoolArgsOf<T>>::Find(
                                              binding, KernelFor<T>("pool")));
    return Step([=](const RunContext&) {
      PoolArgsOf<T> run{windows, {}, {}, {}, nullptr};
      run.x = Read<T>(x);
      run.out = Write<T>(out);
      run.mask = At<int32_t>(mask);
      return start.Elements(run.n, run);
    });
  });
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({x, dout, dx}));
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), g.OutputShape()));
  PD_ASSIGN_OR_RETURN(PoolWindows windows, ReadWindows(g));
  windows.n = dx->size();
  if (Tensor* out = context->Input("Out")) context->NoBuffer(out);
  Tensor* const like = x;
  if (!windows.max) context->NoBuffer(std::exchange(x, nullptr));
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *like, {&x, &dout}, {&dx}));
  if (last) windows.position_step = windows.channels;
  return ForReal(*dx, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<PoolArgsOf<T>>::Find(binding, KernelFor<T>("pool_grad")));
    return Step([=](const RunContext&) {
      PoolArgsOf<T> run{windows, {}, {}, {}, nullptr};
      run.x = Read<T>(x);
      run.dout = Read<T>(dout);
      run.out = Write<T>(dx);
      return start.Elements(run.n, run);
    });
  });
}

}  // namespace

absl::StatusOr<PoolWindows> ReadWindows(const PoolGeometry& g) {
  PoolWindows args{};
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

void AddBatchNormPool(KernelTable* kernels) {
  kernels->Add("batch_norm", AnyLayout("cuda", BindBatchNorm));
  kernels->Add("batch_norm_grad", AnyLayout("cuda", BindBatchNormGrad));
  for (const std::string type : {"pool2d", "pool3d"}) {
    kernels->Add(type, AnyLayout("cuda", BindPool));
    kernels->Add(type + "_grad", AnyLayout("cuda", BindPoolGrad));
  }
  // Their gradients are in gather.cc.
  for (const char* type : {"max_pool2d_with_index", "max_pool3d_with_index"})
    kernels->Add(type, {"cuda", BindPool});
}

}  // namespace pd::cuda
