// SPDX-License-Identifier: Apache-2.0
// grid_sampler, affine_grid and their gradients; the kernels are in
// grid_sampler.cu.
#include <limits>

#include "libcore/kernels/cuda/argsort.h"
#include "libcore/kernels/cuda/grid_sampler_arguments.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/grid_sampler.h"

namespace pd::cuda {
namespace {

absl::StatusOr<SampleArgs> ReadSample(BindContext* context, Tensor* x,
                                      Tensor* grid) {
  PD_ASSIGN_OR_RETURN(
      const GridSampler s,
      ReadGridSampler(context->op(), x->shape(), grid->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Grid", x->dtype(), grid->shape()));
  if (s.cubic || (s.nearest && s.ties_to_even && s.axes == 3))
    return Unimplemented("ONNX's cubic weights, or its nearest in volumes");
  SampleArgs args{};
  args.axes = static_cast<int32_t>(s.axes);
  args.images = s.images;
  args.channels = s.channels;
  args.in_size = s.in_size;
  args.out_size = s.out_size;
  std::copy_n(s.extent, 3, args.extent);
  std::copy_n(s.step, 3, args.step);
  args.nearest = s.nearest;
  args.ties_to_even = s.ties_to_even;
  args.align_corners = s.align_corners;
  args.padding = static_cast<int32_t>(s.padding);
  return args;
}

absl::StatusOr<Step> BindSample(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *grid = context->Input("Grid"),
         *out = context->Output("Output");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, grid, out}));
  PD_ASSIGN_OR_RETURN(const SampleArgs args, ReadSample(context, x, grid));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<SampleArgs>::Find(binding, "sample"));
  return Step([=](const RunContext&) {
    SampleArgs run = args;
    run.x = At(x);
    run.grid = At(grid);
    run.to = At(out);
    return start.Elements(out->size(), run);
  });
}

// Orders the places by the cells that they read, then has every element of x
// sum what reads it.
absl::StatusOr<Step> BindSampleGradX(BindContext* context,
                                     DeviceBinding* binding,
                                     const SampleArgs& given) {
  Tensor *grid = context->Input("Grid"), *dout = context->Input("Output@GRAD"),
         *dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const KeySort sort,
                      KeySort::Make(binding, given.images, given.out_size));
  int64_t cells = 1;
  for (int32_t a = 0; a < given.axes; ++a) cells *= given.extent[a] + 1;
  if (cells >= std::numeric_limits<uint32_t>::max())
    return Unimplemented("images of %d positions", given.in_size);
  using Start = Starter<SampleArgs>;
  PD_ASSIGN_OR_RETURN(const auto keys, Start::Find(binding, "sample_keys"));
  PD_ASSIGN_OR_RETURN(const auto sum, Start::Find(binding, "sample_grad_x"));
  Tensor* const room = context->Scratch(sort.bytes());
  SampleArgs args = given;
  args.line = sort.line();
  return Step([=](const RunContext&) {
    SampleArgs run = args;
    run.grid = At(grid);
    run.dout = At(dout);
    run.to = At(dx);
    run.keys = room->data<uint64_t>();
    PD_RETURN_IF_ERROR(keys.Elements(run.images * run.line, run));
    PD_RETURN_IF_ERROR(sort.Run(run.keys));
    return sum.Elements(dx->size(), run);
  });
}

absl::StatusOr<Step> BindSampleGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *grid = context->Input("Grid"),
         *dout = context->Input("Output@GRAD"), *dx = context->Output("X@GRAD"),
         *dgrid = context->Output("Grid@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, grid, dout, dx, dgrid}));
  PD_ASSIGN_OR_RETURN(const SampleArgs args, ReadSample(context, x, grid));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Output@GRAD", x->dtype(),
                     args.images * args.channels * args.out_size));
  std::vector<Step> steps;
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(Step step, BindSampleGradX(context, binding, args));
    steps.push_back(std::move(step));
  }
  if (dgrid == nullptr) {
    context->NoBuffer(x);
    return InOrder(std::move(steps));
  }
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<SampleArgs>::Find(binding, "sample_grad_grid"));
  steps.emplace_back([=](const RunContext&) {
    SampleArgs run = args;
    run.x = At(x);
    run.grid = At(grid);
    run.dout = At(dout);
    run.to = At(dgrid);
    return start.Elements(run.images * run.out_size, run);
  });
  return InOrder(std::move(steps));
}

absl::StatusOr<Step> BindAffineGrid(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor* const dtheta = context->Output("Theta@GRAD");
  const bool grad = dtheta != nullptr;
  Tensor* theta = grad ? dtheta : context->Input("Theta");
  Tensor* grid =
      grad ? context->Input("Output@GRAD") : context->Output("Output");
  PD_RETURN_IF_ERROR(OnlyFloat32({theta, grid}));
  for (const char* slot : {"OutputShape", "Theta"})
    if (Tensor* t = context->Input(slot); t != nullptr && t != theta)
      context->NoBuffer(t);
  const int64_t axes = static_cast<int64_t>(grid->rank()) - 2;
  if ((axes != 2 && axes != 3) || grid->shape().back() != axes ||
      theta->shape() != Shape{grid->dim(0), axes, axes + 1})
    return InvalidArgument("'Theta' has shape %s; the grid %s",
                           ToString(theta->shape()), ToString(grid->shape()));
  AffineArgs args{};
  args.axes = static_cast<int32_t>(axes);
  args.align_corners = context->Attr<bool>("align_corners");
  args.images = grid->dim(0);
  args.positions = NumElements(grid->shape(), 1, grid->rank() - 1);
  for (int64_t a = 0; a < axes; ++a)
    args.extent[a] = grid->dim(static_cast<size_t>(axes - a));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<AffineArgs>::Find(
                          binding, grad ? "affine_grid_grad" : "affine_grid"));
  return Step([=](const RunContext&) {
    AffineArgs run = args;
    run.from = At(grad ? grid : theta);
    run.to = At(grad ? theta : grid);
    return grad ? start.Items(theta->size(), run)
                : start.Elements(grid->size(), run);
  });
}

}  // namespace

void AddGridSampler(KernelTable* kernels) {
  kernels->Add("grid_sampler", {"cuda", BindSample});
  kernels->Add("grid_sampler_grad", {"cuda", BindSampleGrad});
  kernels->Add("affine_grid", {"cuda", BindAffineGrid});
  kernels->Add("affine_grid_grad", {"cuda", BindAffineGrid});
}

}  // namespace pd::cuda
