// SPDX-License-Identifier: Apache-2.0
// group_norm and instance_norm; the kernels are in group_norm.cu.
#include <string>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

bool IsInstance(const OpDesc& op) { return op.type.rfind("instance", 0) == 0; }

// Where the groups of X lie, and that Scale and Bias fit.
absl::StatusOr<GroupArgs> ReadGroups(const BindContext& context,
                                     const Tensor& x) {
  const OpDesc& op = context.op();
  if (x.rank() < 2 || x.size() == 0)
    return Unimplemented("X of shape %s", ToString(x.shape()));
  GroupArgs args{};
  args.instance = IsInstance(op) ? 1 : 0;
  const bool last =
      args.instance == 0 && op.Attr<std::string>("data_layout") == "NHWC";
  const int64_t channels = last ? x.shape().back() : x.dim(1);
  args.images = x.dim(0);
  args.groups = args.instance != 0 ? channels : op.Attr<int32_t>("groups");
  if (args.groups < 1 || channels % args.groups != 0)
    return Unimplemented("%d groups of %d channels", args.groups, channels);
  args.width = channels / args.groups;
  args.positions = x.size() / args.images / channels;
  args.channel_step = last ? 1 : args.positions;
  args.position_step = last ? channels : 1;
  args.epsilon = op.Attr<float>("epsilon");
  for (const char* slot : {"Scale", "Bias"})
    if (const Tensor* t = context.Input(slot))
      PD_RETURN_IF_ERROR(ExpectElements(context, slot, t->dtype(), channels));
  return args;
}

// The slots of a group's mean and variance (instance_norm: 1 / deviation).
struct GroupNormSlots {
  const char *mean, *variance;
};
GroupNormSlots GroupNormSlotsOf(const OpDesc& op) {
  return IsInstance(op) ? GroupNormSlots{"SavedMean", "SavedVariance"}
                        : GroupNormSlots{"Mean", "Variance"};
}

absl::StatusOr<Step> BindGroupNorm(BindContext* context,
                                   DeviceBinding* binding) {
  const GroupNormSlots slots = GroupNormSlotsOf(context->op());
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *bias = context->Input("Bias"), *y = context->Output("Y"),
         *mean = context->Output(slots.mean),
         *variance = context->Output(slots.variance);
  PD_RETURN_IF_ERROR(SameFloats({x, y}));
  PD_RETURN_IF_ERROR(SameFloats({scale, bias}));
  PD_RETURN_IF_ERROR(OnlyFloat32({mean, variance}));
  PD_ASSIGN_OR_RETURN(const GroupArgs args, ReadGroups(*context, *x));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<GroupArgs>::Find(binding, "group_norm"));
  return Step([=](const RunContext&) {
    GroupArgs run = args;
    run.x = Read<float>(x);
    run.scale = Read<float>(scale);
    run.bias = Read<float>(bias);
    run.out = Write<float>(y);
    run.mean = At(mean);
    run.variance = At(variance);
    return start.Items(run.images * run.groups, run);
  });
}

absl::StatusOr<Step> BindGroupNormGrad(BindContext* context,
                                       DeviceBinding* binding) {
  const GroupNormSlots slots = GroupNormSlotsOf(context->op());
  Tensor *x = context->Input("X"), *y = context->Input("Y"),
         *scale = context->Input("Scale"), *bias = context->Input("Bias"),
         *mean = context->Input(slots.mean),
         *variance = context->Input(slots.variance),
         *dy = context->Input("Y@GRAD"), *dx = context->Output("X@GRAD"),
         *dscale = context->Output("Scale@GRAD"),
         *dbias = context->Output("Bias@GRAD");
  if (x == nullptr || dy == nullptr || dy->size() != x->size())
    return Unimplemented("a gradient without X");
  PD_RETURN_IF_ERROR(SameFloats({x, dy, dx}));
  PD_RETURN_IF_ERROR(SameFloats({scale, dscale, dbias}));
  PD_RETURN_IF_ERROR(OnlyFloat32({mean, variance}));
  PD_ASSIGN_OR_RETURN(const GroupArgs args, ReadGroups(*context, *x));
  for (const char* slot : {slots.mean, slots.variance})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kFloat32,
                                      args.images * args.groups));
  for (Tensor* unread : {y, bias})
    if (unread != nullptr) context->NoBuffer(unread);
  PD_ASSIGN_OR_RETURN(const auto by_x,
                      Starter<GroupArgs>::Find(binding, "group_norm_grad_x"));
  PD_ASSIGN_OR_RETURN(
      const auto by_scale,
      Starter<GroupArgs>::Find(binding, "group_norm_grad_scale"));
  return Step([=](const RunContext&) {
    GroupArgs run = args;
    run.x = Read<float>(x);
    run.dy = Read<float>(dy);
    run.scale = Read<float>(scale);
    run.mean = At(mean);
    run.variance = At(variance);
    run.out = Write<float>(dx);
    run.dscale = Write<float>(dscale);
    run.dbias = Write<float>(dbias);
    if (dx != nullptr)
      PD_RETURN_IF_ERROR(by_x.Items(run.images * run.groups, run));
    if (dscale == nullptr && dbias == nullptr) return absl::OkStatus();
    return by_scale.Items(run.groups * run.width, run);
  });
}

}  // namespace

void AddGroupNorm(KernelTable* kernels) {
  for (const char* type : {"group_norm", "instance_norm"}) {
    kernels->Add(type, {"cuda", BindGroupNorm});
    kernels->Add(absl::StrCat(type, "_grad"), {"cuda", BindGroupNormGrad});
  }
}

}  // namespace pd::cuda
