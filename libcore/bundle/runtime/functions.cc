// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/functions.h"

#include <algorithm>
#include <cmath>

#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {
namespace {

template <typename F>
void Each(int64_t count, const float* from, float* to, const F& f) {
  for (int64_t i = 0; i < count; ++i) to[i] = f(from[i]);
}

float SigmoidOf(float x) { return 1.0f / (1.0f + std::exp(-x)); }

float SoftplusOf(float x) {  // without overflow
  return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x)));
}

// A NaN stays one.
float Clamped(float x, float low, float high) {
  return x < low ? low : (x > high ? high : x);
}

// Functions that are smooth.
bool ApplySmooth(const Activation& f, int64_t n, const float* x, float* y) {
  const float a = f.a, b = f.b;
  switch (f.function) {
    case Function::kSigmoid:
      return Each(n, x, y, SigmoidOf), true;
    case Function::kTanh:
      return Each(n, x, y, [](float v) { return std::tanh(v); }), true;
    case Function::kSilu:
      return Each(n, x, y, [](float v) { return v * SigmoidOf(v); }), true;
    case Function::kGelu:
      return Each(n, x, y,
                  [](float v) {
                    return v * (0.5f * (1.0f + std::erf(v * 0.70710678f)));
                  }),
             true;
    case Function::kGeluTanh:
      return Each(n, x, y,
                  [](float v) {
                    const float inner =
                        0.79788456f * (v + 0.044715f * v * v * v);
                    return 0.5f * v * (1.0f + std::tanh(inner));
                  }),
             true;
    case Function::kMish:
      return Each(n, x, y,
                  [a](float v) {
                    return v * std::tanh(v > a ? v : SoftplusOf(v));
                  }),
             true;
    case Function::kSoftplus:
      return Each(n, x, y,
                  [a, b](float v) {
                    return v * a > b ? v : SoftplusOf(v * a) / a;
                  }),
             true;
    case Function::kLogSigmoid:
      return Each(n, x, y, [](float v) { return -SoftplusOf(-v); }), true;
    case Function::kTanhShrink:
      return Each(n, x, y, [](float v) { return v - std::tanh(v); }), true;
    case Function::kSoftsign:
      return Each(n, x, y, [](float v) { return v / (1.0f + std::fabs(v)); }),
             true;
    case Function::kStanh:
      return Each(n, x, y, [a, b](float v) { return b * std::tanh(a * v); }),
             true;
    case Function::kErf:
      return Each(n, x, y, [](float v) { return std::erf(v); }), true;
    default:
      return false;
  }
}

// Functions with a corner, most of which networks have behind their products.
bool ApplyPiecewise(const Activation& f, int64_t n, const float* x, float* y) {
  const float a = f.a, b = f.b, c = f.c;
  switch (f.function) {
    case Function::kRelu:
      return Each(n, x, y, [](float v) { return v < 0.0f ? 0.0f : v; }), true;
    case Function::kClamp:
      return Each(n, x, y, [a, b](float v) { return Clamped(v, a, b); }), true;
    case Function::kLeakyRelu:
      return Each(n, x, y, [a](float v) { return v < 0.0f ? a * v : v; }), true;
    case Function::kHardSigmoid:
      return Each(n, x, y,
                  [a, b](float v) { return Clamped(a * v + b, 0.0f, 1.0f); }),
             true;
    case Function::kHardSwish:
      return Each(n, x, y,
                  [a, b, c](float v) {
                    return v * Clamped(v + c, 0.0f, a) / b;
                  }),
             true;
    case Function::kElu:
      return Each(n, x, y,
                  [a](float v) { return v > 0.0f ? v : a * std::expm1(v); }),
             true;
    case Function::kCelu:
      return Each(
                 n, x, y,
                 [a](float v) { return v > 0.0f ? v : a * std::expm1(v / a); }),
             true;
    case Function::kSelu:
      return Each(n, x, y,
                  [a, b](float v) {
                    return a * (v > 0.0f ? v : b * std::expm1(v));
                  }),
             true;
    case Function::kHardShrink:
      return Each(n, x, y,
                  [a](float v) { return v >= -a && v <= a ? 0.0f : v; }),
             true;
    case Function::kSoftShrink:
      return Each(n, x, y,
                  [a](float v) {
                    return v > a ? v - a : (v < -a ? v + a : 0.0f);
                  }),
             true;
    case Function::kThresholdedRelu:
      return Each(n, x, y, [a](float v) { return v <= a ? 0.0f : v; }), true;
    default:
      return false;
  }
}

// Functions of <cmath>.
bool ApplyMath(const Activation& f, int64_t n, const float* x, float* y) {
  const float a = f.a, b = f.b;
  switch (f.function) {
    case Function::kAbs:
      return Each(n, x, y, [](float v) { return std::fabs(v); }), true;
    case Function::kCeil:
      return Each(n, x, y, [](float v) { return std::ceil(v); }), true;
    case Function::kCos:
      return Each(n, x, y, [](float v) { return std::cos(v); }), true;
    case Function::kExp:
      return Each(n, x, y, [](float v) { return std::exp(v); }), true;
    case Function::kFloor:
      return Each(n, x, y, [](float v) { return std::floor(v); }), true;
    case Function::kLog:
      return Each(n, x, y, [](float v) { return std::log(v); }), true;
    case Function::kLog10:
      return Each(n, x, y, [](float v) { return std::log10(v); }), true;
    case Function::kLog1p:
      return Each(n, x, y, [](float v) { return std::log1p(v); }), true;
    case Function::kLog2:
      return Each(n, x, y, [](float v) { return std::log2(v); }), true;
    case Function::kPow:
      return Each(n, x, y, [a](float v) { return std::pow(v, a); }), true;
    case Function::kReciprocal:
      return Each(n, x, y, [](float v) { return 1.0f / v; }), true;
    case Function::kRound:
      return Each(n, x, y, [](float v) { return std::round(v); }), true;
    case Function::kRsqrt:
      return Each(n, x, y, [](float v) { return 1.0f / std::sqrt(v); }), true;
    case Function::kScale:
      return Each(n, x, y, [a, b](float v) { return v * a + b; }), true;
    case Function::kSign:
      return Each(n, x, y,
                  [](float v) {
                    return v > 0.0f ? 1.0f : (v < 0.0f ? -1.0f : v);
                  }),
             true;
    case Function::kSin:
      return Each(n, x, y, [](float v) { return std::sin(v); }), true;
    case Function::kSqrt:
      return Each(n, x, y, [](float v) { return std::sqrt(v); }), true;
    case Function::kSquare:
      return Each(n, x, y, [](float v) { return v * v; }), true;
    default:
      return false;
  }
}

bool PrepareUnary(Call* call) {
  call->MayReplace(0);
  return call->Expect(0, DType::kFloat32) && ExpectFunction(call, 0) &&
         call->Give(0, DType::kFloat32, call->In(0).shape);
}

bool RunUnary(Call* call) {
  const Activation f = FunctionOf(*call, 0);
  const float* x = call->In(0).as<float>();
  float* y = call->Out(0).as<float>();
  // Parts of a few lines of the cache, so that small tensors wake no thread.
  constexpr int64_t kPart = 4096;
  const int64_t size = call->In(0).size();
  call->threads()->For((size + kPart - 1) / kPart,
                       [&](int64_t begin, int64_t end, int) {
                         begin *= kPart;
                         end = std::min(end * kPart, size);
                         f.Apply(end - begin, x + begin, y + begin);
                       });
  return true;
}

}  // namespace

void Activation::Apply(int64_t count, const float* from, float* to) const {
  if (ApplyPiecewise(*this, count, from, to) ||
      ApplySmooth(*this, count, from, to) || ApplyMath(*this, count, from, to))
    return;
  if (from != to) std::copy_n(from, count, to);
}

bool ExpectFunction(Call* call, size_t i) {
  return call->Within(i, 0, kFunctions - 1);
}

Activation FunctionOf(const Call& call, size_t i) {
  return {static_cast<Function>(call.Int(i)), call.Float(0), call.Float(1),
          call.Float(2)};
}

const Kernel kUnary = {
    "unary",      {1, 1},  {1, 1}, {1, 1}, {kFunctionFloats, kFunctionFloats},
    PrepareUnary, RunUnary};

}  // namespace pd_run
