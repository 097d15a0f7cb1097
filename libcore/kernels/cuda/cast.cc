// SPDX-License-Identifier: Apache-2.0
// Mixed precision: cast, check_finite_and_unscale, update_loss_scaling; the
// kernels are in cast.cu. Tables of tensors are made when the first run
// knows where they are.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/kernels/cuda/update_arguments.h"

namespace pd::cuda {
namespace {

absl::StatusOr<Step> BindCast(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  if (x == nullptr || out == nullptr)
    return Unimplemented("a variable is missing");
  PD_RETURN_IF_ERROR(InOneLayout(context, {&x}, {&out}));
  if (x->dtype() == out->dtype()) {
    context->Alias(x, out);
    return Step();
  }
  CastArgs args{};
  PD_ASSIGN_OR_RETURN(args.from_type, NumberTypeOf(x->dtype()));
  PD_ASSIGN_OR_RETURN(args.to_type, NumberTypeOf(out->dtype()));
  args.truncates = !context->op().Attr<bool>("use_mkldnn");
  const bool floats = args.from_type <= NumberType::kBFloat16 &&
                      args.to_type <= NumberType::kBFloat16;
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<CastArgs>::Find(binding, floats ? "cast_floats" : "cast_any"));
  return Step([=](const RunContext&) {
    CastArgs run = args;
    run.from = x->raw();
    run.to = out->raw();
    run.n = x->size();
    return start.Elements(floats ? Packs(run.n) : run.n, run);
  });
}

// The gradients of an op, and their table.
struct Gradients {
  std::vector<Tensor*> in, out;
  int64_t blocks = 0;
  ScaledTensor* table = nullptr;

  absl::Status Fill(CudaDevice* device) const {
    std::vector<ScaledTensor> rows;
    int64_t block = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const int64_t n = in[i]->size();
      PD_ASSIGN_OR_RETURN(const NumberType type, NumberTypeOf(in[i]->dtype()));
      rows.push_back({in[i]->raw(), out[i]->raw(), n, block, type, 0});
      block += (n + kUpdateChunk - 1) / kUpdateChunk;
    }
    return device->ToDevice(table, rows.data(),
                            rows.size() * sizeof(ScaledTensor));
  }
};

absl::StatusOr<Gradients> ReadGradients(BindContext* context,
                                        DeviceBinding* binding) {
  Gradients g;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor *in = context->Input("X", i), *out = context->Output("Out", i);
    if (in == nullptr || out == nullptr || in->dtype() != out->dtype() ||
        in->size() != out->size())
      return Unimplemented("gradient %d is missing or of another kind", i);
    PD_ASSIGN_OR_RETURN(const NumberType type, NumberTypeOf(in->dtype()));
    if (type > NumberType::kBFloat16)
      return Unimplemented("gradients of %s", Name(in->dtype()));
    context->MayShare(in, out);
    g.in.push_back(in);
    g.out.push_back(out);
    g.blocks += (in->size() + kUpdateChunk - 1) / kUpdateChunk;
  }
  if (g.blocks == 0) return Unimplemented("no gradients");
  PD_ASSIGN_OR_RETURN(void* const table,
                      binding->Keep(g.in.size() * sizeof(ScaledTensor)));
  g.table = static_cast<ScaledTensor*>(table);
  return g;
}

// Runs `work(args)` behind the table.
template <typename Work>
Step WithTable(DeviceBinding* binding, Gradients g, const Work& work) {
  auto filled = std::make_shared<bool>(false);
  return [=, device = CudaOf(binding),
          g = std::move(g)](const RunContext&) -> absl::Status {
    if (!*filled) PD_RETURN_IF_ERROR(g.Fill(device));
    *filled = true;
    ScalingArgs args{};
    args.tensors = g.table;
    args.count = static_cast<int32_t>(g.in.size());
    return work(device, g, args);
  };
}

absl::StatusOr<Step> BindUnscale(BindContext* context, DeviceBinding* binding) {
  Tensor *scale = context->Input("Scale"),
         *found = context->Output("FoundInfinite");
  PD_RETURN_IF_ERROR(OnlyFloat32({scale}));
  PD_ASSIGN_OR_RETURN(Gradients g, ReadGradients(context, binding));
  PD_ASSIGN_OR_RETURN(const auto look,
                      Starter<ScalingArgs>::Find(binding, "look_for_infinite"));
  PD_ASSIGN_OR_RETURN(const auto unscale,
                      Starter<ScalingArgs>::Find(binding, "unscale"));
  const size_t bytes = g.in.size() * sizeof(int32_t);
  Tensor* const bad = context->Scratch(bytes);
  return WithTable(
      binding, std::move(g),
      [=](CudaDevice* device, const Gradients& gradients, ScalingArgs run) {
        run.bad = bad->data<int32_t>();
        run.found = found->data<bool>();
        run.scale = scale->data<float>();
        PD_RETURN_IF_ERROR(device->Clear(run.bad, bytes));
        PD_RETURN_IF_ERROR(look.Blocks(gradients.blocks, run));
        return unscale.Blocks(gradients.blocks, run);
      });
}

absl::StatusOr<Step> BindScaling(BindContext* context, DeviceBinding* binding) {
  Tensor *found = context->Input("FoundInfinite"),
         *scale = context->Input("PrevLossScaling"),
         *good = context->Input("InGoodSteps"),
         *bad = context->Input("InBadSteps"),
         *scale_out = context->Output("LossScaling"),
         *good_out = context->Output("OutGoodSteps"),
         *bad_out = context->Output("OutBadSteps");
  if (context->Input("StopUpdate") != nullptr)
    return Unimplemented("an input 'StopUpdate'");
  PD_RETURN_IF_ERROR(OnlyFloat32({scale, scale_out}));
  for (const Tensor* t : {good, bad})
    if (t == nullptr || t->dtype() != DType::kInt32 || t->size() != 1)
      return Unimplemented("counts that are no int32");
  if (found == nullptr || found->dtype() != DType::kBool)
    return Unimplemented("'FoundInfinite' is no bool");
  PD_ASSIGN_OR_RETURN(Gradients g, ReadGradients(context, binding));
  PD_ASSIGN_OR_RETURN(const auto clear,
                      Starter<ScalingArgs>::Find(binding, "clear_if_found"));
  PD_ASSIGN_OR_RETURN(const auto move,
                      Starter<ScalingArgs>::Find(binding, "move_scale"));
  ScalingArgs attrs{};
  attrs.grow_after = context->Attr<int32_t>("incr_every_n_steps");
  attrs.shrink_after = context->Attr<int32_t>("decr_every_n_nan_or_inf");
  attrs.grow = context->Attr<float>("incr_ratio");
  attrs.shrink = context->Attr<float>("decr_ratio");
  attrs.stops = context->Attr<bool>("stop_update");
  return WithTable(
      binding, std::move(g),
      [=](CudaDevice*, const Gradients& gradients, const ScalingArgs& table) {
        ScalingArgs run = attrs;
        run.tensors = table.tensors;
        run.count = table.count;
        run.found = found->data<bool>();
        run.scale = scale->data<float>();
        run.good = good->data<int32_t>();
        run.bad_steps = bad->data<int32_t>();
        run.scale_out = scale_out->data<float>();
        run.good_out = good_out->data<int32_t>();
        run.bad_steps_out = bad_out->data<int32_t>();
        PD_RETURN_IF_ERROR(clear.Blocks(gradients.blocks, run));
        return move.Blocks(1, run);
      });
}

}  // namespace

absl::StatusOr<NumberType> NumberTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return NumberType::kFloat32;
    case DType::kFloat16:
      return NumberType::kFloat16;
    case DType::kBFloat16:
      return NumberType::kBFloat16;
    case DType::kFloat64:
      return NumberType::kFloat64;
    case DType::kInt64:
      return NumberType::kInt64;
    case DType::kInt32:
      return NumberType::kInt32;
    case DType::kUInt8:
      return NumberType::kUInt8;
    case DType::kBool:
      return NumberType::kBool;
    default:
      return Unimplemented("no kernel for dtype %s", Name(dtype));
  }
}

void AddCast(KernelTable* kernels) {
  kernels->Add("cast", AnyLayout("cuda", FloatsOnly<BindCast>));
  kernels->Add("cast", Implementation("cuda", BindCast).FollowsInputs());
  kernels->Add("check_finite_and_unscale", {"cuda", BindUnscale});
  kernels->Add("update_loss_scaling", {"cuda", BindScaling});
}

}  // namespace pd::cuda
