// SPDX-License-Identifier: Apache-2.0
// Ops that take elements by number, and what gives them back: gather_nd, gather
// and index_select along any axis, index_sample, take_along_axis,
// put_along_axis, argsort's gradient, the gradient of pooling with indices, and
// unpool. The kernels are in gather.cu, those of whole rows in
// lookup_table_v2.cu.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/argsort.h"
#include "libcore/kernels/cuda/gather_arguments.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/row_sums.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// Which slices of a tensor an index names; `slices`: how many there are.
struct NamedGather {
  Tensor* index = nullptr;
  PlacesArgs args{};
  int64_t slices = 0;
};

absl::StatusOr<NamedGather> NameBy(BindContext* context, const char* slot) {
  NamedGather named;
  named.index = context->Input(slot);
  const DType dtype = named.index->dtype();
  if (dtype != DType::kInt64 && dtype != DType::kInt32)
    return Unimplemented("an index of dtype %s", Name(dtype));
  named.args.index64 = dtype == DType::kInt64;
  named.args.n = named.args.period = named.index->size();
  named.args.width = 1;
  named.args.k = 1;
  named.args.extents[0] = named.args.strides[0] = 1;
  return named;
}

// Refuses what keys cannot hold.
absl::Status Complete(BindContext* context, DeviceBinding* binding,
                      NamedGather* named) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  if (named->args.n == 0 || named->args.width == 0 || named->args.n >= kMost ||
      named->slices >= kMost)
    return Unimplemented("%d places among %d", named->args.n, named->slices);
  PD_ASSIGN_OR_RETURN(named->args.bad, binding->ErrorFlag(absl::StrFormat(
                                           "an index of %s names no element",
                                           context->op().type)));
  return absl::OkStatus();
}

absl::StatusOr<Step> TakeStep(DeviceBinding* binding, const NamedGather& named,
                              Tensor* from, Tensor* to) {
  const size_t bytes = SizeOf(from->dtype());
  if (to->dtype() != from->dtype() ||
      to->size() != named.args.n * named.args.width ||
      from->size() != named.slices * named.args.width || bytes > 8)
    return Unimplemented("%s %s out of %s %s", Name(to->dtype()),
                         ToString(to->shape()), Name(from->dtype()),
                         ToString(from->shape()));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<PlacesArgs>::Find(binding, absl::StrCat("take_slices_", bytes)));
  return Step([=](const RunContext&) {
    PlacesArgs run = named.args;
    run.index = named.index->raw();
    run.from = from->raw();
    run.to = to->raw();
    return start.Elements(to->size(), run);
  });
}

// Puts the places in order and does `kind` with each of these.
struct Runs {
  RunKind kind;
  Tensor *from, *to;
  bool clears = false;  // `to` is 0 before
};
absl::StatusOr<Step> RunsStep(BindContext* context, DeviceBinding* binding,
                              const NamedGather& named,
                              const std::vector<Runs>& all) {
  for (const Runs& runs : all) {
    PD_RETURN_IF_ERROR(OnlyFloat32({runs.from, runs.to}));
    const Tensor* big = runs.kind == kGiveRun ? runs.from : runs.to;
    const Tensor* small = runs.kind == kGiveRun ? runs.to : runs.from;
    if (big->size() != named.slices * named.args.width ||
        (small != nullptr && small->size() != named.args.n * named.args.width))
      return Unimplemented("tensors of other sizes");
  }
  PD_ASSIGN_OR_RETURN(const KeySort sort,
                      KeySort::Make(binding, 1, named.args.n));
  PD_ASSIGN_OR_RETURN(const auto to_keys,
                      Starter<PlacesArgs>::Find(binding, "slice_keys"));
  PD_ASSIGN_OR_RETURN(const auto to_runs,
                      Starter<RunsArgs>::Find(binding, "slice_runs"));
  Tensor* const room = context->Scratch(sort.bytes());
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PlacesArgs run = named.args;
    run.index = named.index->raw();
    run.keys = room->data<uint64_t>();
    run.line = sort.line();
    PD_RETURN_IF_ERROR(to_keys.Elements(run.line, run));
    PD_RETURN_IF_ERROR(sort.Run(run.keys));
    for (const Runs& runs : all) {
      if (runs.clears)
        PD_RETURN_IF_ERROR(device->Clear(runs.to->raw(), runs.to->bytes()));
      PD_RETURN_IF_ERROR(to_runs.Elements(
          run.n * run.width,
          {run.keys, At(runs.from), At(runs.to), run.n, run.width, runs.kind}));
    }
    return absl::OkStatus();
  });
}

// The op takes `part` out of `full`, or its gradient gives it back.
absl::StatusOr<Step> TakeOrAdd(BindContext* context, DeviceBinding* binding,
                               NamedGather named, const std::string& full_slot,
                               const std::string& part_slot) {
  PD_RETURN_IF_ERROR(Complete(context, binding, &named));
  Tensor* const given = context->Output(full_slot + "@GRAD");
  if (given == nullptr)
    return TakeStep(binding, named, context->Input(full_slot),
                    context->Output(part_slot));
  if (Tensor* full = context->Input(full_slot)) context->NoBuffer(full);
  return RunsStep(
      context, binding, named,
      {{kAddRun, context->Input(part_slot + "@GRAD"), given, true}});
}

Tensor* Full(BindContext* context, const std::string& slot) {
  Tensor* const given = context->Output(slot + "@GRAD");
  return given != nullptr ? given : context->Input(slot);
}

absl::StatusOr<Step> BindGatherNd(BindContext* context,
                                  DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(NamedGather named, NameBy(context, "Index"));
  const Shape& x = Full(context, "X")->shape();
  const Shape& index = named.index->shape();
  if (index.empty() || index.back() < 1 || index.back() > kMostDims ||
      index.back() > static_cast<int64_t>(x.size()))
    return Unimplemented("an index of shape %s into %s", ToString(index),
                         ToString(x));
  PlacesArgs& args = named.args;
  args.k = static_cast<int32_t>(index.back());
  args.n = args.period = named.index->size() / args.k;
  args.negative = kFromTheEnd;
  const auto axes = static_cast<size_t>(args.k);
  named.slices = 1;
  for (size_t d = axes; d-- > 0;) {
    args.extents[d] = x[d];
    args.strides[d] = named.slices;
    named.slices *= x[d];
  }
  args.width = NumElements(x, axes, x.size());
  return TakeOrAdd(context, binding, named, "X", "Out");
}

// Of gather and index_select.
int32_t AxisAttr(const OpDesc& op) {
  const bool select = op.type.rfind("index_select", 0) == 0;
  return op.Attr<int32_t>(select ? "dim" : "axis");
}

// gather and index_select of floats along the first axis take whole rows, as
// embedding lookups do that skip none.
template <typename T>
absl::StatusOr<LookupArgsOf<T>> ReadGatherRows(BindContext* context,
                                               DeviceBinding* binding,
                                               const Tensor& x,
                                               const Tensor& index) {
  const OpDesc& op = context->op();
  if (context->Input("Axis") != nullptr || AxisAttr(op) != 0 || x.rank() == 0 ||
      x.dim(0) == 0)
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

absl::StatusOr<Step> BindGatherRows(BindContext* context,
                                    DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor *x = context->Input("X"), *index = context->Input("Index"),
         *from = grad ? context->Input("Out@GRAD") : x,
         *to = grad ? context->Output("X@GRAD") : context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({from, to}));
  if (grad) context->NoBuffer(x);
  return ForReal(*from, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const LookupArgsOf<T> args,
                        ReadGatherRows<T>(context, binding, *x, *index));
    if ((grad ? from : to)->size() != args.count * args.width)
      return Unimplemented("a variable of another size");
    if (grad) return BindRowSums(context, binding, args, index, from, to);
    PD_ASSIGN_OR_RETURN(const auto start, Starter<LookupArgsOf<T>>::Find(
                                              binding, KernelFor<T>("lookup")));
    return Step([=](const RunContext&) {
      LookupArgsOf<T> run = args;
      run.from = Read<T>(from);
      run.to = Write<T>(to);
      run.ids = index->raw();
      return start.Elements(run.count * run.width, run);
    });
  });
}

// gather and index_select along any axis.
absl::StatusOr<Step> BindGather(BindContext* context, DeviceBinding* binding) {
  if (context->Input("Axis") != nullptr)
    return Unimplemented("an axis in a tensor");
  PD_ASSIGN_OR_RETURN(NamedGather named, NameBy(context, "Index"));
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewAxis(Full(context, "X")->shape(),
                                                    AxisAttr(context->op())));
  PlacesArgs& args = named.args;
  args.n = view.outer * args.period;
  args.width = view.inner;
  args.extents[0] = view.n;
  AddExtent<1>(view.outer, {view.n}, &args.walk);
  AddExtent<1>(args.period, {0}, &args.walk);
  named.slices = view.outer * view.n;
  return TakeOrAdd(context, binding, named, "X", "Out");
}

// An index of the rank of `full`, whose numbers count along an axis.
absl::StatusOr<NamedGather> NameAlong(BindContext* context, const char* slot,
                                      const Shape& full, int64_t along) {
  if (full.empty()) return Unimplemented("an element without an axis");
  PD_ASSIGN_OR_RETURN(NamedGather named, NameBy(context, slot));
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(along, full.size()));
  const auto axis = static_cast<size_t>(at);
  const Shape& index = named.index->shape();
  const auto strides = RowMajorStrides(full);
  if (index.size() != full.size())
    return Unimplemented("an index of shape %s into %s", ToString(index),
                         ToString(full));
  for (size_t d = 0; d < full.size(); ++d) {
    if (d != axis && index[d] > full[d])
      return Unimplemented("an index of shape %s into %s", ToString(index),
                           ToString(full));
    if (!AddExtent<1>(index[d], {d == axis ? 0 : strides[d]}, &named.args.walk))
      return TooManyDims();
  }
  named.args.extents[0] = full[axis];
  named.args.strides[0] = strides[axis];
  named.slices = NumElements(full);
  return named;
}

absl::StatusOr<Step> BindIndexSample(BindContext* context,
                                     DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(
      const NamedGather named,
      NameAlong(context, "Index", Full(context, "X")->shape(), 1));
  return TakeOrAdd(context, binding, named, "X", "Out");
}

absl::StatusOr<Step> BindTakeAlong(BindContext* context,
                                   DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(
      const NamedGather named,
      NameAlong(context, "Index", Full(context, "Input")->shape(),
                context->Attr<int32_t>("Axis")));
  return TakeOrAdd(context, binding, named, "Input", "Result");
}

// The gradient of what argsort put in order.
absl::StatusOr<Step> BindSortedGrad(BindContext* context,
                                    DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(
      const NamedGather named,
      NameAlong(context, "Indices", context->Output("X@GRAD")->shape(),
                context->op().Attr<int32_t>("axis")));
  return TakeOrAdd(context, binding, named, "X", "Out");
}

// Value has a number for each of Index, and what is there takes part.
absl::StatusOr<NamedGather> ReadPut(BindContext* context,
                                    DeviceBinding* binding, const Tensor& full,
                                    const Tensor* value, RunKind* kind) {
  const OpDesc& op = context->op();
  const auto how = op.Attr<std::string>("Reduce");
  if ((how != "assign" && how != "add") || !op.Attr<bool>("Include_self"))
    return Unimplemented("attr 'Reduce' is '%s', or without Input", how);
  *kind = how == "add" ? kAddRun : kLastRun;
  PD_ASSIGN_OR_RETURN(NamedGather named,
                      NameAlong(context, "Index", full.shape(),
                                context->Attr<int32_t>("Axis")));
  if (value != nullptr && value->shape() != named.index->shape())
    return Unimplemented("Value has shape %s; Index has %s",
                         ToString(value->shape()),
                         ToString(named.index->shape()));
  PD_RETURN_IF_ERROR(Complete(context, binding, &named));
  return named;
}

// The step to = from, then `next`.
Step AfterCopy(DeviceBinding* binding, Tensor* from, Tensor* to, Step next) {
  return [=, device = CudaOf(binding),
          next = std::move(next)](const RunContext& run) {
    PD_RETURN_IF_ERROR(device->Copy(to->raw(), from->raw(), to->bytes()));
    return next(run);
  };
}

absl::StatusOr<Step> BindPut(BindContext* context, DeviceBinding* binding) {
  Tensor *input = context->Input("Input"), *value = context->Input("Value"),
         *result = context->Output("Result");
  PD_RETURN_IF_ERROR(OnlyFloat32({input, value, result}));
  RunKind kind{};
  PD_ASSIGN_OR_RETURN(const NamedGather named,
                      ReadPut(context, binding, *input, value, &kind));
  PD_ASSIGN_OR_RETURN(
      Step put, RunsStep(context, binding, named, {{kind, value, result}}));
  return AfterCopy(binding, input, result, std::move(put));
}

absl::StatusOr<Step> BindPutGrad(BindContext* context, DeviceBinding* binding) {
  Tensor *dout = context->Input("Result@GRAD"),
         *dinput = context->Output("Input@GRAD"),
         *dvalue = context->Output("Value@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({dout, dinput, dvalue}));
  RunKind kind{};
  PD_ASSIGN_OR_RETURN(const NamedGather named,
                      ReadPut(context, binding, *dout, dvalue, &kind));
  for (const char* slot : {"Input", "Value", "Result"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  Step keep = [](const RunContext&) { return absl::OkStatus(); };
  std::vector<Step> steps;
  std::vector<Runs> runs;
  if (dvalue != nullptr && kind == kAddRun) {
    PD_ASSIGN_OR_RETURN(Step step, TakeStep(binding, named, dout, dvalue));
    steps.push_back(std::move(step));
  } else if (dvalue != nullptr) {
    runs.push_back({kGiveRun, dout, dvalue});
  }
  if (dinput != nullptr && kind == kLastRun)
    runs.push_back({kLastRun, nullptr, dinput});
  if (!runs.empty()) {
    PD_ASSIGN_OR_RETURN(keep, RunsStep(context, binding, named, runs));
  }
  steps.push_back(dinput == nullptr
                      ? std::move(keep)
                      : AfterCopy(binding, dout, dinput, std::move(keep)));
  return InOrder(std::move(steps));
}

// Numbers that count among the `inside` positions of the same channel.
absl::StatusOr<NamedGather> NameInChannels(BindContext* context,
                                           const char* slot, int64_t inside) {
  PD_ASSIGN_OR_RETURN(NamedGather named, NameBy(context, slot));
  const Shape& index = named.index->shape();
  if (index.size() < 3)
    return Unimplemented("'%s' has shape %s", slot, ToString(index));
  const int64_t planes = NumElements(index, 0, 2);
  AddExtent<1>(planes, {inside}, &named.args.walk);
  AddExtent<1>(NumElements(index, 2, index.size()), {0}, &named.args.walk);
  named.args.extents[0] = inside;
  named.slices = planes * inside;
  return named;
}

int64_t PositionsOf(const Tensor& t) {
  return t.rank() < 3 ? 0 : NumElements(t.shape(), 2, t.rank());
}

// The gradient of pooling with indices; a window in the padding has none.
absl::StatusOr<Step> BindMaskGrad(BindContext* context,
                                  DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(
      NamedGather named,
      NameInChannels(context, "Mask", PositionsOf(*context->Output("X@GRAD"))));
  named.args.negative = kNowhere;
  return TakeOrAdd(context, binding, named, "X", "Out");
}

absl::StatusOr<Step> BindUnpool(BindContext* context, DeviceBinding* binding) {
  Tensor *dx = context->Output("X@GRAD"),
         *out = dx != nullptr ? context->Input("Out@GRAD")
                              : context->Output("Out");
  PD_ASSIGN_OR_RETURN(NamedGather named,
                      NameInChannels(context, "Indices", PositionsOf(*out)));
  PD_RETURN_IF_ERROR(Complete(context, binding, &named));
  if (dx == nullptr)
    return RunsStep(context, binding, named,
                    {{kLastRun, context->Input("X"), out, true}});
  for (const char* slot : {"X", "Out"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  return TakeStep(binding, named, out, dx);
}

}  // namespace

void AddGather(KernelTable* kernels) {
  AddMove<BindGatherNd>("gather_nd", kernels);
  kernels->Add("gather_nd_grad", {"cuda", BindGatherNd});
  for (const std::string type : {"gather", "index_select"}) {
    kernels->Add(type, {"cuda", BindGatherRows});
    AddMove<BindGather>(type, kernels);
    kernels->Add(type + "_grad", {"cuda", BindGatherRows});
    kernels->Add(type + "_grad", {"cuda", BindGather});
  }
  AddMove<BindIndexSample>("index_sample", kernels);
  kernels->Add("index_sample_grad", {"cuda", BindIndexSample});
  AddMove<BindTakeAlong>("take_along_axis", kernels);
  kernels->Add("take_along_axis_grad", {"cuda", BindTakeAlong});
  kernels->Add("put_along_axis", {"cuda", BindPut});
  kernels->Add("put_along_axis_grad", {"cuda", BindPutGrad});
  kernels->Add("argsort_grad", {"cuda", BindSortedGrad});
  for (const char* type :
       {"max_pool2d_with_index_grad", "max_pool3d_with_index_grad"})
    kernels->Add(type, {"cuda", BindMaskGrad});
  for (const char* type :
       {"unpool", "unpool_grad", "unpool3d", "unpool3d_grad"})
    kernels->Add(type, {"cuda", BindUnpool});
}

}  // namespace pd::cuda
