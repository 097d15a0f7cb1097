// SPDX-License-Identifier: Apache-2.0
// group_norm and instance_norm of row-major images and their gradients. A
// channel of an image is a run of elements: sums are float32 vectors over parts
// of it and double beyond. Formulas: libcore/ops/norm/group_norm.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace cpu {
namespace {

constexpr int64_t kNormPart = 1024;  // elements summed in float32 at most

struct NormShape {
  int64_t images, channels, groups, positions;
  double epsilon;
  bool instance;

  int64_t width() const { return channels / groups; }  // channels of a group
  double count() const { return static_cast<double>(width() * positions); }
};

absl::StatusOr<NormShape> ReadNormShape(const BindContext& context,
                                        const Tensor* x) {
  if (x == nullptr || x->dtype() != DType::kFloat32 || x->rank() < 2 ||
      x->size() == 0)
    return Unimplemented("it is for X of float32");
  NormShape s;
  s.instance = context.op().type.rfind("instance", 0) == 0;
  if (!s.instance && context.Attr<std::string>("data_layout") == "NHWC")
    return Unimplemented("it is for images with channels first");
  s.images = x->dim(0);
  s.channels = x->dim(1);
  s.groups = s.instance ? s.channels : context.Attr<int32_t>("groups");
  if (s.groups < 1 || s.channels % s.groups != 0)
    return Unimplemented("the channels are not in groups");
  s.positions = x->size() / (s.images * s.channels);
  // Without a variance epsilon alone divides, and roundings grow.
  if (s.width() * s.positions < 2)
    return Unimplemented("a group is one element");
  s.epsilon = context.Attr<float>("epsilon");
  for (const char* slot : {"Scale", "Bias"})
    if (context.Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(
          ExpectElements(context, slot, DType::kFloat32, s.channels));
  return s;
}

// Calls body(group of an image) from several threads.
template <typename Body>
void ForNormGroups(const NormShape& s, const Body& body) {
  ParallelFor(s.images * s.groups, 8192 / (s.width() * s.positions + 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) body(i);
              });
}

// sum(x - from)
double SumOfRun(float from, const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kNormPart) {
    const float* part = x + i;
    const int64_t count = std::min(kNormPart, n - i);
    float some = 0;
#pragma omp simd reduction(+ : some)
    for (int64_t k = 0; k < count; ++k) some += part[k] - from;
    sum += double{some};
  }
  return sum;
}

double SquaresAround(float mean, const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kNormPart) {
    const float* part = x + i;
    const int64_t count = std::min(kNormPart, n - i);
    float some = 0;
#pragma omp simd reduction(+ : some)
    for (int64_t k = 0; k < count; ++k)
      some += (part[k] - mean) * (part[k] - mean);
    sum += double{some};
  }
  return sum;
}

// sum(dy) and sum(dy * (x - mean)).
struct RunSums {
  double plain = 0, weighed = 0;
};
RunSums SumsOfRun(float mean, const float* x, const float* dy, int64_t n) {
  RunSums sums;
  for (int64_t i = 0; i < n; i += kNormPart) {
    const float *a = x + i, *g = dy + i;
    const int64_t count = std::min(kNormPart, n - i);
    float plain = 0, weighed = 0;
#pragma omp simd reduction(+ : plain, weighed)
    for (int64_t k = 0; k < count; ++k) {
      plain += g[k];
      weighed += g[k] * (a[k] - mean);
    }
    sums.plain += double{plain};
    sums.weighed += double{weighed};
  }
  return sums;
}

float ValueOr(const Tensor* tensor, int64_t i, float otherwise) {
  return tensor != nullptr ? tensor->data<float>()[i] : otherwise;
}

struct NormTensors {
  Tensor *x, *scale, *bias, *y, *mean, *variance;
};

// One group of one image, whose channels lie one after the other.
void NormalizeGroup(const NormShape& s, const NormTensors& t, int64_t at) {
  const int64_t first = at % s.groups * s.width(), n = s.positions;
  const int64_t start = at * s.width() * n;
  const float* x = t.x->data<float>() + start;
  float* y = t.y->data<float>() + start;
  // Around an element: roundings grow with the distance from 0.
  const double mean =
      double{x[0]} + SumOfRun(x[0], x, s.width() * n) / s.count();
  const auto middle = static_cast<float>(mean);
  // The rounding of the mean is taken back.
  const double off = mean - double{middle};
  const double variance = std::max(
      SquaresAround(middle, x, s.width() * n) / s.count() - off * off, 0.0);
  const double inverse = 1 / std::sqrt(variance + s.epsilon);
  for (int64_t c = 0; c < s.width(); ++c) {
    const float a =
        static_cast<float>(inverse) * ValueOr(t.scale, first + c, 1);
    const float b = ValueOr(t.bias, first + c, 0) - static_cast<float>(off) * a;
    const float* in = x + c * n;
    float* out = y + c * n;
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) out[k] = (in[k] - middle) * a + b;
  }
  if (t.mean != nullptr) t.mean->data<float>()[at] = middle;
  if (t.variance != nullptr)
    t.variance->data<float>()[at] =
        static_cast<float>(s.instance ? inverse : variance);
}

struct NormGradTensors {
  Tensor *x, *scale, *mean, *variance, *dy;
  Tensor *dx, *dscale, *dbias;
  Tensor *plain, *weighed;  // scratch: sums of each channel of each image
};

// X@GRAD of one group of one image, and the sums of its channels.
void GradientOfGroup(const NormShape& s, const NormGradTensors& t, int64_t at) {
  const int64_t first = at % s.groups * s.width(), n = s.positions;
  const int64_t start = at * s.width() * n, row = at * s.width();
  const float mean = t.mean->data<float>()[at];
  const double v = t.variance->data<float>()[at];
  const double inverse = s.instance ? v : 1 / std::sqrt(v + s.epsilon);
  const float* x = t.x->data<float>() + start;
  const float* dy = t.dy->data<float>() + start;
  double sum = 0, dot = 0;
  for (int64_t c = 0; c < s.width(); ++c) {
    const RunSums sums = SumsOfRun(mean, x + c * n, dy + c * n, n);
    t.plain->data<double>()[row + c] = sums.plain;
    t.weighed->data<double>()[row + c] = sums.weighed * inverse;
    const double scale = ValueOr(t.scale, first + c, 1);
    sum += scale * sums.plain;
    dot += scale * sums.weighed * inverse;
  }
  if (t.dx == nullptr) return;
  // As PaddlePaddle's CPU kernel has it: without Scale no mean of the gradient.
  const bool centred = s.instance || t.scale != nullptr;
  const auto shift =
      static_cast<float>(centred ? -inverse * sum / s.count() : 0.0);
  const auto slope = static_cast<float>(-inverse * inverse * dot / s.count());
  float* dx = t.dx->data<float>() + start;
  for (int64_t c = 0; c < s.width(); ++c) {
    const float a =
        static_cast<float>(inverse) * ValueOr(t.scale, first + c, 1);
    const float *in = x + c * n, *g = dy + c * n;
    float* out = dx + c * n;
#pragma omp simd
    for (int64_t k = 0; k < n; ++k)
      out[k] = a * g[k] + (slope * (in[k] - mean) + shift);
  }
}

void SumOverImages(const NormShape& s, const Tensor& parts, Tensor* to) {
  if (to == nullptr) return;
  for (int64_t c = 0; c < s.channels; ++c) {
    double sum = 0;
    for (int64_t i = 0; i < s.images; ++i)
      sum += parts.data<double>()[i * s.channels + c];
    to->data<float>()[c] = static_cast<float>(sum);
  }
}

}  // namespace

absl::StatusOr<Step> BindGroupNorm(BindContext* context) {
  NormTensors t;
  t.x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const NormShape s, ReadNormShape(*context, t.x));
  t.scale = context->Input("Scale");
  t.bias = context->Input("Bias");
  t.y = context->Output("Y");
  t.mean = context->Output(s.instance ? "SavedMean" : "Mean");
  t.variance = context->Output(s.instance ? "SavedVariance" : "Variance");
  return Step([s, t](const RunContext&) {
    ForNormGroups(s, [&](int64_t at) { NormalizeGroup(s, t, at); });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindGroupNormGrad(BindContext* context) {
  NormGradTensors t;
  t.x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const NormShape s, ReadNormShape(*context, t.x));
  const char* mean = s.instance ? "SavedMean" : "Mean";
  const char* variance = s.instance ? "SavedVariance" : "Variance";
  for (const char* slot : {mean, variance})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, DType::kFloat32, s.images * s.groups));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Y@GRAD", DType::kFloat32, t.x->shape()));
  if (Tensor* y = context->Input("Y")) context->NoBuffer(y);
  t.scale = context->Input("Scale");
  t.mean = context->Input(mean);
  t.variance = context->Input(variance);
  t.dy = context->Input("Y@GRAD");
  t.dx = context->Output("X@GRAD");
  t.dscale = context->Output("Scale@GRAD");
  t.dbias = context->Output("Bias@GRAD");
  const size_t bytes =
      static_cast<size_t>(s.images * s.channels) * sizeof(double);
  t.plain = context->Scratch(bytes);
  t.weighed = context->Scratch(bytes);
  return Step([s, t](const RunContext&) {
    ForNormGroups(s, [&](int64_t at) { GradientOfGroup(s, t, at); });
    SumOverImages(s, *t.weighed, t.dscale);
    SumOverImages(s, *t.plain, t.dbias);
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
