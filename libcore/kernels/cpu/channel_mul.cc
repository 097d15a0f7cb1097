// SPDX-License-Identifier: Apache-2.0
// elementwise_mul of images [N, C, ...] by a number for each channel of each,
// [N, C, 1, ...], as squeeze-and-excitation has it, and its gradient, row-major
// or in blocks of channels.
#include <algorithm>
#include <array>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/blocked_channels.h"
#include "libcore/kernels/cpu/vector_floats.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace cpu {
namespace {

// X as [planes, positions, lanes], a plane being a block of channels.
struct ChannelMulProblem {
  int64_t batch = 1, channels = 1, blocks = 1, positions = 1, lanes = 1;

  int64_t planes() const { return batch * blocks; }
  // Floats of a plane.
  int64_t size() const { return positions * lanes; }
  // The channels of a plane, without padding, and where their numbers lie.
  int64_t Channels(int64_t plane) const {
    return std::min(lanes, channels - plane % blocks * lanes);
  }
  int64_t First(int64_t plane) const {
    return plane / blocks * channels + plane % blocks * lanes;
  }
};

constexpr int64_t kMaxLanes = 16;
using Numbers = std::array<float, kMaxLanes>;

absl::StatusOr<ChannelMulProblem> ReadChannelMulProblem(BindContext* context) {
  const Tensor* x = context->Input("X");
  const Tensor* y = context->Input("Y");
  if (x->dtype() != DType::kFloat32 || y->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  Shape wanted = x->shape();
  for (size_t d = 2; d < wanted.size(); ++d) wanted[d] = 1;
  if (x->rank() < 3 || y->shape() != wanted || x->size() == 0)
    return Unimplemented("Y is not a number for each channel");
  ChannelMulProblem p;
  p.batch = x->dim(0);
  p.channels = p.blocks = x->dim(1);
  p.positions = NumElements(x->shape(), 2, x->rank());
  if (x->layout() != nullptr) {
    if (!SameLayout(x->layout(), BlockedChannels(x->shape())))
      return Unimplemented("it has no layout %s", x->layout()->ToString());
    p.lanes = VectorFloats();
    p.blocks = (p.channels + p.lanes - 1) / p.lanes;
  }
  return p;
}

template <typename Body>
void ForPlanes(const ChannelMulProblem& p, const Body& body) {
  constexpr int64_t kGrain = 16384;  // floats per thread at least
  ParallelFor(p.planes(), kGrain / p.size() + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t plane = begin; plane < end; ++plane) body(plane);
              });
}

// The numbers of a plane's channels, 0 for padding.
Numbers NumbersOf(const ChannelMulProblem& p, const float* y, int64_t plane) {
  Numbers numbers{};
  std::copy_n(y + p.First(plane), p.Channels(plane), numbers.begin());
  return numbers;
}

template <int kLanes>
void Multiply(const float* x, const Numbers& by, int64_t positions,
              float* out) {
  for (int64_t i = 0; i < positions; ++i)
#pragma omp simd
    for (int l = 0; l < kLanes; ++l)
      out[i * kLanes + l] = x[i * kLanes + l] * by[static_cast<size_t>(l)];
}

void MultiplyPlane(const ChannelMulProblem& p, const float* x,
                   const Numbers& by, float* out) {
  if (p.lanes == 16) return Multiply<16>(x, by, p.positions, out);
  if (p.lanes == 8) return Multiply<8>(x, by, p.positions, out);
  const float factor = by[0];
#pragma omp simd
  for (int64_t i = 0; i < p.positions; ++i) out[i] = x[i] * factor;
}

// The sums of products of a plane's channels: of floats over some positions, of
// doubles over those.
template <int kLanes>
void Dot(const float* a, const float* b, int64_t size, double* sums) {
  constexpr int64_t kPiece = 64 * kMaxLanes;
  for (int64_t begin = 0; begin < size; begin += kPiece) {
    const int64_t end = std::min(size, begin + kPiece);
    float part[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes)
#pragma omp simd
      for (int l = 0; l < kLanes; ++l) part[l] += a[i + l] * b[i + l];
    for (int l = 0; i < end; ++i, ++l) part[l] += a[i] * b[i];
    for (int l = 0; l < kLanes; ++l) sums[l] += double{part[l]};
  }
}

void DotPlane(const ChannelMulProblem& p, const float* a, const float* b,
              int64_t plane, float* to) {
  double sums[kMaxLanes] = {};
  if (p.lanes == 8)
    Dot<8>(a, b, p.size(), sums);
  else
    Dot<16>(a, b, p.size(), sums);
  to += p.First(plane);
  if (p.lanes == 1)
    for (int l = 1; l < kMaxLanes; ++l) sums[0] += sums[l];
  for (int64_t c = 0; c < p.Channels(plane); ++c)
    to[c] = static_cast<float>(sums[c]);
}

}  // namespace

absl::StatusOr<Step> BindMulByChannels(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const ChannelMulProblem p,
                      ReadChannelMulProblem(context));
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(Tensor * y, context->In(context->Input("Y"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), x->layout()));
  context->MayShare(x, out);
  return Step([=](const RunContext&) {
    const float *in = x->data<float>(), *by = y->data<float>();
    float* result = out->data<float>();
    ForPlanes(p, [&](int64_t plane) {
      MultiplyPlane(p, in + plane * p.size(), NumbersOf(p, by, plane),
                    result + plane * p.size());
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindMulByChannelsGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const ChannelMulProblem p,
                      ReadChannelMulProblem(context));
  Tensor* x = context->Input("X");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", DType::kFloat32, x->shape()));
  PD_ASSIGN_OR_RETURN(Tensor * y, context->In(context->Input("Y"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * dout,
                      context->In(context->Input("Out@GRAD"), x->layout()));
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(dx, context->Out(dx, x->layout()));
    context->MayShare(dout, dx);
  }
  if (dy != nullptr) {
    PD_ASSIGN_OR_RETURN(dy, context->Out(dy, nullptr));
  } else {
    context->NoBuffer(x);
  }
  return Step([=](const RunContext&) {
    const float *g = dout->data<float>(), *by = y->data<float>();
    ForPlanes(p, [&](int64_t plane) {
      const float* from = g + plane * p.size();
      // Before dx takes the place of dout.
      if (dy != nullptr)
        DotPlane(p, x->data<float>() + plane * p.size(), from, plane,
                 dy->data<float>());
      if (dx != nullptr)
        MultiplyPlane(p, from, NumbersOf(p, by, plane),
                      dx->data<float>() + plane * p.size());
    });
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
