// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/op_def.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/missing_input.h"

namespace pd {
namespace {

const SlotDef* FindSlot(const std::vector<SlotDef>& slots,
                        absl::string_view name) {
  for (const SlotDef& slot : slots)
    if (slot.name == name) return &slot;
  return nullptr;
}

// The value as another type, where nothing is lost by it.
std::optional<Attribute> Converted(const Attribute& value, AttrType type) {
  if (const auto* i = std::get_if<int32_t>(&value)) {
    if (type == AttrType::kLong) return Attribute(int64_t{*i});
    if (type == AttrType::kBoolean) return Attribute(*i != 0);
    if (type == AttrType::kFloat) return Attribute(static_cast<float>(*i));
  } else if (const auto* l = std::get_if<int64_t>(&value)) {
    if (type == AttrType::kInt && *l >= std::numeric_limits<int32_t>::min() &&
        *l <= std::numeric_limits<int32_t>::max())
      return Attribute(static_cast<int32_t>(*l));
  } else if (const auto* ints = std::get_if<std::vector<int32_t>>(&value)) {
    if (type == AttrType::kLongs)
      return Attribute(std::vector<int64_t>(ints->begin(), ints->end()));
    // An empty list carries no type of its own in old programs.
    if (ints->empty() && type == AttrType::kFloats)
      return Attribute(std::vector<float>());
  } else if (const auto* longs = std::get_if<std::vector<int64_t>>(&value)) {
    if (type == AttrType::kInts) {
      std::vector<int32_t> narrow;
      for (int64_t v : *longs) {
        if (v != static_cast<int32_t>(v)) return std::nullopt;
        narrow.push_back(static_cast<int32_t>(v));
      }
      return Attribute(std::move(narrow));
    }
  } else if (const auto* f = std::get_if<float>(&value)) {
    if (type == AttrType::kFloat64) return Attribute(double{*f});
  } else if (const auto* d = std::get_if<double>(&value)) {
    if (type == AttrType::kFloat) return Attribute(static_cast<float>(*d));
  }
  return std::nullopt;
}

std::string NamesOf(const std::vector<SlotDef>& slots) {
  if (slots.empty()) return "none";
  return absl::StrJoin(slots, ", ", [](std::string* out, const SlotDef& slot) {
    absl::StrAppend(out, "'", slot.name, "'");
  });
}

absl::Status CheckSlots(const OpDesc& op, const SlotList& given,
                        const std::vector<SlotDef>& slots, const char* kind) {
  for (const auto& [name, variables] : given) {
    const SlotDef* slot = FindSlot(slots, name);
    if (slot == nullptr) {
      if (variables.empty()) continue;
      return InvalidArgument("%s '%s' does not exist; the op has %s", kind,
                             name, NamesOf(slots));
    }
    if (!slot->duplicable && variables.size() > 1)
      return InvalidArgument("%s '%s' holds %d variables; expected 1", kind,
                             name, variables.size());
    for (const std::string& variable : variables)
      if (variable.empty())
        return InvalidArgument("%s '%s' holds a variable without a name", kind,
                               name);
  }
  for (const SlotDef& slot : slots) {
    // Gradients that nobody wants are left out.
    if (slot.optional || absl::EndsWith(slot.name, std::string(kGradSuffix)))
      continue;
    bool found = false;
    for (const auto& [name, variables] : given)
      found = found || (name == slot.name && !variables.empty() &&
                        (slot.duplicable || variables[0] != kEmptyVar));
    if (!found) return InvalidArgument("%s '%s' is missing", kind, slot.name);
  }
  return absl::OkStatus();
}

// Inputs that kernels read without asking: a gradient that comes in as well,
// and every variable of a list that is there.
absl::Status CheckGiven(const OpDesc& op, const SlotList& given,
                        const std::vector<SlotDef>& slots, const char* kind) {
  for (const SlotDef& slot : slots) {
    size_t empty = 0, count = 0;
    for (const auto& [name, variables] : given) {
      if (name != slot.name) continue;
      count += variables.size();
      for (const std::string& variable : variables)
        empty += variable == kEmptyVar;
    }
    if (empty == count && !slot.optional && (!slot.duplicable || count > 0))
      return InvalidArgument("%s '%s' is missing", kind, slot.name);
    if (empty > 0 && empty < count)
      return InvalidArgument(
          "%s '%s' names %d variables and leaves %d out; expected all", kind,
          slot.name, count - empty, empty);
  }
  return absl::OkStatus();
}

// The maker that a GradSpec describes.
GradMaker MakerOf(GradSpec spec) {
  return
      [spec](
          const GradRequest& request) -> absl::StatusOr<std::vector<OpDesc>> {
        const OpDesc& forward = request.op;
        OpDesc grad;
        grad.type = spec.type;
        grad.attrs = forward.attrs;
        for (const std::string& slot : spec.inputs)
          if (!forward.Input(slot).empty())
            grad.SetInput(slot, forward.Input(slot));
        for (const std::string& slot : spec.outputs)
          if (!forward.Output(slot).empty())
            grad.SetInput(slot, forward.Output(slot));
        for (const std::string& slot : spec.out_grads) {
          std::vector<std::string> names;
          for (const std::string& v : forward.Output(slot))
            names.push_back(GradName(v));
          if (!names.empty()) grad.SetInput(GradName(slot), std::move(names));
        }
        bool needed = false;
        for (const std::string& slot : spec.in_grads) {
          std::vector<std::string> names;
          for (const std::string& v : forward.Input(slot)) {
            const bool need = request.needs_grad(v);
            needed = needed || need;
            names.push_back(need ? GradName(v) : std::string(kEmptyVar));
          }
          if (!names.empty()) grad.SetOutput(GradName(slot), std::move(names));
        }
        std::vector<OpDesc> ops;
        if (needed) ops.push_back(std::move(grad));
        return ops;
      };
}

}  // namespace

GradSpec::GradSpec(absl::string_view type, Names inputs, Names outputs,
                   Names out_grads, Names in_grads)
    : type(type),
      inputs(inputs.begin(), inputs.end()),
      outputs(outputs.begin(), outputs.end()),
      out_grads(out_grads.begin(), out_grads.end()),
      in_grads(in_grads.begin(), in_grads.end()) {}
GradSpec::GradSpec(const GradSpec& other) = default;
GradSpec::GradSpec(GradSpec&& other) noexcept = default;
GradSpec::~GradSpec() = default;

Implementation::Implementation(absl::string_view label, BindFn bind)
    : label(label), bind(bind) {}
Implementation::Implementation(absl::string_view label, DeviceBindFn bind)
    : label(label), place(Place::kDevice), bind_on_device(bind) {}
Implementation& Implementation::TakesLayouts() {
  takes_layouts = true;
  return *this;
}
Implementation& Implementation::TakesSelectedRows() {
  takes_selected_rows = true;
  return *this;
}
Implementation& Implementation::FollowsInputs() {
  follows_inputs = true;
  return *this;
}
Implementation& Implementation::AskedFirst() {
  turn = Turn::kFirst;
  return *this;
}
Implementation& Implementation::AskedLast() {
  turn = Turn::kLast;
  return *this;
}

OpDef::OpDef(absl::string_view type) : type_(type) {}
OpDef::OpDef(const OpDef& other) = default;
OpDef::OpDef(OpDef&& other) noexcept = default;
OpDef::~OpDef() = default;

bool OpDef::HasImplementation(Place place) const {
  return std::any_of(implementations_.begin(), implementations_.end(),
                     [&](const Implementation& i) { return i.place == place; });
}

OpDef& OpDef::AddSlot(std::vector<SlotDef>* slots, SlotDef slot) {
  PD_INVARIANT(FindSlot(*slots, slot.name) == nullptr);
  slots->push_back(std::move(slot));
  return *this;
}

OpDef& OpDef::Input(absl::string_view name) {
  return AddSlot(&inputs_, {std::string(name)});
}
OpDef& OpDef::OptionalInput(absl::string_view name) {
  return AddSlot(&inputs_, {std::string(name), false, true});
}
OpDef& OpDef::Inputs(absl::string_view name) {
  return AddSlot(&inputs_, {std::string(name), true});
}
OpDef& OpDef::OptionalInputs(absl::string_view name) {
  return AddSlot(&inputs_, {std::string(name), true, true});
}
OpDef& OpDef::Output(absl::string_view name) {
  return AddSlot(&outputs_, {std::string(name)});
}
OpDef& OpDef::OptionalOutput(absl::string_view name) {
  return AddSlot(&outputs_, {std::string(name), false, true});
}
OpDef& OpDef::Outputs(absl::string_view name) {
  return AddSlot(&outputs_, {std::string(name), true});
}
OpDef& OpDef::OptionalOutputs(absl::string_view name) {
  return AddSlot(&outputs_, {std::string(name), true, true});
}
OpDef& OpDef::IntermediateOutput(absl::string_view name) {
  return AddSlot(&outputs_, {std::string(name), false, true, true});
}
OpDef& OpDef::Attr(absl::string_view name, Attribute default_value) {
  const AttrType type = TypeOf(default_value);
  attrs_.push_back({std::string(name), type, std::move(default_value)});
  return *this;
}
OpDef& OpDef::RequiredAttr(absl::string_view name, AttrType type) {
  attrs_.push_back({std::string(name), type, std::nullopt});
  return *this;
}
OpDef& OpDef::Infer(InferFn infer) {
  infer_ = infer;
  return *this;
}
OpDef& OpDef::Grad(GradSpec spec) {
  grad_ = MakerOf(std::move(spec));
  return *this;
}
OpDef& OpDef::Grad(GradMaker maker) {
  grad_ = std::move(maker);
  return *this;
}
OpDef& OpDef::NoGrad() {
  no_grad_ = true;
  return *this;
}
OpDef& OpDef::ShapeFromData() {
  shape_from_data_ = true;
  return *this;
}

OpDef& OpDef::RunsBlocks() {
  runs_blocks_ = true;
  return *this;
}

OpDef& OpDef::With(Trait trait) {
  traits_ |= static_cast<uint32_t>(trait);
  return *this;
}
OpDef& OpDef::Expand(ExpandFn expand) {
  expand_ = expand;
  return *this;
}
OpDef& OpDef::Reference(BindFn bind) {
  implementations_.push_back({"reference", bind});
  implementations_.back().is_reference = true;
  return *this;
}

void OpDef::AddImplementation(Implementation implementation) {
  PD_INVARIANT(!implementations_.empty());
  implementations_.insert(implementations_.end() - 1,
                          std::move(implementation));
}

const SlotDef* OpDef::FindInput(absl::string_view name) const {
  return FindSlot(inputs_, name);
}
const SlotDef* OpDef::FindOutput(absl::string_view name) const {
  return FindSlot(outputs_, name);
}

absl::Status OpDef::InferOutputs(InferContext* context) const {
  if (infer_ == nullptr)
    return Unimplemented("nothing is known of its outputs' shapes");
  try {
    PD_RETURN_IF_ERROR(Guarded([&] { return infer_(context); }));
  } catch (const MissingInput& missing) {
    return InvalidArgument("input '%s' is missing", missing.slot);
  }
  return context->status();
}

absl::Status OpDef::CheckVariables(const OpDesc& op) const {
  PD_RETURN_IF_ERROR(CheckSlots(op, op.inputs, inputs_, "input"));
  PD_RETURN_IF_ERROR(CheckSlots(op, op.outputs, outputs_, "output"));
  if (runs_blocks_) return absl::OkStatus();
  PD_RETURN_IF_ERROR(CheckGiven(op, op.inputs, inputs_, "input"));
  std::set<absl::string_view> written;
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names)
      if (name != kEmptyVar && !written.insert(name).second)
        return InvalidArgument(
            "output '%s' writes '%s', which another output of the op writes "
            "too",
            slot, name);
  // Ops that communicate or write a file are there for that.
  if (written.empty() && !outputs_.empty() && !Has(Trait::kCommunicates))
    return InvalidArgument("no output is named; the op has %s",
                           NamesOf(outputs_));
  return absl::OkStatus();
}

absl::Status OpDef::Normalize(OpDesc* op) const {
  PD_RETURN_IF_ERROR(CheckVariables(*op));
  return NormalizeAttrs(op);
}

absl::Status OpDef::NormalizeAttrs(OpDesc* op) const {
  for (const AttrDef& attr : attrs_) {
    const auto it = op->attrs.find(attr.name);
    if (it == op->attrs.end()) {
      if (!attr.default_value.has_value())
        return InvalidArgument("attr '%s' is missing", attr.name);
      op->attrs.emplace(attr.name, *attr.default_value);
      continue;
    }
    if (TypeOf(it->second) == attr.type) continue;
    // An attribute may be given by a variable; the op's kernel then says so.
    if (TypeOf(it->second) == AttrType::kVar ||
        TypeOf(it->second) == AttrType::kVars)
      return Unimplemented("attr '%s' is given by a variable", attr.name);
    auto converted = Converted(it->second, attr.type);
    if (!converted.has_value())
      return InvalidArgument("attr '%s' is of type %s; expected %s", attr.name,
                             Name(TypeOf(it->second)), Name(attr.type));
    it->second = *std::move(converted);
  }
  return absl::OkStatus();
}

}  // namespace pd
