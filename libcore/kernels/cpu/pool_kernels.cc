// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/pool_kernels.h"

#include <algorithm>
#include <limits>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/pool_kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
const hn::Rebind<int32_t, hn::ScalableTag<float>> kIntTag;
const hn::Rebind<uint8_t, hn::ScalableTag<float>> kByteTag;

struct Window {
  PoolAxis::Range rows, columns;
  int64_t row_stride, batch;  // of the input
  float scale;                // of averages
};

Window WindowOf(const PoolArgs& a, int64_t oh, int64_t ow) {
  const size_t y = static_cast<size_t>(oh), x = static_cast<size_t>(ow);
  Window w;
  w.rows = a.h->windows[y];
  w.columns = a.w->windows[x];
  w.batch = a.batch;
  w.row_stride = a.w->in * a.batch;
  const int64_t count = a.count_padding ? a.h->padded[y] * a.w->padded[x]
                                        : (w.rows.end - w.rows.begin) *
                                              (w.columns.end - w.columns.begin);
  w.scale = count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
  return w;
}

bool IsEmpty(const Window& w) {
  return w.rows.begin >= w.rows.end || w.columns.begin >= w.columns.end;
}

// One sample each: the tails.
void MaxOne(const Window& w, const float* plane, float* out, uint8_t* index) {
  float best = 0;
  int number = 0, at = -1;
  for (int64_t y = w.rows.begin; y < w.rows.end; ++y)
    for (int64_t x = w.columns.begin; x < w.columns.end; ++x, ++number) {
      const float v = plane[y * w.row_stride + x * w.batch];
      if (at < 0 || v > best || (v != v && best == best)) {
        best = v;
        at = number;
      }
    }
  *out = best;
  *index = static_cast<uint8_t>(at);
}

void MaxRow(const Window& w, const float* plane, float* out, uint8_t* index) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  int64_t n = 0;
  for (; n + lanes <= w.batch; n += lanes) {
    auto best = hn::LoadU(kTag, plane + w.rows.begin * w.row_stride +
                                    w.columns.begin * w.batch + n);
    auto at = hn::Zero(kIntTag);
    int32_t number = 0;
    for (int64_t y = w.rows.begin; y < w.rows.end; ++y) {
      const float* row = plane + y * w.row_stride + n;
      for (int64_t x = w.columns.begin; x < w.columns.end; ++x, ++number) {
        const auto v = hn::LoadU(kTag, row + x * w.batch);
        // A NaN beats every number, the first NaN stays.
        const auto better =
            hn::Or(hn::Gt(v, best), hn::And(hn::IsNaN(v), hn::Eq(best, best)));
        best = hn::IfThenElse(better, v, best);
        at = hn::IfThenElse(hn::RebindMask(kIntTag, better),
                            hn::Set(kIntTag, number), at);
      }
    }
    hn::StoreU(best, kTag, out + n);
    hn::StoreU(hn::DemoteTo(kByteTag, at), kByteTag, index + n);
  }
  for (; n < w.batch; ++n) MaxOne(w, plane + n, out + n, index + n);
}

void AverageRow(const Window& w, const float* plane, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const auto scale = hn::Set(kTag, w.scale);
  for (int64_t n = 0; n < w.batch; n += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, w.batch - n)));
    auto sum = hn::Zero(kTag);
    for (int64_t y = w.rows.begin; y < w.rows.end; ++y)
      for (int64_t x = w.columns.begin; x < w.columns.end; ++x)
        sum = hn::Add(
            sum, hn::MaskedLoad(mask, kTag,
                                plane + y * w.row_stride + x * w.batch + n));
    hn::BlendedStore(hn::Mul(sum, scale), mask, kTag, out + n);
  }
}

// Item i is row i / C of channel i % C, so that a thread has the rows that it
// has in the convolutions around.
void ForwardItems(const PoolArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t c = i % a.channels, oh = i / a.channels;
    const float* plane = a.in + c * a.h->in * a.w->in * a.batch;
    const int64_t row = (c * a.h->out + oh) * a.w->out * a.batch;
    for (int64_t ow = 0; ow < a.w->out; ++ow) {
      const Window w = WindowOf(a, oh, ow);
      float* out = a.out + row + ow * a.batch;
      if (!a.max) {
        AverageRow(w, plane, out);
      } else if (IsEmpty(w)) {
        std::fill(out, out + a.batch, std::numeric_limits<float>::lowest());
        std::fill(a.index + row + ow * a.batch,
                  a.index + row + (ow + 1) * a.batch, uint8_t{255});
      } else {
        MaxRow(w, plane, out, a.index + row + ow * a.batch);
      }
    }
  }
}

// A window that a position of the input lies in.
struct Cover {
  const float* grad;
  const uint8_t* index;
  int32_t number;  // of the position in the window
  float scale;
};

void MaxGradRow(const Cover& cover, int64_t batch, bool add, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const auto number = hn::Set(kIntTag, cover.number);
  int64_t n = 0;
  for (; n + lanes <= batch; n += lanes) {
    const auto at =
        hn::PromoteTo(kIntTag, hn::LoadU(kByteTag, cover.index + n));
    auto value = hn::IfThenElseZero(hn::RebindMask(kTag, hn::Eq(at, number)),
                                    hn::LoadU(kTag, cover.grad + n));
    if (add) value = hn::Add(value, hn::LoadU(kTag, out + n));
    hn::StoreU(value, kTag, out + n);
  }
  for (; n < batch; ++n) {
    const float value = cover.index[n] == cover.number ? cover.grad[n] : 0.0f;
    out[n] = add ? out[n] + value : value;
  }
}

void AverageGradRow(const Cover& cover, int64_t batch, bool add, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const auto scale = hn::Set(kTag, cover.scale);
  for (int64_t n = 0; n < batch; n += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, batch - n)));
    auto value = hn::Mul(scale, hn::MaskedLoad(mask, kTag, cover.grad + n));
    if (add) value = hn::Add(value, hn::MaskedLoad(mask, kTag, out + n));
    hn::BlendedStore(value, mask, kTag, out + n);
  }
}

void BackwardItems(const PoolArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t c = i % a.channels, h = i / a.channels;
    const PoolAxis::Range rows = a.h->covers[static_cast<size_t>(h)];
    float* out = a.out + (c * a.h->in + h) * a.w->in * a.batch;
    for (int64_t x = 0; x < a.w->in; ++x, out += a.batch) {
      const PoolAxis::Range columns = a.w->covers[static_cast<size_t>(x)];
      bool add = false;
      for (int64_t oh = rows.begin; oh < rows.end; ++oh)
        for (int64_t ow = columns.begin; ow < columns.end; ++ow) {
          const Window w = WindowOf(a, oh, ow);
          const int64_t from = ((c * a.h->out + oh) * a.w->out + ow) * a.batch;
          Cover cover;
          cover.grad = a.in + from;
          cover.index = a.index + from;
          cover.number = static_cast<int32_t>(
              (h - w.rows.begin) * (w.columns.end - w.columns.begin) + x -
              w.columns.begin);
          cover.scale = w.scale;
          if (a.max)
            MaxGradRow(cover, a.batch, add, out);
          else
            AverageGradRow(cover, a.batch, add, out);
          add = true;
        }
      if (!add) std::fill(out, out + a.batch, 0.0f);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(ForwardItems);
HWY_EXPORT(BackwardItems);

void PoolForward(const PoolArgs& args) {
  const auto run = HWY_DYNAMIC_DISPATCH(ForwardItems);
  const int64_t grain = 1 + 8192 / (args.w->in * args.batch + 1);
  ParallelFor(args.h->out * args.channels, grain,
              [&](int64_t begin, int64_t end) { run(args, begin, end); });
}

void PoolBackward(const PoolArgs& args) {
  const auto run = HWY_DYNAMIC_DISPATCH(BackwardItems);
  const int64_t grain = 1 + 8192 / (args.w->in * args.batch + 1);
  ParallelFor(args.h->in * args.channels, grain,
              [&](int64_t begin, int64_t end) { run(args, begin, end); });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
