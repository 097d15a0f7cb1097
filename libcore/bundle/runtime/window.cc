// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/window.h"

namespace pd_run {
namespace {

// Far from where sums of products of two overflow.
constexpr int64_t kMost = int64_t{1} << 24;

// Paddings that make the output as large as the input, divided by the stride.
void PadSame(WindowAxis* axis) {
  axis->dilation = 1;
  const int64_t out = (axis->in + axis->stride - 1) / axis->stride;
  const int64_t sum =
      std::max<int64_t>((out - 1) * axis->stride + axis->kernel - axis->in, 0);
  axis->before = sum / 2;
  axis->after = sum - axis->before;
}

bool SetOut(Call* call, bool ceil, WindowAxis* axis) {
  const int64_t span = axis->dilation * (axis->kernel - 1) + 1;
  const int64_t room = axis->in + axis->before + axis->after - span;
  // Rounded towards zero: a window that reaches less than a stride too far has
  // a place.
  axis->out = (room + (ceil ? axis->stride - 1 : 0)) / axis->stride + 1;
  if (axis->out > 0) return true;
  return call->Fail("windows of %lld do not fit into %lld",
                    static_cast<long long>(span),
                    static_cast<long long>(axis->in));
}

}  // namespace

bool ReadWindowAxes(Call* call, WindowAxis* h, WindowAxis* w) {
  if (!call->ExpectFloats(0, 4)) return false;
  using Ints = WindowInts;
  for (size_t i = Ints::kKernelH; i <= Ints::kDilationW; ++i)
    if (!call->Within(i, 1, kMost)) return false;
  for (size_t i = Ints::kTop; i <= Ints::kRight; ++i)
    if (!call->Within(i, 0, kMost)) return false;
  const Shape& x = call->In(0).shape;
  *h = {x[2],
        1,
        call->Int(Ints::kKernelH),
        call->Int(Ints::kStrideH),
        call->Int(Ints::kDilationH),
        call->Int(Ints::kTop),
        call->Int(Ints::kBottom)};
  *w = {x[3],
        1,
        call->Int(Ints::kKernelW),
        call->Int(Ints::kStrideW),
        call->Int(Ints::kDilationW),
        call->Int(Ints::kLeft),
        call->Int(Ints::kRight)};
  if (call->Int(Ints::kSame) != 0) {
    PadSame(h);
    PadSame(w);
  }
  return true;
}

bool ReadWindow(Call* call, bool ceil, WindowAxis* h, WindowAxis* w) {
  return ReadWindowAxes(call, h, w) && SetOut(call, ceil, h) &&
         SetOut(call, ceil, w);
}

}  // namespace pd_run
