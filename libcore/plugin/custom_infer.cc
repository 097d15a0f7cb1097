// SPDX-License-Identifier: Apache-2.0
// Shapes and types of custom operators: by the plug-in's functions, or by the
// rules for operators without them.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/convert.h"
#include "libcore/plugin/custom_op.h"
#include "libcore/plugin/plugin_scope.h"

namespace pd {
namespace {

using paddle::detail::InferArguments;

template <typename T>
using BySlot = std::vector<std::vector<T>>;

// An output written in place is like its input, a gradient like its variable,
// and the only output like the only input. Null: nothing is known.
template <typename T>
const std::vector<T>* RuleFor(const CustomOp& op, size_t output,
                              const BySlot<T>& inputs) {
  const CustomOp::Slot& slot = op.outputs[output];
  int from = slot.partner;
  if (from < 0 && op.is_gradient) from = op.FindInput(GradientOf(slot.name));
  if (from < 0 && op.inputs.size() == 1 && op.outputs.size() == 1) from = 0;
  return from < 0 ? nullptr : &inputs[static_cast<size_t>(from)];
}

template <typename T>
InferArguments<T> ArgumentsOf(const CustomOp& op, const BySlot<T>& inputs) {
  InferArguments<T> arguments;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    paddle::detail::InputOf<T> input;
    if (op.inputs[i].is_optional && !inputs[i].empty()) {
      if (op.inputs[i].is_list)
        input.maybe_many = inputs[i];
      else
        input.maybe = inputs[i][0];
    } else if (op.inputs[i].is_list) {
      input.many = inputs[i];
    } else if (!inputs[i].empty()) {
      input.one = inputs[i][0];
    }
    arguments.inputs.push_back(std::move(input));
  }
  return arguments;
}

// The answer of the plug-in's function, `what` in messages, by slot and
// variable.
template <typename T>
absl::Status Ask(const CustomOp& op, const paddle::detail::InferFn<T>& function,
                 const char* what, std::vector<paddle::any> attrs,
                 const BySlot<T>& inputs, const std::vector<size_t>& counts,
                 BySlot<T>* outputs) {
  InferArguments<T> arguments = ArgumentsOf(op, inputs);
  arguments.attrs = std::move(attrs);
  PD_RETURN_IF_ERROR(CallPlugin(op, [&] { function.call(arguments); }));
  size_t plain = 0, at = 0;
  for (size_t i = 0; i < op.outputs.size(); ++i)
    if (op.outputs[i].partner < 0)
      plain += op.outputs[i].is_list ? counts[i] : 1;
  if (arguments.results.size() != plain)
    return InvalidArgument("%s: %s returns %d entries; expected %d",
                           op.Describe(), what, arguments.results.size(),
                           plain);
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i].partner >= 0) {
      (*outputs)[i] = inputs[static_cast<size_t>(op.outputs[i].partner)];
      continue;
    }
    const size_t entries = op.outputs[i].is_list ? counts[i] : 1;
    for (size_t k = 0; k < entries; ++k)
      (*outputs)[i].push_back(arguments.results[at++]);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Follow(const CustomOp& op, const char* what, const char* missing,
                    const BySlot<T>& inputs, BySlot<T>* outputs) {
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const std::vector<T>* values = RuleFor(op, i, inputs);
    if (values == nullptr)
      return Unavailable(
          "%s: the %s of output '%s' is not known: expected %s, which only an "
          "op of one input and one output may leave out",
          op.Describe(), what, op.outputs[i].name, missing);
    (*outputs)[i] = *values;
  }
  return absl::OkStatus();
}

// A gradient whose variable the op does not read has the type of the gradients
// that come in.
void FollowGradients(const CustomOp& op, const BySlot<phi::DataType>& inputs,
                     const std::vector<size_t>& counts,
                     BySlot<phi::DataType>* outputs) {
  const std::vector<phi::DataType>* first = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].empty() && !GradientOf(op.inputs[i].name).empty())
      first = &inputs[i];
  for (size_t i = 0; i < inputs.size(); ++i)
    if (first == nullptr && !inputs[i].empty()) first = &inputs[i];
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const auto* values = RuleFor(op, i, inputs);
    if (values != nullptr)
      (*outputs)[i] = *values;
    else if (first != nullptr)
      (*outputs)[i].assign(counts[i], (*first)[0]);
  }
}

}  // namespace

absl::StatusOr<CustomTypes> InferCustomOp(const CustomOp& op,
                                          const std::vector<paddle::any>& attrs,
                                          const CustomTypes& inputs,
                                          const std::vector<size_t>& counts) {
  const paddle::detail::OpDeclaration& declared = *op.declaration;
  CustomTypes types;
  types.shapes.resize(op.outputs.size());
  types.dtypes.resize(op.outputs.size());
  if (declared.infer_shape.call != nullptr) {
    std::vector<paddle::any> own;
    for (size_t i = 0; i < attrs.size(); ++i)
      if (op.attrs[i].stored != AttrType::kLongs) own.push_back(attrs[i]);
    PD_RETURN_IF_ERROR(Ask(op, declared.infer_shape, "InferShape",
                           std::move(own), inputs.shapes, counts,
                           &types.shapes));
  } else {
    PD_RETURN_IF_ERROR(
        Follow(op, "shape", "SetInferShapeFn", inputs.shapes, &types.shapes));
  }
  if (declared.infer_dtype.call != nullptr)
    PD_RETURN_IF_ERROR(Ask(op, declared.infer_dtype, "InferDtype", attrs,
                           inputs.dtypes, counts, &types.dtypes));
  else if (op.is_gradient)
    FollowGradients(op, inputs.dtypes, counts, &types.dtypes);
  else
    PD_RETURN_IF_ERROR(
        Follow(op, "type", "SetInferDtypeFn", inputs.dtypes, &types.dtypes));
  return types;
}

absl::Status InferCustom(InferContext* context) {
  const CustomOp& op = *FindCustomOp(context->op().type);
  CustomTypes inputs;
  for (const CustomOp::Slot& slot : op.inputs) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<phi::DataType> dtypes;
    const size_t count =
        context->HasInput(slot.name) ? context->InputCount(slot.name) : 0;
    for (size_t i = 0; i < count; ++i) {
      const TensorMeta& meta = context->Input(slot.name, i);
      if (meta.kind != VarKind::kLodTensor)
        return InvalidArgument("input '%s' is no dense tensor", slot.name);
      shapes.push_back(meta.shape);
      dtypes.push_back(PhiTypeOf(meta.dtype));
    }
    if (count == 0 && !slot.is_optional)
      return InvalidArgument("input '%s' is missing", slot.name);
    inputs.shapes.push_back(std::move(shapes));
    inputs.dtypes.push_back(std::move(dtypes));
  }
  std::vector<size_t> counts;
  for (const CustomOp::Slot& slot : op.outputs)
    counts.push_back(context->OutputCount(slot.name));
  PD_ASSIGN_OR_RETURN(
      const CustomTypes types,
      InferCustomOp(op, AttrsOf(op, context->op()), inputs, counts));
  for (size_t s = 0; s < op.outputs.size(); ++s) {
    const std::string& slot = op.outputs[s].name;
    const size_t known =
        std::min(types.shapes[s].size(), types.dtypes[s].size());
    if (known < counts[s])
      return InvalidArgument("%s: output '%s' has %d variables; expected %d",
                             op.Describe(), slot, counts[s], known);
    for (size_t i = 0; i < counts[s]; ++i) {
      PD_ASSIGN_OR_RETURN(const DType dtype, DTypeOfPhi(types.dtypes[s][i]));
      for (const int64_t extent : types.shapes[s][i])
        if (extent < -1)
          return InvalidArgument("%s: InferShape gives the extent %d",
                                 op.Describe(), extent);
      context->SetOutput(slot, types.shapes[s][i], dtype, i);
    }
  }
  return absl::OkStatus();
}

}  // namespace pd
