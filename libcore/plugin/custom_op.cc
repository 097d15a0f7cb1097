// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/custom_op.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using paddle::detail::OpDeclaration;
using paddle::detail::Parameter;
using paddle::detail::ParameterKind;

constexpr std::pair<const char*, AttrType> kAttrTypes[] = {
    {"bool", AttrType::kBoolean},
    {"int", AttrType::kInt},
    {"float", AttrType::kFloat},
    {"double", AttrType::kFloat64},
    {"int64_t", AttrType::kLong},
    {"std::string", AttrType::kString},
    {"std::vector<int>", AttrType::kInts},
    {"std::vector<float>", AttrType::kFloats},
    {"std::vector<int64_t>", AttrType::kLongs},
    {"std::vector<std::string>", AttrType::kStrings},
};

absl::StatusOr<std::vector<CustomOp::Slot>> SlotsOf(
    const std::vector<std::string>& names, const char* list) {
  std::vector<CustomOp::Slot> slots;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) return InvalidArgument("%s has an empty name", list);
    if (!seen.insert(name).second)
      return InvalidArgument("%s has '%s' twice", list, name);
    slots.push_back({name, absl::StrContains(name, "@VECTOR"),
                     absl::StrContains(name, "@OPTIONAL")});
  }
  return slots;
}

absl::StatusOr<CustomOp::Attr> AttrOf(const std::string& text) {
  const size_t colon = text.find(':');
  CustomOp::Attr attr;
  attr.name = std::string(absl::StripAsciiWhitespace(text.substr(0, colon)));
  if (colon == std::string::npos || attr.name.empty())
    return InvalidArgument("attribute '%s' is not of the form 'name: type'",
                           text);
  attr.type = std::string(absl::StripAsciiWhitespace(text.substr(colon + 1)));
  std::vector<std::string> all;
  for (const auto& [name, type] : kAttrTypes) {
    if (attr.type == name) {
      attr.stored = type;
      return attr;
    }
    all.push_back(name);
  }
  return Unimplemented("attribute '%s' is of type '%s'; expected one of %s",
                       attr.name, attr.type, absl::StrJoin(all, ", "));
}

absl::Status LinkInplace(CustomOp* op) {
  for (const auto& [from, to] : op->declaration->inplace) {
    const int in = op->FindInput(from), out = op->FindOutput(to);
    if (in < 0 || out < 0)
      return InvalidArgument("SetInplaceMap names %s '%s', which is not in %s",
                             in < 0 ? "input" : "output", in < 0 ? from : to,
                             in < 0 ? "Inputs" : "Outputs");
    CustomOp::Slot& input = op->inputs[static_cast<size_t>(in)];
    CustomOp::Slot& output = op->outputs[static_cast<size_t>(out)];
    if (input.is_list != output.is_list)
      return InvalidArgument(
          "SetInplaceMap pairs '%s' with '%s', of which one is a list", from,
          to);
    if (output.partner >= 0)
      return InvalidArgument("SetInplaceMap writes '%s' over two inputs", to);
    input.partner = out;
    output.partner = in;
  }
  return absl::OkStatus();
}

ParameterKind KindOf(const CustomOp::Slot& slot) {
  if (slot.is_optional)
    return slot.is_list ? ParameterKind::kMaybeMany : ParameterKind::kMaybe;
  return slot.is_list ? ParameterKind::kMany : ParameterKind::kOne;
}

const char* KindText(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kOne:
      return "one value";
    case ParameterKind::kMany:
      return "a vector";
    case ParameterKind::kMaybe:
      return "an optional value";
    case ParameterKind::kMaybeMany:
      return "an optional vector";
    default:
      return "another kind";
  }
}

// Compares the parameters of a function with the lists of inputs and
// attributes. A function may take fewer attributes than there are, inference
// fewer inputs.
absl::Status CheckParameters(const char* function,
                             const std::vector<Parameter>& parameters,
                             const std::vector<CustomOp::Slot>& inputs,
                             const std::vector<CustomOp::Attr>& attrs,
                             size_t most_outputs, bool fewer_inputs) {
  size_t input = 0, attr = 0, output = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.kind == ParameterKind::kAttr) {
      if (attr == attrs.size())
        return InvalidArgument("%s takes more attributes than the %d in Attrs",
                               function, attrs.size());
      if (attrs[attr].type != parameter.attr_type)
        return InvalidArgument(
            "%s takes attribute %d as %s; Attrs has '%s: %s' there", function,
            attr + 1, parameter.attr_type, attrs[attr].name, attrs[attr].type);
      ++attr;
    } else if (parameter.kind == ParameterKind::kOutput) {
      ++output;
    } else {
      if (input == inputs.size())
        return InvalidArgument("%s takes more inputs than the %d in Inputs",
                               function, inputs.size());
      if (KindOf(inputs[input]) != parameter.kind)
        return InvalidArgument(
            "%s takes input %d as %s; Inputs has '%s', which is %s", function,
            input + 1, KindText(parameter.kind), inputs[input].name,
            KindText(KindOf(inputs[input])));
      ++input;
    }
  }
  if (input < inputs.size() && !fewer_inputs)
    return InvalidArgument("%s takes %d inputs; Inputs has %d", function, input,
                           inputs.size());
  if (output > 0 && output != most_outputs)
    return InvalidArgument("%s writes %d outputs; Outputs has %d", function,
                           output, most_outputs);
  return absl::OkStatus();
}

absl::Status CheckOutputs(const CustomOp& op) {
  size_t plain = 0, lists = 0;
  for (const CustomOp::Slot& slot : op.outputs) {
    plain += slot.partner < 0;
    lists += slot.partner < 0 && slot.is_list;
  }
  if (lists > 0 && plain > 1)
    return Unimplemented(
        "a list among several outputs: expected it to be the only one, or to "
        "be written over an input (SetInplaceMap)");
  if (op.outputs.empty()) return InvalidArgument("it has no Outputs");
  return absl::OkStatus();
}

absl::Status CheckAgainstForward(const CustomOp& op, const CustomOp& forward) {
  for (const CustomOp::Slot& slot : op.inputs) {
    const std::string of = GradientOf(slot.name);
    if (forward.FindInput(slot.name) < 0 && forward.FindOutput(slot.name) < 0 &&
        (of.empty() || forward.FindOutput(of) < 0))
      return InvalidArgument(
          "it reads '%s', which is neither an input or output of '%s' nor "
          "the gradient of an output",
          slot.name, forward.type);
  }
  for (const CustomOp::Slot& slot : op.outputs) {
    const std::string of = GradientOf(slot.name);
    if (of.empty() || forward.FindInput(of) < 0)
      return InvalidArgument(
          "it writes '%s', which is not the gradient of an input of '%s'",
          slot.name, forward.type);
  }
  for (const CustomOp::Attr& attr : op.attrs) {
    bool found = false;
    for (const CustomOp::Attr& other : forward.attrs)
      found = found || (other.name == attr.name && other.type == attr.type);
    if (!found)
      return InvalidArgument("its attribute '%s: %s' is not one of '%s'",
                             attr.name, attr.type, forward.type);
  }
  return absl::OkStatus();
}

void AddSlots(const std::vector<CustomOp::Slot>& slots, bool inputs,
              OpDef* def) {
  for (const CustomOp::Slot& slot : slots) {
    if (inputs)
      slot.is_list ? (slot.is_optional ? def->OptionalInputs(slot.name)
                                       : def->Inputs(slot.name))
                   : (slot.is_optional ? def->OptionalInput(slot.name)
                                       : def->Input(slot.name));
    else
      slot.is_list ? (slot.is_optional ? def->OptionalOutputs(slot.name)
                                       : def->Outputs(slot.name))
                   : (slot.is_optional ? def->OptionalOutput(slot.name)
                                       : def->Output(slot.name));
  }
}

int IndexOf(const std::vector<CustomOp::Slot>& slots, const std::string& name) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace

int CustomOp::FindInput(const std::string& name) const {
  return IndexOf(inputs, name);
}
int CustomOp::FindOutput(const std::string& name) const {
  return IndexOf(outputs, name);
}

std::string GradientOf(const std::string& output) {
  absl::string_view name = absl::StripSuffix(output, "@NEW");
  if (!absl::ConsumeSuffix(&name, kGradSuffix)) return "";
  return std::string(name);
}

absl::StatusOr<CustomOp> CheckDeclaration(std::string type,
                                          const OpDeclaration& declaration,
                                          const CustomOp* forward) {
  CustomOp op;
  op.type = std::move(type);
  op.declaration = &declaration;
  op.is_gradient = forward != nullptr;
  PD_ASSIGN_OR_RETURN(op.inputs, SlotsOf(declaration.inputs, "Inputs"));
  PD_ASSIGN_OR_RETURN(op.outputs, SlotsOf(declaration.outputs, "Outputs"));
  for (const std::string& text : declaration.attrs) {
    PD_ASSIGN_OR_RETURN(CustomOp::Attr attr, AttrOf(text));
    op.attrs.push_back(std::move(attr));
  }
  PD_RETURN_IF_ERROR(LinkInplace(&op));
  PD_RETURN_IF_ERROR(CheckOutputs(op));
  if (declaration.kernel.call == nullptr)
    return Unimplemented(
        "it has no kernel: expected SetKernelFn(PD_KERNEL(...)); operators "
        "written against PaddlePaddle's own sources cannot run here");
  PD_RETURN_IF_ERROR(CheckParameters("the kernel",
                                     declaration.kernel.parameters, op.inputs,
                                     op.attrs, op.outputs.size(), false));
  // A list of int64_t is a shape in the eyes of InferShape.
  std::vector<CustomOp::Attr> shape_attrs;
  for (const CustomOp::Attr& attr : op.attrs)
    if (attr.stored != AttrType::kLongs) shape_attrs.push_back(attr);
  if (declaration.infer_shape.call != nullptr)
    PD_RETURN_IF_ERROR(CheckParameters("InferShape",
                                       declaration.infer_shape.parameters,
                                       op.inputs, shape_attrs, 0, true));
  if (declaration.infer_dtype.call != nullptr)
    PD_RETURN_IF_ERROR(CheckParameters("InferDtype",
                                       declaration.infer_dtype.parameters,
                                       op.inputs, op.attrs, 0, true));
  if (forward != nullptr) PD_RETURN_IF_ERROR(CheckAgainstForward(op, *forward));
  return op;
}

OpDef OpDefOf(const CustomOp& op, const CustomOp* gradient) {
  OpDef def(op.type);
  AddSlots(op.inputs, true, &def);
  AddSlots(op.outputs, false, &def);
  for (const CustomOp::Attr& attr : op.attrs)
    def.Attr(attr.name, DefaultOf(attr));
  def.Infer(InferCustom).Reference(BindCustom);
  if (op.declaration->infer_shape.call != nullptr)
    def.With(Trait::kMayResizeOutputs);
  if (gradient == nullptr)
    def.NoGrad();
  else
    def.Grad(MakeCustomGradient(op, *gradient));
  return def;
}

Attribute DefaultOf(const CustomOp::Attr& attr) {
  switch (attr.stored) {
    case AttrType::kBoolean:
      return Attribute(false);
    case AttrType::kInt:
      return Attribute(int32_t{1});
    case AttrType::kFloat:
      return Attribute(1.0f);
    case AttrType::kFloat64:
      return Attribute(1.0);
    case AttrType::kLong:
      return Attribute(int64_t{1});
    case AttrType::kInts:
      return Attribute(std::vector<int32_t>());
    case AttrType::kFloats:
      return Attribute(std::vector<float>());
    case AttrType::kLongs:
      return Attribute(std::vector<int64_t>());
    case AttrType::kStrings:
      return Attribute(std::vector<std::string>());
    default:
      return Attribute(std::string());
  }
}

std::vector<paddle::any> AttrsOf(const CustomOp& op, const OpDesc& desc) {
  std::vector<paddle::any> values;
  for (const CustomOp::Attr& attr : op.attrs) {
    const Attribute* value = desc.FindAttr(attr.name);
    PD_INVARIANT(value != nullptr && TypeOf(*value) == attr.stored);
    std::visit([&](const auto& v) { values.emplace_back(v); },
               static_cast<const AttributeValue&>(*value));
  }
  return values;
}

// Slots are found by their names in the declarations: of the forward op's
// inputs and outputs, and the gradients of its outputs.
GradMaker MakeCustomGradient(const CustomOp& forward,
                             const CustomOp& gradient) {
  return
      [&forward, &gradient](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        const OpDesc& op = request.op;
        OpDesc grad;
        grad.type = gradient.type;
        grad.attrs = op.attrs;
        for (const CustomOp::Slot& slot : gradient.inputs) {
          std::vector<std::string> names;
          if (forward.FindInput(slot.name) >= 0) {
            names = op.Input(slot.name);
          } else if (forward.FindOutput(slot.name) >= 0) {
            names = op.Output(slot.name);
          } else {
            for (const std::string& output : op.Output(GradientOf(slot.name)))
              names.push_back(GradName(output));
          }
          if (!names.empty()) grad.SetInput(slot.name, std::move(names));
        }
        bool needed = false;
        for (const CustomOp::Slot& slot : gradient.outputs) {
          std::vector<std::string> names;
          for (const std::string& input : op.Input(GradientOf(slot.name))) {
            const bool need = request.needs_grad(input);
            needed = needed || need;
            names.push_back(need ? GradName(input) : std::string(kEmptyVar));
          }
          if (!names.empty()) grad.SetOutput(slot.name, std::move(names));
        }
        std::vector<OpDesc> ops;
        if (needed) ops.push_back(std::move(grad));
        return ops;
      };
}

}  // namespace pd
