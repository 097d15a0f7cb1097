// SPDX-License-Identifier: Apache-2.0
// pool2d and its gradient through oneDNN, in the layout that X has.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace onednn {
namespace {

// The layout of X, with the extents of another image.
LayoutPtr LayoutLike(const LayoutPtr& layout, const Shape& shape) {
  if (layout == nullptr) return nullptr;
  Layout like = *layout;
  like.shape = like.padded = shape;
  int64_t block = 1;
  for (const Layout::Block& b : like.blocks) {
    const size_t d = static_cast<size_t>(b.dim);
    block *= b.size;
    like.padded[d] = (shape[d] + b.size - 1) / b.size * b.size;
  }
  // The outer strides in the same order, over the new extents.
  // From the innermost; of equal strides (an extent is 1) the later dimension.
  std::vector<size_t> order = {3, 2, 1, 0};
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return layout->strides[a] < layout->strides[b];
  });
  int64_t stride = block;
  for (size_t d : order) {
    like.strides[d] = stride;
    int64_t inner = 1;
    for (const Layout::Block& b : like.blocks)
      if (b.dim == static_cast<int>(d)) inner *= b.size;
    stride *= like.padded[d] / inner;
  }
  return Canonical(std::move(like));
}

absl::StatusOr<Pooling> ReadPoolProblem(BindContext* context,
                                        const LayoutPtr& layout) {
  const Tensor* x = context->Input("X");
  PD_RETURN_IF_ERROR(TakesType(x->dtype()));
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  if (g.axes.size() != 2 || g.channels_last)
    return Unimplemented("it is for NCHW");
  if (layout != nullptr && layout->blocks.size() > 1)
    return Unimplemented("X lies in several levels of blocks");
  Pooling p;
  p.src.dtype = p.dst.dtype = x->dtype();
  p.src.shape = x->shape();
  p.src.layout = layout;
  p.dst.shape = g.OutputShape();
  p.dst.layout = LayoutLike(layout, p.dst.shape);
  if (x->size() == 0 || NumElements(p.dst.shape) == 0)
    return Unimplemented("the image is empty");
  p.kind = g.max         ? Pooling::Kind::kMax
           : g.exclusive ? Pooling::Kind::kAverage
                         : Pooling::Kind::kAverageWithPadding;
  for (const WindowAxis& axis : g.axes) {
    WindowAxis a = axis;
    if (g.adaptive) {
      if (a.in % a.out != 0)
        return Unimplemented("adaptive windows are not all of one size");
      a.kernel = a.stride = a.in / a.out;
      a.pad_before = a.pad_after = 0;
    }
    if (a.pad_before >= a.kernel || a.pad_after >= a.kernel)
      return Unimplemented("the padding is as large as the window");
    const int64_t after =
        (a.out - 1) * a.stride + a.kernel - a.in - a.pad_before;
    if (after > a.pad_after)
      return Unimplemented("the last window ends outside of the padding");
    p.kernel.push_back(a.kernel);
    p.strides.push_back(a.stride);
    p.pad_before.push_back(a.pad_before);
    p.pad_after.push_back(after);
  }
  return p;
}

std::string WorkspaceName(const std::string& output) {
  return absl::StrCat(output, "@pool_workspace");
}

}  // namespace

absl::StatusOr<Step> BindPool(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Pooling p, ReadPoolProblem(context, x->layout()));
  PD_ASSIGN_OR_RETURN(PrimitivePtr pool, PoolingForward(p));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), p.dst.layout));
  pool->Bind(Arg::kSrc, x);
  pool->Bind(Arg::kDst, out);
  const ArgSpec workspace = WorkspaceOf(*pool);
  if (!workspace.shape.empty())
    pool->Bind(Arg::kWorkspace,
               context->Keep(WorkspaceName(context->op().Out("Out")),
                             workspace.dtype, workspace.shape));
  BindScratchpad(context, pool.get());
  return Step([pool](const RunContext&) { return pool->Run(); });
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(
      const Pooling p,
      ReadPoolProblem(context, context->LayoutOf(context->op().In("X"))));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", p.dst.dtype, p.dst.shape));
  PD_ASSIGN_OR_RETURN(PrimitivePtr pool, PoolingBackward(p));
  const ArgSpec workspace = WorkspaceOf(*pool);
  if (!workspace.shape.empty()) {
    Tensor* kept = context->Kept(WorkspaceName(context->op().In("Out")));
    if (kept == nullptr || kept->shape() != workspace.shape)
      return Unimplemented("the forward op left no workspace");
    pool->Bind(Arg::kWorkspace, kept);
  }
  context->NoBuffer(x);
  if (Tensor* out = context->Input("Out")) context->NoBuffer(out);
  PD_ASSIGN_OR_RETURN(Tensor * dout,
                      context->In(context->Input("Out@GRAD"), p.dst.layout));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), p.src.layout));
  pool->Bind(Arg::kDiffDst, dout);
  pool->Bind(Arg::kDiffSrc, dx);
  BindScratchpad(context, pool.get());
  return Step([pool](const RunContext&) { return pool->Run(); });
}

}  // namespace onednn
}  // namespace pd
