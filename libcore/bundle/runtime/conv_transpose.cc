// SPDX-License-Identifier: Apache-2.0
// conv_transpose: the transposed convolution of pictures, [N, C, H, W].
//
// For each image and group a product of the filters, a row for each output
// channel and tap, with the picture, a column for each position; its elements
// are added to where their taps lie in the result. Threads share the output
// channels, so that each adds to planes of its own.
#include <algorithm>

#include "libcore/bundle/runtime/gemm.h"
#include "libcore/bundle/runtime/kernels.h"
#include "libcore/bundle/runtime/window.h"

namespace pd_run {
namespace {

constexpr int64_t kMostChannels = int64_t{1} << 24;
constexpr int64_t kMostExtent = int64_t{1} << 24;

struct Transpose {
  // The axes of the convolution that leads back: `in` is the result's extent,
  // and `out` the picture's.
  WindowAxis h, w;
  int64_t batch = 0, channels = 0, out = 0, groups = 1;

  int64_t taps() const { return h.kernel * w.kernel; }
  int64_t group_out() const { return out / groups; }
  int64_t depth() const { return channels / groups; }
  int64_t rows() const { return group_out() * taps(); }
  int64_t positions() const { return h.out * w.out; }
};

// Exchanges the extents; `extra` and `wanted` are the numbers of the node.
bool Exchange(Call* call, int64_t extra, int64_t wanted, WindowAxis* axis) {
  axis->out = axis->in;
  int64_t span = 0;
  if (!Multiply({axis->out, axis->stride}, &span))
    return call->Fail("the picture cannot be so large");
  const int64_t least = span - axis->stride - axis->before - axis->after +
                        axis->dilation * (axis->kernel - 1) + 1;
  axis->in = wanted > 0 ? wanted : least + extra;
  if (least > 0 && axis->in >= least &&
      axis->in < least + std::max(axis->stride, axis->dilation))
    return true;
  return call->Fail("an extent of %lld where the least is %lld",
                    static_cast<long long>(axis->in),
                    static_cast<long long>(least));
}

bool ReadTranspose(Call* call, Transpose* t) {
  using Ints = ConvTransposeInts;
  if (!ReadWindowAxes(call, &t->h, &t->w) ||
      !call->Within(Ints::kOut, 1, kMostChannels) ||
      !call->Within(Ints::kGroups, 1, kMostChannels) ||
      !ExpectFunction(call, Ints::kFunction))
    return false;
  for (const size_t i :
       {Ints::kExtraH, Ints::kExtraW, Ints::kHeight, Ints::kWidth})
    if (!call->Within(i, 0, kMostExtent)) return false;
  if (!Exchange(call, call->Int(Ints::kExtraH), call->Int(Ints::kHeight),
                &t->h) ||
      !Exchange(call, call->Int(Ints::kExtraW), call->Int(Ints::kWidth), &t->w))
    return false;
  const Shape& x = call->In(0).shape;
  t->batch = x[0];
  t->channels = x[1];
  t->out = call->Int(Ints::kOut);
  t->groups = call->Int(Ints::kGroups);
  if (t->channels % t->groups != 0 || t->out % t->groups != 0)
    return call->Fail("channels do not divide into groups");
  return call->ExpectVector(2, t->out) &&
         call->Give(0, DType::kFloat32, {4, {x[0], t->out, t->h.in, t->w.in}});
}

bool PrepareTranspose(Call* call) {
  Transpose t;
  if (!ReadTranspose(call, &t)) return false;
  int64_t rows = 0, weights = 0, product = 0;
  if (!Multiply({t.group_out(), t.h.kernel, t.w.kernel}, &rows) ||
      !Multiply({RowPanels(rows), kPanelRows, t.channels}, &weights) ||
      !Multiply({RowPanels(rows), kPanelRows, kPanelColumns}, &product))
    return call->Fail("the filters cannot be so large");
  return call->ExpectVector(1, weights) &&
         call->NeedScratch(kPanelFloats + product);
}

// Adds a row of `count` products, those of the positions from `first` on, to
// the plane of their output channel.
void AddTap(const Transpose& t, int64_t tap, int64_t first, int64_t count,
            const float* from, float* plane) {
  const int64_t tap_h = tap / t.w.kernel, tap_w = tap % t.w.kernel;
  const auto [inside, inside_end] = t.w.Inside(tap_w);
  int64_t y = first / t.w.out, x = first % t.w.out;
  while (count > 0) {
    const int64_t end = std::min(x + count, t.w.out);
    const int64_t row = t.h.Source(y, tap_h);
    const int64_t low = std::min(std::max(inside, x), end);
    const int64_t high = std::min(std::max(inside_end, low), end);
    if (row >= 0 && row < t.h.in && low < high) {
      float* to = plane + row * t.w.in + t.w.Source(low, tap_w);
      for (int64_t i = low; i < high; ++i, to += t.w.stride) *to += from[i - x];
    }
    from += end - x;
    count -= end - x;
    x = 0;
    ++y;
  }
}

// Output channels [begin, end) of a group; `begin` is one that begins a panel.
struct Share {
  int64_t image, group, begin, end;
};

void RunShare(const Call& call, const Transpose& t, const Share& share,
              float* memory) {
  const int64_t plane = t.h.in * t.w.in;
  const int64_t first_out = share.group * t.group_out() + share.begin;
  float* const out =
      call.Out(0).as<float>() + (share.image * t.out + first_out) * plane;
  const int64_t channels = share.end - share.begin;
  for (int64_t i = 0; i < channels; ++i)
    std::fill_n(out + i * plane, plane,
                call.Has(2) ? call.In(2).as<float>()[first_out + i] : 0.0f);
  const float* x =
      call.In(0).as<float>() +
      (share.image * t.channels + share.group * t.depth()) * t.positions();
  float* const products = memory + kPanelFloats;
  Gemm gemm;
  gemm.a =
      call.In(1).as<float>() + (share.group * RowPanels(t.rows()) * kPanelRows +
                                share.begin * t.taps()) *
                                   t.depth();
  gemm.c = products;
  gemm.rows = channels * t.taps();
  gemm.depth = t.depth();
  gemm.c_stride = kPanelColumns;
  for (int64_t at = 0; at < t.positions(); at += kPanelColumns) {
    gemm.columns = std::min(kPanelColumns, t.positions() - at);
    const StridedColumns columns(x + at, gemm.columns, t.positions(), 1);
    gemm.b = &columns;
    gemm.Run(0, 1, 0, RowPanels(gemm.rows), memory);
    for (int64_t row = 0; row < gemm.rows; ++row)
      AddTap(t, row % t.taps(), at, gemm.columns,
             products + row * kPanelColumns, out + row / t.taps() * plane);
  }
  const Activation activation = FunctionOf(call, ConvTransposeInts::kFunction);
  if (activation.function != Function::kNone)
    activation.Apply(channels * plane, out, out);
}

bool RunTranspose(Call* call) {
  Transpose t;
  if (!ReadTranspose(call, &t)) return false;
  // So many channels, whatever the taps are, begin a panel of rows.
  const int64_t units = RowPanels(t.group_out());
  call->threads()->For(
      t.batch * t.groups * units, [&](int64_t begin, int64_t end, int thread) {
        while (begin < end) {
          const int64_t unit = begin % units;
          const int64_t count = std::min(units - unit, end - begin);
          RunShare(*call, t,
                   {begin / units / t.groups, begin / units % t.groups,
                    unit * kPanelRows,
                    std::min((unit + count) * kPanelRows, t.group_out())},
                   call->Scratch(thread));
          begin += count;
        }
      });
  return true;
}

}  // namespace

const Kernel kConvTranspose = {
    "conv_transpose",
    {2, 3},
    {1, 1},
    {ConvTransposeInts::kAll, ConvTransposeInts::kAll},
    {kFunctionFloats, kFunctionFloats},
    PrepareTranspose,
    RunTranspose};

}  // namespace pd_run
