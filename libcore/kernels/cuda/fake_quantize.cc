// SPDX-License-Identifier: Apache-2.0
// The fake_... ops of quantization-aware training and of quantized programs,
// quantize_linear and dequantize_linear; the kernels are in fake_quantize.cu.
// Ops that read their own output (range_abs_max while its window learns) stay
// with the CPU.
#include <string>
#include <utility>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/fake_quantize_arguments.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/quantize/quantize.h"

namespace pd::cuda {
namespace {

// The tensors of an op; those that it lacks are null.
struct Quantizing {
  Tensor *x = nullptr, *out = nullptr;
  Tensor* scale = nullptr;      // given
  Tensor* whole = nullptr;      // another one, for all
  Tensor* out_scale = nullptr;  // made, or the given one's copy
  Tensor *in_state = nullptr, *in_accum = nullptr, *out_state = nullptr,
         *out_accum = nullptr;
  Tensor* parts = nullptr;
  bool learns = false;    // the scale follows X
  bool observes = false;  // `out` is X
  bool by_channel = false;
  QuantizeArgs args{};

  QuantizeArgs Now() const {
    QuantizeArgs run = args;
    run.x = x->raw();
    run.out = At(out);
    run.out_scale = At(out_scale);
    run.whole = At(whole);
    run.scales = learns ? run.out_scale : At(scale);
    run.in_state = At(in_state);
    run.in_accum = At(in_accum);
    run.out_state = At(out_state);
    run.out_accum = At(out_accum);
    run.parts = At(parts);
    return run;
  }
};

void LieAlong(const ChannelView& view, QuantizeArgs* args) {
  args->channels = view.channels;
  args->inner = view.inner;
}

absl::Status ReadX(BindContext* context, const char* out_slot,
                   int32_t round_type, Quantizing* q) {
  const OpDesc& op = context->op();
  q->x = context->Input("X");
  q->out = context->Output(out_slot);
  q->out_scale = context->Output("OutScale");
  if (q->x == nullptr || q->x->size() == 0) return Unimplemented("no numbers");
  PD_RETURN_IF_ERROR(OnlyFloat32({q->x, q->out}));
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(op));
  q->args.n = q->x->size();
  q->args.levels = static_cast<float>(attrs.levels);
  q->args.to_even = attrs.to_even;
  q->args.back = op.type.find("quantize_dequantize") != std::string::npos;
  LieAlong({1, 1, q->x->size()}, &q->args);
  return absl::OkStatus();
}

absl::Status ReadAverage(BindContext* context, float rate, Quantizing* q) {
  for (const char* slot : {"InState", "InAccum"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kFloat32, 1));
  q->in_state = context->Input("InState");
  q->in_accum = context->Input("InAccum");
  q->out_state = context->Output("OutState");
  q->out_accum = context->Output("OutAccum");
  if (q->out_state == nullptr || q->out_accum == nullptr)
    return Unimplemented("'OutState' or 'OutAccum' is missing");
  q->args.rate = rate;
  return absl::OkStatus();
}

absl::StatusOr<Step> BindFakeQuantizeScale(BindContext* context,
                                           DeviceBinding* binding,
                                           Quantizing* q) {
  if (!q->learns) return Step();
  if (q->out_scale == nullptr) return Unimplemented("'OutScale' is missing");
  if (q->by_channel) {
    PD_ASSIGN_OR_RETURN(const auto start, Starter<QuantizeArgs>::Find(
                                              binding, "abs_max_channels"));
    return Step([q = *q, start](const RunContext&) {
      return start.Items(q.args.channels, q.Now());
    });
  }
  q->parts = context->Scratch(kAbsMaxParts * sizeof(float));
  q->args.blocks =
      std::min((q->args.n + kThreads - 1) / kThreads, kAbsMaxParts);
  PD_ASSIGN_OR_RETURN(const auto look,
                      Starter<QuantizeArgs>::Find(binding, "abs_max_parts"));
  PD_ASSIGN_OR_RETURN(const auto scale,
                      Starter<QuantizeArgs>::Find(binding, "scale_of_parts"));
  return Step([q = *q, look, scale](const RunContext&) {
    PD_RETURN_IF_ERROR(look.Blocks(q.args.blocks, q.Now()));
    return scale.Blocks(1, q.Now());
  });
}

absl::StatusOr<Step> BindAll(BindContext* context, DeviceBinding* binding,
                             Quantizing q) {
  std::vector<Step> steps;
  PD_ASSIGN_OR_RETURN(Step scale, BindFakeQuantizeScale(context, binding, &q));
  if (scale != nullptr) steps.push_back(std::move(scale));
  if (q.observes && q.out != nullptr) {
    steps.push_back(
        [x = q.x, out = q.out, device = CudaOf(binding)](const RunContext&) {
          return x->raw() == out->raw()
                     ? absl::OkStatus()
                     : device->Copy(out->raw(), x->raw(), x->bytes());
        });
  } else if (!q.observes) {
    PD_ASSIGN_OR_RETURN(const auto start,
                        Starter<QuantizeArgs>::Find(binding, "quantize"));
    steps.push_back([q, start](const RunContext&) {
      return start.Elements(q.args.n, q.Now());
    });
  }
  return InOrder(std::move(steps));
}

// One scale for all.
absl::StatusOr<Step> BindAbsMax(BindContext* context, DeviceBinding* binding) {
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadX(context, "Out", 1, &q));
  q.learns = true;
  context->MayShare(q.x, q.out);
  return BindAll(context, binding, q);
}

absl::StatusOr<Step> BindChannels(BindContext* context,
                                  DeviceBinding* binding) {
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadX(context, "Out", 1, &q));
  if (context->op().AttrOr("is_test", false) && q.args.back == 0)
    return Unimplemented("scales that are read from 'OutScale'");
  PD_ASSIGN_OR_RETURN(
      const ChannelView view,
      ViewChannels(q.x->shape(), context->Attr<int32_t>("quant_axis")));
  LieAlong(view, &q.args);
  q.learns = q.by_channel = true;
  context->MayShare(q.x, q.out);
  return BindAll(context, binding, q);
}

// fake_..._moving_average_abs_max and, when it does not learn, range_abs_max.
absl::StatusOr<Step> BindMoving(BindContext* context, DeviceBinding* binding) {
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadX(context, "Out", 1, &q));
  q.learns = !context->Attr<bool>("is_test");
  if (!q.learns) {
    PD_RETURN_IF_ERROR(ExpectElements(*context, "InScale", DType::kFloat32, 1));
    q.scale = context->Input("InScale");
  } else if (context->op().type == "fake_quantize_range_abs_max") {
    return Unimplemented("a window of scales that it reads and writes");
  } else {
    PD_RETURN_IF_ERROR(
        ReadAverage(context, context->Attr<float>("moving_rate"), &q));
  }
  context->MayShare(q.x, q.out);
  return BindAll(context, binding, q);
}

// moving_average_abs_max_scale
absl::StatusOr<Step> BindObserver(BindContext* context,
                                  DeviceBinding* binding) {
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadX(context, "Out", 1, &q));
  q.observes = true;
  q.learns = !context->Attr<bool>("is_test");
  if (q.learns)
    PD_RETURN_IF_ERROR(
        ReadAverage(context, context->Attr<float>("moving_rate"), &q));
  if (q.out != nullptr) context->MayShare(q.x, q.out);
  return BindAll(context, binding, q);
}

// One channel where the axis is negative.
absl::Status ReadLinearView(const BindContext& context, Quantizing* q) {
  const int32_t axis = context.Attr<int32_t>("quant_axis");
  q->by_channel = axis >= 0;
  if (!q->by_channel) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const ChannelView view,
                      ViewChannels(q->x->shape(), axis));
  LieAlong(view, &q->args);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindLinear(BindContext* context, DeviceBinding* binding) {
  constexpr float kMovingRate =
      0.9f;  // libcore/ops/quantize/quantize_linear.cc
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadX(context, "Y", 0, &q));
  PD_RETURN_IF_ERROR(ReadLinearView(*context, &q));
  q.learns = !context->Attr<bool>("is_test");
  q.observes = context->Attr<bool>("only_observer");
  q.scale = context->Input("Scale");
  if (!q.learns) q.out_scale = nullptr;
  if (!q.learns && !q.observes)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Scale", DType::kFloat32, q.args.channels));
  if (q.learns && !q.by_channel)
    PD_RETURN_IF_ERROR(ReadAverage(context, kMovingRate, &q));
  return BindAll(context, binding, q);
}

// X and Out of what comes back; Out is float32, X may be integers.
absl::Status ReadBack(BindContext* context, const char* out_slot,
                      Quantizing* q) {
  q->x = context->Input("X");
  q->out = context->Output(out_slot);
  if (q->x == nullptr || q->out == nullptr || q->x->size() == 0)
    return Unimplemented("no numbers");
  PD_RETURN_IF_ERROR(OnlyFloat32({q->out}));
  q->args.n = q->x->size();
  LieAlong({1, 1, q->x->size()}, &q->args);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBack(DeviceBinding* binding, const Quantizing& q) {
  const DType from = q.x->dtype();
  if (from != DType::kFloat32 && from != DType::kInt8 &&
      from != DType::kInt16 && from != DType::kInt32)
    return Unimplemented("no kernel for dtype %s", Name(from));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<QuantizeArgs>::Find(
                          binding, absl::StrCat("dequantize_", Name(from))));
  return Step([q, start](const RunContext&) {
    return start.Elements(q.args.n, q.Now());
  });
}

absl::StatusOr<Step> BindDequantize(BindContext* context,
                                    DeviceBinding* binding) {
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadBack(context, "Y", &q));
  if (context->Attr<bool>("only_observer")) {
    PD_RETURN_IF_ERROR(OnlyFloat32({q.x}));
    context->Alias(q.x, q.out);
    return Step();
  }
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(context->op()));
  q.args.levels = static_cast<float>(attrs.levels);
  PD_RETURN_IF_ERROR(ReadLinearView(*context, &q));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Scale", DType::kFloat32, q.args.channels));
  q.scale = context->Input("Scale");
  return BindBack(binding, q);
}

// fake_dequantize_max_abs and dequantize_abs_max
absl::StatusOr<Step> BindMaxAbs(BindContext* context, DeviceBinding* binding) {
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadBack(context, "Out", &q));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Scale", DType::kFloat32, 1));
  q.scale = context->Input("Scale");
  q.args.levels = context->Attr<float>("max_range");
  return BindBack(binding, q);
}

// fake_channel_wise_dequantize_max_abs
absl::StatusOr<Step> BindMaxAbsOfChannels(BindContext* context,
                                          DeviceBinding* binding) {
  Quantizing q;
  PD_RETURN_IF_ERROR(ReadBack(context, "Out", &q));
  const size_t count = context->InputCount("Scales");
  const auto& bits = context->Attr<std::vector<int32_t>>("quant_bits");
  if ((count != 1 && count != 2) || bits.size() < count)
    return Unimplemented("%d scales of %d numbers of bits", count, bits.size());
  int64_t range = 1;
  for (size_t i = 0; i < count; ++i) {
    if (bits[i] < 2 || bits[i] > 16) return Unimplemented("%d bits", bits[i]);
    range *= QuantLevels(bits[i]);
  }
  const int32_t axis =
      count == 1 ? context->Attr<int32_t>("quant_axis")
                 : std::max(context->Attr<int32_t>("x_num_col_dims"), 1);
  PD_ASSIGN_OR_RETURN(const ChannelView view, ViewChannels(q.x->shape(), axis));
  LieAlong(view, &q.args);
  q.args.levels = static_cast<float>(range);
  q.scale = context->Input("Scales", 0);
  q.whole = count == 2 ? context->Input("Scales", 1) : nullptr;
  PD_RETURN_IF_ERROR(OnlyFloat32({q.x, q.scale, q.whole}));
  if (q.scale == nullptr || q.scale->size() != view.channels ||
      (q.whole != nullptr && q.whole->size() < 1))
    return Unimplemented("scales that do not fit 'X'");
  return BindBack(binding, q);
}

absl::StatusOr<Step> BindStraight(BindContext* context, DeviceBinding*) {
  context->Alias(context->Input("Out@GRAD"), context->Output("X@GRAD"));
  return Step();
}

}  // namespace

void AddFakeQuantize(KernelTable* kernels) {
  for (const std::string kind : {"quantize", "quantize_dequantize"}) {
    kernels->Add("fake_" + kind + "_abs_max", {"cuda", BindAbsMax});
    kernels->Add("fake_channel_wise_" + kind + "_abs_max",
                 {"cuda", BindChannels});
    kernels->Add("fake_" + kind + "_moving_average_abs_max",
                 {"cuda", BindMoving});
  }
  kernels->Add("fake_quantize_range_abs_max", {"cuda", BindMoving});
  kernels->Add("moving_average_abs_max_scale", {"cuda", BindObserver});
  kernels->Add("stright_throuth_estimator_grad",
               Implementation("cuda", BindStraight).FollowsInputs());
  kernels->Add("quantize_linear", {"cuda", BindLinear});
  kernels->Add("dequantize_linear", {"cuda", BindDequantize});
  for (const char* type : {"fake_dequantize_max_abs", "dequantize_abs_max"})
    kernels->Add(type, {"cuda", BindMaxAbs});
  kernels->Add("fake_channel_wise_dequantize_max_abs",
               {"cuda", BindMaxAbsOfChannels});
}

}  // namespace pd::cuda
