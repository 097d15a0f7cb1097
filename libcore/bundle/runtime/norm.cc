// SPDX-License-Identifier: Apache-2.0
// softmax along an axis, or its logarithm; layer_norm over the last axes;
// group_norm over groups of channels, of which instance_norm has one for each.
// Sums are kept in float64.
#include <algorithm>
#include <cmath>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/axis_view.h"
#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {
namespace {

bool PrepareSoftmax(Call* call) {
  int axis = 0;
  const Shape& x = call->In(0).shape;
  if (!call->Expect(0, DType::kFloat32)) return false;
  if (x.rank > 0 && !call->Axis(SoftmaxInts::kAxis, x.rank, &axis))
    return false;
  call->MayReplace(0);
  return call->Give(0, DType::kFloat32, x);
}

// One line of `count` numbers that lie `stride` apart.
void SoftmaxLine(const float* x, int64_t count, int64_t stride, bool log,
                 float* out) {
  float most = x[0];
  for (int64_t i = 1; i < count; ++i) most = std::max(most, x[i * stride]);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float shifted = x[i * stride] - most;
    const float power = std::exp(shifted);
    sum += power;
    out[i * stride] = log ? shifted : power;
  }
  if (log) {
    const float shift = static_cast<float>(std::log(sum));
    for (int64_t i = 0; i < count; ++i) out[i * stride] -= shift;
  } else {
    const float factor = static_cast<float>(1.0 / sum);
    for (int64_t i = 0; i < count; ++i) out[i * stride] *= factor;
  }
}

bool RunSoftmax(Call* call) {
  int axis = 0;
  Shape x = call->In(0).shape;
  if (x.rank == 0) x.Append(1);
  if (!call->Axis(SoftmaxInts::kAxis, x.rank, &axis)) return false;
  const AxisView view(x, axis);
  if (view.extent == 0) return true;
  const bool log = call->Int(SoftmaxInts::kLog) != 0;
  call->threads()->For(
      view.outer * view.inner, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first =
              i / view.inner * view.extent * view.inner + i % view.inner;
          SoftmaxLine(call->In(0).as<float>() + first, view.extent, view.inner,
                      log, call->Out(0).as<float>() + first);
        }
      });
  return true;
}

// 1 / sqrt(variance + epsilon) and the mean of `count` numbers.
struct Moments {
  Moments(const float* x, int64_t count, double epsilon) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) sum += x[i];
    mean = sum / static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i) {
      const double d = x[i] - mean;
      squares += d * d;
    }
    factor = 1.0 / std::sqrt(squares / static_cast<double>(count) + epsilon);
  }
  double mean, factor;
};

bool ReadLayerNorm(Call* call, int* axis) {
  return call->Expect(0, DType::kFloat32) &&
         call->Axis(NormInts::kAxis, call->In(0).shape.rank, axis);
}

bool PrepareLayerNorm(Call* call) {
  int axis = 0;
  if (!ReadLayerNorm(call, &axis)) return false;
  const Shape& x = call->In(0).shape;
  const int64_t count = Elements(x, axis, x.rank);
  call->MayReplace(0);
  return call->ExpectVector(1, count) && call->ExpectVector(2, count) &&
         call->Give(0, DType::kFloat32, x);
}

bool RunLayerNorm(Call* call) {
  int axis = 0;
  if (!ReadLayerNorm(call, &axis)) return false;
  const Shape& x = call->In(0).shape;
  const int64_t count = Elements(x, axis, x.rank);
  const float* scale = call->Has(1) ? call->In(1).as<float>() : nullptr;
  const float* bias = call->Has(2) ? call->In(2).as<float>() : nullptr;
  call->threads()->For(
      Elements(x, 0, axis), [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) {
          const float* from = call->In(0).as<float>() + row * count;
          float* to = call->Out(0).as<float>() + row * count;
          const Moments m(from, count, call->Float(0));
          const auto factor = static_cast<float>(m.factor);
          const auto mean = static_cast<float>(m.mean);
          for (int64_t i = 0; i < count; ++i) {
            float y = (from[i] - mean) * factor;
            if (scale != nullptr) y *= scale[i];
            if (bias != nullptr) y += bias[i];
            to[i] = y;
          }
        }
      });
  return true;
}

// 0 groups: as many as channels.
bool ReadGroups(Call* call, int64_t* groups) {
  const Shape& x = call->In(0).shape;
  if (!call->Expect(0, DType::kFloat32)) return false;
  if (x.rank < 2)
    return call->Fail("input of shape %s has no channels", ToString(x).c_str());
  if (!call->Within(NormInts::kAxis, 0, std::max<int64_t>(x[1], 0)))
    return false;
  *groups = call->Int(NormInts::kAxis) == 0 ? x[1] : call->Int(NormInts::kAxis);
  if (*groups < 1 || x[1] % *groups != 0)
    return call->Fail("%lld channels do not divide into %lld groups",
                      static_cast<long long>(x[1]),
                      static_cast<long long>(*groups));
  return true;
}

bool PrepareGroupNorm(Call* call) {
  int64_t groups = 0;
  if (!ReadGroups(call, &groups)) return false;
  const Shape& x = call->In(0).shape;
  call->MayReplace(0);
  return call->ExpectVector(1, x[1]) && call->ExpectVector(2, x[1]) &&
         call->Give(0, DType::kFloat32, x);
}

bool RunGroupNorm(Call* call) {
  int64_t groups = 0;
  if (!ReadGroups(call, &groups)) return false;
  const Shape& x = call->In(0).shape;
  const int64_t plane = Elements(x, 2, x.rank);
  const int64_t channels = x[1] / groups;
  call->threads()->For(x[0] * groups, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const float* from = call->In(0).as<float>() + i * channels * plane;
      float* to = call->Out(0).as<float>() + i * channels * plane;
      const Moments m(from, channels * plane, call->Float(0));
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t channel = i % groups * channels + c;
        const float scale =
            static_cast<float>(m.factor) *
            (call->Has(1) ? call->In(1).as<float>()[channel] : 1.0f);
        const float bias =
            call->Has(2) ? call->In(2).as<float>()[channel] : 0.0f;
        for (int64_t p = c * plane; p < (c + 1) * plane; ++p)
          to[p] = (from[p] - static_cast<float>(m.mean)) * scale + bias;
      }
    }
  });
  return true;
}

}  // namespace

const Kernel kGroupNorm = {"group_norm", {1, 3},
                           {1, 1},       {NormInts::kAll, NormInts::kAll},
                           {1, 1},       PrepareGroupNorm,
                           RunGroupNorm};

const Kernel kLayerNorm = {"layer_norm", {1, 3},
                           {1, 1},       {NormInts::kAll, NormInts::kAll},
                           {1, 1},       PrepareLayerNorm,
                           RunLayerNorm};

const Kernel kSoftmax = {"softmax", {1, 1},
                         {1, 1},    {SoftmaxInts::kAll, SoftmaxInts::kAll},
                         {0, 0},    PrepareSoftmax,
                         RunSoftmax};

}  // namespace pd_run
