// SPDX-License-Identifier: Apache-2.0
// pool2d on data that lies batch-inner. The forward op leaves the place of each
// maximum for the gradient, which then reads no forward value.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/pool_kernels.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace cpu {
namespace {

struct PoolBatchInnerProblem {
  PoolAxis h, w;
  PoolArgs args;
  LayoutPtr in_layout, out_layout;
  Shape out_shape;
};

PoolAxis MakeAxis(const WindowAxis& axis, bool adaptive) {
  PoolAxis a;
  a.in = axis.in;
  a.out = axis.out;
  a.covers.assign(static_cast<size_t>(a.in), {0, 0});
  for (int64_t o = 0; o < a.out; ++o) {
    const PoolWindow window = WindowAt(axis, adaptive, o);
    a.windows.push_back({window.begin, window.end});
    a.padded.push_back(window.padded);
    for (int64_t i = window.begin; i < window.end; ++i) {
      PoolAxis::Range& cover = a.covers[static_cast<size_t>(i)];
      if (cover.end == 0) cover.begin = o;
      cover.end = o + 1;
    }
  }
  return a;
}

int64_t LargestWindow(const PoolAxis& axis) {
  int64_t largest = 0;
  for (const PoolAxis::Range& w : axis.windows)
    largest = std::max(largest, w.end - w.begin);
  return largest;
}

absl::StatusOr<std::shared_ptr<PoolBatchInnerProblem>>
ReadPoolBatchInnerProblem(BindContext* context, const LayoutPtr& have) {
  const Tensor* x = context->Input("X");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  if (g.axes.size() != 2) return Unimplemented("it is for 2-D pooling");
  const std::vector<int> order = g.channels_last ? std::vector<int>{3, 1, 2, 0}
                                                 : std::vector<int>{1, 2, 3, 0};
  auto p = std::make_shared<PoolBatchInnerProblem>();
  p->in_layout = PermutedLayout(x->shape(), order);
  if (have == nullptr || !SameLayout(have, p->in_layout))
    return Unimplemented("X does not lie batch-inner");
  p->out_shape = g.OutputShape();
  p->out_layout = PermutedLayout(p->out_shape, order);
  p->h = MakeAxis(g.axes[0], g.adaptive);
  p->w = MakeAxis(g.axes[1], g.adaptive);
  p->args.h = &p->h;
  p->args.w = &p->w;
  p->args.channels = g.channels;
  p->args.batch = g.batch;
  p->args.max = g.max;
  p->args.count_padding = !g.exclusive && !g.adaptive;
  const int64_t window = LargestWindow(p->h) * LargestWindow(p->w);
  if (g.max && window > kMaxPoolWindow)
    return Unimplemented("a window has %d positions, more than %d", window,
                         kMaxPoolWindow);
  return p;
}

std::string IndexName(const std::string& output) {
  return absl::StrCat(output, "@max_index");
}

}  // namespace

absl::StatusOr<Step> BindPoolBatchInner(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(std::shared_ptr<PoolBatchInnerProblem> p,
                      ReadPoolBatchInnerProblem(context, x->layout()));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), p->out_layout));
  Tensor* index = p->args.max
                      ? context->Keep(IndexName(context->op().Out("Out")),
                                      DType::kUInt8, p->out_shape)
                      : nullptr;
  return Step([=](const RunContext&) {
    PoolArgs args = p->args;
    args.in = x->data<float>();
    args.out = out->data<float>();
    if (index != nullptr) args.index = index->data<uint8_t>();
    PoolForward(args);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindPoolGradBatchInner(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(std::shared_ptr<PoolBatchInnerProblem> p,
                      ReadPoolBatchInnerProblem(
                          context, context->LayoutOf(context->op().In("X"))));
  Tensor* dout = context->Input("Out@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", DType::kFloat32, p->out_shape));
  Tensor* index = nullptr;
  if (p->args.max) {
    index = context->Kept(IndexName(context->op().In("Out")));
    if (index == nullptr)
      return Unimplemented("the forward op left no places of the maxima");
  }
  context->NoBuffer(x);
  if (Tensor* out = context->Input("Out")) context->NoBuffer(out);
  PD_ASSIGN_OR_RETURN(dout, context->In(dout, p->out_layout));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), p->in_layout));
  return Step([=](const RunContext&) {
    PoolArgs args = p->args;
    args.in = dout->data<float>();
    args.out = dx->data<float>();
    if (index != nullptr) args.index = index->data<uint8_t>();
    PoolBackward(args);
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
