// SPDX-License-Identifier: Apache-2.0
// Maxima and averages of windows of pictures, [N, C, H, W]. An average divides
// by the positions inside of the picture (exclusive), else by those of the
// window, with paddings, but without what `ceil` adds beyond these.
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/bundle/runtime/kernels.h"
#include "libcore/bundle/runtime/window.h"

namespace pd_run {
namespace {

struct Pool {
  WindowAxis h, w;
  bool max = false, exclusive = false, parts = false;
};

// Input positions of a window on one axis.
struct Span {
  int64_t begin, end;
  int64_t padded;  // with paddings
};

Span SpanAt(const WindowAxis& axis, bool parts, int64_t window) {
  if (parts) {  // equal parts of the input, which may overlap
    const int64_t begin = window * axis.in / axis.out;
    const int64_t end = ((window + 1) * axis.in + axis.out - 1) / axis.out;
    return {begin, end, end - begin};
  }
  const int64_t begin = axis.Source(window, 0);
  const int64_t end = begin + axis.kernel;
  const int64_t first = std::max<int64_t>(begin, 0);
  return {first, std::max(std::min(end, axis.in), first),
          std::min(end, axis.in + axis.before) - begin};
}

bool ReadPool(Call* call, Pool* pool) {
  pool->max = call->Int(PoolInts::kMax) != 0;
  pool->exclusive = call->Int(PoolInts::kExclusive) != 0;
  const bool adaptive = call->Int(PoolInts::kAdaptive) != 0;
  const bool global = call->Int(PoolInts::kGlobal) != 0;
  if (!call->ExpectFloats(0, 4)) return false;
  const Shape& x = call->In(0).shape;
  if (!adaptive && !global)
    return ReadWindow(call, call->Int(PoolInts::kCeil) != 0, &pool->h,
                      &pool->w);
  if (x[2] < 1 || x[3] < 1)
    return call->Fail("input of shape %s has no positions",
                      ToString(x).c_str());
  pool->h.in = pool->h.kernel = x[2];
  pool->w.in = pool->w.kernel = x[3];
  if (global) return true;
  constexpr int64_t kMost = int64_t{1} << 24;
  if (!call->Within(PoolInts::kKernelH, 1, kMost) ||
      !call->Within(PoolInts::kKernelW, 1, kMost))
    return false;
  pool->h.out = pool->h.kernel = call->Int(PoolInts::kKernelH);
  pool->w.out = pool->w.kernel = call->Int(PoolInts::kKernelW);
  // A maximum has so many windows, but plain ones, as PaddlePaddle computes it.
  pool->parts = !pool->max;
  if (pool->max) {
    if (!call->Within(PoolInts::kStrideH, 1, kMost) ||
        !call->Within(PoolInts::kStrideW, 1, kMost))
      return false;
    pool->h.stride = call->Int(PoolInts::kStrideH);
    pool->w.stride = call->Int(PoolInts::kStrideW);
  }
  return true;
}

bool PreparePool(Call* call) {
  Pool pool;
  if (!ReadPool(call, &pool)) return false;
  const Shape& x = call->In(0).shape;
  return call->Give(0, DType::kFloat32,
                    {4, {x[0], x[1], pool.h.out, pool.w.out}});
}

float Maximum(const float* plane, int64_t width, const Span& y, const Span& x) {
  float most = std::numeric_limits<float>::lowest();
  for (int64_t i = y.begin; i < y.end; ++i)
    for (int64_t j = x.begin; j < x.end; ++j) {
      const float v = plane[i * width + j];
      if (v > most || std::isnan(v)) most = v;
    }
  return most;
}

float Sum(const float* plane, int64_t width, const Span& y, const Span& x) {
  float sum = 0.0f;
  for (int64_t i = y.begin; i < y.end; ++i)
    for (int64_t j = x.begin; j < x.end; ++j) sum += plane[i * width + j];
  return sum;
}

void PoolPlane(const Pool& pool, const float* plane, float* out) {
  for (int64_t i = 0; i < pool.h.out; ++i) {
    const Span y = SpanAt(pool.h, pool.parts, i);
    for (int64_t j = 0; j < pool.w.out; ++j) {
      const Span x = SpanAt(pool.w, pool.parts, j);
      if (pool.max) {
        *out++ = Maximum(plane, pool.w.in, y, x);
        continue;
      }
      const int64_t inside = (y.end - y.begin) * (x.end - x.begin);
      const int64_t count = pool.exclusive ? inside : y.padded * x.padded;
      *out++ = count > 0
                   ? Sum(plane, pool.w.in, y, x) / static_cast<float>(count)
                   : 0.0f;
    }
  }
}

bool RunPool(Call* call) {
  Pool pool;
  if (!ReadPool(call, &pool)) return false;
  const Shape& x = call->In(0).shape;
  call->threads()->For(x[0] * x[1], [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      PoolPlane(pool, call->In(0).as<float>() + i * pool.h.in * pool.w.in,
                call->Out(0).as<float>() + i * pool.h.out * pool.w.out);
  });
  return true;
}

}  // namespace

const Kernel kPool = {
    "pool", {1, 1},      {1, 1}, {PoolInts::kAll, PoolInts::kAll},
    {0, 0}, PreparePool, RunPool};

}  // namespace pd_run
