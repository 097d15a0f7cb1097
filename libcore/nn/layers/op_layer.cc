// SPDX-License-Identifier: Apache-2.0
// The layers `op`, any operator, and `custom`, one of a plug-in, checked
// against its schema while the job is read. They append the op that a typed
// layer appends.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/job_text.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/op_attributes.h"
#include "libcore/nn/layers/op_refusals.h"
#include "libcore/nn/output_names.h"

namespace pd {
namespace {

std::string NameOf(const SlotDef& slot) { return slot.name; }
std::string NameOf(const AttrDef& attr) { return attr.name; }

// "input 'Y' does not exist, did you mean 'X'?", or a list of what there is.
template <typename Def>
absl::Status NoSuch(const char* what, const std::string& name,
                    const std::vector<Def>& defs, const std::string& type) {
  std::vector<std::string> names;
  for (const Def& def : defs) names.push_back(NameOf(def));
  const std::string nearest = Nearest(name, names);
  if (!nearest.empty())
    return InvalidArgument("operator '%s' has no %s '%s', did you mean '%s'?",
                           type, what, name, nearest);
  return InvalidArgument(
      "operator '%s' has no %s '%s'; it has %s", type, what, name,
      names.empty() ? "none"
                    : absl::StrCat("'", absl::StrJoin(names, "', '"), "'"));
}

absl::Status Twice(const char* what, const std::string& name) {
  return InvalidArgument("%s '%s' is given twice", what, name);
}

// The operator of a layer. `custom` has the fields of `op`, with
// another name for the type.
job::Op OpOf(const job::Layer& layer) {
  if (layer.has_op()) return layer.op();
  const job::Custom& custom = layer.custom();
  job::Op op;
  op.set_type(custom.op());
  *op.mutable_input() = custom.input();
  *op.mutable_parameter() = custom.parameter();
  *op.mutable_attr() = custom.attr();
  *op.mutable_output() = custom.output();
  return op;
}

class OpLayer {
 public:
  OpLayer(LayerContext* c, const job::Op& said, const OpDef& def)
      : c_(c), p_(said), def_(def) {
    op_.type = def.type();
  }

  absl::StatusOr<std::string> Build() {
    PD_RETURN_IF_ERROR(NameInputs());
    PD_RETURN_IF_ERROR(MakeParameters());
    PD_RETURN_IF_ERROR(FillInOrder());
    for (int i = 0; i < p_.attr_size(); ++i)
      PD_RETURN_IF_ERROR(c_->At(SetAttribute(p_.attr(i)), "attr", i));
    for (const AttrDef& attr : def_.attrs())
      if (!attr.default_value.has_value() && op_.FindAttr(attr.name) == nullptr)
        return InvalidArgument("operator '%s' needs the attribute '%s' (%s)",
                               op_.type, attr.name, Name(attr.type));
    PD_RETURN_IF_ERROR(ChooseOutputs());
    return Append();
  }

 private:
  absl::Status CheckInput(const std::string& slot) {
    if (def_.FindInput(slot) == nullptr)
      return NoSuch("input", slot, def_.inputs(), op_.type);
    if (!op_.Input(slot).empty()) return Twice("input", slot);
    return absl::OkStatus();
  }

  absl::Status NameInputs() {
    for (int i = 0; i < p_.input_size(); ++i) {
      const std::string& slot = p_.input(i).slot();
      PD_RETURN_IF_ERROR(c_->At(CheckInput(slot), "input", i));
      std::vector<std::string> names;
      for (const LayerInput& read :
           c_->AllNamed(absl::StrCat(ElementPath("input", i), ".from").c_str()))
        names.push_back(read.variable);
      if (names.size() > 1 && !def_.FindInput(slot)->duplicable)
        return c_->At(
            InvalidArgument("input '%s' takes one layer; 'from' names %d", slot,
                            names.size()),
            "input", i);
      op_.SetInput(slot, std::move(names));
    }
    return absl::OkStatus();
  }

  absl::Status MakeParameters() {
    for (int i = 0; i < p_.parameter_size(); ++i) {
      const job::OpParameter& p = p_.parameter(i);
      PD_RETURN_IF_ERROR(c_->At(CheckInput(p.slot()), "parameter", i));
      const Shape shape(p.shape().begin(), p.shape().end());
      const char* member = p.slot().c_str();
      const absl::StatusOr<std::string> made =
          p.is_bias()
              ? c_->Bias(p.attr(), shape, member)
              : c_->Weight(p.attr(), shape, XavierUniformInitializer(), member);
      PD_RETURN_IF_ERROR(c_->At(made.status(), "parameter", i));
      op_.SetInput(p.slot(), {*made});
    }
    return absl::OkStatus();
  }

  // The slots that neither `input` nor `parameter` says: those that the op
  // needs, then the others.
  std::vector<const SlotDef*> OpenSlots() const {
    std::vector<const SlotDef*> open;
    for (const bool optional : {false, true})
      for (const SlotDef& slot : def_.inputs())
        if (slot.optional == optional && op_.Input(slot.name).empty())
          open.push_back(&slot);
    return open;
  }

  // The layer's inputs into the open slots.
  absl::Status FillInOrder() {
    const std::vector<const SlotDef*> open = OpenSlots();
    const auto needed = static_cast<size_t>(
        std::count_if(open.begin(), open.end(),
                      [](const SlotDef* slot) { return !slot->optional; }));
    const size_t count = c_->input_count();
    if (count < needed)
      return InvalidArgument("operator '%s' needs %s", op_.type,
                             InWords(open, count, needed));
    size_t next = 0;
    for (size_t i = 0; i < open.size() && next < count; ++i) {
      size_t take = 1;
      if (open[i]->duplicable) {
        const size_t behind = i + 1 < needed ? needed - i - 1 : 0;
        take = count - next - behind;
      }
      std::vector<std::string> names;
      for (; take > 0; --take) names.push_back(c_->input(next++));
      op_.SetInput(open[i]->name, std::move(names));
    }
    if (next < count)
      return InvalidArgument(
          "operator '%s' has no slot for %s; the layer names %d inputs for %d "
          "open slots",
          op_.type, c_->read(next).maker, count, open.size());
    return absl::OkStatus();
  }

  // "inputs for 'X', 'Y'; the layer names 1".
  static std::string InWords(const std::vector<const SlotDef*>& open,
                             size_t count, size_t needed) {
    std::vector<std::string> names;
    for (size_t i = 0; i < needed; ++i)
      names.push_back(absl::StrCat("'", open[i]->name, "'"));
    return absl::StrCat(needed == 1 ? "an input for " : "inputs for ",
                        absl::StrJoin(names, ", "), "; the layer names ",
                        count == 0 ? "none" : absl::StrCat(count));
  }

  absl::Status SetAttribute(const job::OpAttr& given) {
    const auto& attrs = def_.attrs();
    const auto def = std::find_if(
        attrs.begin(), attrs.end(),
        [&](const AttrDef& attr) { return attr.name == given.name(); });
    if (def == attrs.end())
      return NoSuch("attribute", given.name(), attrs, op_.type);
    if (op_.FindAttr(given.name()) != nullptr)
      return Twice("attribute", given.name());
    PD_ASSIGN_OR_RETURN(
        op_.attrs[given.name()],
        ReadAttribute(*def, {given.value().begin(), given.value().end()}));
    return absl::OkStatus();
  }

  // Which outputs are made, the layer's own first.
  absl::Status ChooseOutputs() {
    for (int i = 0; i < p_.output_size(); ++i)
      PD_RETURN_IF_ERROR(c_->At(ChooseOutput(p_.output(i)), "output", i));
    for (const bool hidden : {false, true})
      for (const SlotDef& slot : def_.outputs())
        if (slot.intermediate == hidden && (hidden || !slot.optional) &&
            chosen_.insert(slot.name).second)
          outputs_.emplace_back(slot.name, 1);
    if (outputs_.empty())
      return InvalidArgument("operator '%s' gives nothing unless 'output' says",
                             op_.type);
    return absl::OkStatus();
  }

  absl::Status ChooseOutput(const job::OpOutput& output) {
    const SlotDef* slot = def_.FindOutput(output.slot());
    if (slot == nullptr)
      return NoSuch("output", output.slot(), def_.outputs(), op_.type);
    if (!chosen_.insert(slot->name).second) return Twice("output", slot->name);
    if (output.has_count() && !slot->duplicable)
      return InvalidArgument("output '%s' gives one result; 'count' is %d",
                             slot->name, output.count());
    outputs_.emplace_back(slot->name, output.count());
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Append() {
    const std::string first = c_->main()->UniqueTemporary(op_.type);
    size_t made = 0;
    for (const auto& [slot, count] : outputs_) {
      std::vector<std::string> names;
      const bool list = def_.FindOutput(slot)->duplicable;
      for (int i = 0; i < count; ++i) {
        names.push_back(TemporaryBeside(first, made++));
        c_->AddOutput(list ? absl::StrCat(slot, ".", i) : slot, names.back());
      }
      op_.SetOutput(slot, std::move(names));
    }
    const absl::Status status = c_->main()->Append(std::move(op_));
    if (!status.ok()) return Annotate(status, c_->Described());
    return first;
  }

  LayerContext* c_;
  const job::Op& p_;
  const OpDef& def_;
  OpDesc op_;
  std::set<std::string> chosen_;
  std::vector<std::pair<std::string, int>> outputs_;  // slot and how many
};

absl::Status UnknownType(const std::string& type, const OpRegistry& registry) {
  std::vector<std::string> names;
  for (const OpDef* def : registry.All())
    if (ReasonAgainstLayer(def->type(), registry).empty())
      names.push_back(def->type());
  const std::string nearest = Nearest(type, names);
  return InvalidArgument(
      "unknown operator '%s'%s", type,
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
}

absl::StatusOr<std::string> BuildOp(LayerContext* c) {
  const job::Op op = OpOf(c->layer());
  const std::string& type = op.type();
  const OpRegistry& registry = c->main()->registry();
  const std::string reason = ReasonAgainstLayer(type, registry);
  if (!reason.empty())
    return InvalidArgument("operator '%s' cannot be a layer: it %s", type,
                           reason);
  const OpDef* def = registry.Find(type);
  if (def == nullptr && c->layer().has_custom())
    return InvalidArgument(
        "no plug-in has an operator '%s'; name its library with --plugin",
        type);
  if (def == nullptr) return UnknownType(type, registry);
  return OpLayer(c, op, *def).Build();
}

// Whether the op needs an input that neither `input` nor `parameter` says.
bool OpTakesInput(const job::Layer& layer, const OpRegistry& registry) {
  const job::Op op = OpOf(layer);
  const OpDef* def = registry.Find(op.type());
  if (def == nullptr) return false;
  std::set<std::string> said;
  for (const auto& input : op.input()) said.insert(input.slot());
  for (const auto& input : op.parameter()) said.insert(input.slot());
  return std::any_of(def->inputs().begin(), def->inputs().end(),
                     [&](const SlotDef& slot) {
                       return !slot.optional && said.count(slot.name) == 0;
                     });
}

}  // namespace

void AddOpLayers(LayerTable* table) {
  for (const auto kind : {job::Layer::kOp, job::Layer::kCustom})
    (*table)[kind] = {BuildOp, 0, kAnyInputs, OpTakesInput};
}

}  // namespace pd
