// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/composed.h"

#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/row_major_binder.h"
#include "libcore/ops/missing_input.h"

namespace pd {
namespace {

std::string FirstOutput(const OpDesc& op) {
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names)
      if (name != kEmptyVar) return name;
  return op.type;
}

bool IsThere(const std::vector<std::string>& names, size_t i) {
  return i < names.size() && names[i] != kEmptyVar;
}

}  // namespace

const OpRegistry& ReferenceOps() {
  static const OpRegistry* const kOps = [] {
    auto* made = new OpRegistry;
    PD_INVARIANT(RegisterAllOps(made).ok());
    return made;
  }();
  return *kOps;
}

Composition::Composition(const OpDesc& op, FindFn find)
    : op_(op), find_(std::move(find)), prefix_(FirstOutput(op)) {}

bool Composition::HasInput(absl::string_view slot) const {
  return IsThere(op_.Input(slot), 0);
}
bool Composition::HasOutput(absl::string_view slot) const {
  return IsThere(op_.Output(slot), 0);
}

const TensorMeta& Composition::Meta(absl::string_view slot, size_t i) const {
  const TensorMeta* meta =
      IsThere(op_.Input(slot), i) ? find_(slot, i) : nullptr;
  if (meta == nullptr) throw MissingInput{std::string(slot)};
  return *meta;
}

std::string Composition::NameOf(absl::string_view kind, absl::string_view slot,
                                size_t i) const {
  return absl::StrCat(prefix_, "/", kind, "/", slot, "/", i);
}
std::string Composition::In(absl::string_view slot, size_t i) const {
  return NameOf("in", slot, i);
}
Composition::Names Composition::Ins(absl::string_view slot) const {
  Names names;
  for (size_t i = 0; i < op_.Input(slot).size(); ++i)
    names.push_back(In(slot, i));
  return names;
}
std::string Composition::Out(absl::string_view slot, size_t i) const {
  return NameOf("out", slot, i);
}
std::string Composition::Temp() { return NameOf("part", "", temps_++); }

void Composition::Add(absl::string_view type, const Slots& inputs,
                      const Slots& outputs, Attrs attrs) {
  OpDesc part;
  part.type = std::string(type);
  for (const auto& [slot, names] : inputs) part.SetInput(slot, names);
  for (const auto& [slot, names] : outputs) part.SetOutput(slot, names);
  part.attrs = std::move(attrs);
  parts_.push_back(std::move(part));
}

std::string Composition::Apply(absl::string_view type, const Slots& inputs,
                               Attrs attrs, absl::string_view slot) {
  const std::string name = Temp();
  Add(type, inputs, {{std::string(slot), {name}}}, std::move(attrs));
  return name;
}

// The metas of all values of a composition, by the names of its parts.
class PartTable {
 public:
  explicit PartTable(Composition* parts) : parts_(*parts) {
    for (const auto& [slot, names] : parts_.op().inputs)
      for (size_t i = 0; i < names.size(); ++i)
        if (IsThere(names, i))
          if (const TensorMeta* meta = parts_.find_(slot, i))
            metas_[parts_.In(slot, i)] = *meta;
  }

  // Completes the parts' attributes and infers what they write.
  absl::Status Infer() {
    for (OpDesc& part : parts_.parts()) {
      PD_ASSIGN_OR_RETURN(const OpDef* def, ReferenceOps().Get(part.type));
      const absl::Status status = InferPart(*def, &part);
      if (!status.ok())
        return Annotate(status, absl::StrCat("its part '", part.type, "'"));
    }
    return absl::OkStatus();
  }
  const TensorMeta* Find(const std::string& name) const {
    const auto it = metas_.find(name);
    return it == metas_.end() ? nullptr : &it->second;
  }

 private:
  absl::Status InferPart(const OpDef& def, OpDesc* part) {
    PD_RETURN_IF_ERROR(def.Normalize(part));
    InferContext context(
        *part, kPartsVersion,
        [this](const std::string& name) { return Find(name); },
        [this](const std::string& name, TensorMeta meta) {
          metas_[name] = std::move(meta);
        });
    return def.InferOutputs(&context);
  }

  Composition& parts_;
  std::map<std::string, TensorMeta> metas_;
};

namespace {

// A part in the step of its op.
class PartBinder : public RowMajorBinder {
 public:
  using Values = std::map<std::string, Tensor*>;
  PartBinder(const OpDesc& part, BindContext* whole, const Values& inputs,
             const Values& outputs)
      : RowMajorBinder(part),
        whole_(whole),
        inputs_(inputs),
        outputs_(outputs) {}

  Tensor* Scratch(size_t bytes) override { return whole_->Scratch(bytes); }
  Tensor* Keep(const std::string& name, DType dtype, Shape shape) override {
    return whole_->Keep(name, dtype, std::move(shape));
  }
  bool IsTraining() const override { return whole_->IsTraining(); }

 protected:
  Tensor* FindInput(const std::string& name) const override {
    return Look(inputs_, name);
  }
  Tensor* FindOutput(const std::string& name) const override {
    return Look(outputs_, name);
  }

 private:
  static Tensor* Look(const Values& values, const std::string& name) {
    const auto it = values.find(name);
    return it == values.end() ? nullptr : it->second;
  }

  BindContext* whole_;
  const Values& inputs_;
  const Values& outputs_;
};

// The values inside a step, and their scratch memory.
struct PartValues {
  std::deque<Tensor> tensors;
  std::vector<Tensor*> scratch;
};

absl::StatusOr<Step> BindAll(BindContext* context, Composition* parts) {
  PartTable table(parts);
  PD_RETURN_IF_ERROR(table.Infer());
  PartBinder::Values inputs, outputs;
  for (const auto& [slot, names] : context->op().inputs)
    for (size_t i = 0; i < names.size(); ++i)
      if (Tensor* tensor = context->Input(slot, i))
        inputs[parts->In(slot, i)] = tensor;
  for (const auto& [slot, names] : context->op().outputs)
    for (size_t i = 0; i < names.size(); ++i)
      if (Tensor* tensor = context->Output(slot, i))
        outputs[parts->Out(slot, i)] = tensor;
  auto values = std::make_shared<PartValues>();
  std::vector<Step> steps;
  for (const OpDesc& part : parts->parts()) {
    for (const auto& [slot, names] : part.outputs)
      for (const std::string& name : names) {
        const TensorMeta* meta = table.Find(name);
        if (name == kEmptyVar || outputs.count(name) > 0) continue;
        if (meta == nullptr || IsDynamic(meta->shape))
          return Unimplemented("the shape of '%s' is not known", name);
        PD_ASSIGN_OR_RETURN(const int64_t bytes,
                            CheckedBytes(meta->shape, SizeOf(meta->dtype)));
        values->tensors.emplace_back(meta->dtype, meta->shape);
        values->tensors.back().set_lod(meta->lod);
        values->scratch.push_back(context->Scratch(static_cast<size_t>(bytes)));
        outputs[name] = &values->tensors.back();
      }
    const OpDef* def = ReferenceOps().Find(part.type);
    PartBinder binder(part, context, inputs, outputs);
    PD_ASSIGN_OR_RETURN(Step step, def->implementations().back().bind(&binder));
    step = binder.WithCopies(std::move(step));
    if (step != nullptr) steps.push_back(std::move(step));
    for (const auto& [slot, names] : part.outputs)
      for (const std::string& name : names)
        if (name != kEmptyVar) inputs[name] = outputs[name];
  }
  return Step([values, steps](const RunContext& run) -> absl::Status {
    for (size_t i = 0; i < values->scratch.size(); ++i)
      values->tensors[i].Attach(values->scratch[i]->raw());
    for (const Step& step : steps) PD_RETURN_IF_ERROR(step(run));
    return absl::OkStatus();
  });
}

// Runs a function with the metas of a bound op's inputs.
template <typename Compose>
absl::StatusOr<Step> BindWith(BindContext* context, const Compose& compose) {
  std::map<std::pair<std::string, size_t>, TensorMeta> metas;
  for (const auto& [slot, names] : context->op().inputs)
    for (size_t i = 0; i < names.size(); ++i)
      if (const Tensor* tensor = context->Input(slot, i))
        metas[{slot, i}] = MetaOf(*tensor);
  Composition parts(context->op(), [&](absl::string_view slot, size_t i) {
    const auto it = metas.find({std::string(slot), i});
    return it == metas.end() ? nullptr : &it->second;
  });
  try {
    PD_RETURN_IF_ERROR(compose(&parts));
    return BindAll(context, &parts);
  } catch (const MissingInput& missing) {
    return InvalidArgument("input '%s' is missing", missing.slot);
  }
}

// The backward pass over parts.
class PartsBackward {
 public:
  explicit PartsBackward(Composition* parts) : parts_(*parts) {}

  absl::Status Run() {
    KeepIntermediates();
    FindNeeded();
    for (const auto& [slot, names] : parts_.op().inputs) {
      if (!absl::EndsWith(slot, std::string(kGradSuffix))) continue;
      const std::string of = slot.substr(0, slot.size() - kGradSuffix.size());
      for (size_t i = 0; i < names.size(); ++i)
        if (IsThere(names, i))
          gradients_[parts_.Out(of, i)].push_back(parts_.In(slot, i));
    }
    const std::vector<OpDesc> forward = parts_.parts();
    for (auto part = forward.rbegin(); part != forward.rend(); ++part)
      PD_RETURN_IF_ERROR(Differentiate(*part));
    for (const auto& [slot, names] : parts_.op().outputs) {
      const std::string of = slot.substr(0, slot.size() - kGradSuffix.size());
      for (size_t i = 0; i < names.size(); ++i)
        if (IsThere(names, i))
          parts_.Add("assign", {{"X", {Gradient(parts_.In(of, i))}}},
                     {{"Out", {parts_.Out(slot, i)}}});
    }
    return absl::OkStatus();
  }

 private:
  // Gradients read outputs that parts may leave out.
  void KeepIntermediates() {
    for (OpDesc& part : parts_.parts())
      if (const OpDef* def = ReferenceOps().Find(part.type))
        for (const SlotDef& slot : def->outputs())
          if (slot.intermediate && part.Output(slot.name).empty())
            part.SetOutput(slot.name, {parts_.Temp()});
  }

  // The values that depend on an input whose gradient is wanted.
  void FindNeeded() {
    for (const auto& [slot, names] : parts_.op().outputs)
      for (size_t i = 0; i < names.size(); ++i)
        if (IsThere(names, i))
          needed_.insert(
              parts_.In(slot.substr(0, slot.size() - kGradSuffix.size()), i));
    for (const OpDesc& part : parts_.parts()) {
      bool any = false;
      for (const auto& [slot, names] : part.inputs)
        for (const std::string& name : names)
          any = any || needed_.count(name) > 0;
      if (!any) continue;
      for (const auto& [slot, names] : part.outputs)
        needed_.insert(names.begin(), names.end());
    }
  }

  // The sum of what was found for a value; zeros if nothing was.
  std::string Gradient(const std::string& value) {
    auto& found = gradients_[value];
    if (found.empty())
      found = {parts_.Apply("fill_zeros_like", {{"X", {value}}})};
    if (found.size() > 1) found = {parts_.Apply("sum", {{"X", found}})};
    return found[0];
  }

  absl::Status Differentiate(const OpDesc& part) {
    std::map<std::string, std::string> value_of;  // by the gradient's name
    bool any = false;
    for (const auto& [slot, names] : part.outputs)
      for (const std::string& name : names) {
        value_of[GradName(name)] = name;
        const auto it = gradients_.find(name);
        any = any || (it != gradients_.end() && !it->second.empty());
      }
    if (!any) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(const OpDef* def, ReferenceOps().Get(part.type));
    if (!def->has_grad()) return absl::OkStatus();
    OpDesc normal = part;
    PD_RETURN_IF_ERROR(def->Normalize(&normal));
    const GradRequest request{normal, [this](const std::string& name) {
                                return needed_.count(name) > 0;
                              }};
    PD_ASSIGN_OR_RETURN(std::vector<OpDesc> made, def->grad()(request));
    for (OpDesc& grad : made) {
      for (auto& [slot, names] : grad.inputs)
        for (std::string& name : names)
          if (const auto it = value_of.find(name); it != value_of.end())
            name = Gradient(it->second);
      for (auto& [slot, names] : grad.outputs)
        for (std::string& name : names) {
          if (name == kEmptyVar) continue;
          const std::string value =
              name.substr(0, name.size() - kGradSuffix.size());
          name = parts_.Temp();
          gradients_[value].push_back(name);
        }
      parts_.parts().push_back(std::move(grad));
    }
    return absl::OkStatus();
  }

  Composition& parts_;
  std::set<std::string> needed_;
  std::map<std::string, std::vector<std::string>> gradients_;
};

}  // namespace

absl::Status InferParts(InferContext* context, ComposeFn compose) {
  Composition parts(context->op(), [context](absl::string_view slot, size_t i) {
    return &context->Input(slot, i);
  });
  PD_RETURN_IF_ERROR(compose(&parts));
  PartTable table(&parts);
  PD_RETURN_IF_ERROR(table.Infer());
  const OpDef* def = ReferenceOps().Find(context->op().type);
  for (const auto& [slot, names] : context->op().outputs)
    for (size_t i = 0; i < names.size(); ++i)
      if (const TensorMeta* meta = table.Find(parts.Out(slot, i))) {
        TensorMeta out = *meta;
        out.value = nullptr;
        context->SetOutput(slot, std::move(out), i);
      } else if (def->FindOutput(slot)->optional) {
        // Something that PaddlePaddle's kernel keeps and no part has.
        context->SetOutput(slot, {0}, DType::kFloat32, i);
      }
  return absl::OkStatus();
}

namespace {

// The program's variables by the names that parts have for them.
std::map<std::string, std::string> VariablesOf(const Composition& parts) {
  std::map<std::string, std::string> names;
  for (const auto& [slot, variables] : parts.op().inputs)
    for (size_t i = 0; i < variables.size(); ++i)
      if (IsThere(variables, i)) names[parts.In(slot, i)] = variables[i];
  for (const auto& [slot, variables] : parts.op().outputs)
    for (size_t i = 0; i < variables.size(); ++i)
      if (IsThere(variables, i)) names[parts.Out(slot, i)] = variables[i];
  return names;
}

}  // namespace

absl::StatusOr<Expansion> ExpandParts(const OpDesc& op, const FindMetaFn& find,
                                      ComposeFn compose) {
  Composition parts(op, [&](absl::string_view slot, size_t i) {
    return find(op.Input(slot)[i]);
  });
  try {
    PD_RETURN_IF_ERROR(compose(&parts));
  } catch (const MissingInput& missing) {
    return InvalidArgument("the shape of '%s' is not known", missing.slot);
  }
  PartTable table(&parts);
  PD_RETURN_IF_ERROR(table.Infer());
  const std::map<std::string, std::string> variables = VariablesOf(parts);
  Expansion expansion;
  std::set<std::string> declared;
  for (OpDesc& part : parts.parts()) {
    for (SlotList* slots : {&part.inputs, &part.outputs})
      for (auto& [slot, names] : *slots)
        for (std::string& name : names) {
          const auto variable = variables.find(name);
          if (variable != variables.end()) {
            name = variable->second;
            continue;
          }
          const TensorMeta* meta = table.Find(name);
          if (name == kEmptyVar || !declared.insert(name).second) continue;
          if (meta == nullptr)
            return InvalidArgument("the shape of '%s' is not known", name);
          expansion.inside.push_back({name, *meta});
        }
    expansion.parts.push_back(std::move(part));
  }
  return expansion;
}

absl::StatusOr<Step> BindParts(BindContext* context, ComposeFn compose) {
  return BindWith(context, compose);
}

absl::StatusOr<Step> BindPartsGrad(BindContext* context, ComposeFn compose) {
  return BindWith(context, [compose](Composition* parts) -> absl::Status {
    PD_RETURN_IF_ERROR(compose(parts));
    return PartsBackward(parts).Run();
  });
}

absl::Status AddWithComposedGrad(OpRegistry* registry, OpDef def,
                                 GradSpec::Names from, GradSpec::Names to,
                                 BindFn bind) {
  OpDef grad(def.type() + "_grad");
  GradSpec spec(grad.type(), {}, {}, from, to);
  for (const SlotDef& slot : def.inputs()) {
    spec.inputs.push_back(slot.name);
    if (slot.duplicable)
      slot.optional ? grad.OptionalInputs(slot.name) : grad.Inputs(slot.name);
    else
      slot.optional ? grad.OptionalInput(slot.name) : grad.Input(slot.name);
  }
  for (absl::string_view name : from)
    def.FindOutput(name)->duplicable ? grad.Inputs(GradName(name))
                                     : grad.Input(GradName(name));
  for (absl::string_view name : to)
    def.FindInput(name)->duplicable ? grad.OptionalOutputs(GradName(name))
                                    : grad.OptionalOutput(GradName(name));
  for (const AttrDef& attr : def.attrs())
    if (attr.default_value.has_value())
      grad.Attr(attr.name, *attr.default_value);
    else
      grad.RequiredAttr(attr.name, attr.type);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(bind);
  def.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(def)));
  return registry->Add(std::move(grad));
}

}  // namespace pd
