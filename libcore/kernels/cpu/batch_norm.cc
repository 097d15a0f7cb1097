// SPDX-License-Identifier: Apache-2.0
// batch_norm and fused_batch_norm_act with their gradients, in the layout that
// X has. Sums are taken around a number near the mean and kept as doubles:
// oneDNN's variance is six times as far from the exact one as PaddlePaddle's,
// which shows in the gradients of deep networks.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/batch_norm_channels.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace cpu {
namespace {

struct BatchNormProblem {
  ChannelView view;
  int64_t channels = 0;
  float epsilon = 0, momentum = 0;
  bool global = false;  // mean and variance are inputs
  ChannelClip clip;
};

// The memory of `x` as [outer, groups, inner, lanes] around axis `axis`.
absl::StatusOr<ChannelView> ViewOf(const Tensor& x, size_t axis) {
  ChannelView v;
  if (x.layout() == nullptr) {
    v.outer = NumElements(x.shape(), 0, axis);
    v.groups = x.dim(axis);
    v.inner = NumElements(x.shape(), axis + 1, x.rank());
  } else {
    const Layout& layout = *x.layout();
    if (layout.blocks.size() > 1 ||
        (layout.blocks.size() == 1 &&
         layout.blocks[0].dim != static_cast<int>(axis)))
      return Unimplemented("it has no layout %s", layout.ToString());
    if (!layout.blocks.empty()) v.lanes = layout.blocks[0].size;
    v.groups = layout.padded[axis] / v.lanes;
    // Each of the other axes lies outside or inside of the groups.
    for (size_t d = 0; d < x.rank(); ++d) {
      if (d == axis || x.dim(d) == 1) continue;
      if (layout.strides[d] >= layout.strides[axis] * v.groups)
        v.outer *= x.dim(d);
      else
        v.inner *= x.dim(d);
    }
    if (v.groups > 1 && layout.strides[axis] != v.inner * v.lanes)
      return Unimplemented("it has no layout %s", layout.ToString());
  }
  // Channels last: a group of them all.
  if (v.inner == 1 && v.lanes == 1) std::swap(v.groups, v.lanes);
  if (v.groups == 1) v.inner *= std::exchange(v.outer, 1);
  if (v.outer * v.groups * v.inner * v.lanes != x.physical_size())
    return Unimplemented("it has no layout with other padding");
  return v;
}

absl::StatusOr<BatchNormProblem> ReadBatchNormProblem(BindContext* context) {
  const OpDesc& op = context->op();
  const Tensor* x = context->Input("X");
  if (x->dtype() != DType::kFloat32 && x->dtype() != DType::kBFloat16)
    return Unimplemented("it is for float32 and bfloat16");
  if (x->rank() < 2 || x->size() == 0)
    return Unimplemented("X has no channels with elements");
  const bool last = op.Attr<std::string>("data_layout") == "NHWC";
  const size_t axis = last ? x->rank() - 1 : 1;
  BatchNormProblem p;
  p.channels = x->dim(axis);
  PD_ASSIGN_OR_RETURN(p.view, ViewOf(*x, axis));
  p.epsilon = op.Attr<float>("epsilon");
  p.momentum = op.Attr<float>("momentum");
  p.global =
      op.Attr<bool>("use_global_stats") ||
      (op.Attr<bool>("is_test") && !op.Attr<bool>("trainable_statistics"));
  if (!p.global && x->size() == p.channels)
    return Unimplemented("one element a channel has no statistics");
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"})
    PD_RETURN_IF_ERROR(
        ExpectOptionalInput(*context, slot, DType::kFloat32, {p.channels}));
  const auto act = op.AttrOr<std::string>("act_type", "");
  p.clip.on = !act.empty();
  if (act == "relu6") p.clip.top = op.Attr<float>("fuse_alpha");
  return p;
}

// Some numbers for each channel, padding included, and room for the sums.
struct Scratch {
  Tensor *numbers, *sums;
  int64_t width;

  float* Row(int i) const { return numbers->data<float>() + i * width; }
  void* Sums() const { return sums->raw(); }
};

Scratch MakeScratch(BindContext* context, const ChannelView& view) {
  const size_t row = static_cast<size_t>(view.channels()) * sizeof(float);
  return {context->Scratch(5 * row), context->Scratch(ChannelScratch(view)),
          view.channels()};
}

float At(const Tensor* tensor, int64_t c, float otherwise) {
  return tensor != nullptr ? tensor->data<float>()[c] : otherwise;
}

// Copies `from` and puts zeros behind, for the padding.
void Pad(const float* from, int64_t n, int64_t width, float* to) {
  std::copy_n(from, n, to);
  std::fill(to + n, to + width, 0.0f);
}

struct Forward {
  BatchNormProblem problem;
  Scratch scratch;
  Tensor *x, *scale, *bias, *old_mean, *old_variance, *y;
  Tensor *new_mean, *new_variance, *saved_mean, *saved_inverse;

  void Run() const {
    x->dtype() == DType::kFloat32 ? RunAs<float>() : RunAs<BFloat16>();
  }

  template <typename T>
  void RunAs() const {
    const ChannelView& v = problem.view;
    const ChannelNumbers n{scratch.Row(0), scratch.Row(1), scratch.Row(2),
                           scratch.Row(3)};
    const auto terms = [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) SetTerms(n, c);
    };
    if (!problem.global) {
      NormalizeChannels<T>(v, x->data<T>(), problem.clip, scratch.Sums(), n,
                           terms, y->data<T>());
      return;
    }
    Pad(old_mean->data<float>(), problem.channels, scratch.width, n.mean);
    Pad(old_variance->data<float>(), problem.channels, scratch.width,
        n.variance);
    terms(0, scratch.width);
    ScaleChannels<T>(v, x->data<T>(), {n.mean, n.factor, n.shift}, problem.clip,
                     y->data<T>());
  }

  void SetTerms(const ChannelNumbers& n, int64_t c) const {
    const bool real = c < problem.channels;
    const double exact = 1 / std::sqrt(double{n.variance[c]} + problem.epsilon);
    // The gradient knows the rounded one.
    const float inverse = static_cast<float>(exact);
    const float factor = problem.global
                             ? static_cast<float>(At(scale, c, 1) * exact)
                             : At(scale, c, 1) * inverse;
    n.factor[c] = real ? factor : 0;
    n.shift[c] = real ? At(bias, c, 0) : 0;
    if (real) Keep(c, n.mean[c], n.variance[c], inverse);
  }

  // Running statistics move on with those of a batch.
  void Keep(int64_t c, float mean, float variance, float inverse) const {
    const float old = problem.global ? 1 : problem.momentum;
    const float own = problem.global ? 0 : 1 - problem.momentum;
    new_mean->data<float>()[c] =
        problem.global ? mean : old * At(old_mean, c, 0) + own * mean;
    new_variance->data<float>()[c] =
        problem.global ? variance
                       : old * At(old_variance, c, 1) + own * variance;
    if (problem.global) return;
    if (saved_mean != nullptr) saved_mean->data<float>()[c] = mean;
    if (saved_inverse != nullptr) saved_inverse->data<float>()[c] = inverse;
  }
};

}  // namespace

absl::StatusOr<Step> BindBatchNorm(BindContext* context) {
  if (context->Input("MomentumTensor") != nullptr)
    return Unimplemented("it wants a momentum known beforehand");
  PD_ASSIGN_OR_RETURN(const BatchNormProblem p, ReadBatchNormProblem(context));
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(Tensor * y,
                      context->Out(context->Output("Y"), x->layout()));
  const Forward f{p,
                  MakeScratch(context, p.view),
                  x,
                  context->Input("Scale"),
                  context->Input("Bias"),
                  context->Input("Mean"),
                  context->Input("Variance"),
                  y,
                  context->Output("MeanOut"),
                  context->Output("VarianceOut"),
                  context->Output("SavedMean"),
                  context->Output("SavedVariance")};
  if (f.old_mean == nullptr || f.old_variance == nullptr ||
      f.new_mean == nullptr || f.new_variance == nullptr)
    return Unimplemented("it reads and writes running statistics");
  context->MayShare(x, y);
  return Step([f](const RunContext&) {
    f.Run();
    return absl::OkStatus();
  });
}

namespace {

struct Backward {
  BatchNormProblem problem;
  Scratch scratch;
  Tensor *x, *scale, *bias, *mean, *inverse, *dy;
  Tensor *dx, *dscale, *dbias;

  void Run() const {
    x->dtype() == DType::kFloat32 ? RunAs<float>() : RunAs<BFloat16>();
  }

  template <typename T>
  void RunAs() const {
    float *center = scratch.Row(0), *factor = scratch.Row(1),
          *shift = scratch.Row(2);
    Pad(mean->data<float>(), problem.channels, scratch.width, center);
    // As in the forward pass, so that the clip cuts the same elements.
    for (int64_t c = 0; c < scratch.width; ++c) {
      const bool real = c < problem.channels;
      factor[c] = real ? At(scale, c, 1) * inverse->data<float>()[c] : 0;
      shift[c] = real ? At(bias, c, 0) : 0;
    }
    const ChannelGradNumbers n{scratch.Row(3), scratch.Row(4)};
    NormalizeChannelsGrad<T>(
        problem.view,
        {x->data<T>(), dy->data<T>(), {center, factor, shift}, problem.clip},
        scratch.Sums(), n,
        [&](int64_t begin, int64_t end) {
          for (int64_t c = begin; c < end; ++c) SetMeans(n, c);
        },
        dx != nullptr ? dx->data<T>() : nullptr);
  }

  void SetMeans(const ChannelGradNumbers& n, int64_t c) const {
    const bool real = c < problem.channels;
    const float r = real ? inverse->data<float>()[c] : 0;
    if (real && dscale != nullptr) dscale->data<float>()[c] = n.dot[c] * r;
    if (real && dbias != nullptr) dbias->data<float>()[c] = n.sum[c];
    const float count = static_cast<float>(problem.view.count());
    n.sum[c] /= count;
    n.dot[c] *= r * r / count;
  }
};

}  // namespace

absl::StatusOr<Step> BindBatchNormGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const BatchNormProblem p, ReadBatchNormProblem(context));
  if (p.global) return Unimplemented("it is for statistics of the batch");
  Tensor* x = context->Input("X");
  Tensor* mean = context->Input("SavedMean");
  Tensor* inverse = context->Input("SavedVariance");
  if (mean == nullptr || inverse == nullptr)
    return Unimplemented("it reads 'SavedMean' and 'SavedVariance'");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", x->dtype(), x->shape()));
  for (const char* slot : {"SavedMean", "SavedVariance"})
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, slot, DType::kFloat32, {p.channels}));
  PD_ASSIGN_OR_RETURN(Tensor * dy,
                      context->In(context->Input("Y@GRAD"), x->layout()));
  Tensor* dx = context->Output("X@GRAD");
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(dx, context->Out(dx, x->layout()));
    context->MayShare(dy, dx);
  }
  const Backward b{p,
                   MakeScratch(context, p.view),
                   x,
                   context->Input("Scale"),
                   context->Input("Bias"),
                   mean,
                   inverse,
                   dy,
                   dx,
                   context->Output("Scale@GRAD"),
                   context->Output("Bias@GRAD")};
  return Step([b](const RunContext&) {
    b.Run();
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
