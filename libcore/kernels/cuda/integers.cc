// SPDX-License-Identifier: Apache-2.0
// Integers and truth values where they are on the device already, and
// counters, which training programs count their steps with; the kernel is in
// integers.cu.
#include <string>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/integers_arguments.h"
#include "libcore/ops/common/broadcast.h"

namespace pd::cuda {
namespace {

struct NamedInteger {
  const char* type;
  WholeFunction function;
};
constexpr NamedInteger kFunctions[] = {
    {"elementwise_add", WholeFunction::kAdd},
    {"elementwise_sub", WholeFunction::kSub},
    {"elementwise_mul", WholeFunction::kMul},
    {"elementwise_max", WholeFunction::kMax},
    {"elementwise_min", WholeFunction::kMin},
    {"elementwise_mod", WholeFunction::kMod},
    {"elementwise_floordiv", WholeFunction::kFloorDiv},
    {"equal", WholeFunction::kEqual},
    {"not_equal", WholeFunction::kNotEqual},
    {"less_than", WholeFunction::kLess},
    {"less_equal", WholeFunction::kLessEqual},
    {"greater_than", WholeFunction::kGreater},
    {"greater_equal", WholeFunction::kGreaterEqual},
    {"logical_and", WholeFunction::kAnd},
    {"logical_or", WholeFunction::kOr},
    {"logical_xor", WholeFunction::kXor},
};

WholeFunction FunctionOf(const std::string& type) {
  const NamedInteger* named = kFunctions;
  while (type != named->type) ++named;
  return named->function;
}

// int64, int32 or bool.
absl::StatusOr<NumberType> WholeType(const Tensor& tensor) {
  PD_ASSIGN_OR_RETURN(const NumberType type, NumberTypeOf(tensor.dtype()));
  if (type == NumberType::kInt64 || type == NumberType::kInt32 ||
      type == NumberType::kBool)
    return type;
  return Unimplemented("no kernel for dtype %s", Name(tensor.dtype()));
}

absl::StatusOr<Step> WholeStep(DeviceBinding* binding, const WholeArgs& args,
                               Tensor* x, Tensor* y, Tensor* out) {
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<WholeArgs>::Find(binding, "whole_numbers"));
  return Step([=](const RunContext&) {
    WholeArgs run = args;
    run.x = x->raw();
    run.y = y == nullptr ? nullptr : y->raw();
    run.out = out->raw();
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindWhole(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *y = context->Input("Y"),
         *out = context->Output("Out");
  if (x == nullptr || y == nullptr || out == nullptr)
    return Unimplemented("a variable is missing");
  WholeArgs args{};
  args.function = FunctionOf(context->op().type);
  PD_ASSIGN_OR_RETURN(args.type, WholeType(*x));
  PD_ASSIGN_OR_RETURN(const NumberType other, WholeType(*y));
  PD_ASSIGN_OR_RETURN(args.out_type, WholeType(*out));
  const bool decides = args.function >= WholeFunction::kEqual;
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
  if (args.function == WholeFunction::kMod ||
      args.function == WholeFunction::kFloorDiv) {
    PD_ASSIGN_OR_RETURN(args.bad, binding->ErrorFlag("a division by zero"));
  }
  return WholeStep(binding, args, x, y, out);
}

absl::StatusOr<Step> BindNot(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  WholeArgs args{};
  args.function = WholeFunction::kEqual;
  PD_ASSIGN_OR_RETURN(args.type, WholeType(*x));
  args.out_type = NumberType::kBool;
  args.n = x->size();
  AddExtent<2>(args.n, {1, 0}, &args.walk);
  return WholeStep(binding, args, x, nullptr, out);
}

absl::StatusOr<Step> BindIncrement(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  WholeArgs args{};
  PD_ASSIGN_OR_RETURN(args.type, WholeType(*x));
  if (x->size() != 1 || args.type == NumberType::kBool)
    return Unimplemented("%s %s", Name(x->dtype()), ToString(x->shape()));
  args.function = WholeFunction::kAdd;
  args.out_type = args.type;
  args.number = static_cast<int64_t>(context->Attr<float>("step"));
  args.n = 1;
  context->MayShare(x, out);
  return WholeStep(binding, args, x, nullptr, out);
}

}  // namespace

void AddIntegers(KernelTable* kernels) {
  for (const NamedInteger& named : kFunctions)
    kernels->Add(named.type, Implementation("cuda", BindWhole).FollowsInputs());
  kernels->Add("logical_not", Implementation("cuda", BindNot).FollowsInputs());
  kernels->Add("increment", {"cuda", BindIncrement});
}

}  // namespace pd::cuda
