// SPDX-License-Identifier: Apache-2.0
// Dropout; the kernels are in dropout.cu.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/norm/dropout.h"

namespace pd::cuda {
namespace {

// to = from * factor
template <typename T>
absl::StatusOr<Step> BindScaled(DeviceBinding* binding, T factor, Tensor* from,
                                Tensor* to) {
  PD_ASSIGN_OR_RETURN(
      const auto scale,
      Starter<UnaryArgsOf<T>>::Find(binding, KernelFor<T>("unary_scale")));
  return Step([=](const RunContext&) {
    UnaryArgsOf<T> run{};
    run.v = Read<T>(from);
    run.out = Write<T>(to);
    run.n = from->size();
    run.a = factor;
    return scale.Elements(run.n, run);
  });
}

// to = from by a mask of extent 1 along some dimensions.
absl::StatusOr<Step> BindDropoutMask(DeviceBinding* binding, float factor,
                                     Tensor* mask, Tensor* from, Tensor* to) {
  PD_RETURN_IF_ERROR(SameFloats({from, to}));
  const Shape &full = from->shape(), &own = mask->shape();
  bool fits = own.size() == full.size();
  for (size_t d = 0; fits && d < full.size(); ++d)
    fits = own[d] == full[d] || own[d] == 1;
  if (!fits)
    return Unimplemented("a mask of shape %s for %s", ToString(own),
                         ToString(full));
  MaskArgs args{};
  args.n = from->size();
  args.factor = factor;
  const auto strides = BroadcastStrides(own, full);
  for (size_t d = 0; d < full.size(); ++d)
    if (!AddExtent<1>(full[d], {strides[d]}, &args.walk)) return TooManyDims();
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<MaskArgs>::Find(binding, "dropout_by_mask"));
  return Step([=](const RunContext&) {
    MaskArgs run = args;
    run.x = Read<float>(from);
    run.mask = mask->data<uint8_t>();
    run.out = Write<float>(to);
    return start.Elements(run.n, run);
  });
}

template <typename T>
absl::StatusOr<Step> BindDropoutOf(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out"),
         *mask = context->Output("Mask");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  PD_ASSIGN_OR_RETURN(const pd::Dropout dropout, ReadDropout(*context));
  if (dropout.is_test && dropout.upscale) {
    context->Alias(x, out);
    return Step();
  }
  context->MayShare(x, out);
  const auto factor = static_cast<T>(dropout.KeptFactor());
  if (dropout.is_test) return BindScaled(binding, factor, x, out);
  PD_ASSIGN_OR_RETURN(const DropoutSource source, ReadDropoutSource(*context));
  if (source.seed_tensor != nullptr) return Unimplemented("an input 'Seed'");
  if (mask == nullptr && context->op().type == "dropout_nd")
    return Unimplemented("no mask");
  if (mask == nullptr) mask = context->Scratch(static_cast<size_t>(x->size()));
  Step by_mask;
  if (mask->size() != x->size()) {
    PD_ASSIGN_OR_RETURN(
        by_mask,
        BindDropoutMask(binding, static_cast<float>(factor), mask, x, out));
  }
  PD_ASSIGN_OR_RETURN(const auto start, Starter<DropoutArgsOf<T>>::Find(
                                            binding, KernelFor<T>("dropout")));
  DropoutArgsOf<T> args{};
  args.n = mask->size();
  args.seed = static_cast<uint64_t>(source.seed);
  args.stream = source.name;
  args.threshold = static_cast<float>(dropout.probability);
  args.factor = factor;
  if (!source.fixed) {
    PD_ASSIGN_OR_RETURN(args.run, binding->SeedAndStep());
  }
  return Step([=, by_mask = std::move(by_mask)](const RunContext& of_run) {
    DropoutArgsOf<T> run = args;
    run.x = Read<T>(x);
    if (by_mask == nullptr) run.out = Write<T>(out);
    run.mask = mask->data<uint8_t>();
    PD_RETURN_IF_ERROR(start.Elements(run.n, run));
    return by_mask == nullptr ? absl::OkStatus() : by_mask(of_run);
  });
}

absl::StatusOr<Step> BindDropout(BindContext* context, DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindDropoutOf<typename decltype(tag)::type>(context, binding);
  });
}

absl::StatusOr<Step> BindDropoutGrad(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor *dout = context->Input("Out@GRAD"), *mask = context->Input("Mask"),
         *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({dout, dx}));
  PD_ASSIGN_OR_RETURN(const pd::Dropout dropout, ReadDropout(*context));
  context->MayShare(dout, dx);
  return ForReal(*dout, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    const auto factor = static_cast<T>(dropout.KeptFactor());
    if (dropout.is_test) {
      if (mask != nullptr) context->NoBuffer(mask);
      return BindScaled(binding, factor, dout, dx);
    }
    if (mask == nullptr) return Unimplemented("no mask");
    if (mask->size() != dout->size())
      return BindDropoutMask(binding, static_cast<float>(factor), mask, dout,
                             dx);
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<DropoutArgsOf<T>>::Find(binding, KernelFor<T>("dropout_grad")));
    return Step([=](const RunContext&) {
      DropoutArgsOf<T> run{};
      run.x = Read<T>(dout);
      run.out = Write<T>(dx);
      run.mask = mask->data<uint8_t>();
      run.n = dout->size();
      run.factor = factor;
      return start.Elements(run.n, run);
    });
  });
}

}  // namespace

void AddDropout(KernelTable* kernels) {
  for (const std::string type : {"dropout", "dropout_nd"}) {
    kernels->Add(type, {"cuda", BindDropout});
    kernels->Add(type + "_grad", {"cuda", BindDropoutGrad});
  }
}

}  // namespace pd::cuda
