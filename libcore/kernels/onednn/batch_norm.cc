// SPDX-License-Identifier: Apache-2.0
// batch_norm and its gradient through oneDNN, in the layout that X has.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/check.h"

namespace pd {
namespace onednn {
namespace {

struct Problem {
  BatchNorm norm;
  int64_t channels = 0;
  float momentum = 0;
};

absl::StatusOr<Problem> ReadProblem(BindContext* context,
                                    const LayoutPtr& layout) {
  const OpDesc& op = context->op();
  const Tensor* x = context->Input("X");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x->rank() != 4 || x->size() == 0 ||
      op.AttrOr<std::string>("data_layout", "NCHW") != "NCHW")
    return Unimplemented("it is for NCHW images with elements");
  if (context->Input("Scale") == nullptr)
    return Unimplemented("it needs a scale");
  Problem p;
  p.channels = x->dim(1);
  p.norm.src.shape = x->shape();
  p.norm.src.layout = layout;
  p.norm.epsilon = op.AttrOr("epsilon", 1e-5f);
  p.norm.global = op.AttrOr("use_global_stats", false) ||
                  (op.AttrOr("is_test", false) &&
                   !op.AttrOr("trainable_statistics", false));
  p.momentum = op.AttrOr("momentum", 0.9f);
  if (!p.norm.global && x->size() == p.channels)
    return Unimplemented("one element a channel has no statistics");
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"})
    PD_RETURN_IF_ERROR(
        ExpectOptionalInput(*context, slot, DType::kFloat32, {p.channels}));
  return p;
}

// What training adds to oneDNN's statistics of the batch.
struct Statistics {
  Tensor *mean, *variance;  // of the batch
  Tensor *old_mean, *old_variance, *new_mean, *new_variance;
  Tensor* saved_variance;  // 1 / standard deviation
  float momentum, epsilon;

  void Run() const {
    for (int64_t c = 0; c < mean->size(); ++c) {
      const float m = mean->data<float>()[c], v = variance->data<float>()[c];
      new_mean->data<float>()[c] =
          momentum * old_mean->data<float>()[c] + (1 - momentum) * m;
      new_variance->data<float>()[c] =
          momentum * old_variance->data<float>()[c] + (1 - momentum) * v;
      if (saved_variance != nullptr)
        saved_variance->data<float>()[c] = 1 / std::sqrt(v + epsilon);
    }
  }
};

// oneDNN takes scale and shift as one tensor.
struct ScaleShift {
  Tensor *scale, *shift, *both;

  void Gather() const {
    const int64_t n = scale->size();
    float* to = both->data<float>();
    std::copy_n(scale->data<float>(), n, to);
    if (shift != nullptr)
      std::copy_n(shift->data<float>(), n, to + n);
    else
      std::fill_n(to + n, n, 0.0f);
  }
};

ScaleShift BindScaleShift(BindContext* context, int64_t channels) {
  return {context->Input("Scale"), context->Input("Bias"),
          context->Scratch(2 * sizeof(float) * static_cast<size_t>(channels))};
}

}  // namespace

absl::StatusOr<Step> BindBatchNorm(BindContext* context) {
  Tensor* x = context->Input("X");
  if (context->Input("MomentumTensor") != nullptr ||
      context->Input("Bias") == nullptr)
    return Unimplemented("it wants a bias and a momentum known beforehand");
  PD_ASSIGN_OR_RETURN(const Problem p, ReadProblem(context, x->layout()));
  PD_ASSIGN_OR_RETURN(PrimitivePtr norm, BatchNormForward(p.norm));
  PD_ASSIGN_OR_RETURN(Tensor * y,
                      context->Out(context->Output("Y"), x->layout()));
  norm->Bind(Arg::kSrc, x);
  norm->Bind(Arg::kDst, y);
  const ScaleShift affine = BindScaleShift(context, p.channels);
  norm->Bind(Arg::kScaleShift, affine.both);
  BindScratchpad(context, norm.get());
  Statistics s;
  s.old_mean = context->Input("Mean");
  s.old_variance = context->Input("Variance");
  s.new_mean = context->Output("MeanOut");
  s.new_variance = context->Output("VarianceOut");
  if (s.new_mean == nullptr || s.new_variance == nullptr)
    return Unimplemented("it writes 'MeanOut' and 'VarianceOut'");
  if (p.norm.global) {
    norm->Bind(Arg::kMean, s.old_mean);
    norm->Bind(Arg::kVariance, s.old_variance);
    return Step([norm, s, affine](const RunContext&) -> absl::Status {
      affine.Gather();
      PD_RETURN_IF_ERROR(norm->Run());
      for (const auto& [from, to] :
           {std::make_pair(s.old_mean, s.new_mean),
            std::make_pair(s.old_variance, s.new_variance)})
        if (from->raw() != to->raw())
          std::copy_n(from->data<float>(), from->size(), to->data<float>());
      return absl::OkStatus();
    });
  }
  s.mean = context->Output("SavedMean");
  s.saved_variance = context->Output("SavedVariance");
  if (s.mean == nullptr) return Unimplemented("it writes 'SavedMean'");
  s.variance =
      context->Scratch(sizeof(float) * static_cast<size_t>(p.channels));
  s.momentum = p.momentum;
  s.epsilon = p.norm.epsilon;
  norm->Bind(Arg::kMean, s.mean);
  norm->Bind(Arg::kVariance, s.variance);
  return Step([norm, s, affine](const RunContext&) -> absl::Status {
    affine.Gather();
    PD_RETURN_IF_ERROR(norm->Run());
    s.Run();
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindBatchNormGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Problem p, ReadProblem(context, x->layout()));
  if (p.norm.global) return Unimplemented("it is for statistics of the batch");
  Tensor* mean = context->Input("SavedMean");
  Tensor* saved = context->Input("SavedVariance");
  if (mean == nullptr || saved == nullptr)
    return Unimplemented("it reads 'SavedMean' and 'SavedVariance'");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Y@GRAD", DType::kFloat32, x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "SavedMean", DType::kFloat32, {p.channels}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "SavedVariance", DType::kFloat32, {p.channels}));
  PD_ASSIGN_OR_RETURN(PrimitivePtr norm, BatchNormBackward(p.norm));
  PD_ASSIGN_OR_RETURN(Tensor * dy,
                      context->In(context->Input("Y@GRAD"), x->layout()));
  // oneDNN wants the variance; the op saves 1 / standard deviation.
  const size_t bytes = sizeof(float) * static_cast<size_t>(p.channels);
  Tensor* variance = context->Scratch(bytes);
  const ScaleShift affine = BindScaleShift(context, p.channels);
  Tensor* gradients = context->Scratch(2 * bytes);
  Tensor* dscale = context->Output("Scale@GRAD");
  Tensor* dbias = context->Output("Bias@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(dx, context->Out(dx, x->layout()));
  } else {
    dx = context->Scratch(x->bytes());
  }
  norm->Bind(Arg::kSrc, x);
  norm->Bind(Arg::kMean, mean);
  norm->Bind(Arg::kVariance, variance);
  norm->Bind(Arg::kDiffDst, dy);
  norm->Bind(Arg::kScaleShift, affine.both);
  norm->Bind(Arg::kDiffSrc, dx);
  norm->Bind(Arg::kDiffScaleShift, gradients);
  BindScratchpad(context, norm.get());
  return Step([=, epsilon = p.norm.epsilon,
               channels = p.channels](const RunContext&) -> absl::Status {
    affine.Gather();
    for (int64_t c = 0; c < channels; ++c) {
      const float r = saved->data<float>()[c];
      variance->data<float>()[c] = 1 / (r * r) - epsilon;
    }
    PD_RETURN_IF_ERROR(norm->Run());
    const float* sums = gradients->data<float>();
    if (dscale != nullptr) std::copy_n(sums, channels, dscale->data<float>());
    if (dbias != nullptr)
      std::copy_n(sums + channels, channels, dbias->data<float>());
    return absl::OkStatus();
  });
}

}  // namespace onednn
}  // namespace pd
