// SPDX-License-Identifier: Apache-2.0
// The tensor functions of plug-ins: one operator of the library, run at once.
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_op.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/api/paddle_op_call.h"
#include "libcore/plugin/convert.h"

namespace pd {
namespace {

using paddle::detail::OpCall;

constexpr int64_t kVersion = 2006000;  // rank 0 is known

absl::StatusOr<const OpRegistry*> Operators() {
  static const auto* const made =
      new absl::StatusOr<std::unique_ptr<OpRegistry>>(MakeRegistry());
  PD_RETURN_IF_ERROR(made->status());
  return made->value().get();
}

template <typename To, typename From>
std::vector<To> Converted(const std::vector<From>& values) {
  return std::vector<To>(values.begin(), values.end());
}

Attribute NumberAs(const paddle::Scalar& value, AttrType type) {
  switch (type) {
    case AttrType::kInt:
      return Attribute(value.to<int32_t>());
    case AttrType::kLong:
      return Attribute(value.to<int64_t>());
    case AttrType::kBoolean:
      return Attribute(value.to<bool>());
    case AttrType::kFloat64:
      return Attribute(value.to<double>());
    case AttrType::kString:
      return Attribute(absl::StrFormat("%.17g", value.to<double>()));
    default:
      return Attribute(value.to<float>());
  }
}

// The value as the operator declares it. Only the functions of api/ call this,
// so that a type without a line here is a bug.
Attribute AttributeOf(const paddle::any& value, AttrType type) {
  if (const auto* v = value.get<paddle::Scalar>()) return NumberAs(*v, type);
  if (const auto* v = value.get<phi::DataType>())
    return Attribute(
        static_cast<int32_t>(DTypeOfPhi(*v).value_or(static_cast<DType>(-1))));
  if (const auto* v = value.get<bool>()) return NumberAs(*v, type);
  if (const auto* v = value.get<int>()) return NumberAs(*v, type);
  if (const auto* v = value.get<float>()) return NumberAs(*v, type);
  if (const auto* v = value.get<int64_t>()) return NumberAs(*v, type);
  if (const auto* v = value.get<std::string>()) return Attribute(*v);
  if (const auto* v = value.get<std::vector<int>>())
    return type == AttrType::kLongs ? Attribute(Converted<int64_t>(*v))
                                    : Attribute(*v);
  const auto* v = value.get<std::vector<int64_t>>();
  PD_INVARIANT(v != nullptr);
  return type == AttrType::kInts ? Attribute(Converted<int32_t>(*v))
                                 : Attribute(*v);
}

absl::Status SetAttrs(const OpDef& def, const OpCall& call, OpDesc* op) {
  for (const auto& [name, value] : call.attrs) {
    const AttrDef* known = nullptr;
    for (const AttrDef& attr : def.attrs())
      if (attr.name == name) known = &attr;
    if (known == nullptr)
      return Internal("op '%s' has no attribute '%s'", call.type, name);
    op->attrs[name] = AttributeOf(value, known->type);
  }
  return absl::OkStatus();
}

// Variables of the call: the tensors, under names of their own.
struct Values {
  std::deque<Tensor> tensors;
  std::deque<std::string> names;
  LateOp::Variables variables;

  Tensor* Add(const char* slot, size_t i, Tensor tensor,
              std::vector<std::string>* slot_names) {
    names.push_back(absl::StrCat(slot, " ", i));
    slot_names->push_back(names.back());
    tensors.push_back(std::move(tensor));
    variables.Add(names.back(), {&tensors.back(), false});
    return &tensors.back();
  }
};

absl::StatusOr<Tensor> Lend(const paddle::Tensor& tensor) {
  if (!tensor.initialized())
    return FailedPrecondition("a tensor that it reads has no value");
  PD_ASSIGN_OR_RETURN(const DType dtype, DTypeOfPhi(tensor.dtype()));
  Tensor lent(dtype, tensor.shape());
  // The operator only reads it; a result that shares it keeps it.
  lent.Attach(const_cast<void*>(tensor.data()),
              std::make_shared<paddle::Tensor>(tensor));
  return lent;
}

paddle::Tensor Own(Tensor result) {
  auto holder = std::make_shared<Tensor>(std::move(result));
  return paddle::detail::TensorAccess::Make(
      PhiTypeOf(holder->dtype()), holder->shape(),
      paddle::detail::Borrow(holder->raw(), holder->bytes(), holder));
}

absl::Status Run(OpCall* call) {
  PD_ASSIGN_OR_RETURN(const OpRegistry* registry, Operators());
  PD_ASSIGN_OR_RETURN(const OpDef* def, registry->Get(call->type));
  OpDesc op;
  op.type = call->type;
  PD_RETURN_IF_ERROR(SetAttrs(*def, *call, &op));
  Values inputs, outputs;
  for (const auto& [slot, tensors] : call->inputs) {
    std::vector<std::string> names;
    for (size_t i = 0; i < tensors.size(); ++i) {
      PD_ASSIGN_OR_RETURN(Tensor lent, Lend(tensors[i]));
      inputs.Add(slot, i, std::move(lent), &names);
    }
    op.SetInput(slot, std::move(names));
  }
  std::vector<std::vector<Tensor*>> results;
  for (const auto& [slot, count] : call->outputs) {
    std::vector<std::string> names;
    results.emplace_back();
    for (size_t i = 0; i < count; ++i)
      results.back().push_back(outputs.Add(slot, i, Tensor(), &names));
    op.SetOutput(slot, std::move(names));
  }
  PD_ASSIGN_OR_RETURN(const LateOp late,
                      LateOp::Make(*registry, std::move(op), kVersion));
  static std::atomic<uint64_t> calls{0};
  RunContext context;
  context.step = calls++;
  PD_RETURN_IF_ERROR(
      late.Run(context, inputs.variables, outputs.variables, nullptr));
  call->results.clear();
  for (const auto& list : results) {
    call->results.emplace_back();
    for (Tensor* result : list)
      call->results.back().push_back(Own(std::move(*result)));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pd

extern "C" void PD_PluginRunOp(int abi, paddle::detail::OpCall* call) {
  if (abi != PD_PLUGIN_ABI)
    throw pd::ErrorOf(pd::FailedPrecondition(
        "the plug-in was built with headers of ABI %d; this pdkit has %d: "
        "compile it anew",
        abi, PD_PLUGIN_ABI));
  const absl::Status status =
      pd::Annotate(pd::Run(call), absl::StrCat("op '", call->type, "'"));
  if (!status.ok()) throw pd::ErrorOf(status);
}
