// SPDX-License-Identifier: Apache-2.0
// layer_norm, lookup_table, gather and dropout; the kernels are in rows.cu.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/selected_rows.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/norm/dropout.h"

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
  for (const char* slot : {"Scale", "Bias"})
    if (const Tensor* t = context->Input(slot))
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, t->dtype(), args.n));
  return args;
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
    return start.Items(run.rows, run);
  });
}

absl::StatusOr<Step> BindLayerNorm(BindContext* context,
                                   DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindLayerNormOf<typename decltype(tag)::type>(context, binding);
  });
}

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
  PD_ASSIGN_OR_RETURN(const NormArgsOf<T> args, ReadNorm<T>(context, *x));
  for (const char* slot : {"Mean", "Variance"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DTypeOf<T>(), args.rows));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", x->dtype(), x->shape()));
  if (Tensor* bias = context->Input("Bias")) context->NoBuffer(bias);
  using Start = Starter<NormArgsOf<T>>;
  PD_ASSIGN_OR_RETURN(const auto by_x,
                      Start::Find(binding, KernelFor<T>("layer_norm_grad_x")));
  PD_ASSIGN_OR_RETURN(
      const auto by_scale,
      Start::Find(binding, KernelFor<T>("layer_norm_grad_scale")));
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
    if (dx != nullptr) PD_RETURN_IF_ERROR(by_x.Items(run.rows, run));
    return dscale != nullptr || dbias != nullptr ? by_scale.Elements(run.n, run)
                                                 : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindLayerNormGrad(BindContext* context,
                                       DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindLayerNormGradOf<typename decltype(tag)::type>(context, binding);
  });
}

template <typename T>
absl::StatusOr<LookupArgsOf<T>> ReadLookup(BindContext* context,
                                           DeviceBinding* binding,
                                           const Tensor& w, const Tensor& ids) {
  if (w.rank() != 2 ||
      (ids.dtype() != DType::kInt64 && ids.dtype() != DType::kInt32))
    return Unimplemented("W has shape %s, Ids are %s", ToString(w.shape()),
                         Name(ids.dtype()));
  LookupArgsOf<T> args{};
  args.count = ids.size();
  args.rows = w.dim(0);
  args.width = w.dim(1);
  args.padding = context->Attr<int64_t>("padding_idx");
  // -1 means none: no id may be it.
  if (args.padding == -1) args.padding = INT64_MIN;
  args.ids64 = ids.dtype() == DType::kInt64;
  PD_ASSIGN_OR_RETURN(
      args.bad, binding->ErrorFlag(absl::StrFormat(
                    "'Ids' of %s over '%s' holds a number outside [0, %d)",
                    context->op().type, context->op().In("W"), args.rows)));
  return args;
}

absl::StatusOr<Step> BindLookup(BindContext* context, DeviceBinding* binding) {
  Tensor *w = context->Input("W"), *ids = context->Input("Ids"),
         *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameReals({w, out}));
  return ForReal(*w, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const LookupArgsOf<T> args,
                        ReadLookup<T>(context, binding, *w, *ids));
    PD_ASSIGN_OR_RETURN(const auto start, Starter<LookupArgsOf<T>>::Find(
                                              binding, KernelFor<T>("lookup")));
    return Step([=](const RunContext&) {
      LookupArgsOf<T> run = args;
      run.from = At<T>(w);
      run.to = At<T>(out);
      run.ids = ids->raw();
      return start.Elements(run.count * run.width, run);
    });
  });
}

absl::StatusOr<Step> BindLookupGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *w = context->Input("W"), *ids = context->Input("Ids"),
         *dout = context->Input("Out@GRAD"), *dw = context->Output("W@GRAD");
  if (IsSelectedRows(dw)) return BindLookupRows(context, binding);
  PD_RETURN_IF_ERROR(SameReals({w, dout, dw}));
  context->NoBuffer(w);
  return ForReal(*dw, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const LookupArgsOf<T> args,
                        ReadLookup<T>(context, binding, *w, *ids));
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", w->dtype(),
                                      args.count * args.width));
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<LookupArgsOf<T>>::Find(binding, KernelFor<T>("lookup_grad")));
    return Step([=, device = binding->device()](const RunContext&) {
      PD_RETURN_IF_ERROR(device->Clear(dw->raw(), dw->bytes()));
      LookupArgsOf<T> run = args;
      run.from = At<T>(dout);
      run.to = At<T>(dw);
      run.ids = ids->raw();
      return start.Elements(run.width, run);
    });
  });
}

// gather and index_select along the first axis: rows by number, none skipped.
template <typename T>
absl::StatusOr<LookupArgsOf<T>> ReadGather(BindContext* context,
                                           DeviceBinding* binding,
                                           const Tensor& x,
                                           const Tensor& index) {
  const OpDesc& op = context->op();
  if (context->Input("Axis") != nullptr || op.AttrOr<int32_t>("axis", 0) != 0 ||
      op.AttrOr<int32_t>("dim", 0) != 0 || x.rank() == 0 || x.dim(0) == 0)
    return Unimplemented("another axis than the first");
  if (index.dtype() != DType::kInt64 && index.dtype() != DType::kInt32)
    return Unimplemented("an index of %s", Name(index.dtype()));
  LookupArgsOf<T> args{};
  args.count = index.size();
  args.rows = x.dim(0);
  args.width = x.size() / args.rows;
  args.padding = INT64_MIN;
  args.ids64 = index.dtype() == DType::kInt64;
  PD_ASSIGN_OR_RETURN(
      args.bad, binding->ErrorFlag(absl::StrFormat(
                    "'Index' of %s over '%s' holds a number outside [0, %d)",
                    op.type, op.In("X"), args.rows)));
  return args;
}

absl::StatusOr<Step> BindGather(BindContext* context, DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor *x = context->Input("X"), *index = context->Input("Index"),
         *from = grad ? context->Input("Out@GRAD") : x,
         *to = grad ? context->Output("X@GRAD") : context->Output("Out");
  PD_RETURN_IF_ERROR(SameReals({from, to}));
  if (grad) context->NoBuffer(x);
  return ForReal(*from, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const LookupArgsOf<T> args,
                        ReadGather<T>(context, binding, *x, *index));
    if ((grad ? from : to)->size() != args.count * args.width)
      return Unimplemented("a variable of another size");
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<LookupArgsOf<T>>::Find(
            binding, KernelFor<T>(grad ? "lookup_grad" : "lookup")));
    return Step([=, device = binding->device()](const RunContext&) {
      if (grad) PD_RETURN_IF_ERROR(device->Clear(to->raw(), to->bytes()));
      LookupArgsOf<T> run = args;
      run.from = At<T>(from);
      run.to = At<T>(to);
      run.ids = index->raw();
      return start.Elements(grad ? run.width : run.count * run.width, run);
    });
  });
}

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
absl::StatusOr<Step> BindMask(DeviceBinding* binding, float factor,
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
        by_mask, BindMask(binding, static_cast<float>(factor), mask, x, out));
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
      return BindMask(binding, static_cast<float>(factor), mask, dout, dx);
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

void AddRows(KernelTable* kernels) {
  for (const std::string type : {"gather", "index_select"}) {
    kernels->Add(type, {"cuda", BindGather});
    kernels->Add(type + "_grad", {"cuda", BindGather});
  }
  kernels->Add("layer_norm", {"cuda", BindLayerNorm});
  kernels->Add("layer_norm_grad", {"cuda", BindLayerNormGrad});
  for (const std::string type : {"lookup_table", "lookup_table_v2"}) {
    kernels->Add(type, {"cuda", BindLookup});
    kernels->Add(type + "_grad",
                 Implementation("cuda", BindLookupGrad).TakesSelectedRows());
  }
  for (const std::string type : {"dropout", "dropout_nd"}) {
    kernels->Add(type, {"cuda", BindDropout});
    kernels->Add(type + "_grad", {"cuda", BindDropoutGrad});
  }
}

}  // namespace pd::cuda
