// SPDX-License-Identifier: Apache-2.0
// conv2d, fused_conv2d and their gradients in the batch-inner layout, where
// oneDNN's blocks of channels would be padding for the most part.
#include <memory>
#include <string>
#include <utility>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/batch_inner.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/vector_floats.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace cpu {
namespace {

using batch_inner::Geometry;

// Parameters that every instance needs, resolved from the op.
struct ConvBatchInnerProblem {
  Geometry geometry;
  LayoutPtr in_layout, out_layout;
  bool relu = false;
};

int64_t RoundUp(int64_t n, int64_t block) {
  return (n + block - 1) / block * block;
}

// oneDNN computes on whole blocks of channels (and takes up to 4 input channels
// as they are); we compute on whole vectors of samples. Both reach about the
// same share of the machine's peak, except that our weight gradient reaches two
// thirds of it: 1.2 covers that. Where the input lies in blocks, so do its
// neighbours: then input and output are rearranged, which takes 8 bytes of
// memory traffic an element, the time of some 56 multiplications.
absl::Status CheckWorthwhile(const Geometry& g, bool amid_blocks) {
  const int64_t block = VectorFloats();
  const auto waste = [&](int64_t n) {
    return static_cast<double>(RoundUp(n, block)) / static_cast<double>(n);
  };
  const double theirs =
      waste(g.out_channels) * (g.in_channels <= 4 ? 1 : waste(g.in_channels));
  double ours = 1.2 * waste(g.batch);
  if (amid_blocks) {
    constexpr double kRearranging = 56;
    const auto in = static_cast<double>(g.in_channels * g.in_h * g.in_w);
    const auto out = static_cast<double>(g.out_channels * g.out_h * g.out_w);
    const auto taps =
        static_cast<double>(g.in_channels * g.kernel_h * g.kernel_w);
    ours += kRearranging * (in + out) / (out * taps);
  }
  if (theirs < ours)
    return Unimplemented(
        "%d to %d channels in blocks of %d cost a factor of %.2f, a batch of "
        "%d in vectors %.2f%s",
        g.in_channels, g.out_channels, block, theirs, g.batch, ours,
        amid_blocks ? " with rearranging" : "");
  constexpr int64_t kMaxWeights = 1 << 16;  // a vector of sums each
  const int64_t weights =
      g.out_channels * g.in_channels * g.kernel_h * g.kernel_w;
  if (weights > kMaxWeights)
    return Unimplemented("%d weights are more than %d", weights, kMaxWeights);
  return absl::OkStatus();
}

absl::StatusOr<ConvBatchInnerProblem> ReadConvBatchInnerProblem(
    BindContext* context) {
  const OpDesc& op = context->op();
  const Tensor* input = context->Input("Input");
  const Tensor* filter = context->Input("Filter");
  if (input->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_ASSIGN_OR_RETURN(const ConvGeometry c,
                      ReadConv(op, input->shape(), filter->shape()));
  if (c.axes.size() != 2 || c.groups != 1)
    return Unimplemented("it is for 2-D convolutions without groups");
  if (context->Input("ResidualData") != nullptr)
    return Unimplemented("it adds no residual");
  const std::string activation = op.AttrOr<std::string>("fuse_activation", "");
  if (!activation.empty() && activation != "relu")
    return Unimplemented("it has no activation '%s'", activation);
  ConvBatchInnerProblem p;
  p.relu = activation == "relu";
  Geometry& g = p.geometry;
  g.batch = c.batch;
  g.in_channels = c.in_channels;
  g.out_channels = c.out_channels;
  const WindowAxis &h = c.axes[0], &w = c.axes[1];
  g.in_h = h.in;
  g.in_w = w.in;
  g.out_h = h.out;
  g.out_w = w.out;
  g.kernel_h = h.kernel;
  g.kernel_w = w.kernel;
  g.stride_h = h.stride;
  g.stride_w = w.stride;
  g.pad_top = h.pad_before;
  g.pad_left = w.pad_before;
  g.dilation_h = h.dilation;
  g.dilation_w = w.dilation;
  if (input->size() == 0 || NumElements(c.OutputShape()) == 0)
    return Unimplemented("the image is empty");
  const std::vector<int> order = c.channels_last ? std::vector<int>{3, 1, 2, 0}
                                                 : std::vector<int>{1, 2, 3, 0};
  p.in_layout = PermutedLayout(input->shape(), order);
  p.out_layout = PermutedLayout(c.OutputShape(), order);
  PD_RETURN_IF_ERROR(CheckWorthwhile(
      g,
      input->layout() != nullptr && !SameLayout(input->layout(), p.in_layout)));
  return p;
}

}  // namespace

absl::StatusOr<Step> BindConvBatchInner(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const ConvBatchInnerProblem p,
                      ReadConvBatchInnerProblem(context));
  PD_ASSIGN_OR_RETURN(Tensor * x,
                      context->In(context->Input("Input"), p.in_layout));
  PD_ASSIGN_OR_RETURN(Tensor * w,
                      context->In(context->Input("Filter"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * y,
                      context->Out(context->Output("Output"), p.out_layout));
  Tensor* bias = context->Input("Bias");
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", DType::kFloat32,
                                      p.geometry.out_channels));
  auto table = std::make_shared<batch_inner::GatherTable>(
      batch_inner::ForwardTable(p.geometry));
  batch_inner::GatherArgs args = batch_inner::ForwardArgs(p.geometry, *table);
  args.relu = p.relu;
  return Step([=](const RunContext&) {
    batch_inner::GatherArgs now = args;
    now.table = table.get();
    now.source = x->data<float>();
    now.weight = w->data<float>();
    now.bias = bias != nullptr ? bias->data<float>() : nullptr;
    now.destination = y->data<float>();
    batch_inner::Gather(now);
    return absl::OkStatus();
  });
}

namespace {

// Tensors of a gradient op. Null: not there or not wanted.
struct GradTensors {
  Tensor *x = nullptr, *w = nullptr, *y = nullptr, *dy = nullptr;
  Tensor *dx = nullptr, *dw = nullptr, *dbias = nullptr;
  Tensor *masked = nullptr, *scratch = nullptr;
};

absl::StatusOr<GradTensors> ReadGradTensors(BindContext* context,
                                            const ConvBatchInnerProblem& p) {
  GradTensors t;
  t.dy = context->Input("Output@GRAD");
  PD_RETURN_IF_ERROR(ExpectInput(
      *context, "Output@GRAD", DType::kFloat32,
      p.out_layout != nullptr ? p.out_layout->shape : t.dy->shape()));
  PD_ASSIGN_OR_RETURN(t.dy, context->In(t.dy, p.out_layout));
  if (p.relu) {
    t.y = context->Input("Output");
    if (t.y == nullptr) return InvalidArgument("'Output' is missing");
    PD_ASSIGN_OR_RETURN(t.y, context->In(t.y, p.out_layout));
  }
  if (Tensor* dx = context->Output("Input@GRAD")) {
    PD_ASSIGN_OR_RETURN(t.w, context->In(context->Input("Filter"), nullptr));
    PD_ASSIGN_OR_RETURN(t.dx, context->Out(dx, p.in_layout));
  } else {
    context->NoBuffer(context->Input("Filter"));
  }
  PD_ASSIGN_OR_RETURN(t.x, context->In(context->Input("Input"), p.in_layout));
  if (Tensor* dw = context->Output("Filter@GRAD")) {
    PD_ASSIGN_OR_RETURN(t.dw, context->Out(dw, nullptr));
  }
  t.dbias = context->Output("Bias@GRAD");
  return t;
}

}  // namespace

absl::StatusOr<Step> BindConvGradBatchInner(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const ConvBatchInnerProblem p,
                      ReadConvBatchInnerProblem(context));
  PD_ASSIGN_OR_RETURN(GradTensors t, ReadGradTensors(context, p));
  auto plan = std::make_shared<const batch_inner::WeightGradPlan>(
      batch_inner::PlanWeightGrad(p.geometry, Threads()));
  t.scratch = context->Scratch(static_cast<size_t>(plan->ScratchBytes()));
  const size_t weight_bytes =
      sizeof(float) * static_cast<size_t>(context->Input("Filter")->size());
  Tensor* unwanted = t.dw == nullptr ? context->Scratch(weight_bytes) : t.dw;
  if (t.dx != nullptr && p.relu) t.masked = context->Scratch(t.dy->bytes());
  auto table = std::make_shared<const batch_inner::GatherTable>(
      batch_inner::BackwardDataTable(p.geometry));
  const auto gather = batch_inner::BackwardDataArgs(p.geometry, *table);
  const auto at = [](Tensor* tensor) {
    return tensor != nullptr ? tensor->data<float>() : nullptr;
  };
  const bool weights = t.dw != nullptr || t.dbias != nullptr || p.relu;
  return Step([=](const RunContext&) {
    if (weights) {
      batch_inner::WeightGradArgs args;
      args.plan = plan.get();
      args.x = at(t.x);
      args.dy = at(t.dy);
      args.activated = at(t.y);
      args.masked = at(t.masked);
      args.dweight = at(unwanted);
      args.dbias = at(t.dbias);
      args.scratch = at(t.scratch);
      batch_inner::WeightGrad(args);
    }
    if (t.dx != nullptr) {
      batch_inner::GatherArgs args = gather;
      args.table = table.get();
      args.source = t.masked != nullptr ? at(t.masked) : at(t.dy);
      args.weight = at(t.w);
      args.destination = at(t.dx);
      batch_inner::Gather(args);
    }
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
