// SPDX-License-Identifier: Apache-2.0
// Pooling; the kernels are in pool.cu.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/max_pool_with_index.h"
#include "libcore/ops/conv/window.h"

namespace pd::cuda {
namespace {

// Asks for channels last on both sides where X has them; says whether it does.
absl::StatusOr<bool> AskForWindows(BindContext* context, const Tensor& like,
                                   std::initializer_list<Tensor**> inputs,
                                   std::initializer_list<Tensor**> outputs) {
  const bool last =
      like.layout() != nullptr &&
      SameLayout(like.layout(), ChannelsLast(like.shape())) &&
      context->op().AttrOr<std::string>("data_format", "NCHW") != "NHWC";
  const auto layout_of = [&](const Tensor& tensor) {
    return last ? ChannelsLast(tensor.shape()) : nullptr;
  };
  for (Tensor** input : inputs)
    if (*input != nullptr) {
      PD_ASSIGN_OR_RETURN(*input, context->In(*input, layout_of(**input)));
    }
  for (Tensor** output : outputs) {
    PD_ASSIGN_OR_RETURN(*output, context->Out(*output, layout_of(**output)));
  }
  return last;
}

absl::StatusOr<Step> BindPool(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  const bool masked = context->op().type.rfind("max_", 0) == 0;
  Tensor* mask = masked ? context->Output("Mask") : nullptr;
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      masked ? ReadMaxPool(context->op(), x->shape())
                             : ReadPool(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(PoolWindows windows, ReadWindows(g));
  windows.n = out->size();
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *x, {&x}, {&out}));
  if (last) windows.position_step = windows.channels;
  return ForReal(*x, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start, Starter<PoolArgsOf<T>>::Find(
                                              binding, KernelFor<T>("pool")));
    return Step([=](const RunContext&) {
      PoolArgsOf<T> run{windows, {}, {}, {}, nullptr};
      run.x = Read<T>(x);
      run.out = Write<T>(out);
      run.mask = At<int32_t>(mask);
      return start.Elements(run.n, run);
    });
  });
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({x, dout, dx}));
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), g.OutputShape()));
  PD_ASSIGN_OR_RETURN(PoolWindows windows, ReadWindows(g));
  windows.n = dx->size();
  if (Tensor* out = context->Input("Out")) context->NoBuffer(out);
  Tensor* const like = x;
  if (!windows.max) context->NoBuffer(std::exchange(x, nullptr));
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *like, {&x, &dout}, {&dx}));
  if (last) windows.position_step = windows.channels;
  return ForReal(*dx, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<PoolArgsOf<T>>::Find(binding, KernelFor<T>("pool_grad")));
    return Step([=](const RunContext&) {
      PoolArgsOf<T> run{windows, {}, {}, {}, nullptr};
      run.x = Read<T>(x);
      run.dout = Read<T>(dout);
      run.out = Write<T>(dx);
      return start.Elements(run.n, run);
    });
  });
}

}  // namespace

absl::StatusOr<PoolWindows> ReadWindows(const PoolGeometry& g) {
  PoolWindows args{};
  args.channels = g.channels;
  args.position_step = g.channels_last ? g.channels : 1;
  args.max = g.max;
  args.adaptive = g.adaptive;
  args.exclusive = g.exclusive;
  if (g.axes.size() > 3) return Unimplemented("%d axes", g.axes.size());
  for (PoolAxis& axis : args.axes) axis = {1, 1, 1, 1, 0};
  size_t at = 3 - g.axes.size();
  for (const WindowAxis& w : g.axes) {
    for (int64_t n : {w.in, w.out, w.kernel, w.stride, w.pad_before})
      if (n > INT32_MAX / 4) return Unimplemented("an extent of %d", n);
    args.axes[at++] = {static_cast<int32_t>(w.in), static_cast<int32_t>(w.out),
                       static_cast<int32_t>(w.kernel),
                       static_cast<int32_t>(w.stride),
                       static_cast<int32_t>(w.pad_before)};
  }
  return args;
}

void AddPool(KernelTable* kernels) {
  for (const std::string type : {"pool2d", "pool3d"}) {
    kernels->Add(type, AnyLayout("cuda", BindPool));
    kernels->Add(type + "_grad", AnyLayout("cuda", BindPoolGrad));
  }
  // Their gradients are in gather.cc.
  for (const char* type : {"max_pool2d_with_index", "max_pool3d_with_index"})
    kernels->Add(type, {"cuda", BindPool});
}

}  // namespace pd::cuda
