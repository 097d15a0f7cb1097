// SPDX-License-Identifier: Apache-2.0
// top_k, argsort, arg_max, arg_min, accuracy and one_hot_v2; the kernels are in
// top_k.cu.
#include <cstdint>
#include <limits>

#include "libcore/kernels/cuda/argsort.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// A kernel looks through a line once for each that it picks.
constexpr int64_t kMostPicked = 128;
// The k of lines, which are `view` of X.
absl::StatusOr<int64_t> ReadPicked(const AxisView& view, const Tensor& picked) {
  if (view.lines() == 0 || picked.size() == 0)
    return Unimplemented("no elements");
  const int64_t k = picked.size() / view.lines();
  if (k > kMostPicked || k > view.n ||
      view.n > std::numeric_limits<uint32_t>::max())
    return Unimplemented("%d elements of %d", k, view.n);
  return k;
}

absl::StatusOr<Step> BindTopK(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out"),
         *indices = context->Output("Indices");
  if (out == nullptr || indices == nullptr)
    return Unimplemented("an output is missing");
  PD_RETURN_IF_ERROR(SameFloats({x, out}));
  // Their order would be another one than the CPU's.
  if (!context->op().AttrOr("sorted", true))
    return Unimplemented("elements in no order");
  PD_ASSIGN_OR_RETURN(
      const AxisView view,
      ViewAxis(x->shape(), context->op().AttrOr<int32_t>("axis", -1)));
  TopKArgs args{};
  PD_ASSIGN_OR_RETURN(args.k, ReadPicked(view, *out));
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  args.largest = context->op().AttrOr("largest", true) ? 1 : 0;
  if (Tensor* k = context->Input("K")) context->NoBuffer(k);
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<TopKArgs>::Find(binding, "top_k"));
  return Step([=](const RunContext&) {
    TopKArgs run = args;
    run.x = Read<float>(x);
    run.out = Write<float>(out);
    run.indices = indices->data<int64_t>();
    return start.Items(run.lines, run);
  });
}

absl::StatusOr<Step> BindTopKGrad(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *indices = context->Input("Indices"),
         *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({dout, dx}));
  PD_ASSIGN_OR_RETURN(
      const AxisView view,
      ViewAxis(dx->shape(), context->op().AttrOr<int32_t>("axis", -1)));
  PickedArgs args{};
  PD_ASSIGN_OR_RETURN(args.k, ReadPicked(view, *dout));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Indices", DType::kInt64, dout->size()));
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  if (Tensor* k = context->Input("K")) context->NoBuffer(k);
  PD_ASSIGN_OR_RETURN(args.bad,
                      binding->ErrorFlag(absl::StrFormat(
                          "'Indices' holds a number outside [0, %d)", view.n)));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<PickedArgs>::Find(binding, "picked_grad"));
  return Step([=](const RunContext&) {
    PickedArgs run = args;
    run.indices = indices->data<int64_t>();
    run.dout = Read<float>(dout);
    run.dx = Write<float>(dx);
    return start.Elements(run.lines * run.n, run);
  });
}

// Its gradient is in gather.cc.
absl::StatusOr<Step> BindArgsort(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out"),
         *indices = context->Output("Indices");
  if (out == nullptr || indices == nullptr || x->size() == 0)
    return Unimplemented("an output is missing, or nothing is in it");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(x->shape(), context->Attr<int32_t>("axis")));
  OrderArgs args{};
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  args.descending = context->Attr<bool>("descending");
  PD_ASSIGN_OR_RETURN(const KeySort sort,
                      KeySort::Make(binding, args.lines, args.n));
  args.line = sort.line();
  using Start = Starter<OrderArgs>;
  PD_ASSIGN_OR_RETURN(const auto to_keys, Start::Find(binding, "order_keys"));
  PD_ASSIGN_OR_RETURN(const auto to_out, Start::Find(binding, "order_out"));
  Tensor* const room = context->Scratch(sort.bytes());
  return Step([=](const RunContext&) {
    OrderArgs run = args;
    run.x = At(x);
    run.out = At(out);
    run.indices = indices->data<int64_t>();
    run.keys = room->data<uint64_t>();
    PD_RETURN_IF_ERROR(to_keys.Elements(run.lines * run.line, run));
    PD_RETURN_IF_ERROR(sort.Run(run.keys));
    return to_out.Elements(x->size(), run);
  });
}

absl::StatusOr<Step> BindExtremum(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x}));
  AxisView view;
  view.n = x->size();
  if (!context->Attr<bool>("flatten")) {
    PD_ASSIGN_OR_RETURN(view,
                        ViewAxis(x->shape(), context->Attr<int64_t>("axis")));
  }
  if (view.lines() != out->size() || x->size() == 0 ||
      view.n > std::numeric_limits<uint32_t>::max())
    return Unimplemented("%d elements of lines of %d", x->size(), view.n);
  ExtremumArgs args{};
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  args.largest = context->op().type == "arg_max";
  args.out64 = out->dtype() == DType::kInt64;
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<ExtremumArgs>::Find(binding, "extremum"));
  return Step([=](const RunContext&) {
    ExtremumArgs run = args;
    run.x = At(x);
    run.out = out->raw();
    return start.Items(run.lines, run);
  });
}

absl::StatusOr<Step> BindAccuracy(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *picked = context->Input("Indices"), *label = context->Input("Label"),
         *accuracy = context->Output("Accuracy"),
         *correct = context->Output("Correct"),
         *total = context->Output("Total");
  if (picked->dtype() != DType::kInt64 || label->size() != picked->dim(0))
    return Unimplemented("Indices are %s, Label has shape %s",
                         Name(picked->dtype()), ToString(label->shape()));
  AccuracyArgs args{};
  PD_ASSIGN_OR_RETURN(args.labels64, IsWide(*label));
  args.rows = picked->dim(0);
  args.k = picked->dim(1);
  context->NoBuffer(context->Input("Out"));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<AccuracyArgs>::Find(binding, "accuracy"));
  return Step([=](const RunContext&) {
    AccuracyArgs run = args;
    run.picked = picked->data<int64_t>();
    run.labels = label->raw();
    run.accuracy = accuracy == nullptr ? nullptr : accuracy->data<float>();
    run.correct = correct == nullptr ? nullptr : correct->data<int32_t>();
    run.total = total == nullptr ? nullptr : total->data<int32_t>();
    return start.Blocks(1, run);
  });
}

absl::StatusOr<Step> BindOneHot(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({out}));
  OneHotArgs args{};
  PD_ASSIGN_OR_RETURN(args.classes64, IsWide(*x));
  args.n = x->size();
  args.depth = out->shape().back();
  if (out->size() == 0) return Unimplemented("no elements");
  if (Tensor* depth = context->Input("depth_tensor")) context->NoBuffer(depth);
  if (!context->Attr<bool>("allow_out_of_range")) {
    PD_ASSIGN_OR_RETURN(args.bad,
                        binding->ErrorFlag(absl::StrFormat(
                            "a class is outside [0, %d)", args.depth)));
  }
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<OneHotArgs>::Find(binding, "one_hot"));
  return Step([=](const RunContext&) {
    OneHotArgs run = args;
    run.classes = x->raw();
    run.out = out->data<float>();
    return start.Elements(run.n * run.depth, run);
  });
}

}  // namespace

absl::StatusOr<int32_t> IsWide(const Tensor& numbers) {
  if (numbers.dtype() == DType::kInt64) return 1;
  if (numbers.dtype() == DType::kInt32) return 0;
  return Unimplemented("no kernel for numbers of %s", Name(numbers.dtype()));
}

void AddTopK(KernelTable* kernels) {
  for (const char* version : {"top_k", "top_k_v2"}) {
    kernels->Add(version, {"cuda", BindTopK});
    kernels->Add(absl::StrCat(version, "_grad"), {"cuda", BindTopKGrad});
  }
  kernels->Add("argsort", {"cuda", BindArgsort});
  for (const char* type : {"arg_max", "arg_min"})
    kernels->Add(type, {"cuda", BindExtremum});
  kernels->Add("accuracy", {"cuda", BindAccuracy});
  kernels->Add("one_hot_v2", {"cuda", BindOneHot});
}

}  // namespace pd::cuda
