// SPDX-License-Identifier: Apache-2.0
// Integers and booleans that lie on the device already, and the counters of
// steps that training programs increment; the kernel is in
// elementwise_integers.cu.
#include <cmath>
#include <string>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/elementwise_integers_arguments.h"
#include "libcore/ops/common/broadcast.h"

namespace pd::cuda {
namespace {

struct NamedInteger {
  const char* type;
  IntegerFunction function;
};
constexpr NamedInteger kFunctions[] = {
    {"elementwise_add", IntegerFunction::kAdd},
    {"elementwise_sub", IntegerFunction::kSub},
    {"elementwise_mul", IntegerFunction::kMul},
    {"elementwise_max", IntegerFunction::kMax},
    {"elementwise_min", IntegerFunction::kMin},
    {"elementwise_mod", IntegerFunction::kMod},
    {"elementwise_floordiv", IntegerFunction::kFloorDiv},
    {"equal", IntegerFunction::kEqual},
    {"not_equal", IntegerFunction::kNotEqual},
    {"less_than", IntegerFunction::kLess},
    {"less_equal", IntegerFunction::kLessEqual},
    {"greater_than", IntegerFunction::kGreater},
    {"greater_equal", IntegerFunction::kGreaterEqual},
    {"logical_and", IntegerFunction::kAnd},
    {"logical_or", IntegerFunction::kOr},
    {"logical_xor", IntegerFunction::kXor},
};

IntegerFunction FunctionOf(const std::string& type) {
  const NamedInteger* named = kFunctions;
  while (type != named->type) ++named;
  return named->function;
}

// int64, int32 or bool.
absl::StatusOr<NumberType> IntegerType(const Tensor& tensor) {
  PD_ASSIGN_OR_RETURN(const NumberType type, NumberTypeOf(tensor.dtype()));
  if (type == NumberType::kInt64 || type == NumberType::kInt32 ||
      type == NumberType::kBool)
    return type;
  return Unimplemented("no kernel for dtype %s", Name(tensor.dtype()));
}

absl::StatusOr<Step> IntegerStep(DeviceBinding* binding,
                                 const IntegerArgs& args, Tensor* x, Tensor* y,
                                 Tensor* out) {
  PD_ASSIGN_OR_RETURN(const auto start, Starter<IntegerArgs>::Find(
                                            binding, "elementwise_integers"));
  return Step([=](const RunContext&) {
    IntegerArgs run = args;
    run.x = x->raw();
    run.y = y == nullptr ? nullptr : y->raw();
    run.out = out->raw();
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindIntegers(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Input("Y"),
         *out = context->Output("Out");
  if (x == nullptr || y == nullptr || out == nullptr)
    return Unimplemented("a variable is missing");
  IntegerArgs args{};
  args.function = FunctionOf(context->op().type);
  PD_ASSIGN_OR_RETURN(args.type, IntegerType(*x));
  PD_ASSIGN_OR_RETURN(const NumberType other, IntegerType(*y));
  PD_ASSIGN_OR_RETURN(args.out_type, IntegerType(*out));
  const bool decides = args.function >= IntegerFunction::kEqual;
  if (other != args.type ||
      args.out_type != (decides ? NumberType::kBool : args.type) ||
      (!decides && args.type == NumberType::kBool))
    return Unimplemented("%s and %s", Name(x->dtype()), Name(y->dtype()));
  PD_ASSIGN_OR_RETURN(
      const Broadcast b,
      BroadcastShapes(x->shape(), y->shape(),
                      context->op().AttrOr<int32_t>("axis", -1)));
  const auto x_strides = BroadcastStrides(b.x, b.out);
  const auto y_strides = BroadcastStrides(b.y, b.out);
  for (size_t d = 0; d < b.out.size(); ++d)
    if (!AddExtent<2>(b.out[d], {x_strides[d], y_strides[d]}, &args.walk))
      return TooManyDims();
  args.n = out->size();
  if (args.function == IntegerFunction::kMod ||
      args.function == IntegerFunction::kFloorDiv) {
    PD_ASSIGN_OR_RETURN(args.bad, binding->ErrorFlag("a division by zero"));
  }
  return IntegerStep(binding, args, x, y, out);
}

absl::StatusOr<Step> BindLogicalNot(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  IntegerArgs args{};
  args.function = IntegerFunction::kEqual;
  PD_ASSIGN_OR_RETURN(args.type, IntegerType(*x));
  args.out_type = NumberType::kBool;
  args.n = x->size();
  AddExtent<2>(args.n, {1, 0}, &args.walk);
  return IntegerStep(binding, args, x, nullptr, out);
}

absl::StatusOr<Step> BindIncrement(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  IntegerArgs args{};
  PD_ASSIGN_OR_RETURN(args.type, IntegerType(*x));
  if (x->size() != 1 || args.type == NumberType::kBool)
    return Unimplemented("%s %s", Name(x->dtype()), ToString(x->shape()));
  args.function = IntegerFunction::kAdd;
  args.out_type = args.type;
  args.number = static_cast<int64_t>(context->Attr<float>("step"));
  args.n = 1;
  context->MayShare(x, out);
  return IntegerStep(binding, args, x, nullptr, out);
}

// Scale and bias are cut to whole numbers, as on the CPU.
absl::StatusOr<Step> BindIntegerScale(BindContext* context,
                                      DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  if (context->Input("ScaleTensor") != nullptr)
    return Unimplemented("a scale in a tensor");
  IntegerArgs args{};
  PD_ASSIGN_OR_RETURN(args.type, IntegerType(*x));
  if (args.type == NumberType::kBool || out->dtype() != x->dtype())
    return Unimplemented("no kernel for dtype %s", Name(x->dtype()));
  const float scale = context->Attr<float>("scale");
  const float bias = context->Attr<float>("bias");
  for (const float number : {scale, bias})
    if (!(std::abs(number) <= 0x1p53f))
      return Unimplemented("integers scaled by %g, with a bias of %g", scale,
                           bias);
  const bool after = context->Attr<bool>("bias_after_scale");
  args.function = IntegerFunction::kMul;
  args.out_type = args.type;
  args.number = static_cast<int64_t>(scale);
  (after ? args.behind : args.before) = static_cast<int64_t>(bias);
  args.n = x->size();
  AddExtent<2>(args.n, {1, 0}, &args.walk);
  context->MayShare(x, out);
  return IntegerStep(binding, args, x, nullptr, out);
}

}  // namespace

void AddElementwiseIntegers(KernelTable* kernels) {
  for (const NamedInteger& named : kFunctions)
    kernels->Add(named.type,
                 Implementation("cuda", BindIntegers).FollowsInputs());
  kernels->Add("logical_not",
               Implementation("cuda", BindLogicalNot).FollowsInputs());
  kernels->Add("increment", {"cuda", BindIncrement});
  kernels->Add("scale",
               Implementation("cuda", BindIntegerScale).FollowsInputs());
}

}  // namespace pd::cuda
