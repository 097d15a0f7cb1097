// SPDX-License-Identifier: Apache-2.0
// Batch norm; the kernels are in batch_norm.cu.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/column_grid.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

bool IsLastInProgram(const OpDesc& op, const Shape& shape) {
  return shape.size() > 2 && op.Attr<std::string>("data_layout") == "NHWC";
}

// Parts of a channel whose elements are not beside those of others: a block has
// a few numbers for each thread at least, and many where there are many.
template <typename T>
ColumnGrid ChunksOf(const ChannelArgsOf<T>& a) {
  constexpr int64_t kBlocks = 2048, kLeast = 2048, kMost = 16384, kBatch = 1024;
  const int64_t busy = a.count * a.channels / kBlocks;
  const int64_t most = std::clamp(busy, kLeast, kMost);
  ColumnGrid g{a.count, a.channels, 0, (a.count + most - 1) / most, 1, 1};
  const int64_t batches =
      (a.count + g.chunks * kBatch - 1) / (g.chunks * kBatch);
  g.chunk = batches * kBatch;
  g.chunks = (a.count + g.chunk - 1) / g.chunk;
  if (std::is_same_v<T, float> && a.positions % 4 == 0) g.width = 4;
  return g;
}

// The suffix of kernels with the op's activation, which is "" or a ReLU.
absl::StatusOr<std::string> ActivationOf(const OpDesc& op) {
  const auto act = op.AttrOr<std::string>("act_type", "");
  if (act.empty()) return std::string();
  if (act == "relu" || act == "relu6") return std::string("_relu");
  return Unimplemented("the activation '%s'", act);
}
float TopOf(const OpDesc& op) {
  return op.AttrOr<std::string>("act_type", "") == "relu6"
             ? op.Attr<float>("fuse_alpha")
             : 0.0f;
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
  a.last = last || x.layout() != nullptr || a.positions == 1;
  const int64_t count = shape[0] * a.positions;
  if (count < 1 || count > INT32_MAX || a.channels < 1)
    return Unimplemented("%d elements of a channel", count);
  a.count = count;
  const bool packs = std::is_same_v<T, float> && a.channels % 8 == 0;
  a.grid = a.last ? GridOf(a.count, a.channels, packs ? 8 : 1) : ChunksOf(a);
  if (a.channels > INT32_MAX / a.grid.chunks)
    return Unimplemented("%d channels", a.channels);
  a.epsilon = T{op.Attr<float>("epsilon")};
  a.keep = T{op.Attr<float>("momentum")};
  a.top = T{TopOf(op)};
  a.constant =
      op.Attr<bool>("use_global_stats") ||
      (op.Attr<bool>("is_test") && !op.Attr<bool>("trainable_statistics"));
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

// Whether numbers can be loaded by 16 bytes wherever the grid's packs begin.
template <typename T>
bool HasPacks(const ChannelArgsOf<T>& a) {
  if constexpr (std::is_same_v<T, float>) {
    bool aligned = true;
    for (const T* numbers : std::initializer_list<const T*>{
             a.scale, a.bias, a.mean, a.variance, a.dscale, a.dbias})
      aligned &= IsAligned<8>(numbers, NumberType::kFloat32);
    return aligned && IsAligned<8>(a.x) && IsAligned<8>(a.dy) &&
           IsAligned<8>(a.y);
  }
  return false;
}

// A block for each chunk of a channel, or of a tile of channels.
template <typename T>
absl::Status StartChunks(const Starter<ChannelArgsOf<T>>& start,
                         ChannelArgsOf<T> args) {
  ColumnGrid& g = args.grid;
  if (!HasPacks(args)) g = WithoutPacks(g);
  return start.Blocks((args.last ? TilesOf(g) : args.channels) * g.chunks,
                      args);
}

// A block for each channel.
template <typename T>
absl::Status StartJoin(const Starter<ChannelArgsOf<T>>& start,
                       const ChannelArgsOf<T>& args) {
  return start.Blocks(args.channels, args,
                      args.grid.chunks <= kWarp ? kWarp : kThreads);
}

template <typename T>
Tensor* PartsOf(BindContext* context, const ChannelArgsOf<T>& a) {
  return context->Scratch(static_cast<size_t>(a.channels * a.grid.chunks) * 2 *
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
  PD_ASSIGN_OR_RETURN(const std::string act, ActivationOf(context->op()));
  PD_ASSIGN_OR_RETURN(const auto apply,
                      Start::Find(binding, KernelFor<T>("norm_apply" + act)));
  Tensor* const room = args.constant ? nullptr : PartsOf(context, args);
  if (!args.constant) {
    saved_mean = OrScratch<T>(context, saved_mean, args.channels);
    saved_inverse = OrScratch<T>(context, saved_inverse, args.channels);
    mean_out = OrScratch<T>(context, mean_out, args.channels);
    variance_out = OrScratch<T>(context, variance_out, args.channels);
  }
  return Step([=, device = CudaOf(binding)](const RunContext&) {
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
    PD_RETURN_IF_ERROR(StartJoin(join, run));
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
  PD_ASSIGN_OR_RETURN(const std::string act, ActivationOf(context->op()));
  Tensor* bias = nullptr;
  if (!act.empty()) {
    bias = context->Input("Bias");
    PD_RETURN_IF_ERROR(ExpectChannels<T>(*context, args.channels, {"Bias"}));
    if (bias == nullptr) return Unimplemented("no bias");
    if (Tensor* y = context->Input("Y")) context->NoBuffer(y);
  }
  PD_ASSIGN_OR_RETURN(
      const auto parts,
      Start::Find(binding, KernelFor<T>("norm_grad_parts" + act)));
  PD_ASSIGN_OR_RETURN(const auto join,
                      Start::Find(binding, KernelFor<T>("norm_grad_join")));
  PD_ASSIGN_OR_RETURN(const auto by_x,
                      Start::Find(binding, KernelFor<T>("norm_grad_x" + act)));
  Tensor* const room = PartsOf(context, args);
  dscale = OrScratch<T>(context, dscale, args.channels);
  dbias = OrScratch<T>(context, dbias, args.channels);
  return Step([=](const RunContext&) {
    ChannelArgsOf<T> run = args;
    run.x = Read<T>(x);
    run.dy = Read<T>(dy);
    run.scale = At<T>(scale);
    run.bias = At<T>(bias);
    run.mean = At<T>(mean);
    run.variance = At<T>(variance);
    run.y = Write<T>(dx);
    run.dscale = At<T>(dscale);
    run.dbias = At<T>(dbias);
    run.parts = At<T>(room);
    PD_RETURN_IF_ERROR(StartChunks(parts, run));
    PD_RETURN_IF_ERROR(StartJoin(join, run));
    return dx != nullptr ? StartChunks(by_x, run) : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindBatchNormGrad(BindContext* context,
                                       DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindBatchNormGradOf<typename decltype(tag)::type>(context, binding);
  });
}

}  // namespace

void AddBatchNorm(KernelTable* kernels) {
  for (const std::string type : {"batch_norm", "fused_batch_norm_act"}) {
    kernels->Add(type, AnyLayout("cuda", BindBatchNorm));
    kernels->Add(type + "_grad", AnyLayout("cuda", BindBatchNormGrad));
  }
}

}  // namespace pd::cuda
