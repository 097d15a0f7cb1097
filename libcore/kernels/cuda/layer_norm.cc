// SPDX-License-Identifier: Apache-2.0
// Layer norm; the kernels are in layer_norm.cu.
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/column_grid.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// Rows of X at begin_norm_axis.
template <typename T>
absl::StatusOr<NormArgsOf<T>> ReadNorm(BindContext* context, const Tensor& x) {
  const int32_t axis = context->Attr<int32_t>("begin_norm_axis");
  if (axis < 1 || axis >= static_cast<int32_t>(x.rank()))
    return Unimplemented("attr 'begin_norm_axis' is %d", axis);
  NormArgsOf<T> args{};
  args.epsilon = T{context->Attr<float>("epsilon")};
  args.rows = NumElements(x.shape(), 0, static_cast<size_t>(axis));
  args.n = NumElements(x.shape(), static_cast<size_t>(axis), x.rank());
  if (args.rows > INT32_MAX || args.n > INT32_MAX)
    return Unimplemented("%d rows of %d", args.rows, args.n);
  for (const char* slot : {"Scale", "Bias"})
    if (const Tensor* t = context->Input(slot))
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, t->dtype(), args.n));
  return args;
}

// 4 where numbers can be loaded by 16 bytes (8 of halves), else 1.
template <typename T>
int32_t WidthOf(const NormArgsOf<T>& a) {
  if constexpr (std::is_same_v<T, float>) {
    if (a.n % 4 != 0 || !IsAligned<4>(a.y)) return 1;
    for (const FloatsIn& in : {a.x, a.scale, a.bias, a.dy})
      if (!IsAligned<4>(in)) return 1;
    return 4;
  }
  return 1;
}

// Starts a kernel whose threads keep up to `kept` packs of a row: a few threads
// take one, or a block where these cannot keep it.
template <typename T>
absl::Status StartRows(const Starter<NormArgsOf<T>>& start, NormArgsOf<T> args,
                       int64_t kept) {
  args.width = WidthOf(args);
  const int64_t packs = (args.n + args.width - 1) / args.width;
  const bool few = packs <= kWarp * kept;
  const int64_t wanted = few ? packs : (packs + kept - 1) / kept;
  const int64_t most = few ? kWarp : kMostThreads;
  args.lanes = 1;
  while (args.lanes < wanted && args.lanes < most) args.lanes *= 2;
  const int threads = std::max(few ? kThreads : 0, args.lanes);
  const int64_t rows = threads / args.lanes;
  return start.Blocks((args.rows + rows - 1) / rows, args, threads);
}

template <typename T>
absl::StatusOr<Step> BindLayerNormOf(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *bias = context->Input("Bias"), *y = context->Output("Y"),
         *mean = context->Output("Mean"),
         *variance = context->Output("Variance");
  PD_RETURN_IF_ERROR(SameAs<T>({x, y}));
  PD_RETURN_IF_ERROR(SameAs<T>({scale, bias}));
  PD_RETURN_IF_ERROR(OneDType({mean, variance}, {DTypeOf<T>()}));
  PD_ASSIGN_OR_RETURN(const NormArgsOf<T> args, ReadNorm<T>(context, *x));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<NormArgsOf<T>>::Find(binding, KernelFor<T>("layer_norm")));
  return Step([=](const RunContext&) {
    NormArgsOf<T> run = args;
    run.x = Read<T>(x);
    run.scale = Read<T>(scale);
    run.bias = Read<T>(bias);
    run.y = Write<T>(y);
    run.mean = At<T>(mean);
    run.variance = At<T>(variance);
    return StartRows<T>(start, run, kRowPacks);
  });
}

absl::StatusOr<Step> BindLayerNorm(BindContext* context,
                                   DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindLayerNormOf<typename decltype(tag)::type>(context, binding);
  });
}

// Starts the sums over rows for Scale@GRAD and Bias@GRAD: over chunks of rows,
// then over the chunks.
template <typename T>
struct ScaleGradStarter {
  static absl::StatusOr<ScaleGradStarter> Find(DeviceBinding* binding) {
    using Start = Starter<NormArgsOf<T>>;
    PD_ASSIGN_OR_RETURN(
        const Start parts,
        Start::Find(binding, KernelFor<T>("layer_norm_grad_parts")));
    PD_ASSIGN_OR_RETURN(
        const Start join,
        Start::Find(binding, KernelFor<T>("layer_norm_grad_scale")));
    return ScaleGradStarter{parts, join};
  }

  absl::Status Run(NormArgsOf<T> args) const {
    args.width = WidthOf(args);
    if (args.width == 1) args.grid = WithoutPacks(args.grid);
    PD_RETURN_IF_ERROR(
        parts.Blocks(TilesOf(args.grid) * args.grid.chunks, args));
    const int64_t chunks = args.grid.chunks;
    args.grid = GridOf(chunks, 2 * args.n, 1);
    args.grid.chunk = chunks;
    args.grid.chunks = 1;
    return join.Blocks(TilesOf(args.grid), args);
  }

  Starter<NormArgsOf<T>> parts, join;
};

template <typename T>
absl::StatusOr<Step> BindLayerNormGradOf(BindContext* context,
                                         DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *mean = context->Input("Mean"), *variance = context->Input("Variance"),
         *dy = context->Input("Y@GRAD"), *dx = context->Output("X@GRAD"),
         *dscale = context->Output("Scale@GRAD"),
         *dbias = context->Output("Bias@GRAD");
  PD_RETURN_IF_ERROR(SameAs<T>({x, dy, dx}));
  PD_RETURN_IF_ERROR(SameAs<T>({scale, dscale, dbias}));
  PD_RETURN_IF_ERROR(OneDType({mean, variance}, {DTypeOf<T>()}));
  PD_ASSIGN_OR_RETURN(NormArgsOf<T> args, ReadNorm<T>(context, *x));
  for (const char* slot : {"Mean", "Variance"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DTypeOf<T>(), args.rows));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", x->dtype(), x->shape()));
  if (Tensor* bias = context->Input("Bias")) context->NoBuffer(bias);
  using Start = Starter<NormArgsOf<T>>;
  PD_ASSIGN_OR_RETURN(const auto by_x,
                      Start::Find(binding, KernelFor<T>("layer_norm_grad_x")));
  PD_ASSIGN_OR_RETURN(const auto by_scale, ScaleGradStarter<T>::Find(binding));
  const bool sums = dscale != nullptr || dbias != nullptr;
  if (sums) args.grid = GridOf(args.rows, args.n, args.n % 4 == 0 ? 4 : 1);
  Tensor* const parts =
      sums ? context->Scratch(static_cast<size_t>(args.grid.chunks * args.n) *
                              2 * sizeof(T))
           : nullptr;
  return Step([=](const RunContext&) {
    NormArgsOf<T> run = args;
    run.x = Read<T>(x);
    run.scale = Read<T>(scale);
    run.mean = At<T>(mean);
    run.variance = At<T>(variance);
    run.dy = Read<T>(dy);
    run.y = Write<T>(dx);
    run.dscale = Write<T>(dscale);
    run.dbias = Write<T>(dbias);
    run.parts = At<T>(parts);
    if (dx != nullptr)
      PD_RETURN_IF_ERROR(StartRows<T>(by_x, run, kRowPacks / 2));
    return sums ? by_scale.Run(run) : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindLayerNormGrad(BindContext* context,
                                       DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindLayerNormGradOf<typename decltype(tag)::type>(context, binding);
  });
}

}  // namespace

void AddLayerNorm(KernelTable* kernels) {
  kernels->Add("layer_norm", {"cuda", BindLayerNorm});
  kernels->Add("layer_norm_grad", {"cuda", BindLayerNormGrad});
}

}  // namespace pd::cuda
